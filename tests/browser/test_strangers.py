"""Names that would be code, and two browsers of two people: nothing of one is the other's."""

import re

import pytest

from tests.support.independent_client import create_collection

pytestmark = pytest.mark.slow

HOSTILE = "<img src=x onerror=alert(1)>\"'><script>alert(2)</script> {{ 7*7 }} אבג"


def test_names_that_would_be_code_are_text_on_every_page(signed_in, served):
    one = signed_in("hostile")
    page = one.page
    dialogs = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.goto("/collections/new")
    page.get_by_label("Name").fill(HOSTILE)
    page.get_by_label("Description").fill(HOSTILE)
    page.get_by_label("Everybody who has the link").check()
    page.get_by_role("button", name="Make the collection").click()
    page.wait_for_url(re.compile(r"/collections/\d+$"))
    collection = page.url.rpartition("/")[2]
    page.goto("/account")
    page.get_by_label("Name of the new key").fill(HOSTILE)
    page.get_by_role("button", name="Create key").click()
    page.locator("#secret").wait_for()
    page.goto("/judge/new")
    page.get_by_label("Title").fill(f"hostile {HOSTILE}")
    page.get_by_label("Queries, one a line").fill(HOSTILE)
    page.get_by_role("button", name="Make the task").click()
    page.wait_for_url("**/judge/hostile-*")
    task = page.url.rpartition("/judge/")[2]
    paths = ["/", "/collections", f"/c/{collection}", "/account", "/judge", f"/judge/{task}"]
    paths += [f"/collections/{collection}{end}" for end in ("", "/edit", "/delete")]
    paths += [f"/judge/{task}{end}" for end in ("/one", "/grid", "/results", "/delete")]
    for path in paths:
        page.goto(path)
        assert page.locator("main img[src=x], main script").count() == 0, path
    page.goto("/")
    page.get_by_role("searchbox").fill(HOSTILE)
    page.get_by_role("searchbox").press("Enter")
    page.wait_for_url("**q=*")
    assert page.get_by_role("searchbox").input_value() == HOSTILE
    assert dialogs == []


def test_two_people_in_two_browsers_reach_nothing_of_each_other(signed_in, served):
    ann, ben = signed_in("ann-of-two"), signed_in("ben-of-two")
    api = served.new_account("ann-of-two")
    collection = create_collection(api, name="Of Ann alone")["id"]
    ann.page.goto("/account")
    revoking = ann.page.locator("form[action$='/revoke']").first.get_attribute("action")
    ending = ann.page.locator("form[action*='/sessions/']").first.get_attribute("action")
    same = {"Origin": served.base_url}
    for path, form in (
        (revoking, {}),
        (ending, {}),
        (f"/collections/{collection}/edit", {"name": "Of Ben", "is_public": "yes"}),
        (f"/collections/{collection}/delete", {}),
    ):
        ben.page.request.post(path, form=form, headers=same)
    assert ben.page.request.get(f"/collections/{collection}").status == 404
    ann.page.goto(f"/collections/{collection}")
    assert ann.page.get_by_role("heading", level=1).inner_text() == "Of Ann alone"
    ann.page.get_by_text("private").wait_for()
    assert api.http.get(f"{served.base_url}/api/v1/usage").status_code == 200
    # What Ann's own browser sends from elsewhere is refused as well.
    foreign = {"Origin": "https://elsewhere.example", "Sec-Fetch-Site": "cross-site"}
    answer = ann.page.request.post(f"/collections/{collection}/delete", headers=foreign)
    assert answer.status == 403
    assert ann.page.request.get(f"/collections/{collection}").status == 200
