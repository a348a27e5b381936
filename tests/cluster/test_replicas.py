"""Replicas of shards: slow ones are hedged, lost ones passed over, missing ones told in time."""

import time
from concurrent.futures import Future

import numpy as np
import pytest

from searchlab.cluster import replicas as module
from searchlab.cluster.replicas import ReplicatedShards
from searchlab.cluster.sharded_index import ShardedIndex
from searchlab.config import Config
from searchlab.errors import InputError, UnavailableError


def answering(value):
    """A replica that answers at once, and counts what it is asked."""

    def ask(method, arguments):
        ask.n_asked += 1
        future = Future()
        future.set_result((value, method, dict(arguments)))
        return future

    ask.n_asked = 0
    return ask


def failing(error):
    def ask(_method, _arguments):
        ask.n_asked += 1
        future = Future()
        future.set_exception(error)
        return future

    ask.n_asked = 0
    return ask


def silent():
    """A replica that never answers, as one on a node that was cut off."""

    def ask(_method, _arguments):
        ask.n_asked += 1
        ask.open.append(Future())
        return ask.open[-1]

    ask.n_asked, ask.open = 0, []
    return ask


def shards_of(*replicas, timeout_s=5.0):
    ranges = [range(10 * number, 10 * number + 10) for number in range(len(replicas))]
    return ReplicatedShards(ranges, 4, replicas, timeout_s=timeout_s)


def test_each_shard_is_asked_once_and_answers_with_its_own():
    replicas = [[answering("a")], [answering("b")], [answering("c"), answering("c")]]
    shards = shards_of(*replicas)
    answers = shards.ask("index.search", {2: {"k": 1}, 0: {"k": 5}})
    assert answers == {2: ("c", "index.search", {"k": 1}), 0: ("a", "index.search", {"k": 5})}
    assert list(answers) == [2, 0]
    assert [sum(one.n_asked for one in some) for some in replicas] == [1, 0, 1]
    assert shards.n_hedged == 0


def test_replicas_take_turns():
    one, other = answering("a"), answering("b")
    shards = shards_of([one, other])
    for _ in range(6):
        shards.ask("index.search", {0: {}})
    assert (one.n_asked, other.n_asked) == (3, 3)


def test_a_slow_replica_is_hedged_and_then_left_alone_while_it_owes_an_answer():
    slow, quick = silent(), answering("b")
    shards = shards_of([slow, quick])
    started = time.monotonic()
    assert shards.ask("index.search", {0: {}})[0][0] == "b"
    assert time.monotonic() - started < 2
    assert (shards.n_hedged, slow.n_asked) == (1, 1)
    for _ in range(5):
        shards.ask("index.search", {0: {}})
    assert (shards.n_hedged, slow.n_asked, quick.n_asked) == (1, 1, 6)
    slow.open[0].set_result("late")
    shards.ask("index.search", {0: {}})
    assert slow.n_asked == 2  # its turn


def test_the_bound_is_what_nineteen_of_twenty_answers_keep():
    shards = shards_of([answering("a")])
    first = shards.bound_s
    shards._times.extend([0.010] * 10)
    assert shards.bound_s == first
    shards._times.extend([0.010] * 85 + [0.300] * 5)
    assert shards.bound_s == pytest.approx(0.010, rel=0.2)
    shards._times.extend([0.300] * 50)
    assert shards.bound_s == pytest.approx(0.300)
    shards._times.extend([0.0] * 256)
    assert shards.bound_s == 0.001


def refusing(error):
    """A replica that cannot even be asked."""

    def ask(_method, _arguments):
        ask.n_asked += 1
        raise error

    ask.n_asked = 0
    return ask


@pytest.mark.parametrize("losing", [failing, refusing])
def test_a_lost_replica_costs_nothing_where_there_is_another(losing):
    gone, there = losing(ConnectionError("gone")), answering("b")
    shards = shards_of([gone, there], [answering("c")])
    for _ in range(8):
        assert [one[0] for one in shards.ask("index.best", {0: {}, 1: {}}).values()] == ["b", "c"]
    assert gone.n_asked == 1  # and rests
    assert shards.n_hedged == 0


def test_a_lost_replica_is_asked_again_when_it_is_the_only_one():
    gone = failing(ConnectionError("gone"))
    shards = shards_of([gone])
    for _ in range(2):
        with pytest.raises(UnavailableError, match="shard 1 of 1 must answer within 5 s"):
            shards.ask("index.best", {0: {}})
    assert gone.n_asked == 2


