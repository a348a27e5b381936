"""Operation: what a route says of itself, for the reference that is made from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

_OPT = "operation"


@dataclass(frozen=True, kw_only=True)
class Operation:
    """What the reference says about a route.

    Attributes:
        operation_id: Camel-case name, such as `searchPhotosByText`.
        summary: A line.
        description: More, where more is to be said.
        parameters: The Struct that `parameters.read` reads; path parameters are in the path.
        body: The Struct that `parameters.read_body` reads.
        picture: Whether the body is a picture in multipart/form-data.
        data: Type of the envelope's `data`, as in `wire/schema.py`.
        paginated: Whether `pagination` is present.
        replayable: Whether `Idempotency-Key` is honoured.
        problems: Codes that may come, besides those of every operation.
    """

    operation_id: str
    summary: str
    description: str = ""
    parameters: type[msgspec.Struct] | None = None
    body: type[msgspec.Struct] | None = None
    picture: bool = False
    data: Any = None
    paginated: bool = False
    replayable: bool = False
    problems: tuple[str, ...] = field(default=())

    @property
    def opt(self) -> dict[str, Any]:
        """For the `opt` of a Litestar handler."""
        return {_OPT: self}


def operation_of(opt: dict[str, Any]) -> Operation | None:
    """Find the operation of a handler in its `opt`; None outside the API."""
    return opt.get(_OPT)
