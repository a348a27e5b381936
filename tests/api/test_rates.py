"""Rate limits: a bucket for each key, exact over processes, and the headers that tell of it."""

import subprocess
import sys

import pytest

from searchlab.api.accounts.plans import PLANS
from searchlab.api.accounts.rates import (
    Rates,
    Verdict,
    rate_headers,
    retry_after,
    seconds_left_in_month,
)
from searchlab.errors import DataError, InputError

NOON = 1_700_000_000.0


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run" / "rates"


@pytest.fixture
def opened():
    """Open rates that are closed at the end."""
    opened_rates = []

    def build(*arguments):
        opened_rates.append(Rates(*arguments))
        return opened_rates[-1]

    yield build
    for rates in opened_rates:
        rates.close()


def allowed(rates, key_id, times, now):
    return sum(rates.check(key_id, now).allowed for _ in range(times))


# -- the bucket -------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [True, False])
def test_a_burst_is_allowed_and_not_one_more(opened, path, shared):
    rates = opened(path if shared else None, 200, 400)
    assert allowed(rates, "k", 500, NOON) == 400


@pytest.mark.parametrize(("per_second", "burst"), [(0.5, 1), (3, 7), (200, 400), (7001, 20_011)])
def test_the_burst_is_exact_for_odd_rates_too(opened, per_second, burst):
    assert allowed(opened(None, per_second, burst), "k", burst + 5, NOON) == burst


def test_what_was_used_comes_back_at_the_rate(opened):
    rates = opened(None, 200, 400)
    allowed(rates, "k", 400, NOON)
    assert allowed(rates, "k", 50, NOON + 0.1) == 20


def test_a_bucket_never_holds_more_than_the_burst(opened):
    rates = opened(None, 200, 400)
    allowed(rates, "k", 400, NOON)
    assert allowed(rates, "k", 1000, NOON + 86_400) == 400


def test_a_refused_request_costs_nothing(opened):
    rates = opened(None, 10, 1)
    rates.check("k", NOON)
    allowed(rates, "k", 1000, NOON + 0.05)
    assert rates.check("k", NOON + 0.1).allowed


def test_a_request_that_comes_a_nanosecond_early_costs_nothing_either(opened):
    rates = opened(None, 10, 1)
    assert [rates.check("k", at).allowed for at in (0, 0.1 - 1e-9, 0.1)] == [True, False, True]


def test_keys_do_not_share_a_bucket(opened, path):
    rates = opened(path, 1, 2)
    assert [allowed(rates, f"key-{n}", 3, NOON) for n in range(200)] == [2] * 200


def test_a_verdict_says_what_is_left_and_when_all_is_back(opened):
    rates = opened(None, 2, 4)
    first = rates.check("k", NOON)
    assert first == Verdict(True, 3, 0.5, 0.0, 4, 2)
    allowed(rates, "k", 3, NOON)
    assert rates.check("k", NOON) == Verdict(False, 0, 2.0, 0.5, 4, 2)


def test_after_waiting_as_long_as_told_a_request_is_allowed(opened):
    rates = opened(None, 3, 2)
    allowed(rates, "k", 2, NOON)
    wait = rates.check("k", NOON).retry_after_s
    assert not rates.check("k", NOON + wait - 0.01).allowed
    assert rates.check("k", NOON + wait + 1e-6).allowed


def test_a_clock_set_back_locks_nobody_out_for_longer_than_a_burst(opened):
    rates = opened(None, 200, 400)
    allowed(rates, "k", 400, NOON)
    yesterday = NOON - 86_400
    assert rates.check("k", yesterday).retry_after_s == pytest.approx(0.005)
    assert rates.check("k", yesterday + 0.01).allowed


def test_the_clock_is_asked_where_no_time_is_given(opened):
    rates = opened(None, 0.001, 1)
    assert [rates.check("k").allowed, rates.check("k").allowed] == [True, False]


@pytest.mark.parametrize("key_id", ["", "\0", "ключ", "\udc80", "k" * 10_000])
def test_any_text_names_a_key(opened, path, key_id):
    rates = opened(path, 1, 1)
    assert allowed(rates, key_id, 3, NOON) == 1


# -- several workers --------------------------------------------------------------------------


def test_two_workers_share_one_bucket(opened, path):
    one, other = opened(path, 200, 400), opened(path, 200, 400)
    assert allowed(one, "k", 250, NOON) + allowed(other, "k", 250, NOON) == 400


def test_a_worker_that_comes_later_finds_what_was_used(opened, path):
    first = Rates(path, 200, 400)
    allowed(first, "k", 399, NOON)
    first.close()
    assert allowed(opened(path, 200, 400), "k", 5, NOON) == 1


def test_keys_that_share_a_row_of_slots_are_told_apart_by_every_worker(opened, path, monkeypatch):
    monkeypatch.setattr("searchlab.api.accounts.rates._BUCKETS", 1)
    keys = [f"key-{number}" for number in range(16)]
    first, later = opened(path, 1, 2), opened(path, 1, 2)
    assert [allowed(first, key, 3, NOON) for key in keys] == [2] * 16
    assert [allowed(later, key, 3, NOON) for key in reversed(keys)] == [0] * 16


def test_nobody_else_may_read_or_write_what_is_left(opened, path):
    opened(path, 1, 2)
    assert path.stat().st_mode & 0o777 == 0o600