def test_a_shard_that_is_lost_while_another_replica_is_slow_waits_for_that_one():
    slow, gone = silent(), failing(ConnectionError("gone"))
    shards = shards_of([slow, gone], timeout_s=0.5)
    with pytest.raises(UnavailableError):
        shards.ask("index.best", {0: {}})
    assert (slow.n_asked, gone.n_asked) == (1, 1)


def test_a_missing_shard_is_an_error_within_the_time_and_never_a_short_answer():
    shards = shards_of([answering("a")], [silent(), silent()], timeout_s=0.4)
    started = time.monotonic()
    with pytest.raises(
        UnavailableError,
        match=r"shard 2 of 2 must answer within 0.4 s, got no answer from its 2 replicas",
    ):
        shards.ask("index.best", {0: {}, 1: {}})
    assert 0.4 <= time.monotonic() - started < 2


def test_what_let_the_time_pass_keeps_nobody_else_waiting_until_it_answers(monkeypatch):
    replica = silent()
    shards = shards_of([answering("a")], [replica], timeout_s=0.3)
    with pytest.raises(UnavailableError):
        shards.ask("index.best", {0: {}, 1: {}})
    started = time.monotonic()
    for _ in range(20):
        with pytest.raises(UnavailableError, match=r"shard 2 of 2 must answer"):
            shards.ask("index.best", {0: {}, 1: {}})
        assert shards.ask("index.best", {0: {}})[0][0] == "a"
    assert time.monotonic() - started < 0.3
    assert replica.n_asked == 1
    monkeypatch.setattr(module, "_REST_S", 0.0)  # a second is over: one question tries it
    with pytest.raises(UnavailableError):
        shards.ask("index.best", {1: {}})
    assert replica.n_asked == 2
    monkeypatch.undo()
    replica.open[0].set_result("late")
    replica.open[1].set_result("late")
    replica.n_asked = 0
    with pytest.raises(UnavailableError):  # it is asked, as nothing is held against it any more
        shards.ask("index.best", {1: {}})
    assert replica.n_asked == 1


def test_a_silent_replica_is_passed_over_while_another_one_answers():
    quiet, there = silent(), silent()
    shards = shards_of([quiet, there], timeout_s=0.3)
    with pytest.raises(UnavailableError):
        shards.ask("index.best", {0: {}})
    there.open[0].set_result("late")
    shards._replicas[0].sort(key=lambda state: state.ask is there)  # the silent one is first
    with pytest.raises(UnavailableError):
        shards.ask("index.best", {0: {}})
    assert (quiet.n_asked, there.n_asked) == (1, 2)


def test_what_a_shard_refuses_is_refused_and_no_other_replica_is_asked():
    refusing, other = failing(InputError("k must be at least 1, got 0")), answering("b")
    with pytest.raises(InputError, match="k must be at least 1"):
        shards_of([refusing, other]).ask("index.search", {0: {}})
    assert other.n_asked == 0


def test_a_replica_that_cannot_open_its_part_is_passed_over_and_told_where_it_is_the_only_one():
    refusing, other = failing(UnavailableError("got another snapshot")), answering("b")
    shards = shards_of([refusing, other])
    assert [shards.ask("index.search", {0: {}})[0][0] for _ in range(4)] == ["b"] * 4
    assert refusing.n_asked == 1  # and rests
    with pytest.raises(UnavailableError, match="got another snapshot"):
        shards_of([failing(UnavailableError("got another snapshot"))]).ask("index.best", {0: {}})


def test_a_fault_in_a_shard_is_no_outage():
    with pytest.raises(TypeError, match="a fault"):
        shards_of([failing(TypeError("a fault")), answering("b")]).ask("index.search", {0: {}})


def test_a_shard_without_replicas_is_refused():
    for replicas in ([], [[]], [[answering("a")], []]):
        with pytest.raises(InputError, match="shards must have a replica, got"):
            shards_of(*replicas)


def test_a_library_on_shards_that_all_have_a_lost_and_a_silent_replica_answers_exactly(
    unit_vectors,
):
    rows, query = unit_vectors(70), unit_vectors(1, seed=5)[0]
    config = Config(index="exact")
    local = ShardedIndex.cut(rows, config, labels=np.arange(70), n_shards=4)

    def here(number):
        def ask(method, arguments):
            future = Future()
            future.set_result(local.shards.ask(method, {number: arguments})[number])
            return future

        return ask

    replicas = [[failing(ConnectionError("gone")), silent(), here(number)] for number in range(4)]
    shards = ReplicatedShards(local.shards.ranges, local.dim, replicas)
    best, expected = ShardedIndex(shards, config).best(query, 30), local.best(query, 30)
    assert best.rows.tolist() == expected.rows.tolist()
    assert best.scores.tobytes() == expected.scores.tobytes()
