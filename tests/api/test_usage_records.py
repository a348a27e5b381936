"""The records of usage: windows of months, days and keys that are whole."""

from datetime import date

from searchlab.api.accounts import usage
from searchlab.api.accounts.accounts import revoke_key
from searchlab.api.accounts.keyring import Caller
from searchlab.api.accounts.tables import usage_days, usage_months
from searchlab.api.accounts.visitors import PAGES_KEY
from tests.support.metering import caller_of


def fill(database, caller, days, months):
    with database.writing() as connection:
        for day, requests in days.items():
            row = {"account_id": caller.account_id, "day": day, "key_id": caller.key_id}
            connection.execute(usage_days.insert().values(row | {"requests": requests}))
        for month, requests in months.items():
            row = {"account_id": caller.account_id, "month": month, "requests": requests}
            connection.execute(usage_months.insert().values(row))


def test_an_idle_account_has_records_of_zeros(database):
    caller, today = caller_of(database), date(2024, 1, 1)
    assert usage.read_month(database, caller.account_id, today, limit=5000) == {
        "period": "2024-01",
        "requests": {"used": 0, "limit": 5000, "remaining": 5000},
    }
    assert usage.read_months(database, caller.account_id, 2, today) == {
        "period_months": 2,
        "records": [{"month": "2024-01", "requests": 0}, {"month": "2023-12", "requests": 0}],
    }
    assert usage.read_days(database, caller.account_id, 2, today) == {
        "period_days": 2,
        "records": [{"date": "2023-12-31", "requests": 0}, {"date": "2024-01-01", "requests": 0}],
    }


def test_monthly_records_are_whole_and_the_latest_comes_first(database):
    caller, other = caller_of(database), caller_of(database, account="beta")
    months = {"2024-02": 3, "2023-12": 5, "2022-03": 7, "2022-02": 9, "2024-03": 11}
    fill(database, caller, {}, months)
    fill(database, other, {}, {"2024-01": 100})
    record = usage.read_months(database, caller.account_id, 24, date(2024, 2, 29))
    assert record["period_months"] == len(record["records"]) == 24
    assert record["records"][:3] == [
        {"month": "2024-02", "requests": 3},
        {"month": "2024-01", "requests": 0},
        {"month": "2023-12", "requests": 5},
    ]
    assert record["records"][-1] == {"month": "2022-03", "requests": 7}


def test_daily_records_are_whole_and_the_oldest_comes_first(database):
    caller, other = caller_of(database), caller_of(database, account="beta")
    second = caller_of(database, name="other")
    days = {date(2024, 3, 1): 3, date(2024, 2, 29): 5, date(2023, 12, 3): 7, date(2023, 12, 2): 9}
    fill(database, caller, days, {})
    fill(database, second, {date(2024, 3, 1): 20}, {})
    fill(database, other, {date(2024, 3, 1): 100}, {})
    record = usage.read_days(database, caller.account_id, 90, date(2024, 3, 1))
    assert record["period_days"] == len(record["records"]) == 90
    assert record["records"][0] == {"date": "2023-12-03", "requests": 7}
    assert record["records"][-2:] == [
        {"date": "2024-02-29", "requests": 5},
        {"date": "2024-03-01", "requests": 23},
    ]


def test_records_by_key_add_up_to_the_month_and_forget_idle_revoked_keys(database, clock):
    caller, second = caller_of(database), caller_of(database, name="other")
    revoked, idle = caller_of(database, name="revoked"), caller_of(database, name="idle")
    caller_of(database, account="beta")
    fill(database, caller, {date(2024, 1, 31): 50, date(2024, 2, 1): 3, date(2024, 2, 29): 4}, {})
    fill(database, revoked, {date(2024, 2, 2): 5}, {})
    for gone in (revoked, idle):
        revoke_key(database, gone.key_id)
    key_records = usage.read_keys(database, caller.account_id, clock.now)["keys"]
    shown = [
        (k["key_id"], k["name"], k["requests_this_month"], k["requests_today"]) for k in key_records
    ]
    assert shown == [
        (caller.key_id, "server", 7, 4),
        (second.key_id, "other", 0, 0),
        (revoked.key_id, "revoked", 5, 0),
    ]
    assert key_records[0]["last_used_at"] is None
    assert key_records[0]["created_at"].endswith("+00:00")


def test_pages_are_a_record_by_key_in_a_month_in_which_they_were_searched(database, clock):
    caller, other = caller_of(database), caller_of(database, account="beta")
    pages, theirs = (Caller(each.account_id, PAGES_KEY, each.plan) for each in (caller, other))
    fill(database, pages, {date(2024, 1, 31): 9}, {})
    fill(database, theirs, {date(2024, 2, 29): 100}, {})
    (key,) = usage.read_keys(database, caller.account_id, clock.now)["keys"]
    assert key["key_id"] == caller.key_id
    fill(database, pages, {date(2024, 2, 1): 2, date(2024, 2, 29): 3}, {})
    fill(database, caller, {date(2024, 2, 29): 4}, {})
    keys = {k["key_id"]: k for k in usage.read_keys(database, caller.account_id, clock.now)["keys"]}
    assert set(keys) == {caller.key_id, "pages"}
    assert keys["pages"]["name"] == "Pages in the browser"
    assert (keys["pages"]["requests_this_month"], keys["pages"]["requests_today"]) == (5, 3)
    assert keys["pages"]["created_at"].endswith("+00:00")
    assert keys["pages"]["last_used_at"] is None
    assert sum(key["requests_this_month"] for key in keys.values()) == 9
