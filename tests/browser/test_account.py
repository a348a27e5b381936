"""Somebody makes a key, uses and revokes it, takes the data away and leaves."""

import json

import httpx
import pytest

pytestmark = pytest.mark.slow


def search(served, key):
    address = f"{served.base_url}/api/v1/search/photos?q=cat"
    return httpx.get(address, headers={"x-api-key": key}).status_code


@pytest.mark.parametrize("scripts", [True, False])
def test_a_key_works_at_once_and_stops_at_once(signed_in, served, scripts):
    one = signed_in("dashboard", java_script_enabled=scripts)
    name = f"laptop {scripts}"
    one.page.goto("/account")
    one.page.get_by_label("Name of the new key").fill(name)
    one.follow(one.page.get_by_role("button", name="Create key"))
    key = one.page.locator("#secret").inner_text().strip()
    assert key in one.page.locator("#curl").inner_text()
    assert key in one.page.locator("#python").inner_text()
    assert search(served, key) == 200
    one.follow(one.page.get_by_role("link", name="Done"))
    assert key not in one.page.content()
    row = one.page.locator("#keys li", has_text=name)
    row.locator("summary").click()
    one.follow(row.get_by_role("button", name="Revoke it now"))
    assert search(served, key) == 401


def test_sessions_end_at_once(signed_in):
    one, other = (signed_in("departing", anew=True) for _ in range(2))
    one.page.goto("/account")
    one.follow(one.page.get_by_role("button", name="Sign out everywhere"))
    for each in (one, other):
        each.page.goto("/account")
        assert each.page.get_by_role("heading", name="Sign in", exact=True).is_visible()


def test_the_data_are_taken_away_and_the_account_is_deleted(signed_in, served):
    one = signed_in("leaving")
    one.page.goto("/account")
    with one.page.expect_download() as download:
        one.page.get_by_role("link", name="Download it").click()
    held = json.loads(download.value.path().read_text(encoding="utf-8"))
    assert "leaving" in json.dumps(held)
    one.page.goto("/account/close")
    field = one.page.get_by_label("type the account's name")
    field.fill("somebody else")
    one.expect("422")
    one.follow(one.page.get_by_role("button", name="Delete it for good"))
    assert "Nothing was deleted" in one.page.locator("main").inner_text()
    field.fill("leaving")
    one.follow(one.page.get_by_role("button", name="Delete it for good"))
    assert "is deleted" in one.page.locator("h1").inner_text()
    one.page.goto("/account")
    assert one.page.get_by_role("heading", name="Sign in", exact=True).is_visible()
    assert "leaving" not in served.command("accounts list", **{"database-url": served.database_url})
