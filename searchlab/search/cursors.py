"""Cursors: signed, opaque tokens that hold a whole query and a position in its ranking.

    base64url of MessagePack . base64url of a keyed hash of audience and what is before the dot

Both are without padding. The hash (BLAKE2b with a key, RFC 7693) is over the encoded text and not
over the bytes behind it, so that no token has a second spelling.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from searchlab.errors import CursorError, DataError, ExpiredCursorError, InputError
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.queries import DEFAULT_TEXT_ALPHA, Query, check_count

KEY_BYTES = 32
MAX_PAGE = 10**9
_SIGNATURE_BYTES = 16


class _CursorValues(msgspec.Struct, omit_defaults=True):
    # Names of one letter, as the token is part of every answer; `Cursor.seal` tells what they are.
    n: int
    p: int
    s: str
    c: str
    q: str | None = None
    i: str | None = None
    a: float = DEFAULT_TEXT_ALPHA
    f: dict[str, Any] = {}
    o: str = "relevance"
    t: float | None = None
    l: int | None = None  # noqa: E741
    r: float | None = None
    v: bytes | None = None


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_CursorValues)


@dataclass(frozen=True, kw_only=True)
class Cursor:
    """A query and the position of its next page.

    Attributes:
        query: The query without its picture.
        vector: (dim,) float32 embedding of the picture that page 1 used; None without one.
        position: Results on the pages before.
        per_page: Page size of page 1.
        snapshot_id: The snapshot whose ranking is sliced.
        config_id: The configuration that ranks.
        audience: Account and operation that the cursor is bound to.
    """

    query: Query
    vector: NDArray[np.float32] | None
    position: int
    per_page: int
    snapshot_id: str
    config_id: str
    audience: str

    def check_state(self, snapshot_id: str, config_id: str) -> None:
        """Check that the ranking is still the one whose pages came before.

        Raises:
            ExpiredCursorError: It is of another snapshot or configuration.
        """
        if (self.snapshot_id, self.config_id) != (snapshot_id, config_id):
            msg = (
                f"cursor must belong to snapshot and configuration {snapshot_id} {config_id}, got "
                f"one of {self.snapshot_id} {self.config_id}; the library has changed since, "
                "search again"
            )
            raise ExpiredCursorError(msg)

    def seal(self, key: bytes) -> str:
        """Return the token; only `unseal` with the same key and audience opens it."""
        query = self.query
        values = _CursorValues(
            n=self.position,
            p=self.per_page,
            s=self.snapshot_id,
            c=self.config_id,
            q=query.text,
            i=query.photo_id,
            a=query.text_alpha,
            f=query.filter.to_dict(),
            o=query.sort_by,
            t=query.score_threshold,
            l=query.limit,
            r=query.min_recall,
            v=None if self.vector is None else self.vector.astype("<f4").tobytes(),
        )
        return sign(_ENCODER.encode(values), key, audience=self.audience)

    @classmethod
    def unseal(cls, token: str, key: bytes, *, audience: str) -> Cursor:
        """Open a token.

        Raises:
            CursorError: The token was not made by this library for this audience, or was changed.
        """
        try:
            values = _DECODER.decode(open_signed(token, key, audience=audience))
            vector = None if values.v is None else np.frombuffer(values.v, dtype="<f4")
            return cls(
                query=_query(values),
                vector=vector,
                position=values.n,
                per_page=values.p,
                snapshot_id=values.s,
                config_id=values.c,
                audience=audience,
            )
        except (AttributeError, KeyError, TypeError, ValueError, msgspec.MsgspecError) as error:
            msg = "cursor must be the next_cursor of a page of this search, got another text"
            raise CursorError(msg) from error


def check_page(page: int, cursor: str | Cursor | None) -> None:
    """Check the number of a page, which is 1 wherever a cursor says how to go on.

    Raises:
        InputError: It is none, or there is a cursor too.
    """
    check_count("page", page, MAX_PAGE)
    if page > 1 and cursor is not None:
        msg = f"page and cursor cannot be combined, got page {page}; keep one"
        raise InputError(msg)


def check_reached(page: int, total: int, per_page: int) -> None:
    """Check that a ranking of `total` photos has a page of that number, or that it is the first.

    Raises:
        InputError: The ranking ends before.
    """
    last = max(1, -(-total // per_page))
    if page > last:
        msg = (
            f"page must be at most {last}, which is the last for {total} results at {per_page} "
            f"a page, got {page}"
        )
        raise InputError(msg)


def _encode_base64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _signature(payload: bytes, key: bytes, audience: str) -> bytes:
    audience_bytes = audience.encode()
    signed = hashlib.blake2b(b"%d:" % len(audience_bytes), key=key, digest_size=_SIGNATURE_BYTES)
    signed.update(audience_bytes)
    signed.update(payload)
    return _encode_base64(signed.digest())


def sign(content: bytes, key: bytes, *, audience: str) -> str:
    """Return a token that holds bytes; `open_signed` opens it with the same key and audience."""
    payload = _encode_base64(content)
    return f"{payload.decode()}.{_signature(payload, key, audience).decode()}"


def open_signed(token: str, key: bytes, *, audience: str) -> bytes:
    """Return the bytes that a token holds.

    Raises:
        ValueError: It was not made with this key for this audience, or was changed.
    """
    payload, _, signature = token.encode("ascii").rpartition(b".")
    if not hmac.compare_digest(signature, _signature(payload, key, audience)):
        msg = "another signature"
        raise ValueError(msg)
    return base64.urlsafe_b64decode(payload + b"=" * (-len(payload) % 4))


def _query(values: _CursorValues) -> Query:
    return Query(
        text=values.q,
        image=_placeholder() if values.v is not None and values.i is None else None,
        photo_id=values.i,
        text_alpha=values.a,
        filter=PhotoFilter(**values.f),
        sort_by=values.o,
        score_threshold=values.t,
        limit=values.l,
        min_recall=values.r,
    )


def _placeholder() -> Any:
    # The cursor holds the vector of the picture; the picture itself is never needed again.
    from PIL import Image

    return Image.new("RGB", (1, 1))


def read_key(path: Path) -> bytes:
    """Read the secret that signs a library's cursors.

    Raises:
        DataError: It is missing or damaged.
    """
    try:
        key = path.read_bytes()
    except OSError as error:
        msg = f"{path} must sign cursors, got: {error.strerror}; index again to make a new one"
        raise DataError(msg) from error
    if len(key) != KEY_BYTES:
        msg = f"{path} must hold {KEY_BYTES} bytes, got {len(key)}; delete it and index again"
        raise DataError(msg)
    return key
