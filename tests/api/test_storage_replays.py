"""Replays: one action for a key, whoever repeats it, whatever dies in between."""

import json
import threading
from dataclasses import replace
from datetime import timedelta

import pytest
import sqlalchemy as sa

from searchlab.api.accounts.replays import Attempt, InFlightError, Replay, Replays
from searchlab.api.accounts.tables import replays
from searchlab.errors import InputError
from tests.support.databases import HOSTILE, ODD, Clock, fresh_database, start

PATH = "/api/v1/collections"


@pytest.fixture
def records(database, clock):
    return Replays(database, clock=clock)


def attempt(**changes):
    values = {"account_id": 1, "method": "POST", "path": PATH, "key": "k", "fingerprint": "f"}
    return Attempt(**(values | changes))


def finish(database, records, mine, body=b'{"success":true}'):
    with database.writing() as connection:
        records.finish(connection, mine, status=200, body=body)


def rows(database):
    with database.reading() as connection:
        return connection.scalar(sa.select(sa.func.count()).select_from(replays))


def test_the_first_request_owns_the_key_and_its_answer_is_replayed(database, records):
    mine = attempt()
    assert records.begin(mine) is None
    finish(database, records, mine)
    again = Replay(200, b'{"success":true}', "application/json")
    assert [records.begin(attempt()), records.begin(attempt())] == [again, again]


def test_the_answer_comes_back_byte_by_byte(database, records):
    mine, body = attempt(), bytes(range(256)) * 1000
    records.begin(mine)
    with database.writing() as connection:
        records.finish(connection, mine, status=409, body=body, content_type="text/x; q=1")
    assert records.begin(attempt()) == Replay(409, body, "text/x; q=1")


@pytest.mark.parametrize(
    "other", [{"account_id": 2}, {"method": "PUT"}, {"path": "/other"}, {"key": "K"}]
)
def test_another_account_method_path_or_key_is_another_request(database, records, other):
    mine = attempt()
    records.begin(mine)
    finish(database, records, mine)
    assert records.begin(attempt(**other)) is None


def test_texts_that_run_together_are_told_apart(records):
    assert records.begin(attempt(path="/a", key="bc")) is None
    assert records.begin(attempt(path="/ab", key="c")) is None
    assert records.begin(attempt(account_id=1, method="1POST")) is None
    assert records.begin(attempt(account_id=11)) is None


@pytest.mark.parametrize("text", [*HOSTILE, *ODD, "", "x" * 1_000_000])
def test_keys_paths_and_fingerprints_may_be_anything(database, records, text):
    mine = attempt(key=text, path=text, fingerprint=text)
    assert records.begin(mine) is None
    finish(database, records, mine)
    assert records.begin(replace(mine, owner="other")).status == 200


def test_the_same_key_with_another_body_is_refused(database, records):
    mine = attempt()
    records.begin(mine)
    with pytest.raises(InputError, match="Idempotency-Key must come with the same request"):
        records.begin(attempt(fingerprint=b"other"))
    finish(database, records, mine)
    with pytest.raises(InputError, match="take a new key"):
        records.begin(attempt(fingerprint=b"other"))


def test_a_request_in_flight_elsewhere_is_a_conflict(records, clock):
    records.begin(attempt())
    clock.now += timedelta(seconds=59)
    with pytest.raises(InFlightError, match="whose first request is not answered yet"):
        records.begin(attempt())


def test_a_key_whose_owner_died_is_free_after_a_minute(database, records, clock):
    records.begin(attempt())
    clock.now += timedelta(seconds=60)
    second = attempt()
    assert records.begin(second) is None
    with pytest.raises(InFlightError):
        records.begin(attempt())
    finish(database, records, second)
    assert records.begin(attempt()).status == 200


def test_an_owner_that_was_slow_cannot_finish_any_more(database, records, clock):
    slow, quick = attempt(), attempt()
    records.begin(slow)
    clock.now += timedelta(seconds=60)
    records.begin(quick)
    with pytest.raises(InFlightError, match="taken over by another"):
        finish(database, records, slow, b"slow")
    finish(database, records, quick, b"quick")
    with pytest.raises(InFlightError):
        finish(database, records, slow, b"slow")
    records.forget(slow)
    assert records.begin(attempt()).body == b"quick"


def test_an_answer_is_there_only_if_its_action_is(database, records):
    mine = attempt()
    records.begin(mine)

    def act():
        with database.writing() as connection:
            records.finish(connection, mine, status=200, body=b"")
            raise KeyError

    with pytest.raises(KeyError):
        act()
    with pytest.raises(InFlightError):
        records.begin(attempt())


