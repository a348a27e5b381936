"""Attending to shared actors: they are told so, who does not answer is known, and it goes on."""

import logging
import sys
import threading
from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from searchlab.cluster.shard_actors import Attendance, ShardActor, ShardActors, ShardPlan
from tests.support.waiting import wait_until


class Method:
    """A method of an actor, as Ray has it."""

    def __init__(self, answer):
        self._answer = answer

    def options(self, **_):
        return self

    def remote(self, *arguments):
        return SimpleNamespace(future=lambda: self._answer(*arguments))


class Replica:
    """A replica without a cluster; it counts who attends, leaves, and how often it is renewed."""

    def __init__(self):
        self.attended, self.left, self.n_renewed = [], [], 0
        self.error, self.hangs, self.problems = None, False, []

    @property
    def handle(self):
        return SimpleNamespace(attend=Method(self.attend), leave=Method(self.leave))

    def attend(self, who):
        return self._answer(who, self.attended)

    def leave(self, who):
        return self._answer(who, self.left)

    def _answer(self, who, calls):
        future = Future()
        if self.error is not None:
            future.set_exception(self.error)
        elif not self.hangs:
            calls.append(who)
            future.set_result(self.problems)
        return future

    def renew(self):
        self.n_renewed += 1
        self.error = None

    def settle(self, timeout_s):
        pass


@pytest.fixture
def attend():
    """Attends to shards, two replicas each, until the test ends."""
    begun = []

    def begin(shards):
        actors = SimpleNamespace(
            shards=shards,
            plan=ShardPlan(n_shards=len(shards), n_replicas=2),
            is_lost=lambda error: isinstance(error, ConnectionError),
        )
        begun.append(Attendance(actors, every_s=0.05))
        return begun[-1]

    yield begin
    for one in begun:
        one.close()


def test_all_are_told_again_and_again_and_left_at_the_end(attend):
    shards = [[Replica(), Replica()] for _ in range(3)]
    attendance = attend(shards)
    every = [replica for some in shards for replica in some]
    wait_until(lambda: all(len(replica.attended) > 2 for replica in every))
    assert (attendance.n_answering, attendance.missing) == ([2, 2, 2], [])
    attendance.close()
    (who,) = {name for replica in every for name in replica.attended}
    assert all(replica.left == [who] for replica in every)


def test_a_shard_is_missing_when_none_of_its_replicas_answers(attend):
    shards = [[Replica(), Replica()] for _ in range(2)]
    shards[0][0].hangs = shards[1][0].hangs = shards[1][1].hangs = True
    reported = []
    attendance = attend(shards)
    attendance.report = reported.append
    wait_until(lambda: [1, 0] in reported)
    assert attendance.missing == [2]
    shards[1][1].hangs = False
    wait_until(lambda: attendance.missing == [])


def test_a_lost_replica_is_found_anew_and_one_with_a_fault_is_not(attend):
    lost, faulty = Replica(), Replica()
    lost.error, faulty.error = ConnectionError(), ValueError()
    attendance = attend([[lost, faulty]])
    wait_until(lambda: attendance.n_answering == [1])
    assert (lost.n_renewed, faulty.n_renewed) == (1, 0)


def test_a_cluster_that_cannot_be_asked_is_told_and_asked_again(attend, caplog):
    shards = [[Replica(), Replica()]]
    attendance = attend(shards)
    working = shards[0][0].attend
    with caplog.at_level(logging.ERROR):
        shards[0][0].attend = None
        wait_until(lambda: attendance.missing == [1])
    assert "the cluster could not be asked" in caplog.text
    shards[0][0].attend = working
    wait_until(lambda: attendance.missing == [])


def test_what_is_wrong_where_a_shard_lies_is_told_once(attend, caplog):
    shards = [[Replica()], [Replica()]]
    shards[1][0].problems = ["the disk is full"]
    with caplog.at_level(logging.WARNING):
        attendance = attend(shards)
        wait_until(lambda: len(shards[1][0].attended) > 3)
    assert caplog.text.count("shard 2: the disk is full") == 1
    assert attendance.missing == []


def test_where_a_replica_cannot_be_found_anew_for_long_others_are_still_attended_to(attend):
    lost, there, has_head = Replica(), Replica(), threading.Event()
    lost.error = ConnectionError()
    handles = [lost.handle]

    def find():
        if handles:
            return handles.pop()
        assert has_head.wait(60)  # as Ray does where the head of the cluster is gone
        lost.error = None
        return lost.handle

    attendance = attend([[ShardActor(find)], [there]])
    wait_until(lambda: attendance.missing == [1])
    n_attended = len(there.attended)
    wait_until(lambda: len(there.attended) > n_attended + 2)
    has_head.set()
    wait_until(lambda: attendance.missing == [])


def test_a_cluster_that_was_replaced_by_another_is_told_once_it_is_asked(monkeypatch, tmp_path):
    class AuthenticationError(Exception):
        pass

    refusal, told = [None], []

    def remote(*_words):
        if refusal[0]:
            raise refusal[0]

    actor = SimpleNamespace(options=lambda **_: SimpleNamespace(remote=remote))
    errors = SimpleNamespace(AuthenticationError=AuthenticationError)
    fake = SimpleNamespace(remote=lambda **_: lambda _kind: actor, exceptions=errors)
    monkeypatch.setitem(sys.modules, "ray", fake)
    actors = ShardActors(tmp_path, ShardPlan(n_shards=1), name="server")
    actors.on_replaced = lambda: told.append("replaced")
    ((replica,),) = actors.shards
    for reason, n_told in (("no token", 0), ("RPC error: WrongClusterID: Perhaps ...", 1)):
        refusal[0] = AuthenticationError(reason)
        replica.renew()
        wait_until(lambda: not replica._finding.locked())
        assert len(told) == n_told


def test_a_replica_that_is_being_found_when_one_leaves_is_left_too():
    """Otherwise it would be started for nobody, and wait for its patience to end."""
    finding, found = threading.Event(), []

    def find():
        if found:
            assert finding.wait(5)
        found.append(Replica())
        return found[-1].handle

    actor = ShardActor(find)
    actors = SimpleNamespace(
        shards=[[actor]],
        plan=ShardPlan(n_shards=1),
        is_lost=lambda error: isinstance(error, OSError),
    )
    found[0].error = OSError("its node is gone")
    attendance = Attendance(actors, every_s=2.0)
    wait_until(actor._finding.locked)
    threading.Timer(0.1, finding.set).start()
    attendance.close()
    assert len(found) == 2
    assert found[1].left
    actor.renew()
    assert len(found) == 2
