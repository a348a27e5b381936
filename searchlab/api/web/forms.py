"""Forms: the fields that a page sends by POST, within limits."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

from litestar import Request

from searchlab.api.http.bodies import JSON_S, IncomingBody
from searchlab.api.wire.errors import HttpProblem, invalid

MAX_FORM_BYTES = 64 * 1024
_MAX_FIELDS = 500
_TYPE = "application/x-www-form-urlencoded"


class FormFields(dict[str, list[str]]):
    """The fields of a form, each with all of its values in their order."""

    def first(self, name: str, default: str = "") -> str:
        """Return the first value of a field; the default if it did not come."""
        return self.get(name, [default])[0]


async def read_form(
    request: Request[Any, Any, Any], *, max_bytes: int = MAX_FORM_BYTES
) -> FormFields:
    """Read the body of a form that was sent by POST.

    Args:
        request: The request.
        max_bytes: Most bytes, of which a letter takes up to twelve.

    Raises:
        HttpProblem: It has another content type (415), or too many bytes (413).
        Invalid: It is not UTF-8, holds NUL, has too many fields, or comes too slowly.
    """
    body = IncomingBody(request, max_bytes, whole_s=JSON_S)
    if request.headers.get("content-type", "").split(";")[0].strip().lower() != _TYPE:
        msg = f"the form must come as {_TYPE}, got another content type"
        raise HttpProblem(msg, "UNSUPPORTED_MEDIA_TYPE")
    body.check_announced()
    return _parse(b"".join([chunk async for chunk in body.chunks()]))


def _parse(content: bytes) -> FormFields:
    try:
        pairs = parse_qsl(
            content.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS
        )
    except UnicodeDecodeError:
        raise invalid(("body",), "the form must be UTF-8, got other bytes", "utf8") from None
    except ValueError:
        msg = f"the form must have at most {_MAX_FIELDS} fields, got more"
        raise invalid(("body",), msg, "too_many") from None
    form = FormFields()
    for name, value in pairs:
        if "\0" in name or "\0" in value:
            msg = "a field must be text without NUL, got one with it"
            raise invalid(("body", name.replace("\0", "")), msg, "string_unicode")
        form.setdefault(name, []).append(value)
    return form
