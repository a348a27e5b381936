"""With a script a search changes the page in place, which only its speed gives away."""

import re

import pytest

from tests.support.browsing import violations_by_day_and_dark
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

MARK = "window.isSame = true"
IS_SAME = "window.isSame === true"
"""Whether the document is still the one that was marked."""


@pytest.fixture
def one(signed_in):
    """A window on a search, whose document is marked."""
    one = signed_in(viewport={"width": 1280, "height": 900})
    one.page.goto("/?q=a+cat")
    one.page.evaluate(MARK)
    return one


def search(one, words):
    field = one.page.get_by_role("searchbox", name="Search photos")
    field.fill(words)
    field.press("Enter")


def heading(one):
    return one.page.get_by_role("heading", level=1)


def photos(one):
    """Return the addresses of the first photos; more may follow at any moment."""
    return one.page.locator("li.photo > a").evaluate_all("all => all.slice(0, 30).map(a => a.href)")


def test_a_search_keeps_the_document_and_shows_what_its_address_shows(one):
    search(one, "a bird")
    one.page.wait_for_url("**/?q=a+bird")
    assert one.page.evaluate(IS_SAME)
    assert one.page.title() == "a bird · searchlab"
    swapped = photos(one)
    one.page.reload()
    assert photos(one) == swapped
    assert not one.page.evaluate(IS_SAME)


def test_what_is_new_is_told_and_has_the_focus(one):
    search(one, "a bird")
    one.page.wait_for_url("**/?q=a+bird")
    assert one.page.evaluate("document.activeElement.textContent") == "Photos of a bird"
    told = one.page.locator("body > [role=status]")
    assert re.fullmatch(r"Photos of a bird, [\d,]+ of [\d,]+", told.inner_text())
    one.page.keyboard.press("Tab")
    assert one.page.evaluate("document.activeElement.href") == photos(one)[0]


def test_chips_more_like_this_and_further_pages_change_in_place(one):
    one.page.locator("details.filters > summary").click()
    one.page.get_by_role("checkbox", name="landscape").check()
    one.page.get_by_role("button", name="Show photos").click()
    one.page.wait_for_url("**/?q=a+cat&orientation=landscape")
    one.page.get_by_role("link", name="Remove landscape").click()
    one.page.wait_for_url("**/?q=a+cat")
    similar = one.page.get_by_role("link", name=re.compile("^More like this")).first
    similar.focus()
    similar.press("Enter")
    one.page.wait_for_url("**/?photo_id=*")
    assert one.page.get_by_role("searchbox").get_attribute("placeholder") == (
        "Add words to the picture"
    )
    search(one, "snow")
    one.page.wait_for_url("**/?q=snow&photo_id=*")
    one.page.get_by_role("link", name="Remove the picture from the search").click()
    one.page.wait_for_url("**/?q=snow")
    search(one, "a boat")  # the picture is in the form no more
    one.page.wait_for_url("**/?q=a+boat")
    assert one.page.evaluate(IS_SAME)


def test_back_and_forward_show_what_was_there_where_it_was(one):
    first = photos(one)
    similar = one.page.get_by_role("link", name=re.compile("^More like this")).nth(20)
    similar.focus()
    label, top = similar.get_attribute("aria-label"), one.page.evaluate("scrollY")
    assert top > 0
    similar.press("Enter")
    one.page.wait_for_url("**/?photo_id=*")
    second = photos(one)
    assert one.page.evaluate("scrollY") == 0
    one.page.go_back()
    one.page.wait_for_url("**/?q=a+cat")
    assert photos(one) == first
    assert one.page.evaluate("document.activeElement.ariaLabel") == label
    one.page.wait_for_function("top => scrollY === top", arg=top)
    assert one.page.get_by_role("searchbox").input_value() == "a cat"
    assert one.page.title() == "a cat · searchlab"
    one.page.go_forward()
    one.page.wait_for_url("**/?photo_id=*")
    assert photos(one) == second
    assert one.page.evaluate(IS_SAME)


