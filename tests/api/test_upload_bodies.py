"""The body of an upload, read piece by piece: its limits, its pauses, its end."""

import asyncio
import hashlib
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from litestar import Request

from searchlab.api.http import bodies
from searchlab.api.http.bodies import discard_rest
from searchlab.api.http.fair_share import FairShare
from searchlab.api.http.uploads import hash_picture, read_picture
from searchlab.api.wire.errors import HttpProblem, Invalid, problem_of
from tests.support.examples import examples
from tests.support.forms import FORM, LIMIT, PNG, form, part


def request_of(messages, headers=()):
    """Make a request whose body comes in these pieces; None ends it early, ... is a long pause."""
    left = list(messages)

    async def receive():
        piece = left.pop(0)
        if piece is ...:
            await asyncio.sleep(3600)
        if piece is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": piece, "more_body": bool(left)}

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/",
        "query_string": b"",
        "headers": [(b"content-type", FORM.encode()), *headers],
        "route_handler": SimpleNamespace(resolve_request_max_body_size=lambda: None),
        "state": {},
        "app": None,
    }
    return Request(scope, receive), left


async def reading(messages, headers=(), *, bodies=None, limit=LIMIT):
    request, left = request_of(messages, headers)
    bodies = bodies or FairShare(2 * LIMIT + 2, "room")
    try:
        with bodies.holding("me") as take:
            return await read_picture(request, SimpleNamespace(max_upload_bytes=limit), take)
    finally:
        reading.left = left
        assert bodies.held == 0


def refusal(*arguments, **options):
    with pytest.raises((HttpProblem, Invalid)) as caught:
        asyncio.run(reading(*arguments, **options))
    return caught.value


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.sampled_from([b"\r\n--cu", b"\r\n--cut", b"\r", b"\n", b"--", b"t", b"\0", b"a"])),
    st.lists(st.integers(0, 400), max_size=6),
)
def test_a_picture_is_the_same_however_the_body_is_cut(noise, cuts):
    noisy = PNG + b"".join(noise).replace(b"--cut", b"--CUT")
    body = form(part("first", b"1"), part("image", noisy))
    ends = sorted({min(cut, len(body)) for cut in cuts} | {len(body)})
    pieces = [body[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    assert asyncio.run(reading(pieces)) == noisy


def test_a_body_may_come_byte_by_byte():
    body = form(part("image", PNG))
    assert asyncio.run(reading([bytes([byte]) for byte in body])) == PNG


def crumbs(n_pieces, n_bytes):
    body = b"--cut\r\n" + bytes(n_pieces * n_bytes)
    return [body[at : at + n_bytes] for at in range(0, n_pieces * n_bytes, n_bytes)]


def test_a_body_in_crumbs_without_end_is_refused_and_not_read_on():
    problem = refusal(crumbs(3_000, 1))
    assert [(detail.loc, detail.type) for detail in problem.details] == [(("body",), "pieces")]
    assert len(reading.left) == 3_000 - 1_002


def test_a_body_in_the_small_segments_of_a_network_is_no_body_in_crumbs():
    problem = refusal(crumbs(3_000, 536), limit=2_000_000)
    assert [detail.type for detail in problem.details] == ["value_error"]  # read, and broken


def test_what_follows_gets_large_pieces_however_the_body_is_cut():
    async def sizes():
        request, _ = request_of([bytes(1_000)] * 150)
        return [len(piece) async for piece in bodies.IncomingBody(request, 10**6).chunks()]

    assert asyncio.run(sizes()) == [66_000, 66_000, 18_000]


def test_a_picture_is_told_from_others_only_where_the_answer_is_to_be_kept():
    async def fingerprints():
        keyed, _ = request_of([], [(b"idempotency-key", b"k")])
        plain, _ = request_of([])
        return [
            await hash_picture(request, content)
            for request, content in ((plain, PNG), (keyed, PNG), (keyed, PNG + b"1"), (keyed, None))
        ]

    without, first, other, empty = asyncio.run(fingerprints())
    assert without == b""
    assert len({first, other, empty}) == 3
    assert first == hashlib.sha256(PNG).digest()


def test_a_connection_that_ends_within_the_body_is_a_failed_validation():
    problem = refusal([form(part("image", PNG))[:50], None])
    assert [detail.loc for detail in problem.details] == [("body",)]
    assert problem_of(problem) is problem


def test_a_body_that_pauses_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(bodies, "_IDLE_S", 0.01)
    assert refusal([b"--cut", ...]).details[0].type == "timeout"


def test_a_body_that_trickles_is_not_waited_for_for_ever(monkeypatch):
    monkeypatch.setattr(bodies, "_WHOLE_S", 0.02)

    async def receive():
        await asyncio.sleep(0.005)
        return {"type": "http.request", "body": b"x", "more_body": True}

    request, _ = request_of([])
    request.receive = receive
    with pytest.raises(Invalid) as caught:
        asyncio.run(read_picture(request, SimpleNamespace(max_upload_bytes=LIMIT), int))
    assert caught.value.details[0].type == "timeout"


def left_after(pieces, most):
    """Discard the rest of a body; returns how many pieces are left."""
    left = list(pieces)

    async def receive():
        piece = left.pop(0)
        if piece is ...:
            await asyncio.sleep(60)
        return {"type": "http.request", "body": piece, "more_body": bool(left)}

    asyncio.run(discard_rest(receive, most))
    return len(left)


def test_what_is_refused_is_read_on_up_to_a_bound(monkeypatch):
    assert left_after([b"x" * 100_000] * 3, 300_001) == 0
    assert left_after([b"x" * 100_000] * 9, 300_000) == 6
    assert left_after([b"x"] * 5_000, 300_000) > 3_000  # pieces of nothing are no body
    monkeypatch.setattr(bodies, "_DISCARD_S", 0.02)
    assert left_after([b"x" * 1_000, ..., b"x"], 300_000) == 1


def test_bodies_that_are_read_at_once_are_bounded_together():
    large = PNG + bytes(70_000)
    bodies = FairShare(2 * len(large) - 10, "room")

    async def two():
        body = form(part("image", large))
        holding, (request, _) = bodies.holding("me"), request_of([body[:-10], ...])
        settings = SimpleNamespace(max_upload_bytes=LIMIT)
        with holding as take:
            first = asyncio.create_task(read_picture(request, settings, take))
            await asyncio.sleep(0.01)
            with bodies.holding("other") as take, pytest.raises(HttpProblem) as caught:
                await read_picture(request_of([body])[0], settings, take)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
        return caught.value, await reading([body], bodies=bodies)

    problem, again = asyncio.run(two())
    assert problem.kind.code == "OVERLOADED"
    assert problem.headers["Retry-After"] == "1"
    assert again == large
