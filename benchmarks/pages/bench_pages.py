"""What the pages weigh, and how soon they show photos, by the browser's own figures.

    python -m benchmarks.pages.bench_pages
    python -m benchmarks.pages.bench_pages --smoke --out "$(mktemp -d)"

Writes results/pages/demo/<name>.json: the bytes of each page's HTML, and how soon a Chromium of
this machine shows the photos of a search, over loopback, with a warm server and a window of 1,280
by 900 pixels. `MEANINGS` says what each figure is, and stands in the record. Each search is for
other words, so hardly a photo of it was loaded before. Where there is no Chromium only the HTML is
weighed, and the record says so.
"""

from __future__ import annotations

import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from benchmarks.common.chromium import find_chromium, launch
from benchmarks.common.demo_photos import some_photos
from benchmarks.common.recording import bench_parser, on_record, record
from searchlab.evaluation.provenance.manifest import make_manifest

BENCHMARK = "pages"
CLI = [sys.executable, "-c", "from searchlab.cli import main; main()"]
WORDS = (
    *("a castle", "the sea", "a red flower", "mountains", "a musical instrument", "a bird"),
    *("a train", "food on a plate", "snow", "an old map", "a tree in autumn", "people", "a bridge"),
    *("a cat", "night sky", "a boat", "fish", "a colourful pattern"),
)
PAGES = {"search": "/?q={q}", "everything": "/?after_date=1900-01-01", "start": "/"}
_READY = re.compile(r"(http://[\d.]+:\d+)")
_WINDOW: Any = {"width": 1280, "height": 900}
MEANINGS = {
    "html_bytes": "the HTML of the page, not compressed",
    "search, html_ms": "from the click on the search button until all HTML is there",
    "search, first_photo_ms": "from that click until the first photo itself is painted (element "
    "timing), its blurred placeholder not counted",
    "search, photos_in_view_ms": "from that click until the last photo in the window is painted",
    "search, layout_shift": "sum of all shifts from that click on, those right after it included",
    "document, html_ms": "the same search by its address, in a browser that has loaded nothing "
    "before: from the start of the navigation until all HTML is there",
    "document, first_photo_ms": "from that start until the first photo is painted",
    "document, photos_in_view_ms": "from that start until the last photo in the window is painted",
    "document, layout_shift": "sum of all shifts from that start on",
    "document, loaded_bytes": "all that it loads before anybody scrolls, as sent",
    "most": "of all searches; without this word a figure is the median",
}
_WATCH = """
window.seen = {clicked: 0, shift: 0, photos: []};
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.seen.shift += entry.value;
}).observe({type: "layout-shift", buffered: true});
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.seen.photos.push(entry);
}).observe({type: "element", buffered: true});
const photo = "li.photo img:not(.blur)";
const mark = (node) => {
  for (const one of node.querySelectorAll(photo)) one.setAttribute("elementtiming", "photo");
};
new MutationObserver((changes) => {
  for (const { addedNodes } of changes) for (const node of addedNodes) if (node.matches) {
    if (node.matches(photo)) node.setAttribute("elementtiming", "photo");
    mark(node);
  }
}).observe(document, {childList: true, subtree: true});
// Pages that are put in place are laid out at once, before an observer hears of them.
const parse = DOMParser.prototype.parseFromString;
DOMParser.prototype.parseFromString = function (...text) {
  const page = parse.apply(this, text);
  mark(page);
  return page;
};
addEventListener("click", (event) => {
  performance.clearResourceTimings();
  window.seen = {clicked: event.timeStamp, shift: 0, photos: []};
}, true);
"""
_IS_SHOWN = """() => window.seen.photos.some((one) => one.element?.isConnected)
  && [...document.querySelectorAll("li.photo img:not(.blur)")]
    .filter((one) => one.getBoundingClientRect().top < innerHeight).every((one) => one.complete)"""
_READ = """() => {
  const [page] = performance.getEntriesByType("navigation");
  const loaded = performance.getEntriesByType("resource");
  const { clicked, shift, photos } = window.seen;
  const painted = photos.filter((one) => one.element?.isConnected).map((one) => one.renderTime);
  const isHtml = (one) => one.startTime >= clicked && one.name === location.href;
  const html = clicked ? loaded.find(isHtml) : page;
  const bytes = page.encodedBodySize + loaded.reduce((sum, one) => sum + one.encodedBodySize, 0);
  return {
    html_ms: html.responseEnd - clicked,
    first_photo_ms: Math.min(...painted) - clicked,
    photos_in_view_ms: Math.max(...painted) - clicked,
    layout_shift: shift,
    ...(clicked ? {} : { loaded_bytes: bytes }),
  };
}"""
_SETTLING_MS = 300  # for shifts that come late


