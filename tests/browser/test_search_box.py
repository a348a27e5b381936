"""The search box of notebooks in a real browser: typed into, dropped on, scrolled, compared."""

import pytest

from searchlab import Config, Query, build_demo_library
from searchlab.studies.widgets.search_box import SearchBox
from tests.support.browsing import overflow_of, violations_by_day_and_dark
from tests.support.widget_page import open_widget

pytestmark = pytest.mark.slow

NAMES = ("columns", "choices", "problem", "heard", "texts", "typed", "sheet_id")


@pytest.fixture(scope="module")
def library():
    return build_demo_library()


@pytest.fixture
def shown(browser, library):
    """Shows a box in a page; at the end the page may have had no troubles."""
    pages, troubles = [], []

    def show(text="", *, width=1100, **options):
        page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme="light")
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("console", lambda one: troubles.append(one.text) if one.type == "error" else None)
        page.on("request", lambda one: troubles.append(one.url) if one.url[:4] == "http" else None)
        pages.append(page)
        box = SearchBox(library, text, **options)
        box.sheet_id = "sheet"
        open_widget(page, box, names=NAMES)
        return page, box

    yield show
    for page in pages:
        page.close()
    assert troubles == []


def test_typing_searches_by_itself_and_the_saved_sheet_makes_way(shown):
    page, box = shown("a castle", per_page=6)
    assert page.locator("#sheet").is_hidden()
    page.get_by_label("what the photo shows").fill("an owl")
    page.get_by_text("An owl").first.wait_for()
    assert box.query == Query(text="an owl")
    assert page.locator("figure img").first.evaluate("image => image.naturalWidth") > 50


def test_leaving_the_field_searches_no_second_time(shown):
    page, box = shown(per_page=6)
    page.get_by_label("what the photo shows").press_sequentially("an owl")
    page.get_by_text("An owl").first.wait_for()
    page.get_by_role("button", name="more photos", include_hidden=True).evaluate("it => it.click()")
    page.wait_for_function("document.querySelectorAll('figure').length > 6")
    pages = len(box.pages[0])
    assert pages > 1
    page.get_by_label("what the photo shows").press("Tab")
    page.wait_for_timeout(500)
    assert len(box.pages[0]) >= pages


def test_filters_are_chosen_and_what_cannot_be_asked_is_said(shown):
    page, box = shown("sea", per_page=6)
    page.get_by_label("orientation").select_option("portrait")
    page.get_by_label("colour", exact=True).select_option("blue")
    page.wait_for_function("document.querySelector('[role=status]').textContent.includes('shown')")
    assert box.query.filter.orientation == ("portrait",)
    page.get_by_label("least score").fill("7")
    page.get_by_label("least score").press("Tab")
    page.get_by_role("alert").get_by_text("score_threshold").wait_for()


def test_scrolling_down_brings_more_until_all_are_there(shown):
    page, box = shown("a castle", per_page=40)
    more = page.get_by_role("button", name="more photos", include_hidden=True)
    for number in range(1, 100):
        page.mouse.wheel(0, 20_000)
        page.wait_for_function(
            "number => document.querySelectorAll('figure').length > 40 * number", arg=number
        )
        if more.is_hidden():
            break
    assert page.locator("figure").count() == box.page.total
    places = page.locator("figure b").all_inner_texts()
    assert [text.strip() for text in places] == [f"{n}." for n in range(1, box.page.total + 1)]


def test_a_dropped_picture_is_searched_by_until_it_is_taken_off(shown, library):
    page, box = shown("", per_page=6)
    small = library.search("a castle", per_page=1).hits[0].thumbnail
    page.evaluate(
        """bytes => {
            const data = new DataTransfer();
            data.items.add(new File([new Uint8Array(bytes)], "mine.webp", { type: "image/webp" }));
            document.querySelector(".searchlab-box").dispatchEvent(
                new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
        }""",
        list(small.read_bytes()),
    )
    page.locator("figure").first.wait_for()
    assert box.query.image is not None
    page.get_by_label("what the photo shows").fill("an owl")
    page.get_by_role("button", name="without mine.webp").click()
    page.wait_for_function("document.querySelector('[role=status]').textContent.includes('shown')")
    page.get_by_text("An owl").first.wait_for()
    assert box.query == Query(text="an owl")


def test_two_configurations_stand_side_by_side_and_a_query_is_kept(shown):
    page, box = shown("red", other=Config(model="palette"), per_page=12)
    assert page.get_by_role("heading", level=4).all_inner_texts() == [
        "mini × exact",
        "palette × exact",
    ]
    assert page.locator("section").count() == 2
    page.get_by_role("button", name="keep").click()
    page.get_by_text("kept: red").wait_for()
    assert box.kept == [Query(text="red")]


def test_markup_that_is_typed_or_dropped_stays_text(shown):
    page, _ = shown("<img src=x onerror=alert(1)>", per_page=3)
    page.get_by_role("button", name="keep").click()
    page.get_by_text("kept: <img src=x").wait_for()
    assert page.locator("img[src=x]").count() == 0


@pytest.mark.parametrize("width", [320, 1100])
def test_the_box_suits_everybody(shown, width):
    page, _ = shown("a castle", other=Config(model="palette"), width=width, per_page=4)
    page.locator("figure").first.wait_for()
    assert violations_by_day_and_dark(page) == []
    assert overflow_of(page) <= 0
