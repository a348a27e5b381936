"""Judging in a real browser: by keys, in the grid, without a script, and by two at once."""

import itertools
from contextlib import nullcontext

import pytest

from searchlab.evaluation.datasets.labelled import LabelledQuery
from searchlab.evaluation.judging.comparisons import create_comparison
from searchlab.evaluation.judging.tasks import open_task
from tests.support.browsing import violations_by_day_and_dark

pytestmark = pytest.mark.slow

_numbers = itertools.count(1)


@pytest.fixture
def ann(signed_in):
    return signed_in()


@pytest.fixture
def task(ann):
    """Make a task by the form, and open its page."""
    title = f"Judged in a browser {next(_numbers)}"
    ann.page.goto("/judge/new")
    ann.page.get_by_label("Title").fill(title)
    ann.page.get_by_label("Queries, one a line").fill("a red bird\nde\talte Brücke")
    ann.page.get_by_label("Photos of each query").fill("5")
    ann.page.get_by_role("button", name="Make the task").click()
    ann.page.wait_for_url("**/judge/judged-*")
    return ann.page.url.rpartition("/")[2]


def progress(window):
    return window.page.get_by_role("status").inner_text()


def test_keys_grade_undo_and_look_around(ann, task, served):
    page = ann.page
    page.goto(f"/judge/{task}/one")
    for key, shown in (("2", "1 of 10"), ("0", "2 of 10"), ("s", "3 of 10, 1 skipped")):
        page.keyboard.press(key)
        page.get_by_text(shown, exact=True).wait_for()
    page.keyboard.press("u")
    page.get_by_text("2 of 10", exact=True).wait_for()
    page.keyboard.press("ArrowLeft")
    page.locator('button[data-key="0"][aria-pressed="true"]').wait_for()
    page.keyboard.press("3")
    page.locator('input[name="n"][value="2"]').wait_for(state="attached")
    (journal,) = open_task(served.data, task).journals()
    assert [entry.choice for entry in journal.latest.values()] == [2, 3]
    page.goto(f"/judge/{task}/one")  # another day
    assert progress(ann) == "2 of 10"


def test_a_key_in_the_grid_is_recorded_at_once_and_moves_on(ann, task, served):
    page = ann.page
    page.goto(f"/judge/{task}/grid")
    for key in ("3", "1", "ArrowRight", "0"):
        recorded = page.expect_response("**/one") if key.isdigit() else nullcontext()
        with recorded:
            page.keyboard.press(key)
    (journal,) = open_task(served.data, task).journals()
    pairs = open_task(served.data, task).pool.pairs
    assert {pairs.index(i): e.choice for i, e in journal.latest.items()} == {0: 3, 1: 1, 3: 0}
    page.get_by_role("button", name="Save and go on").click()
    page.get_by_text("Query 2 of 2").wait_for()
    page.keyboard.press("u")
    page.get_by_text("Query 1 of 2").wait_for()
    assert progress(ann) == "2 of 10"


def test_a_key_grades_the_photo_whose_grades_have_the_focus(ann, task, served):
    page = ann.page
    page.goto(f"/judge/{task}/grid")
    page.locator(".print").nth(2).locator("input").first.focus()
    for key in ("2", "ArrowRight", "1"):  # the next one, and then the one after that
        with page.expect_response("**/one") if key.isdigit() else nullcontext():
            page.keyboard.press(key)
    (journal,) = open_task(served.data, task).journals()
    pairs = open_task(served.data, task).pool.pairs
    assert {pairs.index(i): e.choice for i, e in journal.latest.items()} == {2: 2, 4: 1}


def test_a_grade_that_could_not_be_changed_stays_the_one_that_is_shown(ann, task):
    page = ann.page
    page.goto(f"/judge/{task}/grid")
    first = page.locator(".print").first
    with page.expect_response("**/one"):
        first.get_by_label("2,").check(force=True)
    ann.expect("net::ERR_FAILED")
    page.route("**/one", lambda route: route.abort())
    first.get_by_label("3,").check(force=True)
    page.get_by_text("Nothing was recorded").wait_for()
    assert first.locator(":checked").get_attribute("value") == "2"


@pytest.mark.parametrize("way", ["one?n=10", "grid?q=2"])
def test_the_end_of_the_list_says_what_is_left_and_leads_there(ann, task, way):
    page = ann.page
    page.goto(f"/judge/{task}/{way}")
    assert page.get_by_text("10 are not judged yet").is_visible()
    assert page.get_by_text("All judged").count() == 0
    page.get_by_role("link", name="Go on with the first of these").click()
    page.get_by_role("heading", name="a red bird").wait_for()


