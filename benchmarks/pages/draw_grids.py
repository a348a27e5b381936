"""Draw what searches of the bundled photos find, a row of pictures for each query.

    python -m benchmarks.pages.draw_grids [--data LIBRARY]

Writes results/readme/ten_languages.jpg, as new libraries answer, with words; thirty_languages.jpg
and good_and_bad.jpg, what the model answers by pictures alone. Needs Chromium, and fonts for the
scripts of the queries (Debian's fonts-droid-fallback and fonts-noto-core).
"""

from __future__ import annotations

import argparse
import base64
import html
import tempfile
from dataclasses import replace
from pathlib import Path

from playwright.sync_api import sync_playwright

import searchlab
from benchmarks.common.chromium import launch
from searchlab.config import USUAL
from searchlab.models.shipped_calibration import calibrate
from searchlab.search.engine import SearchEngine
from searchlab.search.queries import Page

RESULTS = Path(__file__).resolve().parents[2] / "results" / "readme"
TEN_LANGUAGES = {
    "Ten languages": (
        "a lake at dusk",
        "gato",
        "рыба",
        "花",
        "kuş",
        "سيارة",
        "Flugzeug",
        "oiseau",
        "linna",
        "자전거",
    )
}
THIRTY_LANGUAGES = {
    "Thirty languages, by pictures alone": (
        "uma flor amarela no jardim",
        "een vogel op een tak",
        "un gatto che guarda",
        "un pez en el agua",
        "समुद्र के किनारे नाव",
        "seekor burung di udara",
        "một bông hoa màu đỏ",
        "dağların arasında bir göl",
        "zamek na wzgórzu",
        "жовта квітка",
        "старая ветряная мельница",
        "червена роза",
        "мост преко реке",
        "ένας αρχαίος ναός",
        "כלב שחור",
        "یک درخت نخل",
        "ایک سرخ گلاب",
        "একটি হলুদ ফুল",
        "डोंगर आणि आकाश",
        "เต่าในทะเล",
        "木の上の小鳥",
        "눈 덮인 산",
        "一座古老的塔",
        "წითელი ვაშლი",
        "կարմիր խնձոր",
        "kaunis auringonlasku",
        "en fisk i havet",
        "egy régi templom",
        "o broască verde",
        "ceffyl brown",
    )
}
GOOD_AND_BAD = {
    "Good at: things, in many languages, and their colours": (
        "a castle",
        "Vogel",
        "一朵花",
        "a red car",
    ),
    "Bad at: numbers, negation, and saying that nothing fits": (
        "two birds",
        "a room without chairs",
        "un train dans la neige",
    ),
}
SHOWN = 6
_STYLE = """
body { font: 13px system-ui, sans-serif; margin: 12px; width: 800px; color: #222; }
h1 { font-size: 17px; margin: 14px 0 8px; } h2 { font-size: 14px; margin: 10px 0 4px; }
div { display: flex; gap: 8px; } figure { margin: 0; width: 126px; }
img { width: 126px; height: 88px; object-fit: contain; background: #f2f2f2; }
figcaption { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
"""


def main() -> None:
    """Open or make a library, search it, and take a picture of each grid."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="a library to search; a new one if left out")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        library = (
            searchlab.open_library(options.data)
            if options.data
            else searchlab.build_demo_library(Path(scratch))
        )
        opened = library.engine
        with_words = calibrate(USUAL)
        served, seen = (
            SearchEngine(
                opened.table, opened.index, opened.model, config, thumbnail=opened._thumbnail
            )
            for config in (with_words, replace(with_words, words=None))
        )
        browser = launch(playwright)
        page = browser.new_page(viewport={"width": 824, "height": 600})
        for name, engine, groups in (
            ("ten_languages", served, TEN_LANGUAGES),
            ("thirty_languages", seen, THIRTY_LANGUAGES),
            ("good_and_bad", seen, GOOD_AND_BAD),
        ):
            page.set_content(grid(engine, groups))
            page.screenshot(path=RESULTS / f"{name}.jpg", full_page=True, quality=75, type="jpeg")
            print(RESULTS / f"{name}.jpg")
        browser.close()


def grid(engine: SearchEngine, groups: dict[str, tuple[str, ...]]) -> str:
    """Return a page with a heading for each group and a row of pictures for each query."""
    parts = [f"<!doctype html><meta charset=utf-8><style>{_STYLE}</style>"]
    for heading, queries in groups.items():
        parts.append(f"<h1>{html.escape(heading)}</h1>")
        for query in queries:
            found = engine.search(query, per_page=SHOWN)
            parts.append(f"<h2>“{html.escape(query)}”</h2><div>{figures(found)}</div>")
    return "\n".join(parts)


def figures(page: Page) -> str:
    """Return the pictures of a page, each with its score and title."""
    return "".join(
        f"<figure><img src='data:image/jpeg;base64,{picture(hit.thumbnail)}'><figcaption>"
        f"{hit.relevance_score:.2f} {html.escape(hit.photo.title)}</figcaption></figure>"
        for hit in page
    )


def picture(thumbnail: Path | None) -> str:
    """Return a thumbnail as text."""
    if thumbnail is None:
        msg = "every photo of the library must have a thumbnail"
        raise ValueError(msg)
    return base64.b64encode(thumbnail.read_bytes()).decode("ascii")


if __name__ == "__main__":
    main()
