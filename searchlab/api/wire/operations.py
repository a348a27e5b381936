"""Operation: the description of a route, from which the API reference is made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

_OPT = "operation"


@dataclass(frozen=True, kw_only=True)
class Operation:
    """The description of a route in the API reference.

    Attributes:
        operation_id: Camel-case name, such as `searchPhotosByText`.
        summary: One line.
        description: Further sentences, where one line is not enough.
        parameters: The Struct that `parameters.read` reads; path parameters are in the path.
        body: The Struct that `parameters.read_body` reads.
        picture: Whether the body is a picture in multipart/form-data.
        data: Type of the envelope's `data`, as in `wire/schema.py`.
        paginated: Whether the answer has `pagination`.
        replayable: Whether the operation takes an `Idempotency-Key`.
        problems: Error codes that it may answer, besides those of every operation.
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
        """The value for the `opt` of a Litestar handler."""
        return {_OPT: self}


def operation_of(opt: dict[str, Any]) -> Operation | None:
    """Find the operation of a handler in its `opt`; None outside the API."""
    return opt.get(_OPT)
