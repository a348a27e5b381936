"""Judging in a notebook, in a real browser: one photo after the other, and a query's at once."""

import pytest

from searchlab.evaluation.judging import GradingGrid
from tests.support import judging_world
from tests.support.browsing import overflow_of, violations_by_day_and_dark, violations_of
from tests.support.widget_page import open_widget

pytestmark = pytest.mark.slow

dataset = judging_world.dataset
pool = judging_world.pool
grading = judging_world.grading


@pytest.fixture
def shown(browser):
    """Shows a widget in a page; at the end the page may have had no troubles."""
    pages, troubles = [], []

    def show(widget, *names, width=1100):
        page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme="light")
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("console", lambda one: troubles.append(one.text) if one.type == "error" else None)
        pages.append(page)
        widget.sheet_id = "sheet"
        open_widget(page, widget, names=(*names, "problem", "heard", "sheet_id"))
        return page

    yield show
    for page in pages:
        page.close()
    assert troubles == []


def test_keys_grade_one_photo_after_the_other(shown, grading):
    page = shown(grading.widget, "view")
    page.locator(".searchlab-judging").focus()
    page.keyboard.press("3")
    page.get_by_text("1 of 14, 13 left").wait_for()
    page.keyboard.press("s")
    page.get_by_text("1 skipped").wait_for()
    page.keyboard.press("u")
    page.get_by_text("1 of 14, 13 left").wait_for()
    assert list(grading.grades.values()) == [3]
    assert violations_of(page) == []


def test_keys_in_the_grid_grade_the_photo_that_is_marked(shown, grading):
    grid = GradingGrid(grading)
    page = shown(grid.widget, "view", "pictures")
    assert page.locator("#sheet").is_hidden()
    first, second, *_ = grading.pool.places[grid.query_id]
    page.locator(".searchlab-judging").focus()
    page.keyboard.press("3")
    page.keyboard.press("1")
    page.get_by_text("2 of 14 photos").wait_for()
    pairs = grading.pool.pairs
    assert grading.grades == {pairs[first]: 3, pairs[second]: 1}
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("2")
    page.locator("li:nth-child(2) button[aria-pressed=true]", has_text="2").wait_for()
    assert grading.grades == {pairs[first]: 3, pairs[second]: 2}


def test_buttons_grade_a_photo_the_rest_and_lead_to_the_next_query(shown, grading):
    grid = GradingGrid(grading)
    page = shown(grid.widget, "view", "pictures")
    first_query = grid.query_id
    page.get_by_role("button", name="3 perfect, photo 2").click()
    page.locator("li:nth-child(2) button[aria-pressed=true]").wait_for()
    assert page.locator("li[aria-current]").get_by_role("button", name="3 perfect, photo 3").count()
    page.get_by_role("button", name="are not relevant").click()
    page.get_by_text("the other 0 are").wait_for()
    kept = [grade for pair, grade in grading.grades.items() if pair.query_id == first_query]
    assert sorted(kept) == [0] * (len(kept) - 1) + [3]
    page.get_by_role("button", name="next query").click()
    page.get_by_text("query 2 of 3").wait_for()
    assert page.locator("li img").first.evaluate("image => image.naturalWidth") == 60
    assert page.locator("li").count() == len(grading.pool.places[grid.query_id])


def test_a_grade_that_cannot_be_written_is_said_and_not_shown_as_given(shown, grading, monkeypatch):
    def full(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    grid = GradingGrid(grading)
    page = shown(grid.widget, "view", "pictures")
    monkeypatch.setattr("searchlab.evaluation.judging.journal._append", full)
    page.get_by_role("button", name="3 perfect, photo 1").click()
    page.get_by_role("alert").get_by_text("No space left on device").wait_for()
    assert page.locator("button[aria-pressed=true]").count() == 0


@pytest.mark.parametrize("width", [320, 1100])
def test_the_grid_suits_everybody(shown, grading, width):
    grid = GradingGrid(grading)
    grid.choose(grading.pool.places[grid.query_id][0], 3)
    page = shown(grid.widget, "view", "pictures", width=width)
    page.locator("li img").first.wait_for()
    assert violations_by_day_and_dark(page) == []
    assert overflow_of(page) <= 0