def main() -> None:
    """Serve the bundled photos, load the pages, record."""
    parser = bench_parser(__doc__, dataset="demo", datasets=["demo"])
    parser.add_argument("--name", default="loopback", help="what the record is called")
    parser.add_argument("--data", type=Path, help="a library to serve; a new one if left out")
    options = parser.parse_args()
    if on_record(options, BENCHMARK, options.name) is not None:
        return
    chromium = find_chromium()
    with tempfile.TemporaryDirectory() as scratch:
        library = options.data or index(Path(scratch), n_photos=3 if options.smoke else None)
        with serving(library) as address:
            weights = {
                name: len(read(address + path.format(q="a+castle"))) for name, path in PAGES.items()
            }
            words = WORDS[:1] if options.smoke else WORDS
            measured = [] if chromium is None else list(time_searches(address, words))
    metrics: dict[str, float] = {f"{name}, html_bytes": n for name, n in weights.items()}
    for figure in [name for name in (measured[0] if measured else {}) if name != "words"]:
        values = [run[figure] for run in measured]
        metrics[figure] = round(statistics.median(values), 4)
        metrics[f"{figure}, most"] = round(max(values), 4)
    found = {
        "parameters": {"words": list(words), "window": list(_WINDOW.values())},
        "meanings": MEANINGS,
        "metrics": metrics,
        "rows": measured,
        "browser": "Chromium" if chromium else "none on this machine: only HTML is weighed",
        "manifest": make_manifest(BENCHMARK, threads=1),
    }
    record(options, BENCHMARK, options.name, found)
    for name, value in metrics.items():
        print(f"{name:40} {value:12,.3f}")


def index(folder: Path, *, n_photos: int | None) -> Path:
    """Index the bundled photos, or the first few of them."""
    photos = some_photos(folder / "photos", n_photos)
    subprocess.run(
        [*CLI, "index", "--data", str(folder / "library"), str(photos)],
        check=True,
        capture_output=True,
    )
    return folder / "library"


@contextmanager
def serving(library: Path) -> Iterator[str]:
    """Serve a library to anybody on this machine; the block gets its address."""
    accounts = ["accounts", "create", "--data", str(library), "--account", "guest"]
    subprocess.run([*CLI, *accounts, "--plan", "scale"], check=False, capture_output=True)
    words = ["serve", "--data", str(library), "--port", "0", "--visitors", "guest"]
    with (
        tempfile.NamedTemporaryFile(mode="w+", suffix=".log") as log,
        subprocess.Popen([*CLI, *words], stderr=log, stdout=log) as process,
    ):
        try:
            yield wait_for(process, Path(log.name))
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def wait_for(process: subprocess.Popen[bytes], log: Path) -> str:
    """Return the address of a server that has just become ready."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        ready = _READY.search(log.read_text(encoding="utf-8"))
        if ready:
            read(f"{ready[1]}/health")
            return ready[1]
        time.sleep(0.1)
    msg = f"the server must become ready, got:\n{log.read_text(encoding='utf-8')}"
    raise SystemExit(msg)


def read(address: str) -> bytes:
    """Return the body at an address."""
    with urllib.request.urlopen(address, timeout=30) as answer:
        body: bytes = answer.read()
    return body


def time_searches(address: str, words: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Search in a browser by clicks, then by addresses; the first click is not counted."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = launch(playwright)
        page = browser.new_page(viewport=_WINDOW)
        page.add_init_script(_WATCH)
        page.goto(address, wait_until="networkidle")
        by_click = []
        for text in ("warm up", *words):
            page.get_by_role("searchbox").fill(text)
            page.get_by_role("button", name="Search", exact=True).first.click()
            page.wait_for_url(f"**{query_of(text)}")
            by_click.append(read_figures(page))
        for text, clicked in zip(words, by_click[1:], strict=True):
            anew = browser.new_page(viewport=_WINDOW)
            anew.add_init_script(_WATCH)
            anew.goto(address + query_of(text))
            opened = read_figures(anew)
            anew.close()
            yield {
                "words": text,
                **{f"search, {name}": value for name, value in clicked.items()},
                **{f"document, {name}": value for name, value in opened.items()},
            }
        browser.close()


def query_of(text: str) -> str:
    """Return the path and query of the search for a text."""
    return f"/?{urlencode({'q': text})}"


def read_figures(page: Any) -> dict[str, float]:
    """Return what the browser measured, once all photos in the window are painted."""
    page.wait_for_function(_IS_SHOWN)
    page.wait_for_timeout(_SETTLING_MS)
    figures: dict[str, float] = page.evaluate(_READ)
    return figures


if __name__ == "__main__":
    main()