def test_back_from_a_photo_leads_to_the_search_and_further_back(one):
    search(one, "a bird")
    one.page.wait_for_url("**/?q=a+bird")
    birds = photos(one)
    one.page.locator("li.photo > a").first.click()
    one.page.wait_for_url("**/photos/*")
    one.page.go_back()
    one.page.wait_for_url("**/?q=a+bird")
    assert photos(one) == birds
    one.page.go_back()
    heading(one).get_by_text("a cat").wait_for(state="attached")
    assert one.page.url.endswith("/?q=a+cat")


def test_the_search_that_was_asked_last_wins(one):
    """The answer to the first comes after that to the second."""
    waiting = []
    one.page.route("**/?q=slow", lambda route: waiting.append(route))
    search(one, "slow")
    wait_until(lambda: one.page.evaluate("0") or waiting)
    search(one, "a bird")
    one.page.wait_for_url("**/?q=a+bird")
    waiting[0].abort()
    heading(one).get_by_text("a bird").wait_for(state="attached")
    assert one.page.url.endswith("/?q=a+bird")
    one.page.go_back()
    one.page.wait_for_url("**/?q=a+cat")


def test_words_typed_meanwhile_stay(one):
    waiting = []
    one.page.route("**/?q=a+bird", lambda route: waiting.append(route))
    search(one, "a bird")
    wait_until(lambda: one.page.evaluate("0") or waiting)
    field = one.page.get_by_role("searchbox")
    field.fill("a bird in")
    waiting[0].continue_()
    one.page.wait_for_url("**/?q=a+bird")
    assert field.input_value() == "a bird in"
    assert one.page.evaluate("document.activeElement.id") == "q"


def test_a_failure_is_a_page_of_its_own(one):
    one.expect("503")
    failed = {"status": 503, "body": "<title>Busy</title><h1>The server is busy</h1>"}
    one.page.route("**/?q=a+bird", lambda route: route.fulfill(**failed, content_type="text/html"))
    search(one, "a bird")
    one.page.get_by_text("The server is busy").wait_for()
    assert not one.page.evaluate(IS_SAME)
    one.page.go_back()
    one.page.wait_for_url("**/?q=a+cat")


def test_who_is_signed_out_meanwhile_is_led_to_the_way_in(one):
    one.context.clear_cookies()
    search(one, "a bird")
    one.page.get_by_role("heading", name="Search photos by what they show").wait_for()
    assert one.page.url.endswith("/?q=a+bird")


def test_a_newer_server_gets_a_new_document(one):
    """Its scripts lie at another address, and what it sends may not suit those that run here."""

    def answer(route):
        page = route.fetch()
        route.fulfill(
            response=page,
            body=re.sub("/static/[0-9a-f]+/search.js", "/static/new/search.js", page.text()),
        )

    one.expect("404")
    one.expect("search.js")
    one.page.route("**/?q=a+bird", answer)
    search(one, "a bird")
    one.page.wait_for_url("**/?q=a+bird")
    one.page.wait_for_load_state()
    assert not one.page.evaluate(IS_SAME)


def test_a_link_opened_in_a_new_tab_leaves_this_one_as_it_is(one):
    with one.context.expect_page() as opened:
        similar = one.page.get_by_role("link", name=re.compile("^More like this")).first
        similar.click(modifiers=["ControlOrMeta"], force=True)
    opened.value.wait_for_url("**/?photo_id=*")
    assert one.page.url.endswith("/?q=a+cat")


def test_further_photos_follow_after_a_swap_too_and_none_of_the_page_before(one):
    search(one, "a bird")
    one.page.wait_for_url("**/?q=a+bird")
    first = photos(one)
    one.page.locator(".pager").scroll_into_view_if_needed()
    one.page.wait_for_function("() => document.querySelectorAll('li.photo').length > 60")
    links = one.page.locator("li.photo > a").evaluate_all("all => all.map(a => a.href)")
    assert len(links) == len(set(links))
    assert links[:30] == first


def test_axe_finds_nothing_after_a_swap(signed_in):
    one = signed_in()
    one.page.goto("/")
    search(one, "a bird")
    one.page.wait_for_url("**/?q=a+bird")
    assert violations_by_day_and_dark(one.page) == []
    search(one, "teal things")
    one.page.wait_for_url("**/?q=teal*")
    one.page.go_back()
    one.page.wait_for_url("**/?q=a+bird")
    assert violations_by_day_and_dark(one.page) == []
