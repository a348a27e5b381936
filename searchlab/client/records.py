"""Records of clients alone, beside the wire schema: the envelope, and photos shown in notebooks."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from searchlab.api.wire import schema

T = TypeVar("T")


class Envelope(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """The envelope of every successful answer."""

    success: bool
    data: T
    meta: schema.AnswerMeta
    error: Any = None
    pagination: schema.Pagination | None = None


class Photo(schema.Photo, frozen=True, kw_only=True, repr_omit_defaults=True):
    """One photo; fields that were not requested are `msgspec.UNSET`.

    `width` and `height` are pixels, `relevance_score` is 0 to 1, `color_hex` is `#` and six digits.
    """

    def _repr_html_(self) -> str:
        from searchlab.client.grids import grid_html

        return grid_html([self])