def test_a_forgotten_key_is_free_at_once(records):
    mine = attempt()
    records.begin(mine)
    records.forget(mine)
    assert records.begin(attempt(fingerprint="other")) is None


def test_a_finished_key_is_not_forgotten(database, records):
    mine = attempt()
    records.begin(mine)
    finish(database, records, mine)
    records.forget(mine)
    assert records.begin(attempt()).status == 200


def test_answers_are_kept_for_a_day(database, records, clock):
    mine = attempt()
    records.begin(mine)
    finish(database, records, mine)
    clock.now += timedelta(hours=24) - timedelta(seconds=1)
    assert records.begin(attempt()).status == 200
    clock.now += timedelta(seconds=1)
    later = attempt(fingerprint="other")
    assert records.begin(later) is None
    finish(database, records, later, b"later")
    assert records.begin(attempt(fingerprint="other")).body == b"later"


def test_older_answers_are_deleted_now_and_then(database, records, clock, monkeypatch):
    for key in ("a", "b", "c"):
        records.begin(attempt(key=key))
    clock.now += timedelta(hours=25)
    records.begin(attempt(key="d"))
    assert rows(database) == 4
    monkeypatch.setattr("searchlab.api.accounts.replays._PRUNED_EVERY_S", 0.0)
    records.begin(attempt(key="e"))
    assert rows(database) == 2


def test_old_answers_go_a_few_at_a_time_and_faster_than_new_ones_come(
    database, records, clock, monkeypatch
):
    monkeypatch.setattr("searchlab.api.accounts.replays._PRUNED_AT_ONCE", 2)
    for key in "abcde":
        records.begin(attempt(key=key))
    clock.now += timedelta(hours=25)
    again = Replays(database, clock=clock)
    left = []
    for key in "vwxyz":
        again.begin(attempt(key=key))
        left.append(rows(database))
    assert left == [4, 3, 3, 4, 5]  # two go and one comes, until the last old one is gone


def test_a_page_of_photos_takes_a_fraction_of_its_size(database, records):
    record = {f"field_{n}": f"https://example.org/photos/{n}?size=thumb" for n in range(20)}
    body = json.dumps([record | {"photo_id": n} for n in range(100)]).encode()
    mine = attempt()
    records.begin(mine)
    finish(database, records, mine, body)
    with database.reading() as connection:
        stored = connection.scalar(sa.select(sa.func.length(replays.c.body)))
    assert stored < len(body) / 10
    assert records.begin(attempt()).body == body


def test_of_many_at_once_one_owns_the_key(records):
    outcomes = []

    def try_it():
        try:
            outcomes.append(records.begin(attempt()))
        except InFlightError:
            outcomes.append("in flight")

    threads = [threading.Thread(target=try_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, outcomes)) == ["None"] + ["in flight"] * 7


OWN_AND_DIE = """
import os, signal, sys
from searchlab.api.accounts.database import open_database
from searchlab.api.accounts.replays import Attempt, Replays
database = open_database(sys.argv[1])
records = Replays(database)
mine = Attempt(1, "POST", sys.argv[2], "k", "f")
print(records.begin(mine), flush=True)
with database.writing() as connection:
    records.finish(connection, mine, status=200, body=b"")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_a_process_that_dies_before_its_commit_leaves_the_key_to_another(database):
    url = database.engine.url.render_as_string(hide_password=False)
    worker = start(OWN_AND_DIE, url, PATH)
    assert worker.communicate()[0] == "None\n"
    assert worker.returncode == -9
    records = Replays(database)
    if database.file is None:  # nobody can tell that it is dead, so the time that is left is told
        with pytest.raises(InFlightError, match=r"in [456][0-9] seconds at the latest") as caught:
            records.begin(attempt())
        assert 40 <= caught.value.retry_after_s <= 60
        with database.writing() as connection:
            long_ago = Clock(2024, 1, 1).now
            connection.execute(replays.update().values(claimed_at=long_ago))
    assert records.begin(attempt()) is None
    records.close()


def test_a_process_that_lives_keeps_its_key_and_one_that_has_ended_does_not(tmp_path):
    with fresh_database("sqlite", tmp_path) as database:
        first, second = Replays(database), Replays(database)
        assert first.begin(attempt()) is None
        for _ in range(3):
            with pytest.raises(InFlightError, match="in a second") as caught:
                second.begin(attempt())
            assert caught.value.retry_after_s == 1
        first.close()
        assert second.begin(attempt()) is None
        third = Replays(database)
        with pytest.raises(InFlightError):
            third.begin(attempt())
        assert len([*(tmp_path / "api.db.lives").iterdir()]) == 2
        second.close()
        third.close()
