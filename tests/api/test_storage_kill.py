"""Counts of several processes, and of processes that are killed: none lost, none twice."""

import asyncio
import os
import signal

import pytest
import sqlalchemy as sa

from searchlab.api.accounts.clock import utc_now
from searchlab.api.accounts.database import open_database
from searchlab.api.accounts.keyring import Caller
from searchlab.api.accounts.meter import Meter
from searchlab.api.accounts.migrations import migrate
from searchlab.api.accounts.tables import accounts, usage_days, usage_months
from searchlab.errors import DataError
from tests.support.databases import (
    add_account,
    fresh_database,
    postgres_of_its_own,
    psql,
    run,
    start,
)
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

# Each count leaves a witness in the same transaction: an account named after it.
COUNT = """
import asyncio, os, sys
from functools import partial
from searchlab.errors import QuotaError
from searchlab.api.accounts.keyring import Caller
from searchlab.api.accounts.database import open_database
from searchlab.api.accounts.meter import Meter
from searchlab.api.accounts.tables import accounts
from searchlab.api.accounts.clock import utc_now

url, tasks, each, limit = sys.argv[1], *map(int, sys.argv[2:])
meter = Meter(open_database(url))
caller = Caller(1, "key_0", "free")

def witness(name, connection):
    connection.execute(accounts.insert().values(name=name, plan="", created_at=utc_now()))

async def search(task):
    for n in range(each):
        name = f"{os.getpid()}-{task}-{n}"
        try:
            number = await meter.count(caller, limit=limit, also=partial(witness, name))
        except QuotaError:
            number = 0
        print(number, name, flush=True)

async def main():
    await asyncio.gather(*map(search, range(tasks)))

asyncio.run(main())
meter.close()
"""
TASKS = 8


def counting(database, *, each, limit=10**9):
    url = database.engine.url.render_as_string(hide_password=False)
    return start(COUNT, url, str(TASKS), str(each), str(limit))


def parse_counts(lines):
    """Split what a process said of its counts; the last line may be cut."""
    whole = [line.split() for line in lines if line.endswith("\n")]
    return [(int(number), name) for number, name in whole]


def stored(database):
    """Return the names of the witnesses, and the counts by month and by day."""
    with database.reading() as connection:
        names = set(connection.scalars(sa.select(accounts.c.name)))
        months = connection.scalar(sa.select(sa.func.sum(usage_months.c.requests))) or 0
        days = connection.scalar(sa.select(sa.func.sum(usage_days.c.requests))) or 0
    return names, int(months), int(days)


def test_a_killed_process_loses_no_count_that_was_acknowledged(database):
    acknowledged = []
    rounds = 3
    for _ in range(rounds):
        worker = counting(database, each=100_000)
        lines = [worker.stdout.readline() for _ in range(60)]
        os.kill(worker.pid, signal.SIGKILL)
        acknowledged += parse_counts([*lines, *worker.stdout])
        worker.communicate()
        assert worker.returncode == -signal.SIGKILL
    numbers = [number for number, _ in acknowledged]
    assert len(set(numbers)) == len(numbers) >= rounds * 60
    names, months, days = stored(database)
    assert {name for _, name in acknowledged} <= names
    assert len(names) == months == days == max([*numbers, months])
    # Committed and not yet told of: at most what was waiting when the kill came.
    assert len(names) - len(acknowledged) <= rounds * TASKS


def test_processes_together_count_each_search_once(database):
    workers = [counting(database, each=10) for _ in range(3)]
    acknowledged = [
        pair
        for worker in workers
        for pair in parse_counts(worker.communicate()[0].splitlines(True))
    ]
    assert sorted(number for number, _ in acknowledged) == list(range(1, 3 * TASKS * 10 + 1))
    names, months, days = stored(database)
    assert len(names) == months == days == 3 * TASKS * 10


def test_processes_together_never_pass_the_limit_and_reach_it(database):
    workers = [counting(database, each=10, limit=100) for _ in range(3)]
    acknowledged = [
        pair
        for worker in workers
        for pair in parse_counts(worker.communicate()[0].splitlines(True))
    ]
    assert len(acknowledged) == 3 * TASKS * 10
    assert sorted(number for number, _ in acknowledged if number) == list(range(1, 101))
    names, months, days = stored(database)
    assert len(names) == months == days == 100


def test_connections_that_are_cut_lose_no_count_that_was_acknowledged(tmp_path):
    with fresh_database("postgresql", tmp_path) as database:
        meter = Meter(database)

        def canary_check(name, connection):
            connection.execute(accounts.insert().values(name=name, plan="", created_at=utc_now()))

        async def search(task):
            outcomes = []
            for n in range(20):
                name = f"{task}-{n}"
                count = meter.count(
                    Caller(1, "key_0", "free"),
                    limit=10**9,
                    also=lambda connection, name=name: canary_check(name, connection),
                )
                try:
                    outcomes.append((await count, name))
                except DataError:
                    outcomes.append((0, name))
            return outcomes

        async def cut():
            for _ in range(5):
                await asyncio.sleep(0)
                psql(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE application_name = 'searchlab'"
                )

        async def everything():
            return await asyncio.gather(*map(search, range(TASKS)), cut())

        acknowledged = [pair for pairs in run(everything())[:-1] for pair in pairs if pair[0]]
        meter.close()
        names, months, days = stored(database)
    numbers = [number for number, _ in acknowledged]
    assert len(set(numbers)) == len(numbers)
    assert {name for _, name in acknowledged} <= names
    assert len(names) == months == days


def test_a_postgresql_that_crashes_loses_no_count_that_was_acknowledged():
    with postgres_of_its_own() as server:
        database = open_database(server.get_uri())
        migrate(database)
        with database.writing() as connection:
            add_account(connection, "acme")
        meter, caller = Meter(database), Caller(1, "key_0", "free")
        for crash in range(3):
            for number in range(1, 21):
                assert run(meter.count(caller, limit=10**9)) == 20 * crash + number
            os.kill(server.get_pid(), signal.SIGQUIT)  # it stops at once, and writes nothing more
            wait_until(lambda: not server.get_postmaster_info().is_running())
            server.start()
            assert stored(database)[1:] == (20 * (crash + 1),) * 2
        meter.close()
        database.close()
