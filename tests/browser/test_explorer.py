"""The explorer of notebooks in a real browser: sorted, clicked into, narrowed, stepped through."""

import pytest

from searchlab import Config, Experiment, Explorer, build_demo_library, load_dataset
from tests.support.browsing import overflow_of, violations_by_day_and_dark
from tests.support.widget_page import open_widget

pytestmark = pytest.mark.slow

NAMES = ("board", "listing", "case", "words", "problem", "heard", "sheet_id")


@pytest.fixture(scope="module")
def dataset():
    return load_dataset("demo").sample(["ar", "en"], 30, seed=1)


@pytest.fixture(scope="module")
def made(dataset, tmp_path_factory):
    library = build_demo_library()
    out = tmp_path_factory.mktemp("mine")
    configs = [Config(model=model) for model in ("mini", "palette", "captions")]
    report = Experiment(dataset, configs, out=out, library=library).run()
    return report, dataset, out, library


@pytest.fixture
def shown(browser, made):
    """Shows an explorer in a page; at the end the page may have had no troubles."""
    pages, troubles = [], []
    report, dataset, out, library = made

    def show(*, width=1100):
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme="light")
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("console", lambda one: troubles.append(one.text) if one.type == "error" else None)
        page.on("request", lambda one: troubles.append(one.url) if one.url[:4] == "http" else None)
        pages.append(page)
        explorer = Explorer(report, dataset, out, library=library)
        explorer.sheet_id = "sheet"
        open_widget(page, explorer, names=NAMES)
        return page, explorer

    yield show
    for page in pages:
        page.close()
    assert troubles == []


def models(page):
    return [text.split()[0] for text in page.locator("tbody th").all_inner_texts()]


def test_the_board_is_sorted_by_the_column_that_is_clicked(shown):
    page, explorer = shown()
    assert page.locator("#sheet").is_hidden()
    assert models(page) == [one.config.model for one in explorer._report.results]
    page.get_by_role("button", name="system", exact=True).click()
    assert models(page) == ["captions", "mini", "palette"]
    page.get_by_role("button", name="system", exact=True).click()
    assert models(page) == ["palette", "mini", "captions"]
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("system")
    page.get_by_role("button", name="success@5").click()
    cells = page.locator("tbody tr td:nth-child(4)").all_inner_texts()
    figures = [float(text.split()[0]) for text in cells]
    assert figures == sorted(figures, reverse=True)


def test_a_click_on_a_system_lists_its_queries_and_one_on_a_query_its_photos(shown):
    page, explorer = shown()
    page.get_by_role("button", name="palette × exact").click()
    page.locator("tbody button[aria-pressed=true]", has_text="palette").wait_for()
    assert explorer.system.config.model == "palette"
    page.get_by_label("order").select_option("best")
    best = f"{max(explorer.system.scores.values['ndcg@10']):.3f}"
    page.wait_for_function(
        "best => document.querySelector('ol li button').textContent.includes(best)", arg=best
    )
    page.locator("ol.searchlab-ex-list button").nth(2).click()
    page.locator("ol.searchlab-ex-list li:nth-child(3) button[aria-current=true]").wait_for()
    assert page.locator("section").count() == 3
    picture = page.locator("section img").first
    assert picture.evaluate("image => image.naturalWidth") > 50
    assert page.locator(".searchlab-ex-good").count() >= 1


def test_keys_step_through_the_queries(shown):
    page, explorer = shown()
    page.locator("ol.searchlab-ex-list button").first.focus()
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    page.locator("ol.searchlab-ex-list li:nth-child(4) button[aria-current=true]").wait_for()
    assert explorer.shown == explorer.queries[3]
    page.keyboard.press("ArrowUp")
    page.locator("ol.searchlab-ex-list li:nth-child(3) button[aria-current=true]").wait_for()


def test_the_list_is_narrowed_compared_and_goes_on(shown):
    page, explorer = shown()
    rows = page.locator("ol.searchlab-ex-list li")
    assert rows.count() == 40
    page.get_by_role("button", name="more queries").click()
    page.get_by_text("60 of 60 queries are listed").wait_for()
    assert rows.count() == 60
    page.get_by_label("language").select_option("ar")
    page.get_by_text("30 of 30 queries are listed").wait_for()
    page.get_by_label("against").select_option(label="against captions × exact")
    page.wait_for_function("document.querySelector('ol li button').textContent.includes('(')")
    assert explorer.against.config.model == "captions"
    page.get_by_label("words of the query").fill(explorer.queries[0].text)
    page.wait_for_function("document.querySelectorAll('ol.searchlab-ex-list li').length < 30")
    page.get_by_label("words of the query").fill("nobody asks this")
    page.get_by_text("no such query").wait_for()
    assert explorer.queries == []


def test_a_query_is_kept(shown):
    page, explorer = shown()
    page.get_by_role("button", name="keep").click()
    page.get_by_text(f"kept: {explorer.queries[0].text}").wait_for()
    assert explorer.kept == [explorer.queries[0].query_id]


@pytest.mark.parametrize("width", [320, 1100])
def test_the_explorer_suits_everybody(shown, width):
    page, _ = shown(width=width)
    page.locator("section img").first.wait_for()
    assert violations_by_day_and_dark(page) == []
    assert overflow_of(page) <= 0
