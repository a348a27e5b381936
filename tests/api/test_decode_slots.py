"""DecodeSlots: so many at once, so many waiting, for so long."""

import asyncio
import threading
from unittest.mock import Mock

import pytest

from searchlab.api.http import decode_slots
from searchlab.api.http.decode_slots import DecodeSlots
from searchlab.api.http.decoders import TooBusyError, TooSlowError
from searchlab.api.http.fair_queue import Turn
from searchlab.api.wire.errors import HttpProblem, Invalid
from searchlab.errors import ImageError


def with_slots(work, **options):
    async def run():
        slots = DecodeSlots(**{"count": 1, "timeout_s": 5, **options})
        try:
            return await work(slots)
        finally:
            slots.close()

    return asyncio.run(run())


def test_work_is_done_in_another_thread_and_its_result_comes_back():
    async def work(slots):
        return await slots.run(lambda a, b: (a + b, threading.current_thread().name), 2, b=3)

    total, thread = with_slots(work)
    assert total == 5
    assert thread.startswith("pictures")


def test_an_exception_comes_back_as_it_is():
    def fail():
        raise ImageError("no picture", reason="damaged")  # noqa: EM101

    with pytest.raises(ImageError, match="no picture"):
        with_slots(lambda slots: slots.run(fail))


def test_without_memory_the_answer_is_to_come_again():
    def fail():
        raise MemoryError

    with pytest.raises(HttpProblem) as caught:
        with_slots(lambda slots: slots.run(fail))
    assert caught.value.kind.code == "OVERLOADED"


def test_a_place_is_waited_for_and_not_for_ever():
    async def work(slots):
        gate = threading.Event()
        first = asyncio.create_task(slots.run(gate.wait))
        await asyncio.sleep(0)
        with pytest.raises(HttpProblem) as caught:
            await slots.run(int)
        gate.set()
        return caught.value, await first, await slots.run(int)

    problem, *others = with_slots(work, wait_s=0.02)
    assert problem.kind.code == "OVERLOADED"
    assert int(problem.headers["Retry-After"]) >= 1
    assert others == [True, 0]


def test_no_more_than_so_many_wait():
    async def work(slots):
        gate = threading.Event()
        tasks = [asyncio.create_task(slots.run(gate.wait)) for _ in range(4)]
        done, waiting = await asyncio.wait(tasks, timeout=0.05)
        gate.set()
        return [task.exception().kind.code for task in done], [await task for task in waiting]

    assert with_slots(work, waiting=2, wait_s=5) == (["OVERLOADED"], [True, True, True])


def test_what_takes_too_long_keeps_its_place_until_it_is_really_done():
    async def work(slots):
        gate = threading.Event()
        with pytest.raises(HttpProblem) as late:
            await slots.run(gate.wait)
        with pytest.raises(HttpProblem) as full:
            await slots.run(int)
        gate.set()
        return late.value.kind.code, full.value.kind.code, await slots.run(int)

    assert with_slots(work, timeout_s=0.02, wait_s=0.05) == ("OVERLOADED", "OVERLOADED", 0)


def test_a_picture_that_takes_too_long_is_refused_and_one_that_was_kept_waiting_may_come_again():
    async def work(slots):
        outcomes = []
        for error in (TooSlowError(), TooBusyError()):
            with pytest.raises((Invalid, HttpProblem)) as late:
                await slots.run(Mock(side_effect=error))
            outcomes.append(late.value)
        return outcomes

    slow, busy = with_slots(work)
    assert (slow.details[0].loc, slow.details[0].type) == (("body", "image"), "timeout")
    assert busy.kind.code == "OVERLOADED"
    assert int(busy.headers["Retry-After"]) >= 1


def test_a_request_that_goes_away_leaves_its_place_taken_until_the_work_is_done():
    async def work(slots):
        gate = threading.Event()
        gone = asyncio.create_task(slots.run(gate.wait))
        await asyncio.sleep(0.01)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        with pytest.raises(HttpProblem):
            await slots.run(int)
        gate.set()
        return await slots.run(int)

    assert with_slots(work, wait_s=0.05) == 0


def test_as_many_work_at_once_as_there_are_places():
    async def work(slots):
        both = threading.Barrier(2)
        return await asyncio.gather(*(slots.run(both.wait, 5) for _ in range(2)))

    assert sorted(with_slots(work, count=2)) == [0, 1]


async def next_after(slots, spend):
    """Let `greedy` spend a place, then both want one: returns who gets it first."""
    order = []
    await spend()
    gate = threading.Event()
    others = [asyncio.create_task(slots.run(gate.wait))]
    await asyncio.sleep(0.01)
    others += [
        asyncio.create_task(slots.run_turn(Turn(owner), order.append, owner))
        for owner in ("greedy", "modest")
    ]
    await asyncio.sleep(0.01)
    gate.set()
    await asyncio.gather(*others)
    return order


@pytest.mark.parametrize("ends", ["in time", "too late", "by itself", "with a failure"])
def test_a_picture_is_charged_for_its_time_however_it_ends(ends):
    async def work(slots):
        gate = threading.Event()

        def take_long():
            gate.wait(5)
            if ends == "with a failure":
                raise ImageError("no picture", reason="damaged")  # noqa: EM101

        async def spend():
            # `modest` was there before, and has spent nothing since.
            await slots.run_turn(Turn("modest"), int)
            task = asyncio.create_task(slots.run_turn(Turn("greedy"), take_long))
            await asyncio.sleep(0.15)
            if ends == "by itself":
                task.cancel()
                await asyncio.sleep(0.15)
            elif ends == "too late":
                await asyncio.wait({task})
            gate.set()
            await asyncio.gather(task, return_exceptions=True)
            await asyncio.sleep(0.01)

        return await next_after(slots, spend)

    timeout_s = 0.1 if ends == "too late" else 5
    assert with_slots(work, timeout_s=timeout_s, wait_s=5) == ["modest", "greedy"]


def test_memory_is_given_back_once_no_more_pictures_come(monkeypatch):
    given = threading.Semaphore(0)
    monkeypatch.setattr(decode_slots, "_TRIM_AFTER_S", 0.05)
    monkeypatch.setattr(decode_slots, "give_memory_back", given.release)

    async def work(slots):
        gate = threading.Event()
        long = asyncio.create_task(slots.run(gate.wait))
        await slots.run(int)
        await asyncio.sleep(0.2)
        assert not given.acquire(blocking=False)
        gate.set()
        await long
        assert await asyncio.to_thread(given.acquire, timeout=5)

    with_slots(work, count=2)
