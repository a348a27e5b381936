"""Take pictures of the pages over the bundled photos; the first stands at the top of the README.

    python -m benchmarks.pages.draw_pages [--data LIBRARY]

Writes results/readme/search.jpg and results/pages/*.jpg: the search page in light, in the dark, on
a phone and from right to left, and a photo's page. Needs Chromium.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

from benchmarks.pages.bench_pages import index, serving

RESULTS = Path(__file__).resolve().parents[2] / "results"
WIDE, PHONE = {"width": 1280, "height": 860}, {"width": 390, "height": 844}
SEARCH = "/?q=castle"
PICTURES: dict[str, dict[str, Any]] = {
    "readme/search": {"viewport": WIDE},
    "pages/search-dark": {"viewport": WIDE, "color_scheme": "dark"},
    "pages/search-phone": {"viewport": PHONE},
    "pages/search-right-to-left": {"viewport": WIDE, "path": "/?q=قلعة", "dir": "rtl"},
    "pages/photo": {"viewport": WIDE, "opens": True},
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
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            for name, how in PICTURES.items():
                shot = Path(scratch) / "shot.png"
                take(browser, address, shot, **how)
                target = RESULTS / f"{name}.jpg"
                target.parent.mkdir(parents=True, exist_ok=True)
                image = Image.open(shot).convert("RGB")
                image.save(target, quality=QUALITY, optimize=True, progressive=True)
                print(f"{target}: {image.width} x {image.height}, {target.stat().st_size:,} bytes")
            browser.close()


def take(
    browser: Any,
    address: str,
    shot: Path,
    *,
    path: str = SEARCH,
    dir: str = "ltr",
    opens: bool = False,
    **window: Any,
) -> None:
    """Take one picture, of the first photo's page if it `opens`."""
    page = browser.new_page(**window)
    page.goto(address + path, wait_until="networkidle")
    if opens:
        page.locator("li.photo a").first.click()
        page.wait_for_load_state("networkidle")
    page.evaluate(f"document.documentElement.dir = '{dir}'")
    page.wait_for_timeout(300)
    page.screenshot(path=shot)
    page.close()


if __name__ == "__main__":
    main()
