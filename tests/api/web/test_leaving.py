"""A closed account: its judging tasks stay for those who judge them, and nothing says whose."""

import pytest

from searchlab.api.accounts.administration import close_account
from searchlab.api.web.account import leaving
from searchlab.api.web.judging import tasks
from searchlab.evaluation.judging.pools import pool_queries
from searchlab.evaluation.judging.tasks import create_task, open_task
from tests.support import served_pages
from tests.support.people import person

served = served_pages.served
MAKER = "ann the maker"


@pytest.fixture(scope="module")
def ben(served):
    return person(served, "ben")


@pytest.fixture
def make(served):
    """Makes a task in the name of the maker, who is closed when the test ends."""
    made = []

    def make(title):
        made.append(person(served, MAKER))
        sent = {"title": title, "queries": "red photo\nde\tblaues Bild", "depth": "2"}
        answer = made[-1].post("/judge/new", data=sent)
        assert answer.status_code == 303, answer.text
        return made[-1], answer.headers["location"].removeprefix("/judge/")

    yield make
    for ann in made:
        close(ann)


def close(ann):
    return ann.post("/account/close", data={"confirm": MAKER})


def test_a_closed_accounts_tasks_stay_without_its_name(served, ben, make):
    ann, task = make("Of Ann")
    assert MAKER in ben.get(f"/judge/{task}").text
    assert close(ann).status_code == 200
    pages = [ben.get(path) for path in ("/judge", f"/judge/{task}", f"/judge/{task}/one")]
    assert [page.status_code for page in pages] == [200, 200, 200]
    file = served.library / "judging" / task / "task.json"
    assert [MAKER in text for text in (*(page.text for page in pages), file.read_text())] == (
        [False] * 4
    )
    refused = ben.post(f"/judge/{task}/delete")
    assert (refused.status_code, "an account that was closed" in refused.text) == (403, True)


def test_another_account_of_the_name_does_not_own_the_tasks_of_before(served, make):
    ann, task = make("Of the first Ann")
    close(ann)
    second, _ = make("Of the second Ann")
    assert second.post(f"/judge/{task}/delete").status_code == 403
    assert second.get("/account/export").json()["judging_tasks"][0]["title"] == "Of the second Ann"


def test_the_page_of_a_closed_account_is_nobodys_and_says_what_is_left(make):
    ann, _ = make("Of an Ann who reads")
    asked = ann.get("/account/close").text
    assert "The judging tasks that it made stay" in asked
    closed = close(ann).text
    assert "Signed in as" not in closed
    assert "Not signed in" in closed
    assert "Judging tasks that it made are still there" in closed
    assert "Nothing of it is left" not in closed


def test_of_an_account_without_judging_tasks_none_are_said_to_be_left(served):
    closed = close(person(served, MAKER)).text
    assert "All that was its own is deleted" in closed
    assert "Judging tasks" not in closed


def test_the_export_holds_titles_and_queries_of_ones_own_tasks(ben, make):
    ann, task = make("Exported")
    (exported,) = ann.get("/account/export").json()["judging_tasks"]
    assert (exported["task"], exported["title"]) == (task, "Exported")
    texts = {(query["lang"], query["text"]) for query in exported["queries"]}
    assert texts == {("und", "red photo"), ("de", "blaues Bild")}
    assert ben.get("/account/export").json()["judging_tasks"] == []


def test_a_task_that_is_made_while_its_account_is_closed_bears_no_name(served, monkeypatch):
    ann = person(served, MAKER)

    def close_and_pool(*args, **kwargs):
        assert close(person(served, MAKER)).status_code == 200
        return pool_queries(*args, **kwargs)

    monkeypatch.setattr(tasks, "pool_queries", close_and_pool)
    ann.post("/judge/new", data={"title": "Late", "queries": "red photo", "depth": "2"})
    task = open_task(served.library, "late")
    assert (task.made_by, task.owner) == ("", "")


def test_a_task_that_is_made_just_before_its_account_is_gone_bears_no_name(
    served, make, monkeypatch
):
    ann, before = make("Just before")
    pool = open_task(served.library, before).pool

    def make_and_close(*args, **kwargs):
        owner = str(ann.account_id)
        create_task(served.library, "just-now", pool, made_by=MAKER, owner=owner)
        return close_account(*args, **kwargs)

    monkeypatch.setattr(leaving, "close_account", make_and_close)
    assert close(ann).status_code == 200
    monkeypatch.undo()
    for name in (before, "just-now"):
        task = open_task(served.library, name)
        assert (task.made_by, task.owner) == ("", "")
