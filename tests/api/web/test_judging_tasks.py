"""Tasks for judging are made by a form: what fits, what is counted, what is said above it."""

import pytest

from searchlab.api.accounts.keyring import Caller
from searchlab.evaluation.judging.tasks import open_task
from searchlab.search.queries import Query
from tests.support import served_pages
from tests.support.people import person

served = served_pages.served
QUERIES = "red photo\nde\tblaues Bild\nar\tصورة خضراء"


@pytest.fixture(scope="module")
def ann(served):
    return person(served, "ann")


@pytest.mark.slow
def test_as_many_queries_as_are_promised_fit_in_any_script(ann):
    queries = [f"женщина читает книгу у окна в старом кафе {n}" for n in range(500)]
    sent = {"title": "Пятьсот", "queries": "\n".join(queries), "depth": 1}
    answer = ann.post("/judge/new", data=sent)
    assert answer.status_code == 303, answer.text
    sent["queries"] = "ш" * 2**18
    answer = ann.post("/judge/new", data=sent)
    assert answer.status_code == 413
    assert "This is too large" in answer.text


def test_a_task_pools_what_the_server_finds_and_counts_each_query(served, ann):
    before = served.client.get("/api/v1/usage").status_code
    used = usage_of(served, ann)
    answer = ann.post("/judge/new", data={"title": "Pool me", "queries": QUERIES, "depth": 4})
    assert (before, answer.status_code, answer.headers["location"]) == (200, 303, "/judge/pool-me")
    pool = open_task(served.library, "pool-me").pool
    assert (len(pool.queries), len(pool)) == (3, 12)
    assert usage_of(served, ann) == used + 3
    engine = served.app.services.live_library.current.engine
    first = engine.table.photo_ids(engine.rank(Query(text="red photo"), 4).rows)
    red = next(i for i, query in pool.queries.items() if query.text == "red photo")
    assert {pair.photo_id for pair in pool.pairs if pair.query_id == red} == set(first)


def usage_of(served, browser):
    return served.app.services.meter.read_used(Caller(browser.account_id, "", "scale"))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"queries": ""}, "queries must be 1 to"),
        ({"title": ""}, "title must have"),
        ({"depth": "0"}, "photos of each query must be a number from 1 to 100"),
        ({"depth": "1e3"}, "photos of each query must be a number"),
        ({"random": "200"}, "% at random on top must be a number"),
        ({"seed": "-1"}, "seed of the order must be a number"),
        ({"queries": "\n".join(f"q {n}" for n in range(501))}, "at most 500"),
        ({"title": "<b>taken</b>"}, "taken"),
    ],
)
def test_what_does_not_fit_is_said_above_a_form_that_stays_filled_in(ann, values, message):
    ann.post("/judge/new", data={"title": "<b>taken</b>", "queries": "red"})
    sent = {"title": "<b>mine</b>", "queries": "<i>red</i>", "depth": "4"} | values
    answer = ann.post("/judge/new", data=sent)
    assert answer.status_code == 422
    assert message in answer.text
    assert 'role="alert"' in answer.text
    assert "<b>" not in answer.text
    if "queries" not in values:
        assert "&lt;i&gt;red&lt;/i&gt;" in answer.text


@pytest.mark.slow
def test_a_task_that_the_quota_does_not_allow_counts_nothing(served):
    poor = person(served, "poor", plan="free")
    for number in range(10):
        poor.post(
            "/judge/new",
            data={"title": f"many {number}", "queries": "\n".join(map(str, range(500)))},
        )
    used = usage_of(served, poor)
    answer = poor.post(
        "/judge/new", data={"title": "more", "queries": "\n".join(map(str, range(500)))}
    )
    assert used == 5_000
    assert (answer.status_code, usage_of(served, poor)) == (429, used)
    assert "<h1>This month&#39;s searches are used up</h1>" in answer.text
    assert "whoever runs this server changes plans" in answer.text
