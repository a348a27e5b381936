"""Threads: work of one kind never takes the threads of another, nor piles up without end."""

import asyncio
import threading

import pytest

from searchlab.api.http.threads import Threads
from searchlab.api.wire.errors import HttpProblem


@pytest.fixture
def threads():
    pool = Threads("test", 1, waiting=1)
    yield pool
    pool.close()


def test_work_is_done_and_its_outcome_comes_back(threads):
    async def both():
        assert await threads.run(divmod, 7, 2) == (3, 1)
        with pytest.raises(ZeroDivisionError):
            await threads.run(divmod, 7, 0)

    asyncio.run(both())
    assert threads.busy == 0


def test_what_finds_no_room_is_refused_at_once(threads):
    go_on = threading.Event()

    async def crowd():
        first, second = (asyncio.create_task(threads.run(go_on.wait)) for _ in range(2))
        await asyncio.sleep(0)
        with pytest.raises(HttpProblem) as refused:
            await threads.run(go_on.wait)
        go_on.set()
        assert await first
        assert await second
        return refused.value

    problem = asyncio.run(crowd())
    assert (problem.kind.status, problem.headers) == (503, {"Retry-After": "1"})


def test_a_place_is_taken_for_as_long_as_the_work_goes_on_also_unwatched(threads):
    go_on = threading.Event()

    async def leave():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await threads.run(go_on.wait)
        assert threads.busy == 1
        go_on.set()
        while threads.busy:
            await asyncio.sleep(0.001)

    asyncio.run(leave())