def test_a_server_that_does_not_answer_is_said_and_nothing_counts(ann, task):
    page = ann.page
    page.goto(f"/judge/{task}/one")
    ann.expect("net::ERR_FAILED")
    page.route("**/one", lambda route: route.abort() if route.request.method == "POST" else route)
    page.keyboard.press("2")
    page.get_by_text("Nothing was recorded").wait_for()
    page.unroute("**/one")
    page.keyboard.press("2")
    page.get_by_text("1 of 10", exact=True).wait_for()
    assert page.get_by_text("Nothing was recorded").is_hidden()


def test_without_a_script_the_same_forms_judge(signed_in, task):
    one = signed_in(java_script_enabled=False)
    page = one.page
    page.goto(f"/judge/{task}/one")
    one.follow(page.get_by_role("button", name="relevant", exact=False).nth(1))
    assert progress(one) == "1 of 10"
    page.goto(f"/judge/{task}/grid")
    page.locator(".print").nth(1).get_by_label("3, perfect").check(force=True)
    page.locator(".print").nth(2).get_by_label("skip").check(force=True)
    one.follow(page.get_by_role("button", name="Save and go on"))
    assert progress(one) == "3 of 10, 1 skipped"
    one.follow(page.get_by_role("button", name="undo"))
    assert progress(one) == "2 of 10"


def test_two_judges_at_once_and_their_agreement(signed_in, ann, task):
    ben = signed_in("free")
    for window, keys in ((ann, "2103321010"), (ben, "2103221011")):
        window.page.goto(f"/judge/{task}/one")
        for number, key in enumerate(keys, start=1):
            window.page.keyboard.press(key)
            window.page.get_by_text(f"{number} of 10", exact=True).wait_for()
    ben.page.get_by_text("All judged. Thank you.").wait_for()
    ben.follow(ben.page.get_by_role("link", name="Results"))
    ben.page.get_by_text("Krippendorff").wait_for()
    with ben.page.expect_download() as download:
        ben.page.get_by_role("button", name="Judgments with origin").click()
    assert download.value.suggested_filename == f"{task}-qrels.tsv"


@pytest.fixture
def comparison(served):
    """Put a comparison of two made-up rankings beside the library."""
    photos = [photo["photo_id"] for photo in served.everything[:24]]
    queries = [LabelledQuery(f"q{i}", "en", "test", text=f"query {i}") for i in range(8)]
    runs = {
        name: {query.query_id: photos[3 * i + shift :][:3] for i, query in enumerate(queries)}
        for name, shift in (("system-one", 0), ("system-two", 1))
    }
    name = f"compared-{next(_numbers)}"
    return create_comparison(served.data, name, queries, runs, title="Two <b>rankings</b>", depth=3)


def test_two_rankings_are_compared_blind_by_keys_and_the_outcome_comes_last(ann, comparison):
    page = ann.page
    page.goto("/judge")
    page.get_by_role("link", name="Two <b>rankings</b>").first.click()
    page.goto(f"/judge/{comparison.name}/compare")
    for number in range(1, 8):
        assert "system-" not in page.content()
        page.keyboard.press("10s"[number % 3])
        page.get_by_text(f"{number} of 8").wait_for()
    ann.expect("409")
    assert page.goto(f"/judge/{comparison.name}/outcome").status == 409
    assert "system-" not in page.content()
    page.goto(f"/judge/{comparison.name}/compare")
    page.keyboard.press("u")
    page.get_by_text("6 of 8").wait_for()
    for number in (7, 8):
        page.keyboard.press("2")
        page.get_by_text(f"{number} of 8").wait_for()
    page.get_by_role("link", name="Outcome").click()
    page.get_by_role("rowheader", name="system-one").wait_for()


def test_a_comparison_works_without_a_script_and_suits_everybody(signed_in, comparison):
    plain = signed_in("free", java_script_enabled=False)
    path = f"/judge/{comparison.name}/compare"
    plain.page.goto(path)
    plain.follow(plain.page.get_by_role("button", name="left is better"))
    assert progress(plain) == "1 of 8"
    plain.follow(plain.page.get_by_role("button", name="undo"))
    assert progress(plain) == "0 of 8"
    one = signed_in()
    one.page.goto(path)
    assert violations_by_day_and_dark(one.page) == []
    for width in (320, 390):
        one.page.set_viewport_size({"width": width, "height": 700})
        assert one.overflow() <= 0
    one.page.keyboard.press("1")
    for number in range(1, 8):
        one.page.get_by_text(f"{number} of 8", exact=True).wait_for()
        one.page.keyboard.press("1")
    one.follow(one.page.get_by_role("link", name="Outcome"))
    assert violations_by_day_and_dark(one.page) == []
    assert one.overflow() <= 0
