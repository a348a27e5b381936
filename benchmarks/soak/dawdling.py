"""Slow clients: they send half a request, drip a body, or never read what they asked for."""

from __future__ import annotations

import asyncio
import contextlib
import socket

from benchmarks.soak.world import SEARCH, World

_CROWDS, _CROWD = 30, 60
_STAY_S = 4.0
_DRIPS = 20


async def dawdle(world: World) -> None:
    """Come as a crowd from other addresses, and go; all others are answered meanwhile."""
    async for turn in world.turns(_CROWDS):
        kinds = (_send_half_a_head, _never_read, _drip_a_body, _close_for_writing)
        crowd = [kinds[number % len(kinds)](world, turn, number) for number in range(_CROWD)]
        async with world.no_crowd:
            await asyncio.gather(*crowd)
        world.ledger.events["slow clients"] += _CROWD


async def _connect(world: World, turn: int, number: int) -> socket.socket | None:
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setblocking(False)
    try:
        client.bind((f"127.{turn % 200 + 1}.0.{number % 200 + 1}", 0))
        port = int(world.server.base_url.rpartition(":")[2])
        async with asyncio.timeout(5):
            await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", port))
    except (OSError, TimeoutError):  # no other loopback addresses here, or the server is down
        client.close()
        return None
    return client


async def _send(client: socket.socket | None, *pieces: bytes, pause_s: float = 0.0) -> None:
    if client is None:
        return
    with contextlib.closing(client), contextlib.suppress(OSError, TimeoutError):
        for piece in pieces:
            async with asyncio.timeout(5):
                await asyncio.get_running_loop().sock_sendall(client, piece)
            await asyncio.sleep(pause_s)
        await asyncio.sleep(_STAY_S)


def _head(world: World, method: str, path: str, *more: str) -> bytes:
    key = world.keys["dawdler"]
    lines = (f"{method} {path} HTTP/1.1", "Host: a", f"x-api-key: {key}", *more)
    return "\r\n".join((*lines, "", "")).encode()


async def _send_half_a_head(world: World, turn: int, number: int) -> None:
    client = await _connect(world, turn, number)
    await _send(client, _head(world, "GET", SEARCH)[:-20])


async def _never_read(world: World, turn: int, number: int) -> None:
    photo_id = world.choose_photo()
    client = await _connect(world, turn, number)
    await _send(client, _head(world, "GET", f"/media/{photo_id}/full") * 4)


async def _drip_a_body(world: World, turn: int, number: int) -> None:
    head = _head(
        world,
        "POST",
        SEARCH,
        "content-type: multipart/form-data; boundary=b",
        "content-length: 9999",
    )
    drips = [b"--b\r\n"] * _DRIPS
    client = await _connect(world, turn, number)
    await _send(client, head, *drips, pause_s=_STAY_S / _DRIPS)


async def _close_for_writing(world: World, turn: int, number: int) -> None:
    client = await _connect(world, turn, number)
    if client is not None:
        with contextlib.suppress(OSError):
            await asyncio.get_running_loop().sock_sendall(client, _head(world, "GET", "/health"))
            client.shutdown(socket.SHUT_WR)
        client.close()
