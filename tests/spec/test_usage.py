"""Sections 2.7, 4.6 and 8: usage, quotas and plans, asked as a stranger would."""

import datetime
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import delete, insert, select

from searchlab.api.accounts.database import open_database
from searchlab.api.accounts.tables import accounts, usage_months
from tests.support.independent_client import (
    INTEGER,
    SEARCH,
    TEXT,
    check_failure,
    check_invalid,
    check_moment,
    check_page,
    check_record,
    check_success,
)


@pytest.fixture
def fresh(known, request):
    """A client of an account that nobody else uses."""
    return known.new_account(request.node.name[:100], plan="growth")


@pytest.fixture
def today():
    """The day in UTC, on which the test also ends."""
    now = datetime.datetime.now(datetime.UTC)
    if now.hour == 23 and now.minute == 59:
        pytest.skip("the day is about to change")
    return now.date()


def used(api):
    return api.data("/usage")["requests"]["used"]


def months_back(day, count):
    first = day.replace(day=1)
    for _ in range(count):
        yield first.strftime("%Y-%m")
        first = (first - datetime.timedelta(days=1)).replace(day=1)


# -- the current month -------------------------------------------------------------------------


def test_usage_is_that_of_the_current_month(fresh, today):
    fresh.search(q="sea")
    usage = fresh.data("/usage")
    check_record(usage, {"period": TEXT, "requests": (dict,)})
    assert usage["period"] == today.strftime("%Y-%m")
    check_record(usage["requests"], {"used": INTEGER, "limit": INTEGER, "remaining": INTEGER})
    assert usage["requests"] == {"used": 1, "limit": 100_000, "remaining": 99_999}


@pytest.mark.parametrize(
    ("plan", "limit"),
    [("free", 5_000), ("starter", 20_000), ("growth", 100_000), ("scale", 1_000_000)],
)
def test_each_plan_has_its_quota(known, plan, limit):
    usage = known.new_account(f"of the plan {plan}", plan=plan).data("/usage")
    assert usage["requests"] == {"used": 0, "limit": limit, "remaining": limit}


def test_each_page_of_each_search_counts_one(known, fresh):
    photo_id = known.plain(0)["photo_id"]
    picture = (known.photos / "plain-00.png").read_bytes()
    first = fresh.page(q="sea")
    fresh.page(cursor=first["pagination"]["next_cursor"])
    fresh.image_page(photo_id=photo_id)
    check_page(fresh.upload(picture))
    first = check_page(fresh.get(f"/photos/{photo_id}/similar"))
    cursor = first["pagination"]["next_cursor"]
    check_page(fresh.get(f"/photos/{photo_id}/similar", cursor=cursor))
    fresh.page(orientation="square", after_date="9999-12-31")
    assert used(fresh) == 7


@pytest.mark.parametrize(
    "path",
    ["/facets/colors", "/facets/sources", "/facets/orientations", "/facets/licenses",
     "/facets/photographers/suggest?q=a", "/facets/photographers/ann", "/collections", "/usage",
     "/usage/monthly", "/usage/daily", "/usage/by-key"],
)  # fmt: skip
def test_reading_anything_else_counts_none(api, path):
    before = used(api)
    check_success(api.get(path))
    assert used(api) == before


def test_photos_and_collections_count_none(known, api):
    before = used(api)
    photo_id = known.plain(0)["photo_id"]
    check_success(api.get(f"/photos/{photo_id}"))
    made = check_success(api.post("/collections", {"name": "x"}))["data"]["id"]
    check_success(api.post(f"/collections/{made}/photos", {"photo_id": photo_id}))
    check_success(api.delete(f"/collections/{made}"))
    assert used(api) == before


def test_a_search_that_fails_counts_none(known, fresh):
    for params in ({}, {"q": "x" * 501}, {"q": "sea", "per_page": 0}, {"q": "sea", "fields": "no"}):
        assert not fresh.get(SEARCH, **params).is_success
    assert not fresh.get(SEARCH, cursor="abc").is_success
    assert not fresh.post(SEARCH, photo_id="unknown").is_success
    assert not fresh.upload(b"no picture").is_success
    assert not fresh.get("/photos/unknown/similar").is_success
    assert used(fresh) == 0


def test_counts_are_exact_under_concurrency(fresh):
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: fresh.get(SEARCH, q="sea", limit=1), range(96)))
    assert {answer.status_code for answer in answers} == {200}
    assert used(fresh) == 96


# -- months ------------------------------------------------------------------------------------


def test_monthly_usage_has_the_last_12_months_the_most_recent_first(fresh, today):
    fresh.search(q="sea")
    usage = fresh.data("/usage/monthly")
    check_record(usage, {"period_months": INTEGER, "records": (list,)})
    assert usage["period_months"] == 12
    for record in usage["records"]:
        check_record(record, {"month": TEXT, "requests": INTEGER})
    assert [record["month"] for record in usage["records"]] == list(months_back(today, 12))
    assert [record["requests"] for record in usage["records"]] == [1] + [0] * 11


@pytest.mark.parametrize("months", [1, 2, 13, 23, 24])
def test_1_to_24_months_can_be_asked_for(api, today, months):
    usage = api.data("/usage/monthly", months=months)
    assert usage["period_months"] == months
    assert [record["month"] for record in usage["records"]] == list(months_back(today, months))


NO_COUNT = ["0", "-1", "abc", "", " 5", "1e1", "1.0", "١", "1" + "0" * 30]


@pytest.mark.parametrize("months", ["25", *NO_COUNT])
def test_any_other_number_of_months_is_invalid(api, months):
    check_invalid(api.get("/usage/monthly", months=months), "query", "months")


# -- days --------------------------------------------------------------------------------------


