"""FairQueue: who asks for much gets no more of the time than who asks for little."""

import asyncio
from types import SimpleNamespace

import pytest

from searchlab.api.http import fair_queue
from searchlab.api.http.fair_queue import FairQueue, Turn
from searchlab.api.wire.errors import HttpProblem


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(fair_queue.time, "monotonic", lambda: clock.now)
    return clock


async def wish(queue, owner, **options):
    turn = Turn(owner, **options)
    task = asyncio.create_task(queue.take(turn))
    await asyncio.sleep(0)
    return turn, task


def served(wishes, queue, clock, *, seconds=1.0, turns=1000):
    """Let each turn that has its place work for so long; returns the owners in their order."""

    async def run():
        waiting = [await wish(queue, *one) if isinstance(one, tuple) else one for one in wishes]
        order, done = [], set()
        for _ in range(turns):
            ready = [turn for turn, _ in waiting if turn.granted.done() and turn not in done]
            if not ready:
                break
            clock.now += seconds
            order.append(ready[0].owner)
            done.add(ready[0])
            queue.give_back(ready[0])
        await asyncio.gather(*(task for _, task in waiting))
        return order

    return asyncio.run(run())


def test_owners_take_turns_however_many_wishes_one_has(clock):
    queue = FairQueue(1, waiting=99, wait_s=5)
    order = served([("greedy",)] * 30 + [("modest",)] * 3, queue, clock)
    assert [place for place, owner in enumerate(order) if owner == "modest"] == [1, 3, 5]


def test_a_larger_share_gets_more_turns(clock):
    async def run():
        queue = FairQueue(1, waiting=99, wait_s=5)
        wishes = [await wish(queue, "small") for _ in range(20)]
        wishes += [await wish(queue, "large", share=4.0) for _ in range(20)]
        order = []
        for _ in range(15):
            turn = next(t for t, _ in wishes if t.granted.done() and t not in order)
            clock.now += 1
            order.append(turn)
            queue.give_back(turn)
        for _, task in wishes:
            task.cancel()
        await asyncio.gather(*(task for _, task in wishes), return_exceptions=True)
        return [turn.owner for turn in order]

    assert 11 <= asyncio.run(run()).count("large") <= 13


def test_who_was_away_has_no_credit_and_who_used_much_waits(clock):
    async def run():
        queue = FairQueue(1, waiting=99, wait_s=5)
        first, _ = await wish(queue, "busy")
        clock.now += 60
        queue.give_back(first)
        holder, _ = await wish(queue, "other")
        wishes = [await wish(queue, "busy"), *[await wish(queue, "new") for _ in range(3)]]
        order, turn = [], holder
        while turn is not None:
            clock.now += 1
            queue.give_back(turn)
            turn = next(
                (t for t, _ in wishes if t.granted.done() and t.owner + str(id(t)) not in order),
                None,
            )
            if turn is not None:
                order.append(turn.owner + str(id(turn)))
        await asyncio.gather(*(task for _, task in wishes))
        return [name.rstrip("0123456789") for name in order]

    assert asyncio.run(run()) == ["new", "new", "new", "busy"]


def test_large_turns_leave_a_place_for_others(clock):
    async def run():
        queue = FairQueue(2, waiting=99, wait_s=5)
        large = [await wish(queue, f"owner {n}", is_large=True) for n in range(3)]
        assert [turn.granted.done() for turn, _ in large] == [True, False, False]
        small, _ = await wish(queue, "modest")
        assert small.granted.done()
        queue.give_back(small)
        assert not large[1][0].granted.done()
        queue.give_back(large[0][0])
        assert [turn.granted.done() for turn, _ in large] == [True, True, False]
        queue.give_back(large[1][0])
        queue.give_back(large[2][0])
        await asyncio.gather(*(task for _, task in large))
        alone, _ = await wish(FairQueue(1, waiting=1, wait_s=5), "owner", is_large=True)
        return alone.granted.done()

    assert asyncio.run(run())


def test_who_gives_up_or_is_late_leaves_no_place_taken():
    async def run():
        queue = FairQueue(1, waiting=1, wait_s=0.02)
        first, _ = await wish(queue, "one")
        _, cancelled = await wish(queue, "two")
        cancelled.cancel()
        _, late = await wish(queue, "three")
        with pytest.raises(HttpProblem, match="too many that wait"):
            await queue.take(Turn("three"))
        with pytest.raises(HttpProblem, match=r"within 0\.02 s, got none"):
            await late
        # Granted and cancelled in the same moment.
        both, task = await wish(queue, "four")
        queue.give_back(first)
        assert both.granted.done()
        task.cancel()
        await asyncio.gather(task, cancelled, return_exceptions=True)
        last, _ = await wish(queue, "five")
        return last.granted.done()

    assert asyncio.run(run())


def test_a_place_that_gets_free_as_who_waits_gives_up_goes_to_the_next():
    async def run():
        queue = FairQueue(1, waiting=9, wait_s=5)
        first, _ = await wish(queue, "one")
        _, leaving = await wish(queue, "two")
        next_turn, _ = await wish(queue, "three")
        leaving.cancel()  # which it learns of in the next moment only
        queue.give_back(first)
        with pytest.raises(asyncio.CancelledError):
            await leaving
        return next_turn.granted.done()

    assert asyncio.run(run())
