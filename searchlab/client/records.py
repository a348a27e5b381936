"""What only clients need beside the wire schema: the envelope as a type, photos that show."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from searchlab.api.wire import schema

T = TypeVar("T")


class Envelope(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """What every successful answer is wrapped in."""

    success: bool
    data: T
    meta: schema.AnswerMeta
    error: Any = None
    pagination: schema.Pagination | None = None


class Photo(schema.Photo, frozen=True, kw_only=True, repr_omit_defaults=True):
    """One photo; fields that the request did not ask for are `msgspec.UNSET`.

    `width` and `height` are pixels, `relevance_score` is 0 to 1, `color_hex` is `#` and six digits.
    """

    def _repr_html_(self) -> str:
        from searchlab.client.grids import grid_html

        return grid_html([self])