def days_back(today, count):
    return [(today - datetime.timedelta(days=n)).isoformat() for n in reversed(range(count))]


def test_daily_usage_has_the_last_30_days_the_oldest_first(fresh, today):
    fresh.search(q="sea")
    fresh.search(q="sea")
    usage = fresh.data("/usage/daily")
    check_record(usage, {"period_days": INTEGER, "records": (list,)})
    assert usage["period_days"] == 30
    for record in usage["records"]:
        check_record(record, {"date": TEXT, "requests": INTEGER})
    assert [record["date"] for record in usage["records"]] == days_back(today, 30)
    assert [record["requests"] for record in usage["records"]] == [0] * 29 + [2]


@pytest.mark.parametrize("days", [1, 2, 31, 89, 90])
def test_1_to_90_days_can_be_asked_for(api, today, days):
    usage = api.data("/usage/daily", days=days)
    assert usage["period_days"] == days
    assert [record["date"] for record in usage["records"]] == days_back(today, days)


@pytest.mark.parametrize("days", ["91", *NO_COUNT])
def test_any_other_number_of_days_is_invalid(api, days):
    check_invalid(api.get("/usage/daily", days=days), "query", "days")


# -- keys --------------------------------------------------------------------------------------


def test_usage_by_key_tells_the_keys_of_an_account_apart(known, fresh, request):
    second = known.new_account(request.node.name[:100], name="zweiter Schlüssel")
    for _ in range(3):
        fresh.search(q="sea")
    second.search(q="sea")
    by_key = fresh.data("/usage/by-key")
    assert set(by_key) == {"keys"}
    names = {"key_id": TEXT, "name": TEXT, "created_at": TEXT, "last_used_at": TEXT}
    counts = {"requests_this_month": INTEGER, "requests_today": INTEGER}
    for key in by_key["keys"]:
        check_record(key, names | counts)
        assert check_moment(key["created_at"]) <= check_moment(key["last_used_at"])
    requests_of = {
        k["name"]: (k["requests_this_month"], k["requests_today"]) for k in by_key["keys"]
    }
    assert requests_of == {"first": (3, 3), "zweiter Schlüssel": (1, 1)}
    assert used(fresh) == used(second) == 4
    assert [key["key_id"] for key in second.data("/usage/by-key")["keys"]] == [
        key["key_id"] for key in by_key["keys"]
    ]


def test_usage_by_key_shows_no_key(known, fresh):
    text = fresh.get("/usage/by-key").text
    assert fresh.key not in text
    assert fresh.key[10:] not in text


def test_usage_is_that_of_the_account_alone(known, fresh):
    known.api("other").search(q="sea")
    assert used(fresh) == 0
    assert len(fresh.data("/usage/by-key")["keys"]) == 1


# -- quota -------------------------------------------------------------------------------------


def spend(known, account, requests):
    """Set the used requests of an account's month, as if it had searched so often."""
    month = datetime.datetime.now(datetime.UTC).strftime("%Y-%m")
    database = open_database(known.database_url)
    with database.writing() as connection:
        number = connection.scalar(select(accounts.c.id).where(accounts.c.name == account))
        mine = usage_months.c.account_id == number
        connection.execute(delete(usage_months).where(mine))
        row = {"account_id": number, "month": month, "requests": requests}
        connection.execute(insert(usage_months).values(row))
    database.close()


def test_searches_beyond_the_quota_are_refused_and_the_rest_works(known):
    thrifty = known.new_account("thrifty", plan="free")
    made = check_success(thrifty.post("/collections", {"name": "x"}))["data"]["id"]
    thrifty.search(q="sea")
    spend(known, "thrifty", 4_998)
    assert thrifty.data("/usage")["requests"] == {"used": 4_998, "limit": 5_000, "remaining": 2}
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: thrifty.get(SEARCH, q="sea", limit=1), range(16)))
    assert sorted(answer.status_code for answer in answers) == [200] * 2 + [429] * 14
    refused = thrifty.get(SEARCH, q="sea")
    check_failure(refused, 429, "QUOTA_EXCEEDED")
    assert int(refused.headers["retry-after"]) > 0
    assert thrifty.data("/usage")["requests"] == {"used": 5_000, "limit": 5_000, "remaining": 0}
    photo_id = known.plain(0)["photo_id"]
    check_failure(thrifty.post(SEARCH, photo_id=photo_id), 429, "QUOTA_EXCEEDED")
    check_failure(thrifty.get(f"/photos/{photo_id}/similar"), 429, "QUOTA_EXCEEDED")
    check_success(thrifty.get(f"/photos/{photo_id}"))
    check_success(thrifty.get("/facets/colors"))
    check_success(thrifty.get(f"/collections/{made}"))
    known.create_key("thrifty", name="richer", plan="starter")
    check_page(thrifty.get(SEARCH, q="sea"))


def test_less_than_nothing_never_remains(known):
    api = known.new_account("lowered", plan="free")
    spend(known, "lowered", 6_000)
    assert api.data("/usage")["requests"] == {"used": 6_000, "limit": 5_000, "remaining": 0}
    check_failure(api.get(SEARCH, q="sea"), 429, "QUOTA_EXCEEDED")
    assert used(api) == 6_000


@pytest.mark.parametrize(
    ("path", "params"),
    [
        ("/usage", {}),
        (SEARCH, {"q": "sea"}),
        (SEARCH, {}),
        ("/nowhere", {}),
        ("/collections/0", {}),
    ],
)
def test_every_answer_says_what_is_left(api, path, params):
    headers = api.get(path, **params).headers
    assert "q=1000000;" in headers["ratelimit-policy"]
    assert "r=" in headers["ratelimit"]
