"""Cursors: signed, opaque tokens that hold a whole query and a position in its ranking."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from itsdangerous import BadData, URLSafeSerializer
from numpy.typing import NDArray

from searchlab.errors import CursorError, DataError
from searchlab.filters import PhotoFilter
from searchlab.queries import Query

KEY_BYTES = 32


@dataclass(frozen=True, kw_only=True)
class Cursor:
    """Where to go on.

    Attributes:
        query: The query without its picture.
        vector: (dim,) float32 embedding of the picture that page 1 used; None without one.
        position: Results already given.
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

    def seal(self, key: bytes) -> str:
        """Return the token; only `unseal` with the same key and audience opens it."""
        query = self.query
        values: dict[str, Any] = {
            "n": self.position,
            "p": self.per_page,
            "s": self.snapshot_id,
            "c": self.config_id,
            "q": query.text,
            "i": query.photo_id,
            "a": query.text_alpha,
            "f": query.filter.to_dict(),
            "o": query.sort_by,
            "t": query.score_threshold,
            "l": query.limit,
        }
        if self.vector is not None:
            values["v"] = base64.b85encode(self.vector.astype("<f4").tobytes()).decode()
        token = _serializer(key, self.audience).dumps(
            {k: v for k, v in values.items() if v is not None}
        )
        return str(token)

    @classmethod
    def unseal(cls, token: str, key: bytes, *, audience: str) -> Cursor:
        """Open a token.

        Raises:
            CursorError: Not a token of this library, account and operation, letter for letter.
        """
        serializer = _serializer(key, audience)
        try:
            values = serializer.loads(token)
            # Base64 has several spellings for the same bytes; only ours is accepted.
            if serializer.dumps(values) != token:
                msg = "the same token must be spelt the same"
                raise BadData(msg)
            vector = None
            if "v" in values:
                vector = np.frombuffer(base64.b85decode(values["v"]), dtype="<f4")
            return cls(
                query=_query(values, vector),
                vector=vector,
                position=values["n"],
                per_page=values["p"],
                snapshot_id=values["s"],
                config_id=values["c"],
                audience=audience,
            )
        except (BadData, KeyError, TypeError, ValueError, binascii.Error) as error:
            msg = "cursor must be the next_cursor of a page of this search, got another text"
            raise CursorError(msg) from error


def _serializer(key: bytes, audience: str) -> URLSafeSerializer:
    return URLSafeSerializer(key, salt=f"searchlab.cursor:{audience}")


def _query(values: dict[str, Any], vector: NDArray[np.float32] | None) -> Query:
    from PIL import Image

    return Query(
        text=values.get("q"),
        # A stand-in: the picture itself is never needed again, its vector is.
        image=None if vector is None or "i" in values else Image.new("RGB", (1, 1)),
        photo_id=values.get("i"),
        text_alpha=values["a"],
        filter=PhotoFilter(**values["f"]),
        sort_by=values["o"],
        score_threshold=values.get("t"),
        limit=values.get("l"),
    )


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
