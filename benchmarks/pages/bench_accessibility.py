"""What axe-core says of every page over the bundled photos: rules that passed, and violations.

    python -m benchmarks.pages.bench_accessibility
    python -m benchmarks.pages.bench_accessibility --smoke --out "$(mktemp -d)"

Writes results/pages/demo/accessibility.json: for each page on a desktop in light and on a phone in
the dark, how many rules of WCAG 2.2 A and AA and of best practice passed, which were violated, and
which nobody but a person can decide; and the version of axe-core. Needs Chromium.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.common.chromium import launch
from benchmarks.common.recording import bench_parser, on_record, record
from benchmarks.pages.bench_pages import CLI, index, serving
from searchlab.evaluation.provenance.manifest import make_manifest

BENCHMARK, NAME = "pages", "accessibility"
AXE = Path(__file__).resolve().parents[2] / "tests" / "browser" / "vendored" / "axe.min.js"
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
WINDOWS: dict[str, dict[str, Any]] = {
    "desktop, light": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "phone, dark": {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"},
}
PAGES = {
    "start": "/",
    "results": "/?q=castle",
    "results, by a photo and words": "/?photo_id={photo}&q=snow",
    "no result": "/?color_name=teal&orientation=portrait&source=scikit-image&license_type=cc0",
    "photographers": "/?photographer=a",
    "photo": "/photos/{photo}",
    "collections": "/collections",
    "new collection": "/collections/new",
    "collection": "/collections/{collection}",
    "collection, edited": "/collections/{collection}/edit",
    "collection, public": "/c/{collection}",
    "add to a collection": "/collections/add?photo_id={photo}",
    "judging": "/judge",
    "new task": "/judge/new",
    "task": "/judge/landscapes",
    "judging one by one": "/judge/landscapes/one",
    "judging in a grid": "/judge/landscapes/grid",
    "judging, results": "/judge/landscapes/results",
    "account": "/account",
    "close the account": "/account/close",
    "connected apps": "/account/apps",
    "sign in": "/sign-in",
    "failure": "/nothing",
    "reference": "/docs",
    "errors of the API": "/docs/errors",
    "tools": "/docs/mcp",
    "security": "/docs/security",
}


def main() -> None:
    """Serve the bundled photos, ask axe about every page, record."""
    parser = bench_parser(__doc__, dataset="demo", datasets=["demo"])
    parser.add_argument("--data", type=Path, help="a library to serve; a new one if left out")
    options = parser.parse_args()
    if on_record(options, BENCHMARK, NAME) is not None:
        return
    with tempfile.TemporaryDirectory() as scratch:
        library = options.data or index(Path(scratch), n_photos=2 if options.smoke else None)
        with serving(library) as address:
            rows = list(ask(address, sign_in_link(library, address), options.smoke))
    passed = {rule for row in rows for rule in row["passed"]}
    values = {
        "parameters": {"rules": list(RULES), "windows": list(WINDOWS)},
        "metrics": {
            "pages": len({row["page"] for row in rows}),
            "rules that passed somewhere": len(passed),
            "violations": sum(len(row["violated"]) for row in rows),
            "rules for a person to decide": len({r for row in rows for r in row["undecided"]}),
        },
        "rows": rows,
        "manifest": make_manifest(BENCHMARK, threads=1),
    }
    record(options, BENCHMARK, NAME, values)
    for name, value in values["metrics"].items():
        print(f"{name:32} {value}")


def sign_in_link(library: Path, address: str) -> str:
    """Return a one-time link of a new account."""
    words = ["--data", str(library), "--account", "guest"]
    link = [*CLI, "accounts", "link", *words, "--base-url", address]
    done = subprocess.run(link, check=True, capture_output=True, text=True)
    return done.stdout.split()[-1]


def ask(address: str, link: str, smoke: bool) -> Iterator[dict[str, Any]]:
    """Ask axe about each page in each window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = launch(playwright)
        person = browser.new_context(base_url=address)
        names = prepare(person.new_page(), link)
        for window, how in WINDOWS.items():
            context = browser.new_context(
                base_url=address, storage_state=person.storage_state(), **how
            )
            page = context.new_page()
            for name, path in list(PAGES.items())[: 1 if smoke else None]:
                page.goto(path.format(**names), wait_until="networkidle")
                page.evaluate(AXE.read_text(encoding="utf-8"))
                yield {"page": name, "window": window, **read(page)}
            context.close()
        browser.close()


def prepare(page: Any, link: str) -> dict[str, str]:
    """Sign in, make a collection of one photo and a judging task; returns their names."""
    page.goto(link)
    page.wait_for_url(lambda url: "/sign-in" not in url)
    page.goto("/judge/new")
    page.get_by_label("Title").fill("landscapes")
    page.get_by_label("Queries, one a line").fill("a castle\nthe sea")
    page.get_by_role("button", name="Make the task").click()
    page.goto("/?q=castle")
    photo = page.locator("li.photo > a").first.get_attribute("href").rpartition("/")[2]
    page.goto("/collections/new")
    page.get_by_label("Name").fill("Castles")
    page.get_by_label("Everybody who has the link").check()
    page.get_by_role("button", name="Make the collection").click()
    collection = page.url.rpartition("/")[2]
    page.goto(f"/collections/add?photo_id={photo}")
    page.get_by_role("button", name="Add", exact=True).click()
    return {"photo": photo, "collection": collection}


def read(page: Any) -> dict[str, Any]:
    """Run axe on a page; returns the ids of its rules by outcome, and its version."""
    answer: dict[str, Any] = page.evaluate(
        "rules => axe.run(document, {runOnly: rules})", list(RULES)
    )
    return {
        "passed": sorted(each["id"] for each in answer["passes"]),
        "violated": sorted(each["id"] for each in answer["violations"]),
        "undecided": sorted(each["id"] for each in answer["incomplete"]),
        "axe": answer["testEngine"]["version"],
    }


if __name__ == "__main__":
    main()
