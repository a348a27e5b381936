"""FairShare: what some take, others cannot be left without."""

from contextlib import ExitStack, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchlab.api.http.fair_share import FairShare
from searchlab.api.http.sends import MOST_SENDS, Sends
from searchlab.api.wire.errors import HttpProblem
from searchlab.library.renditions import CHUNK


def take_all(stack, share, owner):
    """Take until it is refused; returns how much that was."""
    take, before = stack.enter_context(share.holding(owner)), share.held
    with pytest.raises(HttpProblem) as caught:  # noqa: PT012 - which of them raises is the result
        while True:
            take(1)
    assert (caught.value.kind.status, caught.value.headers) == (503, {"Retry-After": "1"})
    return share.held - before


def test_who_is_alone_gets_half_and_who_comes_next_a_part_of_the_rest():
    share = FairShare(900, "room")
    with ExitStack() as stack:
        assert take_all(stack, share, "first") == 450
        assert take_all(stack, share, "second") == 225
        assert share.held == 675
    assert share.held == 0
    with share.holding("third") as take:
        take(450)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 40)), max_size=60))
def test_whoever_holds_nothing_gets_as_much_as_anybody_holds(requests):
    share, held = FairShare(1_000, "room"), {}
    with ExitStack() as stack:
        for owner, amount in requests:
            with suppress(HttpProblem):
                stack.enter_context(share.holding(owner))(amount)
                held[owner] = held.get(owner, 0) + amount
        assert share.held == sum(held.values()) <= 1_000
        most = max(held.values(), default=0)
        with share.holding("new") as take:
            take(1_000 - share.held)
        assert 1_000 - share.held >= most


def test_pieces_get_smaller_the_more_answers_are_on_their_way():
    sends = Sends()
    with ExitStack() as stack:
        sizes = []
        for number in range(MOST_SENDS):
            sizes.append(sends.piece_bytes)
            stack.enter_context(sends.sending(f"address {number}"))
        with pytest.raises(HttpProblem, match="room for another large answer"):
            stack.enter_context(sends.sending("one more"))
    assert sizes[0] == CHUNK
    assert sizes == sorted(sizes, reverse=True)
    # The server below keeps about eight pieces and 0.15 MB of each.
    assert sum(8 * size + 150_000 for size in sizes) < 320_000_000
