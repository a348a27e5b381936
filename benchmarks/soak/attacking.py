"""Attackers who upload pictures that are heavy to decode; they stand in for other machines."""

from __future__ import annotations

import asyncio
import io
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection

from PIL import Image

from benchmarks.soak.apart import apart
from benchmarks.soak.http_client import BrokenConnection, HttpClient, NotConnected

SIDE, SCANS = 11_300, 99
CONNECTIONS = 4
_STILL_DECODED = (2_000, 30)  # side and scans


def repeat_scans(side: int, times: int) -> bytes:
    """Make a progressive JPEG of one colour whose last scan is repeated."""
    buffer = io.BytesIO()
    Image.new("RGB", (side, side), "teal").save(buffer, "JPEG", progressive=True)
    content = buffer.getvalue()
    last = content.rindex(b"\xff\xda")
    return content[:last] + content[last:-2] * times + b"\xff\xd9"


@contextmanager
def attacked(url: str, keys: Sequence[str]) -> Iterator[Counter[str]]:
    """Attack a server while the block runs.

    Args:
        url: Its address.
        keys: Of the attackers, each of which has `CONNECTIONS` connections.

    Yields:
        How many of their requests had which status; filled when the block ends.
    """
    answers = Counter[str]()
    with apart(_attack, url, keys) as attackers:
        attackers.recv()  # the pictures are made
        yield answers
        attackers.send("end")
        answers.update(attackers.recv())


def _attack(url: str, keys: Sequence[str], asker: Connection) -> None:
    pictures = [repeat_scans(SIDE, SCANS), repeat_scans(*_STILL_DECODED)]
    asker.send("ready")
    asker.send(asyncio.run(_attack_until_told(url, keys, pictures, asker)))


async def _attack_until_told(
    url: str, keys: Sequence[str], pictures: Sequence[bytes], asker: Connection
) -> Counter[str]:
    answers = Counter[str]()
    attackers = [
        asyncio.ensure_future(_upload(url, key, pictures[number % 2 :] + pictures, answers))
        for key in keys
        for number in range(CONNECTIONS)
    ]
    await asyncio.to_thread(asker.recv)
    for one in attackers:
        one.cancel()
    await asyncio.gather(*attackers, return_exceptions=True)
    return answers


async def _upload(url: str, key: str, pictures: Sequence[bytes], answers: Counter[str]) -> None:
    async with HttpClient(url, {"x-api-key": key}) as client:
        for picture in itertools.cycle(pictures):
            status = "no answer"
            with suppress(BrokenConnection, NotConnected, OSError):
                answer = await client.request("POST", "/api/v1/search/photos", picture=picture)
                status = str(answer.status)
            answers[status] += 1
