"""A power cut: what was not synced is gone, and what was acknowledged is there.

A process runs with a library preloaded that keeps each file as it was at its last fsync, and is
killed; what it keeps is what a disk may hold at worst.
"""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from PIL import Image

from searchlab.api.accounts.database import open_database, sqlite_url
from searchlab.api.accounts.tables import api_keys, collections, replays, usage_months
from searchlab.library.library import open_library

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("cc") is None or not sys.platform.startswith("linux"),
        reason="needs a C compiler and Linux",
    ),
]
SOURCE = Path(__file__).parents[1] / "support" / "power_cut.c"

WRITE = """
import asyncio, sys, time
from pathlib import Path
from searchlab.api.accounts.accounts import create_key
from searchlab.api.accounts.collections import Collections
from searchlab.api.accounts.database import open_database, sqlite_url
from searchlab.api.accounts.keyring import KeyRing
from searchlab.api.accounts.meter import Meter
from searchlab.api.accounts.migrations import migrate
from searchlab.api.accounts.replays import Attempt, Replays

database = open_database(sqlite_url(Path(sys.argv[1])))
migrate(database)
_, secret = create_key(database, account="acme", name="first")
caller = KeyRing(database).find(secret)
lists, records, meter = Collections(database), Replays(database), Meter(database)

async def main():
    for number in range(100_000):
        create_key(database, account="acme", name=str(number))
        print("key", number, flush=True)
        attempt = Attempt(caller.account_id, "POST", "/x", str(number), "f")
        records.begin(attempt)
        with database.writing() as connection:
            lists.create(connection, caller.account_id, name=str(number))
            records.finish(connection, attempt, status=200, body=b"{}")
        print("collection", number, flush=True)
        await meter.count(caller, limit=10**9)
        print("count", number, round(time.monotonic(), 3), flush=True)
        await asyncio.sleep(0.02)

asyncio.run(main())
"""

COUNT_ONCE = """
import asyncio, sys, time
from pathlib import Path
from searchlab.api.accounts.accounts import create_key
from searchlab.api.accounts.database import open_database, sqlite_url
from searchlab.api.accounts.keyring import KeyRing
from searchlab.api.accounts.meter import Meter
from searchlab.api.accounts.migrations import migrate

database = open_database(sqlite_url(Path(sys.argv[1])))
migrate(database)
_, secret = create_key(database, account="acme", name="only")
meter = Meter(database)
asyncio.run(meter.count(KeyRing(database).find(secret), limit=10))
time.sleep(3)  # the meter syncs each second, unasked: that is what is tested
print("counted", flush=True)
time.sleep(60)  # until it is killed: an end of its own would sync
"""


@pytest.fixture(scope="module")
def preloaded(tmp_path_factory):
    library = tmp_path_factory.mktemp("power") / "cut.so"
    words = ["cc", "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"]
    subprocess.run([*map(str, words)], check=True, capture_output=True)
    return library


@pytest.fixture
def cut(preloaded, tmp_path):
    """Starts Python code on a folder; gives the process, and where its disk will be."""
    watched, disk = tmp_path / "watched", tmp_path / "disk"
    watched.mkdir()
    disk.mkdir()

    def begin(*words):
        environment = {"LD_PRELOAD": preloaded, "WATCHED": watched, "DISK": disk}
        process = subprocess.Popen(
            [sys.executable, *map(str, words)],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {name: str(value) for name, value in environment.items()},
        )
        return process, watched, disk

    return begin


def test_all_that_was_acknowledged_is_there_but_the_counts_of_a_second(cut, tmp_path):
    process, _, disk = cut("-c", WRITE, tmp_path / "watched")
    said = []
    while len(said) < 360:
        said.append(process.stdout.readline().split())
    os.kill(process.pid, signal.SIGKILL)
    said += [line.split() for line in process.stdout if line.endswith("\n")]
    process.stdout.close()
    process.wait()
    (disk / "api.db-shm").unlink(missing_ok=True)  # in memory only
    database = open_database(sqlite_url(disk))
    with database.reading() as connection:
        keys = set(connection.scalars(sa.select(api_keys.c.name)))
        lists = set(connection.scalars(sa.select(collections.c.name)))
        done = connection.scalar(sa.select(sa.func.count()).where(replays.c.status.is_not(None)))
        counted = connection.scalar(sa.select(sa.func.sum(usage_months.c.requests))) or 0
    database.close()
    assert {number for what, number, *_ in said if what == "key"} <= keys
    created = {number for what, number, *_ in said if what == "collection"}
    assert created <= lists
    assert done >= len(created)
    at = [float(words[2]) for words in said if words[0] == "count"]
    older = sum(moment < at[-1] - 1.5 for moment in at)
    assert older <= counted


def test_a_single_search_is_there_a_second_later_though_nothing_follows_it(cut, tmp_path):
    process, _, disk = cut("-c", COUNT_ONCE, tmp_path / "watched")
    assert process.stdout.readline() == "counted\n"
    os.kill(process.pid, signal.SIGKILL)
    process.stdout.close()
    process.wait()
    (disk / "api.db-shm").unlink(missing_ok=True)
    database = open_database(sqlite_url(disk))
    with database.reading() as connection:
        assert connection.scalar(sa.select(usage_months.c.requests)) == 1
    database.close()


def test_a_library_that_was_indexed_is_whole(cut, tmp_path):
    photos = tmp_path / "photos"
    photos.mkdir()
    for number in range(4):
        tiles = np.random.default_rng(number).integers(0, 256, (3, 4, 3), dtype=np.uint8)
        Image.fromarray(tiles).resize((40, 30)).save(photos / f"{number}.png")
    code = "from searchlab.cli import main; main()"
    data = tmp_path / "watched" / "data"
    words = ["index", photos, "--data", data, "--model", "palette", "--index", "hnsw"]
    process, _, disk = cut("-c", code, *words)
    process.communicate()
    assert process.returncode == 0
    left = open_library(disk / "data")
    assert left.check()
    assert len(left.search("red")) == 4
