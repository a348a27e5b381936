"""Multipart bodies: the one part `image`, read from a form while it arrives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from multipart import (  # type: ignore[import-untyped]
    MultipartError,
    MultipartSegment,
    PushMultipartParser,
)

from searchlab.api.http.bodies import AnyRequest, check_content
from searchlab.api.wire.errors import Invalid, invalid
from searchlab.api.wire.requests import ImageSearch
from searchlab.api.wire.schema import Detail
from searchlab.errors import quote

PART: Final = "image"
MAX_PARTS: Final = 16
MAX_PART_HEADER_BYTES: Final = 4_096

_QUERY_PARAMETERS: Final = frozenset(ImageSearch.__struct_fields__)


class MultipartForm:
    """A multipart/form-data body, parsed while it arrives; keeps the part `image` alone."""

    def __init__(self, boundary: bytes, take: Callable[[int], None]) -> None:
        """Begin a form.

        Args:
            boundary: The bytes that separate its parts.
            take: Called with the number of bytes about to be kept; may raise to refuse them.
        """
        self._parser = PushMultipartParser(
            boundary, max_segment_count=MAX_PARTS, max_header_size=MAX_PART_HEADER_BYTES
        )
        self._take = take
        self._names: list[str] = []
        self._pieces: list[bytes] = []

    def feed(self, chunk: bytes) -> None:
        """Parse the next chunk of the body.

        Raises:
            Invalid: The form is broken, or has too many parts or too long headers.
        """
        with _multipart_errors():
            for event in self._parser.parse(chunk):
                if isinstance(event, MultipartSegment):
                    self._names.append(event.name)
                elif event and self._names[-1] == PART:
                    self._take(len(event))
                    self._pieces.append(bytes(event))

    def picture(self) -> bytes | None:
        """Return the part `image`, once the whole body is fed; None if the form has no parts.

        Raises:
            Invalid: The form is broken, or has not exactly one part `image`, or an empty one.
        """
        with _multipart_errors():
            self._parser.close()
        problems = [
            Detail(("body", name), f"{name} must be in the URL's query, got a part", "value_error")
            for name in dict.fromkeys(self._names)
            if name in _QUERY_PARAMETERS
        ]
        where, count = ("body", PART), self._names.count(PART)
        if count > 1:
            msg = f"{PART} must be one picture, got {count} parts of that name"
            problems.append(Detail(where, msg, "value_error"))
        elif self._names and not count and not problems:
            msg = f"{PART} must be a part of the body, got {quote(', '.join(self._names))}"
            problems.append(Detail(where, msg, "missing"))
        elif count and not self._pieces:
            msg = f"{PART} must hold a picture, got an empty part"
            problems.append(Detail(where, msg, "value_error"))
        if problems:
            raise Invalid(problems)
        picture = b"".join(self._pieces) if count else None
        self._pieces.clear()  # or it would be held twice as long as somebody holds the form
        return picture


@contextmanager
def _multipart_errors() -> Iterator[None]:
    try:
        yield
    except MultipartError as error:
        msg = f"body must be well-formed multipart/form-data, got: {str(error)[:100]}"
        raise invalid(("body",), msg) from None


def boundary_of(request: AnyRequest) -> bytes:
    """Check the content type of a request, and return its boundary.

    Raises:
        HttpProblem: It is not multipart/form-data, or compressed (415).
        Invalid: It has no boundary.
    """
    options = check_content(
        request, "multipart/form-data", f"multipart/form-data with a part {PART}"
    )
    boundary = options.get("boundary", "")
    if not boundary:
        msg = "body must be well-formed multipart/form-data, got a Content-Type without a boundary"
        raise invalid(("body",), msg)
    return boundary.encode("latin-1", "replace")
