"""Collections in a real browser: from a search to a public page with credits, at every width."""

import re

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def ann(signed_in):
    return signed_in()


def make(window, name, *, public=False, photos=3):
    """Make a collection and fill it from search results; returns its address."""
    page = window.page
    page.goto("/?q=bird")
    for number in range(photos):
        page.locator(".photo").nth(number).hover()
        page.locator(".photo").nth(number).get_by_title("Add to a collection").click()
        if number == 0:
            page.get_by_label("Collection", exact=True).select_option("new")
            page.get_by_label("Name of a new collection").fill(name)
        else:
            page.get_by_label("Collection", exact=True).select_option(label=f"{name} ({number})")
        page.get_by_role("button", name="Add", exact=True).click()
        page.get_by_text(f"Added to {name}.").wait_for()
        page.get_by_role("dialog").wait_for(state="hidden")
    page.goto("/collections")
    window.follow(page.get_by_role("link", name=name))
    if public:
        page.get_by_role("link", name="Edit").click()
        page.get_by_label("Everybody who has the link").check()
        window.follow(page.get_by_role("button", name="Save"))
    return re.sub(r"^http://[^/]+", "", page.url)


def test_adding_a_photo_keeps_ones_place_and_says_what_was_done(ann):
    page = ann.page
    page.goto("/?after_date=2000-01-01")
    page.locator(".photo").nth(29).scroll_into_view_if_needed()
    page.wait_for_function("() => document.querySelectorAll('li.photo').length > 40")
    photo = page.locator(".photo").nth(35)
    place = photo.get_by_role("link").first.get_attribute("href")
    for told in ("Added to Birds from afar.", "It is already in Birds from afar."):
        photo.hover()
        photo.get_by_title("Add to a collection").click()
        if told.startswith("Added"):
            page.get_by_label("Collection", exact=True).select_option("new")
            page.get_by_label("Name of a new collection").fill("Birds from afar")
            assert ann.violations() == []
        else:
            page.get_by_label("Collection", exact=True).select_option(label="Birds from afar (1)")
        page.get_by_role("button", name="Add", exact=True).click()
        page.get_by_role("status").get_by_text(told).wait_for()
    assert photo.get_by_title("Add to a collection").is_visible()
    assert page.locator(".photo").count() > 40
    page.goto(place)
    page.get_by_text("Collection", exact=True).click()
    page.get_by_role("button", name="Birds from afar").click()
    page.get_by_text("It is already in Birds from afar.").wait_for()
    assert page.url.endswith(place)


@pytest.mark.parametrize("address", ["/?q=bird", "/?q=snow"])
def test_without_a_script_one_comes_back_to_the_search(signed_in, address):
    one = signed_in(java_script_enabled=False)
    page = one.page
    page.goto(address)
    one.follow(page.locator(".photo").first.get_by_title("Add to a collection"))
    page.get_by_label("Collection", exact=True).select_option("new")
    page.get_by_label("Name of a new collection").fill(f"Plain {address}")
    one.follow(page.get_by_role("button", name="Add", exact=True))
    assert page.url.endswith(address)


def test_a_name_that_is_missing_leaves_the_choice_of_a_new_collection(ann):
    make(ann, "Birds that are there", photos=1)
    page = ann.page
    page.goto("/?q=bird")
    page.locator(".photo").nth(1).hover()
    page.locator(".photo").nth(1).get_by_title("Add to a collection").click()
    page.get_by_label("Collection", exact=True).select_option("new")
    ann.expect("422")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_text("name must have").wait_for()
    assert page.get_by_label("Collection", exact=True).input_value() == "new"
    assert page.get_by_label("Name of a new collection").is_visible()


def test_photos_are_collected_from_results_covered_removed_and_deleted(ann):
    page, address = ann.page, make(ann, "Birds of May")
    photos = page.locator(".photo")
    assert photos.count() == 3
    last = photos.nth(2).get_by_role("link").get_attribute("href")
    photos.nth(2).hover()
    ann.follow(photos.nth(2).get_by_title("Make it the cover"))
    page.locator(".photo", has=page.locator(".is-cover")).wait_for()
    covered = page.locator(".photo", has=page.locator(".is-cover"))
    assert covered.get_by_role("link").get_attribute("href") == last
    covered.hover()
    covered.get_by_title("Remove from this collection").click()
    page.get_by_text("2 photos").wait_for()
    page.get_by_role("link", name="Delete").click()
    page.get_by_role("button", name="Delete it").click()
    page.wait_for_url("**/collections")
    ann.expect("404")
    page.goto(address)
    assert page.get_by_text("There is no such page").is_visible()


def test_a_public_page_is_open_to_whoever_has_the_link_with_credits_to_copy(ann, window):
    address = make(ann, "Birds for all", public=True)
    stranger = window(permissions=["clipboard-read", "clipboard-write"])
    page = stranger.page
    page.goto(address.replace("/collections/", "/c/"))
    assert page.locator(".photo").count() == 3
    picture = page.locator(".photo").first.get_by_role("link").get_attribute("href")
    assert page.request.get(picture).headers["content-type"].startswith("image/")
    page.get_by_role("button", name="Copy as HTML").click()
    page.get_by_role("button", name="Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert len(copied.splitlines()) == 3
    assert "<a href=" in copied
    stranger.expect("401")
    page.goto(address)
    assert page.locator(".photo").count() == 0
    assert page.get_by_text("searchlab accounts link").is_visible()


def test_without_a_script_and_by_keys_alone_a_photo_is_collected(signed_in):
    one = signed_in(java_script_enabled=False)
    page = one.page
    page.goto("/?q=fish")
    page.locator(".photo").first.get_by_title("Add to a collection").focus()
    page.keyboard.press("Enter")
    page.get_by_label("Collection", exact=True).select_option("new")
    page.get_by_label("Name of a new collection").fill("By keys")
    page.keyboard.press("Enter")
    page.wait_for_url("**/?q=fish")
    page.goto("/collections")
    one.follow(page.get_by_role("link", name="By keys"))
    assert page.locator(".photo").count() == 1
