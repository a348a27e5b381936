"""A clock that is set years forward or back for a moment changes no quota, rate or record."""

import asyncio
import time
from datetime import UTC, date, datetime, timedelta

import pytest
import sqlalchemy as sa

from searchlab.api.accounts.clock import ENVIRONMENT, SettledClock, utc_now
from searchlab.api.accounts.keyring import Caller
from searchlab.api.accounts.meter import Meter
from searchlab.api.accounts.rates import Rates
from searchlab.api.accounts.tables import accounts, usage_days, usage_months
from searchlab.api.accounts.usage import (
    KEPT_DAYS,
    KEPT_MONTHS,
    UsageCounts,
    look_up_used,
    read_days,
)
from searchlab.api.accounts.values import days_back, months_back

CALLER = Caller(1, "key_0", "free")
YEARS_S = 3 * 365 * 86_400.0


class Machine:
    """A clock that can be set, and one that cannot."""

    def __init__(self):
        self.wall, self.steady = datetime(2024, 2, 29, 12, tzinfo=UTC).timestamp(), 1_000.0
        self.clock = SettledClock(lambda: self.wall, lambda: self.steady)

    def pass_(self, seconds):
        self.wall += seconds
        self.steady += seconds
        return self.clock()


@pytest.fixture
def machine():
    return Machine()


@pytest.mark.parametrize("jump_s", [YEARS_S, -YEARS_S, 3_600, -3_600, 61])
def test_a_jump_is_not_believed_until_it_has_lasted(machine, jump_s, caplog):
    start = machine.clock()
    machine.wall += jump_s
    assert machine.pass_(2.5) == start + timedelta(seconds=2.5)
    machine.wall -= jump_s
    assert machine.pass_(1) == start + timedelta(seconds=3.5)
    assert "jumped by" in caplog.text
    machine.wall += jump_s
    for _ in range(60):
        machine.pass_(10)
    assert machine.clock() == start + timedelta(seconds=603.5)
    assert machine.pass_(10).timestamp() == machine.wall


def test_a_process_that_is_started_while_the_clock_is_wrong_is_told_the_right_time(machine):
    start = machine.clock()
    machine.wall += YEARS_S
    handed_on = float(machine.clock.hand_on()[ENVIRONMENT])
    child = SettledClock(lambda: machine.wall, lambda: machine.steady, offset=handed_on)
    assert child() == start
    machine.wall -= YEARS_S
    machine.pass_(2.5)
    assert child() == machine.clock() == start + timedelta(seconds=2.5)


def test_small_corrections_are_followed_at_once(machine):
    for step in (0.5, -30, 59):
        machine.wall += step
        assert machine.pass_(1).timestamp() == pytest.approx(machine.wall)


def test_a_jump_from_jump_to_jump_is_not_believed(machine):
    start = machine.clock()
    for number in range(100):
        machine.wall += YEARS_S * (-1) ** number
        machine.pass_(60)
    assert abs(machine.clock() - start - timedelta(minutes=100)) < timedelta(minutes=1)


def test_rates_never_look_at_the_clock_that_can_be_set(monkeypatch):
    rates = Rates(None, 10, 5)
    now = time.time_ns()
    for jump in (0, -(10**18), 10**18, -(10**17)):
        monkeypatch.setattr(time, "time_ns", lambda jump=jump: now + jump)
        monkeypatch.setattr(time, "time", lambda jump=jump: (now + jump) / 1e9)
        verdicts = [rates.check(f"key {jump}") for _ in range(6)]
        assert [verdict.allowed for verdict in verdicts] == [True] * 5 + [False]
        assert verdicts[-1].reset_s <= 0.5
        assert verdicts[-1].retry_after_s <= 0.1
    rates.close()


def fill(database, today):
    counts = UsageCounts(database)
    with database.writing() as connection:
        values = {"id": 1, "name": "acme", "plan": "free", "created_at": utc_now()}
        connection.execute(accounts.insert().values(values))
        for month in months_back(today, KEPT_MONTHS):
            counts.add_to_month(connection, 1, month, 7)
        for day in days_back(today, KEPT_DAYS):
            counts.add_to_day(connection, day, {(1, "key_0"): 1})


def stored(database):
    with database.reading() as connection:
        months = set(connection.scalars(sa.select(usage_months.c.month)))
        return months, set(connection.scalars(sa.select(usage_days.c.day)))


def test_three_years_forward_for_a_moment_delete_nothing_and_reset_no_quota(database, clock):
    today = clock.now.date()
    fill(database, today)
    before = stored(database)
    for jump in (timedelta(days=3 * 365), timedelta(days=-3 * 365)):
        clock.now += jump
        meter = Meter(database, clock=clock)  # as a worker that starts in that moment
        asyncio.run(meter.flush())
        meter.close()
        clock.now -= jump
    assert stored(database) == before
    meter = Meter(database, clock=clock)
    assert asyncio.run(meter.count(CALLER, limit=100)) == 8
    meter.close()
    assert read_days(database, 1, 90, today)["records"][0]["requests"] == 1


def spend_days(database, clock, number):
    """Count a search and delete what is old, on each of some days, as a worker does at midnight."""
    meter = Meter(database, clock=clock)
    for _ in range(number):
        asyncio.run(meter.count(CALLER, limit=10**6))
        asyncio.run(meter.flush())
        clock.now += timedelta(days=1)
        asyncio.run(meter.flush())
    meter.close()


@pytest.mark.slow
@pytest.mark.parametrize("days", [20, 45, 3 * 365, 10_000, -45, -3 * 365])
def test_a_wrong_date_takes_nothing_of_a_record_within_a_month_of_days(database, clock, days):
    real = clock.now.date()
    fill(database, real)
    months, days_before = stored(database)
    clock.now += timedelta(days=days)
    spend_days(database, clock, 31)
    months_after, days_after = stored(database)
    assert months <= months_after
    assert days_before <= days_after
    assert look_up_used(database, 1, months_back(real, 1)[0]) >= 7


@pytest.mark.slow
def test_counts_that_are_older_than_any_record_go_and_those_of_a_month_more_stay(database, clock):
    today = clock.now.date()
    fill(database, today)
    spend_days(database, clock, 100)  # three times the month that is kept on top
    months, days = stored(database)
    # Deleted at midnight, before the first search of the new day.
    assert days == {*days_back(clock.now.date() - timedelta(days=1), KEPT_DAYS + 31)}
    assert len(months) == KEPT_MONTHS + 2


def test_the_last_counts_stay_where_few_days_have_any(database):
    today = date(2024, 2, 29)
    fill(database, today)
    before = stored(database)
    with database.writing() as connection:
        UsageCounts(database).delete_old(connection, today + timedelta(days=3_000))
    assert stored(database) == before


def test_a_day_that_a_record_shows_stays_whatever_was_counted_after_it(database):
    """As where the clock was ahead for long, and is right again."""
    today = date(2024, 2, 29)
    fill(database, today)
    with database.writing() as connection:
        counts = UsageCounts(database)
        for day in days_back(today + timedelta(days=200), 200):
            counts.add_to_day(connection, day, {(1, "key_0"): 1})
        counts.delete_old(connection, today)
        counts.delete_old(connection, today)
    assert {*days_back(today, KEPT_DAYS)} <= stored(database)[1]
    with database.writing() as connection:
        counts.delete_old(connection, today + timedelta(days=1))
    assert stored(database)[1] >= {*days_back(today, KEPT_DAYS - 1)}
    assert days_back(today, KEPT_DAYS)[0] not in stored(database)[1]
