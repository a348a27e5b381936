"""Refusals: a problem in words that tell a language model what to do next."""

from __future__ import annotations

from typing import Final

from searchlab.api.mcp.answers import clean_text
from searchlab.api.wire.errors import HttpProblem, Invalid

_NEXT: Final = {
    "NOT_FOUND": "Use an identifier that an answer has shown; do not guess one.",
    "FORBIDDEN": "Work with collections that list_collections shows, or tell the person.",
    "LIMIT_REACHED": "Ask the person what may be deleted.",
    "CONFLICT": "Nothing needs to be done: it is there already.",
    "CURSOR_EXPIRED": "Call again without cursor, with the search's own arguments.",
    "PAYLOAD_TOO_LARGE": "Scale the picture down to 1,000 pixels a side, and send it again.",
    "UNSUPPORTED_MEDIA_TYPE": "Send a JPEG, PNG, WebP or AVIF file.",
    "QUOTA_EXCEEDED": "Stop searching and tell the person; get_photo, facets and collections still "
    "work.",
    "RATE_LIMITED": "Wait before the next call.",
    "OVERLOADED": "Wait a moment and call again.",
}


def explain(problem: HttpProblem | Invalid, request_id: str) -> str:
    """Say what is wrong and what to do."""
    if isinstance(problem, Invalid):
        wrong = "; ".join(detail.msg for detail in problem.details)
        return clean_text(f"Not valid: {wrong}. Correct the arguments and call again.")
    code = problem.kind.code
    todo = _NEXT.get(code, f"Do not repeat it; report the request {request_id} to the person.")
    wait = problem.headers.get("Retry-After")
    later = "" if wait is None else f" Not before {wait} seconds have passed."
    return clean_text(f"{code}: {problem.message}. {todo}{later}")
