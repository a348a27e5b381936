"""The meter and the records of usage: exact counts, limits that hold, windows that are whole."""

import asyncio
import threading
from contextlib import closing
from datetime import date

import pytest
import sqlalchemy as sa

from searchlab.api.accounts import usage
from searchlab.api.accounts.counting import Count, CountWriter
from searchlab.api.accounts.database import BusyError
from searchlab.api.accounts.keyring import Caller
from searchlab.api.accounts.meter import Meter
from searchlab.api.accounts.tables import accounts, api_keys
from searchlab.errors import ConflictError, DataError, InputError, QuotaError
from tests.support.databases import Clock, add_account, fresh_database, run
from tests.support.metering import caller_of


@pytest.fixture(autouse=True, params=["with uses", "counts alone"])
def written(request, monkeypatch):
    """Whether uses of keys are due with counts; where none is, SQLite's own connection counts."""
    if request.param == "counts alone":
        monkeypatch.setattr(CountWriter, "_list_due", lambda *_: [])
    return request.param


def used(database, caller, today):
    return usage.read_month(database, caller.account_id, today, limit=0)["requests"]["used"]


# -- counting ---------------------------------------------------------------------------------


def test_a_count_returns_the_number_of_this_search_in_the_month(database, meter):
    caller = caller_of(database)

    async def search():
        return [await meter.count(caller, limit=100) for _ in range(3)]

    assert run(search()) == [1, 2, 3]


@pytest.mark.usefixtures("meter")
def test_a_meter_that_nobody_closes_keeps_no_process_from_ending():
    threads = [one for one in threading.enumerate() if one.name == "searchlab-meter"]
    assert threads
    assert all(one.daemon for one in threads)


def test_many_at_once_get_each_number_once(database, meter, clock):
    caller = caller_of(database)

    async def search():
        return await asyncio.gather(*(meter.count(caller, limit=10**9) for _ in range(500)))

    assert sorted(run(search())) == list(range(1, 501))
    assert used(database, caller, clock.now.date()) == 500


def test_what_is_counted_in_one_turn_of_a_loop_shares_a_transaction(database, meter, monkeypatch):
    caller = caller_of(database)
    run(meter.count(caller, limit=10**9))  # the first one also clears what is old
    sizes, write = [], meter._writer.write

    def noted(some, day, *, durable):
        sizes.append(len(some))
        return write(some, day, durable=durable)

    monkeypatch.setattr(meter._writer, "write", noted)

    async def search():
        return await asyncio.gather(*(meter.count(caller, limit=10**9) for _ in range(40)))

    assert sorted(run(search())) == list(range(2, 42))
    assert sizes == [40]


def test_a_count_is_answered_at_the_end_of_the_turn_not_when_the_meter_looks_again(
    database, clock, monkeypatch
):
    monkeypatch.setattr("searchlab.api.accounts.meter._FRESH_S", 60.0)
    with closing(Meter(database, clock=clock)) as meter:

        async def search():
            counting = meter.count(caller_of(database), limit=100)
            return await asyncio.wait_for(counting, timeout=20)

        assert run(search()) == 1


def test_what_a_loop_left_behind_in_the_midst_of_its_turn_is_written(database, meter, clock):
    caller = caller_of(database)
    loop = asyncio.new_event_loop()
    meter._put(Count(caller, 9, 1, None, loop, loop.create_future()))
    loop.close()
    run(meter.flush())
    assert used(database, caller, clock.now.date()) == 1


def test_what_is_counted_is_committed_before_it_returns(database, meter, clock):
    caller = caller_of(database)

    async def search():
        seen = []
        for _ in range(5):
            await meter.count(caller, limit=100)
            seen.append(used(database, caller, clock.now.date()))
        return seen

    assert run(search()) == [1, 2, 3, 4, 5]


def test_accounts_are_counted_apart_and_their_keys_together(database, meter, clock):
    first, second = caller_of(database), caller_of(database, name="other")
    beta = caller_of(database, account="beta")

    async def search():
        await asyncio.gather(
            *(meter.count(caller, limit=100) for caller in [first] * 3 + [second] * 2 + [beta])
        )

    run(search())
    today = clock.now.date()
    assert [used(database, caller, today) for caller in (first, second, beta)] == [5, 5, 1]


