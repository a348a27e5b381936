"""The reference at /docs, on a phone and in the dark."""

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def page(window):
    one = window(viewport={"width": 390, "height": 844}, color_scheme="dark")
    one.page.goto("/docs")
    operation = one.page.locator("#operations-Search-searchPhotos, [id*=searchPhotos]").first
    operation.locator(".opblock-summary-control").click()
    one.operation = operation
    return one


def test_fields_are_wide_enough_for_a_finger_and_what_it_types(page):
    fields = page.operation.locator(".parameters input, .parameters select")
    fields.first.wait_for()
    sizes = [field.bounding_box() for field in fields.all()]
    assert len(sizes) > 5
    assert min(size["width"] for size in sizes) > 200
    assert min(size["height"] for size in sizes) >= 40
    assert page.overflow() <= 0


def test_an_operation_is_tried_with_a_key(page, served):
    key = served.new_account("reading", plan="free").key
    page.page.get_by_role("button", name="Authorize").click()
    page.page.get_by_role("textbox", name="Value:").fill(key)
    page.page.locator(".modal-ux").get_by_role("button", name="Apply credentials").click()
    page.page.locator(".modal-ux").get_by_role("button", name="Close").click()
    page.operation.locator("tr", has_text="q").locator("input").first.fill("a cat")
    page.operation.get_by_role("button", name="Execute").click()
    page.operation.locator(".photos img").first.wait_for()
    assert page.overflow() <= 0


def test_it_follows_the_scheme_of_the_system(page):
    assert page.page.locator("html.dark-mode").count() == 1
    ground = page.page.locator("body").evaluate("body => getComputedStyle(body).backgroundColor")
    assert ground == "rgb(17, 19, 21)"
