"""What is known of usage without counting: cheap reads, and when keys were last used."""

from dataclasses import replace

from searchlab.api.accounts.accounts import list_keys
from searchlab.api.accounts.meter import Meter
from tests.support.databases import Clock, run
from tests.support.metering import caller_of

# -- what is known cheaply --------------------------------------------------------------------


def test_used_follows_the_counts_of_this_process_at_once(database, meter):
    caller = caller_of(database)
    assert meter.read_used(caller) == 0
    run(meter.count(caller, limit=9))
    assert meter.read_used(caller) == 1


def test_used_follows_other_processes_within_a_second(database, meter, clock, monkeypatch):
    caller = caller_of(database)
    assert meter.read_used(caller) == 0
    other = Meter(database, clock=clock)
    run(other.count(caller, limit=9))
    other.close()
    monkeypatch.setattr("searchlab.api.accounts.meter._FRESH_S", 0.0)
    assert meter.read_used(caller) == 1


def test_used_starts_anew_with_the_month(database, meter, clock):
    caller = caller_of(database)
    run(meter.count(caller, limit=9))
    clock.now = Clock(2024, 3, 1).now
    assert meter.read_used(caller) == 0


def test_usage_is_remembered_of_a_number_of_accounts(database, meter, monkeypatch):
    monkeypatch.setattr("searchlab.api.accounts.meter._MOST_REMEMBERED", 2)
    callers = [replace(caller_of(database), account_id=number) for number in (11, 12, 13)]
    assert [meter.read_used(caller) for caller in callers] == [0, 0, 0]
    assert list(meter._used) == [13]


def test_what_is_known_without_asking_is_read_behind_the_scenes(database, meter, clock):
    caller = caller_of(database)
    other = Meter(database, clock=clock)
    run(other.count(caller, limit=9))
    other.close()
    assert meter.peek(caller) is None
    run(meter.flush())
    assert meter.peek(caller) == 1
    run(meter.count(caller, limit=9))
    assert meter.peek(caller) == 2
    clock.now = Clock(2024, 3, 1).now
    assert meter.peek(caller) is None
    run(meter.flush())
    assert meter.peek(caller) == 0


def test_what_is_known_stays_so_and_is_asked_again_where_it_cannot_be_read(
    database, meter, clock, monkeypatch
):
    caller = caller_of(database)
    run(meter.count(caller, limit=9))
    monkeypatch.setattr("searchlab.api.accounts.meter._FRESH_S", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(database, "look_up", refuse)
        assert meter.peek(caller) == 1
        run(meter.flush())
        assert meter.peek(caller) == 1
        run(meter.flush())  # the look that this has asked for
    other = Meter(database, clock=clock)
    run(other.count(caller, limit=9))
    other.close()
    assert meter.peek(caller) == 1
    run(meter.flush())
    assert meter.peek(caller) == 2


def refuse(*_arguments):
    raise MemoryError


def test_a_day_on_which_nothing_can_be_deleted_stops_no_counting(database, clock, monkeypatch):
    monkeypatch.setattr("searchlab.api.accounts.usage.days_back", refuse)
    meter = Meter(database, clock=clock)
    caller = caller_of(database)
    assert [run(meter.count(caller, limit=9)) for _ in range(3)] == [1, 2, 3]
    meter.close()


def test_a_key_was_last_used_when_it_was_touched(database, meter, clock):
    caller = caller_of(database)
    assert list_keys(database)[0].last_used_at is None
    meter.touch(caller)
    run(meter.flush())
    assert list_keys(database)[0].last_used_at == clock.now
    clock.now = Clock(2024, 2, 28).now  # another machine whose clock is behind
    meter.touch(caller)
    run(meter.flush())
    assert list_keys(database)[0].last_used_at == Clock(2024, 2, 29, 12).now


def test_a_count_touches_its_key(database, meter, clock):
    caller = caller_of(database)
    run(meter.count(caller, limit=9))
    run(meter.flush())
    assert list_keys(database)[0].last_used_at == clock.now


def test_closing_writes_the_last_uses(database, clock):
    caller = caller_of(database)
    meter = Meter(database, clock=clock)
    meter.touch(caller)
    meter.close()
    assert list_keys(database)[0].last_used_at == clock.now