def test_only_where_a_use_is_due_is_it_written_with_the_count(database, meter, clock, written):
    caller, keys = caller_of(database), sa.select(api_keys.c.last_used_at)
    run(meter.count(caller, limit=9))
    with database.reading() as connection:
        (last_used_at,) = connection.scalars(keys)
    assert (last_used_at is None) == (written == "counts alone")


def test_where_no_use_is_due_sqlite_counts_by_itself(database, meter, written, monkeypatch):
    caller, ordinary = caller_of(database), []
    writing = database.writing

    def noted(**options):
        ordinary.append(options)
        return writing(**options)

    monkeypatch.setattr(database, "writing", noted)
    assert [run(meter.count(caller, limit=9)) for _ in range(3)] == [1, 2, 3]
    counts = [options for options in ordinary if options == {"durable": False}]
    is_alone = written == "counts alone" and database.file is not None
    # With uses, the first count alone brings one: the next is due in a second.
    n_ordinary = 0 if is_alone else 1 if database.file is not None else 3
    assert len(counts) == n_ordinary


def test_a_new_month_starts_at_one_and_the_old_one_stays(database, meter, clock):
    caller = caller_of(database)
    run(meter.count(caller, limit=1))
    clock.now = Clock(2024, 3, 1).now
    assert run(meter.count(caller, limit=1)) == 1
    assert used(database, caller, date(2024, 2, 29)) == 1
    assert used(database, caller, date(2024, 3, 1)) == 1


# -- the limit --------------------------------------------------------------------------------


def test_the_limit_is_reached_and_never_passed(database, meter, clock):
    caller = caller_of(database)

    async def search():
        counts = (meter.count(caller, limit=7) for _ in range(50))
        return await asyncio.gather(*counts, return_exceptions=True)

    outcomes = run(search())
    assert sorted(n for n in outcomes if isinstance(n, int)) == [1, 2, 3, 4, 5, 6, 7]
    assert sum(isinstance(n, QuotaError) for n in outcomes) == 43
    assert used(database, caller, clock.now.date()) == 7
    assert usage.read_days(database, caller.account_id, 1, clock.now.date())["records"] == [
        {"date": "2024-02-29", "requests": 7}
    ]


def test_a_refusal_says_what_to_do(database, meter):
    caller = caller_of(database)
    with pytest.raises(QuotaError, match="all used in 2024-02; wait for the next month"):
        run(meter.count(caller, limit=0))


def test_several_searches_are_counted_together_or_not_at_all(database, meter, clock):
    caller = caller_of(database)

    async def search():
        counts = (meter.count(caller, limit=7, searches=n) for n in (4, 5, 3, 1))
        return await asyncio.gather(*counts, return_exceptions=True)

    first, refused, last, too_late = run(search())
    assert (first, last) == (4, 7)
    assert "must have 5 left, got fewer in 2024-02" in str(refused)
    assert isinstance(too_late, QuotaError)
    today = clock.now.date()
    assert used(database, caller, today) == 7
    (key,) = usage.read_keys(database, caller.account_id, clock.now)["keys"]
    assert (key["requests_this_month"], key["requests_today"]) == (7, 7)


def test_a_smaller_plan_than_what_was_used_leaves_nothing_and_no_less(database, meter, clock):
    caller = caller_of(database)
    for _ in range(3):
        run(meter.count(caller, limit=3))
    with pytest.raises(QuotaError):
        run(meter.count(caller, limit=2))
    record = usage.read_month(database, caller.account_id, clock.now.date(), limit=2)
    assert record == {
        "period": "2024-02",
        "requests": {"used": 3, "limit": 2, "remaining": 0},
    }


def test_two_meters_share_one_limit(database, meter, clock):
    caller = caller_of(database)
    other = Meter(database, clock=clock)

    async def search():
        counts = [one.count(caller, limit=30) for one in (meter, other) for _ in range(40)]
        return await asyncio.gather(*counts, return_exceptions=True)

    outcomes = run(search())
    other.close()
    assert sorted(n for n in outcomes if isinstance(n, int)) == list(range(1, 31))


# -- in the same transaction ------------------------------------------------------------------


def test_what_goes_along_is_committed_with_the_count(database, meter):
    caller = caller_of(database)
    assert run(meter.count(caller, limit=9, also=lambda c: add_account(c, "along"))) == 1
    with database.reading() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(accounts)) == 2


