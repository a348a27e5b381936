"""The answers of operations as OpenAPI describes them: envelopes, errors, headers and examples."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from searchlab.api.http.caching import CACHE_CONTROL
from searchlab.api.wire.errors import KINDS, Kind
from searchlab.api.wire.operations import Operation
from searchlab.api.wire.schema import AnswerMeta, Failure, Pagination, Photo, Refusal

_SCHEMAS = "#/components/schemas/{name}"
_JSON = "application/json"
_OF_EVERY_OPERATION = (
    "BAD_REQUEST",
    "UNAUTHORIZED",
    "URI_TOO_LONG",
    "RATE_LIMITED",
    "HEADERS_TOO_LARGE",
    "INTERNAL_ERROR",
    "OVERLOADED",
)
_REQUEST_ID = "0b6c8a52-3f1d-4f6e-9c0a-7d2e5b8f4a13"
_DETAILS: dict[str, dict[str, Any]] = {
    "INVALID_FIELDS": {"accepted": ["photo_id", "source_photo_id", "image_url"]},
    "QUOTA_EXCEEDED": {"plan": "free", "limit": 5000},
}
_META = {"request_id": _REQUEST_ID, "took_ms": 1.4}


def _header(description: str, example: str | int, **schema: Any) -> dict[str, Any]:
    kind = "integer" if isinstance(example, int) else "string"
    return {"description": description, "schema": {"type": kind, **schema}, "example": example}


HEADERS: dict[str, Any] = {
    "X-Request-Id": _header(
        "`meta.request_id`; an answer that is sent again has the one of the first request there.",
        _REQUEST_ID,
        format="uuid",
    ),
    "RateLimit-Policy": _header(
        "How many requests the key may send at once, and how many searches the account has a "
        "month.",
        '"burst";q=400;w=2, "month";q=5000;w=2592000',
    ),
    "RateLimit": _header(
        "What is left of both, and the seconds until they are full again.",
        '"burst";r=399;t=1, "month";r=4999;t=864000',
    ),
    "Server-Timing": _header(
        "Milliseconds by part of the work.", "search;dur=0.412, serialise;dur=0.057, total;dur=1.4"
    ),
    "ETag": _header("Tag of `data`; weak, since `meta` differs.", 'W/"5d41402abc4b2a76b9719d91"'),
    "Cache-Control": _header("Who may cache the answer, and how long.", CACHE_CONTROL),
    "Retry-After": _header("Seconds to wait.", 1, minimum=0),
    "WWW-Authenticate": _header("How to send the key.", 'ApiKey header="x-api-key"'),
    "Idempotency-Replayed": _header("`true` on an answer that is sent again.", "true"),
    "X-Searchlab-Config": _header("The configuration of the search.", "ddd102c1"),
    "X-Searchlab-Snapshot": _header("The snapshot of the library.", "000012-5d41402a"),
    "X-Searchlab-Plan": _header(
        "How the query was answered, over how many photos, and their share of all.",
        "exact; candidates=602; selectivity=1.000000",
    ),
}


def _refer_to(*names: str, may: tuple[str, ...] = ()) -> dict[str, Any]:
    always = {name: {"$ref": f"#/components/headers/{name}"} for name in ("X-Request-Id", *names)}
    return always | {name: {"$ref": f"#/components/headers/{name}"} for name in may}


def refer_to(kind: Any) -> dict[str, Any]:
    """Make the reference to the schema of a type, which `describe_schemas` describes."""
    (schema,), _ = msgspec.json.schema_components([kind], ref_template=_SCHEMAS)
    return schema


def describe_success(operation: Operation, *, cached: bool) -> dict[str, Any]:
    """Describe the answer 200 of an operation, and 304 where it is `cached`."""
    envelope = {
        "success": {"const": True},
        "data": refer_to(operation.data),
        "meta": refer_to(AnswerMeta),
        "error": {"type": "null"},
        "pagination": refer_to(Pagination) if operation.paginated else {"type": "null"},
    }
    example = {
        "success": True,
        "data": make_example(operation.data),
        "meta": _META,
        "error": None,
        "pagination": make_example(Pagination) if operation.paginated else None,
    }
    names = ["RateLimit", "RateLimit-Policy", "Cache-Control"]
    if operation.paginated:
        names += ["X-Searchlab-Config", "X-Searchlab-Snapshot", "X-Searchlab-Plan"]
    may = ["Server-Timing", *(["Idempotency-Replayed"] if operation.replayable else [])]
    if operation.paginated and operation.replayable:
        # An answer that is sent again comes without the headers of a search.
        names, may = names[:3], [*may, *names[3:]]
    if cached:
        names.append("ETag")
    answers = {
        "200": {
            "description": operation.summary,
            "headers": _refer_to(*names, may=tuple(may)),
            "content": {
                _JSON: {
                    "schema": {
                        "type": "object",
                        "properties": envelope,
                        "required": list(envelope),
                    },
                    "example": example,
                }
            },
        }
    }
    if cached:
        answers["304"] = {
            "description": "The earlier answer is still up to date; no body.",
            "headers": _refer_to("ETag", "Cache-Control", "RateLimit", "RateLimit-Policy"),
        }
    return answers


def describe_failures(operation: Operation, *, checked: bool) -> dict[str, Any]:
    """Describe the errors of an operation; 422 only if it validates input (`checked`)."""
    codes = {*_OF_EVERY_OPERATION, *operation.problems}
    if operation.replayable:
        codes.add("REQUEST_IN_FLIGHT")
    by_status: dict[int, list[Kind]] = {}
    for kind in KINDS.values():
        if kind.code in codes:
            by_status.setdefault(kind.status, []).append(kind)
    answers = {
        str(status): {"$ref": f"#/components/responses/{kinds[0].code}"}
        if len(kinds) == 1
        else _describe_failure(kinds)
        for status, kinds in by_status.items()
    }
    if checked:
        answers["422"] = {"$ref": "#/components/responses/INVALID"}
    return dict(sorted(answers.items()))


def _describe_failure(kinds: list[Kind]) -> dict[str, Any]:
    code = {"enum": [kind.code for kind in kinds]}
    envelope = {
        "success": {"const": False},
        "data": {"type": "null"},
        "meta": refer_to(AnswerMeta),
        "error": {"allOf": [refer_to(Failure), {"properties": {"code": code}}]},
        "pagination": {"type": "null"},
    }
    examples = {
        kind.code: {
            "summary": kind.meaning,
            "value": {
                "success": False,
                "data": None,
                "meta": _META,
                "error": {
                    "code": kind.code,
                    "message": kind.example,
                    "details": _DETAILS.get(kind.code, {}),
                },
                "pagination": None,
            },
        }
        for kind in kinds
    }
    names = ["WWW-Authenticate"] if kinds[0].status == 401 else []
    may = ["RateLimit", "RateLimit-Policy"]
    if kinds[0].status in {429, 503}:
        names.append("Retry-After")
    if kinds[0].status == 409:
        may.append("Retry-After")
    schema = {"type": "object", "properties": envelope, "required": list(envelope)}
    return {
        "description": "\n".join(f"`{k.code}`: {k.meaning} {k.fix}" for k in kinds),
        "headers": _refer_to(*names, may=tuple(may)),
        "content": {_JSON: {"schema": schema, "examples": examples}},
    }


def describe_errors() -> dict[str, Any]:
    """Describe every error by its code, and a failed validation as `INVALID`."""
    msg = "per_page must be an integer <= 100, got 101"
    example = {"detail": [{"loc": ["query", "per_page"], "msg": msg, "type": "out_of_range"}]}
    invalid = {
        "description": "A value is missing, of the wrong type, out of range or cannot be combined.",
        "headers": _refer_to(may=("RateLimit", "RateLimit-Policy")),
        "content": {_JSON: {"schema": refer_to(Refusal), "example": example}},
    }
    return {code: _describe_failure([kind]) for code, kind in KINDS.items()} | {"INVALID": invalid}


def describe_schemas(types: Iterable[Any]) -> dict[str, Any]:
    """Describe types, and the types of their fields, by name."""
    every = [*types, AnswerMeta, Pagination, Failure, Refusal]
    _, components = msgspec.json.schema_components(every, ref_template=_SCHEMAS)
    if Photo.__name__ in components:
        # The parameter `fields` may leave out any field.
        del components[Photo.__name__]["required"]
    return dict(sorted(components.items()))


def make_example(kind: Any) -> Any:
    """Make an example value of a type from the examples of its fields."""
    (schema,), components = msgspec.json.schema_components([kind], ref_template="{name}")
    return _make_example(schema, components)


def _make_example(schema: dict[str, Any], components: dict[str, Any]) -> Any:
    if "$ref" in schema:
        return _make_example(components[schema["$ref"]], components)
    for keyword in ("examples", "enum"):
        if keyword in schema:
            return schema[keyword][0]
    for keyword in ("const", "default"):
        if keyword in schema:
            return schema[keyword]
    if "anyOf" in schema:
        return _make_example(schema["anyOf"][0], components)
    if schema["type"] == "object":
        fields = schema.get("properties", {})
        return {name: _make_example(field, components) for name, field in fields.items()}
    if schema["type"] == "array":
        return [_make_example(schema["items"], components)]
    return {"integer": 1, "number": 1.0, "boolean": False, "null": None}.get(schema["type"], "")
