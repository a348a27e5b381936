"""ClientWaits: counts requests that wait for slow clients, so that they do not block others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from searchlab.api.ops.metrics import Metrics
from searchlab.api.wire.errors import HttpProblem

_WAITING_PER_IN_FLIGHT = 4  # a request that waits costs memory only
_KEY_DIVISOR = 4  # one key may have a quarter of the requests in flight waiting
_LEAST_OF_KEY = 8


class ClientWaits:
    """Counts the requests that wait for a client, in total and by key.

    They do not count as in flight: a worker is full when it has too much work, not when its clients
    are slow.
    """

    def __init__(self, metrics: Metrics, max_in_flight: int) -> None:
        """Start with no waiting request.

        Args:
            metrics: Holds the total.
            max_in_flight: Requests that the worker handles at once.
        """
        self._metrics = metrics
        self._most = _WAITING_PER_IN_FLIGHT * max_in_flight
        self._most_of_key = max(_LEAST_OF_KEY, max_in_flight // _KEY_DIVISOR)
        self._by_key: Counter[str] = Counter()

    @property
    def is_full(self) -> bool:
        """Whether requests that may have to wait should be refused."""
        return self._metrics.waiting >= self._most

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Count a request as waiting, while the block sends bytes to its client."""
        self._metrics.count_waiting(1)
        try:
            yield
        finally:
            self._metrics.count_waiting(-1)

    @contextmanager
    def receiving(self, key_id: str) -> Iterator[None]:
        """Count a request as waiting, while the block receives bytes from its client.

        Args:
            key_id: Key of the request.

        Raises:
            HttpProblem: Too many requests of this key are waiting already (429).
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
