"""When a key was last used, where the database cannot be written in between."""

from datetime import timedelta

import pytest

from searchlab.api.accounts.accounts import list_keys
from searchlab.api.accounts.meter import Meter
from searchlab.api.accounts.usage import UsageCounts
from searchlab.errors import DataError
from tests.support.databases import Clock, fresh_database, run
from tests.support.metering import caller_of


@pytest.fixture
def clock():
    return Clock(2024, 2, 29, 12)


@pytest.fixture
def database(tmp_path):
    with fresh_database("sqlite", tmp_path) as database:
        yield database


def test_a_use_that_could_not_be_written_does_not_replace_a_later_one(database, clock, monkeypatch):
    """The disk is full while a key is used again: only the later use is written, once it can be."""
    caller, first = caller_of(database), clock.now
    attempts = []

    def fail_once(counts, connection, touched):
        attempts.append(dict(touched))
        if len(attempts) == 1:
            clock.now = first + timedelta(hours=1)
            meter.touch(caller)
            msg = "the disk is full"
            raise DataError(msg)
        mark_used(counts, connection, touched)

    mark_used = UsageCounts.mark_used
    monkeypatch.setattr(UsageCounts, "mark_used", fail_once)
    meter = Meter(database, clock=clock)
    meter.touch(caller)
    with pytest.raises(DataError, match="full"):
        run(meter.flush())
    meter.close()
    assert attempts == [{caller.key_id: first}, {caller.key_id: clock.now}]
    assert list_keys(database)[0].last_used_at == clock.now
