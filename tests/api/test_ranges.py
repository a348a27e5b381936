"""Ranges: a file is sent whole, or in part, to whoever goes on reading."""

import asyncio

import pytest

from searchlab.api.http import ranges
from searchlab.api.http.sends import Sends


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, None),
        ("bytes=0-9", range(10)),
        ("BYTES= 0-9 ", range(10)),
        ("bytes=1 0-20", None),
        ("byt es=0-9", None),
        ("bytes=0 -9", None),
        ("bytes=90-", range(90, 100)),
        ("bytes=-5", range(95, 100)),
        ("bytes=-500", range(100)),
        ("bytes=50-500", range(50, 100)),
        ("bytes=100-", range(0)),
        ("bytes=9-0", None),
        ("bytes=-", None),
        ("bytes=0-1,5-6", None),
        ("lines=0-1", None),
    ],
)
def test_the_bytes_that_a_header_asks_for_are_found(header, expected):
    assert ranges.parse_range(header, 100) == expected


class Kept:
    """Bytes in memory as a source, and whether it was closed."""

    size, closed = 1_000_000, False

    def close(self):
        self.closed = True


class AtHand:
    async def read(self, source, at, *, n_bytes):
        return bytes(n_bytes)


def sent_to(taker, gone=None):
    async def run():
        messages = []

        async def send(message):
            messages.append(message)
            await taker(message)

        async def receive():
            if gone is None:
                await asyncio.sleep(3600)
            await gone.wait()
            return {"type": "http.disconnect"}

        source, facts = Kept(), {}
        answer = ranges.PictureAnswer(AtHand(), source, headers={}, sends=Sends(), facts=facts)
        await answer({"method": "GET"}, receive, send)
        return messages, source.closed, facts

    return asyncio.run(run())


def test_who_stops_reading_is_not_waited_for_for_ever(monkeypatch):
    monkeypatch.setattr(ranges, "_TAKEN_S", 0.01)

    async def stops(message):
        if message["type"] == "http.response.body":
            await asyncio.sleep(3600)

    messages, closed, facts = sent_to(stops)
    assert [message.get("more_body") for message in messages] == [None, True]
    assert closed
    assert facts == {"cut_short": True}


def test_who_goes_on_reading_gets_all_of_it():
    async def takes(message):
        await asyncio.sleep(0)

    messages, closed, facts = sent_to(takes)
    assert sum(len(message.get("body", b"")) for message in messages) == 1_000_000
    assert (messages[-1]["more_body"], closed, facts) == (False, True, {})


def test_nothing_is_read_any_more_for_a_client_that_has_gone():
    gone = asyncio.Event()

    async def goes(message):
        if message["type"] == "http.response.body":
            gone.set()
            await asyncio.sleep(0.01)  # the server takes what comes, and drops it

    messages, closed, facts = sent_to(goes, gone)
    assert [message.get("more_body") for message in messages] == [None, True]
    assert closed
    assert facts == {"cut_short": True}