def test_what_goes_along_and_fails_is_its_waiters_alone(database, meter, clock):
    caller = caller_of(database)

    def fail(connection):
        add_account(connection, "half")
        add_account(connection, "acme")  # there is one

    async def search():
        return await asyncio.gather(
            meter.count(caller, limit=9),
            meter.count(caller, limit=9, also=fail),
            meter.count(caller, limit=9, also=lambda c: add_account(c, "whole")),
            meter.count(caller, limit=9),
            return_exceptions=True,
        )

    outcomes = run(search())
    assert sorted(n for n in outcomes if isinstance(n, int)) == [1, 2, 3]
    assert isinstance(outcomes[1], DataError)
    assert used(database, caller, clock.now.date()) == 3
    with database.reading() as connection:
        assert set(connection.scalars(sa.select(accounts.c.name))) == {"acme", "whole"}


def test_an_error_of_what_goes_along_comes_out_as_it_is(database, meter, clock):
    caller = caller_of(database)

    def refuse(_connection):
        msg = "no"
        raise ConflictError(msg)

    with pytest.raises(ConflictError, match=r"^no$"):
        run(meter.count(caller, limit=9, also=refuse))
    assert used(database, caller, clock.now.date()) == 0


def test_a_search_over_the_limit_runs_nothing_along(database, meter):
    caller = caller_of(database)
    with pytest.raises(QuotaError):
        run(meter.count(caller, limit=0, also=lambda c: add_account(c, "along")))
    with database.reading() as connection:
        assert list(connection.scalars(sa.select(accounts.c.name))) == ["acme"]


# -- failures ---------------------------------------------------------------------------------


def test_a_commit_that_fails_fails_its_waiters_and_no_later_ones(database, meter, clock):
    caller = caller_of(database)
    with database.writing() as connection:
        connection.exec_driver_sql("ALTER TABLE usage_days RENAME TO hidden")

    async def search():
        counts = (meter.count(caller, limit=9) for _ in range(3))
        return await asyncio.gather(*counts, return_exceptions=True)

    try:
        outcomes = run(search())
    finally:
        with database.writing() as connection:
            connection.exec_driver_sql("ALTER TABLE hidden RENAME TO usage_days")
    assert [type(outcome) for outcome in outcomes] == [DataError] * 3
    assert used(database, caller, clock.now.date()) == 0
    assert run(meter.count(caller, limit=9)) == 1


def test_a_caller_that_the_database_does_not_take_fails_and_no_later_one(database, meter):
    caller = caller_of(database)
    with pytest.raises(InputError):
        run(meter.count(Caller(2**63, "key_0", "free"), limit=9))
    assert run(meter.count(caller, limit=9)) == 1


def test_a_waiter_that_gives_up_disturbs_nobody(database, meter):
    caller = caller_of(database)

    async def search():
        impatient = asyncio.create_task(meter.count(caller, limit=9))
        await asyncio.sleep(0)
        impatient.cancel()
        return await meter.count(caller, limit=9)

    assert run(search()) in (1, 2)


def test_nobody_waits_for_ever_for_a_database_that_hangs(tmp_path, clock, monkeypatch):
    monkeypatch.setattr("searchlab.api.accounts.meter._PATIENCE_S", 0.01)
    with fresh_database("sqlite", tmp_path) as database:
        caller = caller_of(database)
        meter = Meter(database, clock=clock)
        with database.writing():
            for ask in (lambda: meter.count(caller, limit=9), meter.flush):
                with pytest.raises(BusyError, match="s, got nothing; try again"):
                    run(ask())
        monkeypatch.undo()
        assert run(meter.count(caller, limit=9)) in (1, 2)
        meter.close()


def test_a_loop_that_is_gone_disturbs_nobody(database, meter):
    caller = caller_of(database)
    loop = asyncio.new_event_loop()
    task = loop.create_task(meter.count(caller, limit=9))
    loop.run_until_complete(asyncio.sleep(0, loop.call_soon(task.cancel)))
    loop.close()
    assert run(meter.count(caller, limit=9)) in (1, 2)


def test_closing_writes_what_waits_and_a_closed_meter_counts_no_more(database, clock):
    meter = Meter(database, clock=clock)
    caller = caller_of(database)

    async def search():
        counts = [asyncio.create_task(meter.count(caller, limit=99)) for _ in range(20)]
        await asyncio.sleep(0)
        meter.close()
        meter.close()
        return await asyncio.gather(*counts)

    assert run(search()) == list(range(1, 21))
    with pytest.raises(BusyError, match="the meter must be open"):
        run(meter.count(caller, limit=9))
    assert meter.peek(caller) == 20
