"""Take pictures of the pages over the bundled photos; the first stands at the top of the README.

    python -m benchmarks.pages.draw_pages [--data LIBRARY]

Writes results/readme/search.jpg and results/pages/*.jpg: the search page in light, in the dark, on
a phone and from right to left; a photo, a collection, judging and an account, of somebody who is
signed in; the reference with an open form. Needs Chromium.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

from benchmarks.common.chromium import launch
from benchmarks.pages.bench_accessibility import prepare, sign_in_link
from benchmarks.pages.bench_pages import index, serving

RESULTS = Path(__file__).resolve().parents[2] / "results"
WIDE, PHONE = {"width": 1280, "height": 860}, {"width": 390, "height": 844}
SEARCH = "/?q=castle"
PICTURES: dict[str, dict[str, Any]] = {
    "readme/search": {"viewport": WIDE},
    "pages/search-dark": {"viewport": WIDE, "color_scheme": "dark"},
    "pages/search-phone": {"viewport": PHONE},
    "pages/search-right-to-left": {"viewport": WIDE, "path": "/?q=قلعة", "dir": "rtl"},
    "pages/photo": {"viewport": WIDE, "path": "/photos/{photo}"},
    "pages/collection": {"viewport": WIDE, "path": "/c/{collection}"},
    "pages/judging": {"viewport": WIDE, "path": "/judge/landscapes/grid"},
    "pages/account-dark": {"viewport": WIDE, "path": "/account", "color_scheme": "dark"},
    "pages/reference": {"viewport": WIDE, "path": "/docs#searchPhotosByText"},
    "pages/reference-phone": {"viewport": PHONE, "path": "/docs#searchPhotosByText"},
}
QUALITY = 85


def main() -> None:
    """Serve, take the pictures, say how large they are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="a library to serve; a new one if left out")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        library = options.data or index(Path(scratch), n_photos=None)
        with serving(library) as address, sync_playwright() as playwright:
            browser = launch(playwright)
            person = browser.new_context(base_url=address)
            names = prepare(person.new_page(), sign_in_link(library, address))
            collect(person.pages[0], names["collection"])
            shot = Path(scratch) / "shot.png"
            for name, how in PICTURES.items():
                window = {**how, "base_url": address, "storage_state": person.storage_state()}
                take(browser, shot, names, **window)
                target = RESULTS / f"{name}.jpg"
                target.parent.mkdir(parents=True, exist_ok=True)
                image = Image.open(shot).convert("RGB")
                image.save(target, quality=QUALITY, optimize=True, progressive=True)
                print(f"{target}: {image.width} x {image.height}, {target.stat().st_size:,} bytes")
            browser.close()


def collect(page: Any, collection: str) -> None:
    """Add the photos to a collection that follow the one in it."""
    page.goto(SEARCH)
    links = page.locator("li.photo > a").evaluate_all("all => all.map(a => a.href)")
    for link in links[1:8]:
        page.goto(f"/collections/add?photo_id={link.rpartition('/')[2]}")
        page.get_by_label("Collection", exact=True).select_option(collection)
        with page.expect_navigation():
            page.get_by_role("button", name="Add", exact=True).click()


def take(
    browser: Any,
    shot: Path,
    names: dict[str, str],
    *,
    path: str = SEARCH,
    dir: str = "ltr",
    **window: Any,
) -> None:
    """Take one picture; `names` stand for the braces of its path."""
    page = browser.new_page(**window)
    page.goto(path.format(**names), wait_until="networkidle")
    page.evaluate(f"document.documentElement.dir = '{dir}'")
    page.wait_for_timeout(300)
    page.screenshot(path=shot)
    page.close()


if __name__ == "__main__":
    main()
