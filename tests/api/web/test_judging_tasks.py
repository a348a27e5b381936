"""Tasks for judging are made by a form: what fits, what is counted, what is said above it."""

import re

import pytest

from searchlab.api.accounts.clock import utc_now
from searchlab.api.accounts.keyring import Caller
from searchlab.api.accounts.plans import PLANS, Plan
from searchlab.api.accounts.usage import look_up_used
from searchlab.api.web.judging import tasks
from searchlab.evaluation.datasets.labelled import LabelledQuery
from searchlab.evaluation.judging.comparisons import create_comparison
from searchlab.evaluation.judging.pools import pool_queries, rank_queries
from searchlab.evaluation.judging.tasks import create_task, open_task
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


@pytest.fixture
def searched(monkeypatch):
    """The queries that are searched for tasks."""
    texts = []

    def rank(engine, queries, **more):
        texts.extend(query.text for query in queries)
        return rank_queries(engine, queries, **more)

    monkeypatch.setattr(tasks, "rank_queries", rank)
    return texts


@pytest.mark.parametrize(
    ("values", "most"),
    [
        ({"depth": 4}, 12),
        ({"depth": 4, "random": 30}, 18),  # 30 % of four are two
        ({"depth": 8, "random": 50}, 30),  # two are left of the ten
        ({"depth": 100, "random": 100}, 30),
    ],
)
def test_a_task_that_is_too_large_is_refused_before_anything_is_searched(
    served, ann, monkeypatch, searched, values, most
):
    sent = {"title": f"As large as may be {values}", "queries": QUERIES} | values
    used = read_used(served, ann)
    monkeypatch.setattr(tasks, "MAX_PAIRS", most - 1)
    answer = ann.post("/judge/new", data=sent)
    assert answer.status_code == 422
    assert f"photos to grade must be at most {most - 1}, got {most}" in answer.text
    assert (searched, read_used(served, ann)) == ([], used)
    monkeypatch.setattr(tasks, "MAX_PAIRS", most)
    answer = ann.post("/judge/new", data=sent)
    assert len(open_task(served.library, answer.headers["location"][7:]).pool) == most
    assert (len(searched), read_used(served, ann)) == (3, used + 3)


def test_what_was_searched_is_counted_even_if_another_takes_the_name(served, ann, monkeypatch):
    def pool_while_another_takes_the_name(*args, **kwargs):
        pool = pool_queries(*args, **kwargs)
        create_task(served.library, "refused", pool)
        return pool

    used = read_used(served, ann)
    monkeypatch.setattr(tasks, "pool_queries", pool_while_another_takes_the_name)
    sent = {"title": "Refused", "queries": QUERIES, "depth": 4}
    for _ in range(2):  # then the name is known to be taken, and nothing is searched
        answer = ann.post("/judge/new", data=sent)
        assert answer.status_code == 422
        assert "which is taken" in answer.text
        assert read_used(served, ann) == used + 3


def test_who_has_too_few_searches_left_is_told_how_long_to_wait(served, monkeypatch, searched):
    few = Plan(name="free", requests_per_month=2, similar_paged=False)
    monkeypatch.setitem(PLANS, "free", few)
    frugal = person(served, "frugal", plan="free")
    answer = frugal.post("/judge/new", data={"title": "Too many", "queries": QUERIES, "depth": 4})
    assert answer.status_code == 429
    assert 1 <= int(answer.headers["retry-after"]) <= 31 * 86_400
    assert (searched, read_used(served, frugal)) == ([], 0)


def read_used(served, browser):
    """Read the searches of an account past what the server remembers."""
    return look_up_used(served.database, browser.account_id, f"{utc_now():%Y-%m}")


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


def test_every_comparison_is_reached_page_by_page(served, ann, monkeypatch):
    monkeypatch.setattr(tasks, "COMPARISONS_A_PAGE", 2)
    query = LabelledQuery("q1", "en", "test", text="red")
    runs = {"one": {"q1": ["x", "y"]}, "other": {"q1": ["y", "x"]}}
    names = {f"compared-{number}" for number in range(5)}
    for name in names:
        create_comparison(served.library, name, [query], runs)
    shown, address = [], "/judge"
    while address:
        page = ann.get(address).text
        shown.append(re.findall(r"/judge/([^/\"]+)/compare", page))
        address = next(iter(re.findall(r'href="([^"]+)"><span>Older<', page)), "")
    assert [len(part) for part in shown] == [2, 2, 1]
    assert {name for part in shown for name in part} == names
    assert "Older" not in ann.get("/judge?page=9").text