ASK = """
import sys
from pathlib import Path
from searchlab.api.accounts.rates import Rates

rates = Rates(Path(sys.argv[1]), 1, 1000)
print(flush=True)
sys.stdin.readline()
print(sum(rates.check("k", 1_700_000_000.0).allowed for _ in range(600)))
"""


@pytest.mark.slow
def test_processes_that_ask_at_once_get_no_more_than_the_burst_together(path):
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", ASK, path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for worker in workers:
        worker.stdout.readline()
    for worker in workers:
        worker.stdin.write("\n")
        worker.stdin.flush()
    assert sum(int(worker.communicate()[0]) for worker in workers) == 1000


HOLD_AND_DIE = """
import fcntl, os, sys
file = os.open(sys.argv[1], os.O_RDWR)
fcntl.flock(file, fcntl.LOCK_EX)
os._exit(9)
"""


def test_a_worker_that_dies_with_the_lock_holds_up_nobody(opened, path):
    rates = opened(path, 1, 1)
    died = subprocess.run([sys.executable, "-c", HOLD_AND_DIE, path], check=False)
    assert died.returncode == 9
    assert rates.check("k", NOON).allowed


@pytest.mark.slow
def test_more_busy_keys_than_a_bucket_of_the_table_holds_are_still_answered(opened):
    rates = opened(None, 1, 2)
    keys = [f"key-{n}" for n in range(100_000)]
    assert all(rates.check(key, NOON).allowed for key in keys)


def test_the_places_of_keys_are_remembered_up_to_a_number(opened, monkeypatch):
    monkeypatch.setattr("searchlab.api.accounts.rates._KNOWN_PLACES", 2)
    rates = opened(None, 1, 2)
    remembered = []
    for key in "abcab":
        assert rates.check(key, NOON).allowed
        remembered.append(len(rates._places))
    assert remembered == [1, 2, 1, 2, 1]


# -- what cannot be -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("per_second", "burst", "named"),
    [
        *((rate, 1, "per_second") for rate in (0, -1, float("nan"), float("inf"))),
        (1, 0, "burst"),
        (0.001, 10**6, "burst"),
    ],
)
def test_rates_out_of_range_are_refused(per_second, burst, named):
    with pytest.raises(InputError, match=f"^{named} must be"):
        Rates(None, per_second, burst)


def test_all_of_a_burst_may_come_back_as_late_as_instants_reach(opened):
    rates = opened(None, 0.5, 50_000_000)
    assert rates.check("key", NOON).allowed
    assert rates.check("key", NOON).allowed
    with pytest.raises(InputError, match=r"^burst must be"):
        Rates(None, 0.5, 50_000_001)


@pytest.mark.parametrize(
    ("per_second", "burst", "window_s"), [(200, 400, 2), (200, 401, 3), (200, 200, 1), (200, 1, 1)]
)
def test_the_window_of_a_burst_is_whole_seconds_and_at_least_one(
    opened, per_second, burst, window_s
):
    assert opened(None, per_second, burst).check("key", NOON).window_s == window_s


def test_a_file_of_another_size_is_refused(path):
    path.parent.mkdir()
    path.write_bytes(b"something else")
    with pytest.raises(DataError, match="must hold 1048576 bytes, got 14"):
        Rates(path, 1, 1)


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DataError, match="must be a file that can be written"):
        Rates(tmp_path / "file" / "rates", 1, 1)


# -- headers ------------------------------------------------------------------------------------


def test_headers_name_the_policy_and_what_is_left():
    verdict = Verdict(True, 399, 0.005, 0.0, 400, 2)
    # 14 November 2023, 22:13:20; 16 days and 6,400 seconds are left of the month.
    assert rate_headers(verdict, PLANS["free"], 12, NOON) == [
        (b"ratelimit-policy", b'"burst";q=400;w=2, "month";q=5000;w=2592000'),
        (b"ratelimit", b'"burst";r=399;t=1, "month";r=4988;t=1388800'),
    ]


def test_a_refusal_says_when_to_come_again():
    verdict = Verdict(False, 0, 2.0, 0.003, 400, 2)
    assert rate_headers(verdict, PLANS["free"], 0, NOON)[2:] == [(b"retry-after", b"1")]


def test_a_used_up_month_leaves_nothing_and_not_less():
    verdict = Verdict(True, 399, 0.005, 0.0, 400, 2)
    assert b'"month";r=0;' in rate_headers(verdict, PLANS["free"], 5_001, NOON)[1][1]


@pytest.mark.parametrize(
    ("seconds", "header"), [(0, b"1"), (0.2, b"1"), (1, b"1"), (1.01, b"2"), (59.5, b"60")]
)
def test_retry_after_is_whole_seconds_and_at_least_one(seconds, header):
    assert retry_after(seconds) == header


@pytest.mark.parametrize(
    ("now", "left"),
    [
        (1_703_980_800.0, 86_400),  # 31 December 2023, 00:00
        (1_704_067_199.5, 1),  # half a second before midnight
        (1_704_067_200.0, 31 * 86_400),  # 1 January 2024
        (1_706_745_600.0, 29 * 86_400),  # 1 February of a leap year
    ],
)
def test_a_month_ends_where_the_next_one_begins(now, left):
    assert seconds_left_in_month(now) == left
