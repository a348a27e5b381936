"""ClientWaits: requests that wait for their clients; slow ones take no place of others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from searchlab.api.ops.metrics import Metrics
from searchlab.api.wire.errors import HttpProblem

_TIMES = 4  # waiting costs memory alone
_SHARE = 4  # no key has more than this part of the places
_LEAST = 8


class ClientWaits:
    """Counts who waits for a client, of each key too.

    What waits is not in flight: a worker is full when it has too much to do, not when its clients
    take their time.
    """

    def __init__(self, metrics: Metrics, max_in_flight: int) -> None:
        """Start with no request that waits.

        Args:
            metrics: Counts each.
            max_in_flight: Requests that the worker takes on at once.
        """
        self._metrics = metrics
        self._most = _TIMES * max_in_flight
        self._most_of_key = max(_LEAST, max_in_flight // _SHARE)
        self._by_key: Counter[str] = Counter()

    @property
    def is_full(self) -> bool:
        """Whether requests that may have to wait should be refused."""
        return self._metrics.waiting >= self._most

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Wait in the block for a client to take bytes."""
        self._metrics.count_waiting(1)
        try:
            yield
        finally:
            self._metrics.count_waiting(-1)

    @contextmanager
    def receiving(self, key_id: str) -> Iterator[None]:
        """Wait in the block for a client to send bytes.

        Args:
            key_id: Key of the request.

        Raises:
            HttpProblem: Too many requests of this key wait already (429).
        """
        if self._by_key[key_id] >= self._most_of_key:
            self._metrics.count_refusal("slow")
            msg = (
                f"a key may have {self._most_of_key} requests whose bodies are still on their way, "
                "got more; wait for Retry-After seconds"
            )
            raise HttpProblem(msg, "RATE_LIMITED", headers={"Retry-After": "1"})
        self._by_key[key_id] += 1
        try:
            with self.sending():
                yield
        finally:
            self._by_key[key_id] -= 1
            if not self._by_key[key_id]:
                del self._by_key[key_id]
