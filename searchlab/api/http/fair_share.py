"""FairShare: divides a fixed amount of something so that nobody can take what others need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

from searchlab.api.wire.errors import overloaded


class FairShare:
    """An amount, such as bytes of memory, of which each owner may hold as much as is left free.

    One owner alone gets half of it, nine get a tenth each, and a tenth stays free for the next, so
    that owners who take all they can never leave nothing. Not thread-safe.

    Attributes:
        held: What all owners hold together.
    """

    def __init__(self, most: int, what: str) -> None:
        """Start with everything free.

        Args:
            most: The amount.
            what: What it is, for messages, such as "room for the body".
        """
        self.held = 0
        self._most = most
        self._what = what
        self._by_owner: Counter[Hashable] = Counter()

    @contextmanager
    def holding(self, owner: Hashable) -> Iterator[Callable[[int], None]]:
        """Yield a function that takes some more for an owner; the block's end gives it all back.

        The function raises `HttpProblem` (503) if there is too little left.
        """
        counted = 0

        def take(amount: int) -> None:
            nonlocal counted
            if self._by_owner[owner] + amount > self._most - self.held:
                msg = f"the server must have {self._what}, got too many at once; send it again"
                raise overloaded(msg)
            self._by_owner[owner] += amount
            self.held += amount
            counted += amount

        try:
            yield take
        finally:
            self.held -= counted
            self._by_owner[owner] -= counted
            if not self._by_owner[owner]:
                del self._by_owner[owner]
