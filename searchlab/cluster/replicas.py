"""Replicas: several processes that answer for a shard, so that a slow or lost one costs little.

A question goes to the replica of each shard that has the fewest open. What is not answered by the
time within which nineteen of twenty recent questions were goes to another replica too, and the
first answer counts (Dean and Barroso, "The tail at scale", 2013). Where a shard does not answer at
all, that is an error within a bounded time, and never an answer with photos missing. A replica that
let the time pass is tried by one question a second until it answers: others do not wait for it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, Final

import numpy as np

from searchlab.cluster.shards import Shards
from searchlab.errors import InputError, SearchlabError, UnavailableError

Replica = Callable[[str, Mapping[str, Any]], "Future[Any]"]
"""Begins to answer a method of `Part`; see `Shards.ask`."""

_RECENT: Final = 256  # answers of a shard whose times are kept
_LEAST_KNOWN: Final = 20  # such answers; with fewer the first bound holds
_FIRST_BOUND_S: Final = 0.1
_LEAST_BOUND_S: Final = 0.001
_PERCENTILE: Final = 95
_REST_S: Final = 1.0
"""Seconds in which a lost replica is asked only if there is no other, and a silent one once."""


class _State:
    """What is known of a replica."""

    def __init__(self, shard: int, ask: Replica) -> None:
        self.shard, self.ask = shard, ask
        self.n_open = 0
        self.lost_at = -np.inf
        self.asked_at = -np.inf
        self.is_silent = False  # since it let the time of a question pass

    def may_be_asked(self, now: float) -> bool:
        return not self.is_silent or now - self.asked_at >= _REST_S


class _Question:
    """A question to a shard, and which of its replicas were asked it."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.arguments = arguments
        self.tried: list[_State] = []
        self.n_open = 0


class ReplicatedShards(Shards):
    """Shards with one replica or more each."""

    def __init__(
        self,
        ranges: Sequence[range],
        dim: int,
        replicas: Sequence[Sequence[Replica]],
        *,
        timeout_s: float = 5.0,
        is_lost: Callable[[BaseException], bool] = lambda error: isinstance(error, ConnectionError),
        observe: Callable[[int, float], None] = lambda shard, seconds: None,
    ) -> None:
        """Take the replicas of each shard.

        Args:
            ranges: Rows of each shard.
            dim: Numbers of a vector.
            replicas: The replicas of each shard, at least one.
            timeout_s: Seconds within which all shards must have answered.
            is_lost: Whether an error says that a replica is gone, rather than that it has a fault.
            observe: Called with the number of a shard, from 0, and the seconds that an answer of
                it took, in any thread.

        Raises:
            InputError: A shard has no replica.
        """
        if len(ranges) != len(replicas) or not ranges or not all(replicas):
            msg = (
                f"each of {len(ranges)} shards must have a replica, got {list(map(len, replicas))}"
            )
            raise InputError(msg)
        self.ranges, self.dim = ranges, dim
        self._replicas = [
            [_State(number, replica) for replica in some] for number, some in enumerate(replicas)
        ]
        self._timeout_s, self._is_lost, self._observe = timeout_s, is_lost, observe
        self._times: deque[float] = deque(maxlen=_RECENT)
        self._lock = threading.Lock()
        self.n_hedged = 0

    def ask(self, method: str, asked: Mapping[int, Mapping[str, Any]]) -> dict[int, Any]:
        """Ask some shards at once, each of them a replica; see `Shards.ask`."""
        started = time.monotonic()
        deadline = started + self._timeout_s
        hedge_at: float | None = started + self.bound_s
        questions = {number: _Question(arguments) for number, arguments in asked.items()}
        pending: dict[Future[Any], tuple[int, _State]] = {}
        for number, question in questions.items():
            if not self._send(method, number, question, pending):
                raise self._missing(number)
        answers: dict[int, Any] = {}
        while len(answers) < len(questions):
            now = time.monotonic()
            if now >= deadline:
                for number, state in pending.values():
                    state.is_silent |= number not in answers
                raise self._missing(min(questions.keys() - answers.keys()))
            until = deadline if hedge_at is None else min(hedge_at, deadline)
            done, _ = wait(pending, timeout=max(0.0, until - now), return_when=FIRST_COMPLETED)
            for future in done:
                number, state = pending.pop(future)
                questions[number].n_open -= 1
                if number not in answers:
                    self._take(method, number, future, state, questions[number], pending, answers)
            if hedge_at is not None and time.monotonic() >= hedge_at:
                hedge_at = None
                for number in questions.keys() - answers.keys():
                    self.n_hedged += self._send(method, number, questions[number], pending)
        return {number: answers[number] for number in asked}

    @property
    def bound_s(self) -> float:
        """Seconds after which another replica is asked too."""
        times = list(self._times)
        if len(times) < _LEAST_KNOWN:
            return _FIRST_BOUND_S
        return max(_LEAST_BOUND_S, float(np.percentile(times, _PERCENTILE, method="lower")))

    def _take(
        self,
        method: str,
        number: int,
        future: Future[Any],
        state: _State,
        question: _Question,
        pending: dict[Future[Any], tuple[int, _State]],
        answers: dict[int, Any],
    ) -> None:
        """Take an answer; where its replica is lost, or cannot open its part, ask another one."""
        error = future.exception()
        if error is None:
            answers[number] = future.result()
            return
        is_told = isinstance(error, UnavailableError)
        if is_told or self._is_lost(error):
            state.lost_at = time.monotonic()
            if not self._send(method, number, question, pending) and not question.n_open:
                raise (_unwrapped(error) if is_told else self._missing(number)) from error
        elif isinstance(error, SearchlabError):
            raise _unwrapped(error)
        else:
            raise error

    def _send(
        self,
        method: str,
        number: int,
        question: _Question,
        pending: dict[Future[Any], tuple[int, _State]],
    ) -> bool:
        """Ask the best replica that was not asked yet; says whether there was one."""
        now = time.monotonic()
        with self._lock:
            others = [state for state in self._replicas[number] if state not in question.tried]
            left = [state for state in others if state.may_be_asked(now)]
            if not left:
                return False
            state = min(left, key=lambda one: (now - one.lost_at < _REST_S, one.n_open))
            state.n_open += 1
            state.asked_at = now
            # The last asked is the last of equals next time.
            self._replicas[number].remove(state)
            self._replicas[number].append(state)
        question.tried.append(state)
        question.n_open += 1
        try:
            future = state.ask(method, question.arguments)
        except Exception as error:  # as if its answer had failed: `_take` tells a loss from a fault
            future = Future()
            future.set_exception(error)
        pending[future] = number, state
        future.add_done_callback(lambda done: self._note(done, state, time.monotonic() - now))
        return True

    def _note(self, future: Future[Any], state: _State, took_s: float) -> None:
        is_answer = not future.cancelled() and future.exception() is None
        with self._lock:
            state.n_open -= 1
            if is_answer:
                state.is_silent = False
                self._times.append(took_s)
        if is_answer:
            self._observe(state.shard, took_s)

    def _missing(self, number: int) -> UnavailableError:
        return UnavailableError(
            f"shard {number + 1} of {len(self)} must answer within {self._timeout_s:g} s, got no "
            f"answer from its {len(self._replicas[number])} replicas; search again in a moment"
        )


def _unwrapped(error: BaseException) -> BaseException:
    # What a process elsewhere raised comes in a wrapping.
    return getattr(error, "cause", None) or error
