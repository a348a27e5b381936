"""A one-time link signs in once, with and without JavaScript, and leaves no trace of its token."""

import pytest

pytestmark = pytest.mark.slow


def test_a_link_signs_in_and_its_token_is_nowhere_to_be_seen(window, link):
    one = window()
    address = link()
    token = address.partition("token=")[2]
    seen = []
    one.context.on("request", lambda request: seen.append((request.url, request.headers)))
    one.sign_in(address)
    assert one.page.get_by_text("Signed in as paid").is_visible()
    assert not any(token in url or token in str(headers) for url, headers in seen)
    assert token not in one.page.url
    assert token not in one.page.evaluate("JSON.stringify([history.state, document.referrer])")
    cookie = next(cookie for cookie in one.context.cookies() if "searchlab" in cookie["name"])
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Lax"


def test_a_link_works_once(window, link):
    address = link()
    window().sign_in(address)
    other = window()
    other.expect("400")
    other.expect("403")
    other.expect("401")
    other.page.goto(address)
    other.page.get_by_role("alert").wait_for()
    assert "works once" in other.page.get_by_role("alert").inner_text()
    assert other.context.cookies() == []


def test_without_javascript_the_address_is_pasted(signed_in):
    one = signed_in(anew=True, java_script_enabled=False)
    one.page.goto("/")
    assert one.page.get_by_text("Signed in as paid").is_visible()


def test_signing_in_leads_back_to_where_one_was(window, link):
    one = window()
    one.page.goto("/account")
    assert one.page.get_by_role("heading", name="Sign in", exact=True).is_visible()


def test_a_new_link_signs_in_where_the_page_is_shown_already(window, link):
    one = window()
    one.page.goto("/sign-in")
    with one.page.expect_navigation(url=lambda url: "/sign-in" not in url):
        one.page.evaluate("address => { location.href = address; }", link())
    assert one.page.get_by_text("Signed in as paid").is_visible()
