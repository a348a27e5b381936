"""The reference as an OpenAPI 3.1 document, made from the code that answers requests.

Operations come from the routes, parameters and bodies from the Structs that check them, errors from
the one table of problems, so the reference cannot contradict the code.

Litestar's own generator reads signatures, and these routes take a request and return bytes: of 42
query parameters, 212 answers and 27 schemas it describes none, 30 and one. A route cannot add the
rest by hand either: there is no place for the headers of a failed answer, such as Retry-After.
"""

from __future__ import annotations

import re
import secrets
from typing import Any

import msgspec
from litestar import Litestar
from litestar.handlers import HTTPRouteHandler
from litestar.routes import HTTPRoute

from searchlab.api.accounts.idempotency import IDEMPOTENCY_KEY
from searchlab.api.docs.openapi_answers import (
    HEADERS,
    describe_errors,
    describe_failures,
    describe_schemas,
    describe_success,
    make_example,
    refer_to,
)
from searchlab.api.docs.openapi_service import SERVICE_PATHS
from searchlab.api.routes.system import Health
from searchlab.api.settings import API_PREFIX, API_VERSION
from searchlab.api.wire.operations import Operation, operation_of
from searchlab.api.wire.requests import NO_NUL
from searchlab.photos.photo import PHOTO_FIELDS

_TAGS = {
    "search": ("Search", "Find photos by what they show and by their metadata."),
    "photos": ("Photos", "One photo, and those similar to it."),
    "facets": ("Facets", "The values that the filters accept."),
    "collections": ("Collections", "Named sets of photos, owned by the account."),
    "usage": ("Usage", "The account's searches, counted."),
}
_SERVICE = ("Service", "Pictures, health and metrics; no key is needed.")
_IN_PATH: dict[str, dict[str, Any]] = {
    "photo_id": {
        "description": "`photo_id` of an indexed photo.",
        "schema": {"type": "string", "minLength": 1},
        "example": "0f3d2c1b-5a4e-5c6d-8b7a-9f8e7d6c5b4a",
    },
    "collection_id": {"schema": {"type": "integer"}, "example": 7},
    "username": {
        "description": "Exact username, percent-encoded, slashes too.",
        "schema": {"type": "string", "minLength": 1},
        "example": "annlee",
    },
}
_FIELD = rf"\s*({'|'.join(PHOTO_FIELDS)})\s*"
_FIELDS = f"^{_FIELD}(,{_FIELD})*$"
_ABOUT = """Search over free-licence stock photos by meaning, by picture and by filters.

Every answer comes in one envelope: `success`, `data`, `meta`, `error` and `pagination`. A failed
validation alone is 422 with `{"detail": [{"loc", "msg", "type"}]}`.

Every error code is explained, with an example and what to do, at [/docs/errors](/docs/errors).

Keys are made with `searchlab keys create` and sent in the header `x-api-key`.

Parameters of other names than those described here are ignored, as are those of the pages and of
the command line that the API does not have, such as `before_date` and `palette`. Beside a `cursor`
those of a search are ignored, too: the cursor holds them.
"""


def place_document(document: dict[str, Any], *, base_url: str) -> dict[str, Any]:
    """Return a copy of a document that names the address of its service."""
    errors_at = f"{base_url}/docs/errors"
    about = _ABOUT.replace("(/docs/errors)", f"({errors_at})")
    return document | {
        "servers": [{"url": base_url}],
        "externalDocs": {"description": "Every error code", "url": errors_at},
        "info": document["info"] | {"description": about},
    }


class EncodedDocument:
    """A document as JSON, encoded once for every address that its service may have."""

    def __init__(self, document: dict[str, Any]) -> None:
        base = secrets.token_hex(16)  # a placeholder that cannot occur in the document
        encoded = msgspec.json.encode(place_document(document, base_url=base))
        self._parts = encoded.split(base.encode())

    def place(self, *, base_url: str) -> bytes:
        """Return the document as JSON for a service at this address."""
        return msgspec.json.encode(base_url)[1:-1].join(self._parts)


def build_document(app: Litestar) -> dict[str, Any]:
    """Describe an application's routes that have an `Operation`, and the service's own paths."""
    paths: dict[str, dict[str, Any]] = {}
    operations = []
    for path, method, handler in sorted(list_places(app), key=lambda place: _order(*place[:2])):
        operation = operation_of(handler.opt)
        if operation is not None:
            operations.append(operation)
            paths.setdefault(path, {})[method] = _describe(operation, path, method)
    bodies = [operation.body for operation in operations if operation.body is not None]
    tags = [*_TAGS.values(), _SERVICE]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Stock Image Semantic Search API",
            "version": API_VERSION,
            "description": _ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"ApiKey": []}],
        "tags": [{"name": name, "description": description} for name, description in tags],
        "paths": paths | SERVICE_PATHS,
        "components": {
            "securitySchemes": {
                "ApiKey": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "x-api-key",
                    "description": "Made with `searchlab keys create`; works at once.",
                }
            },
            "headers": HEADERS,
            "responses": describe_errors(),
            "schemas": describe_schemas(
                [*(operation.data for operation in operations), *bodies, Health]
            ),
        },
    }


def list_places(app: Litestar) -> list[tuple[str, str, HTTPRouteHandler]]:
    """List the paths that an application answers, the methods in lower case, and their handlers."""
    return [
        (route.path_format, str(method).lower(), handler)
        for route in app.routes
        if isinstance(route, HTTPRoute)
        for handler in route.route_handlers
        for method in sorted(handler.http_methods - {"OPTIONS"})
    ]


def _section(path: str) -> str:
    return path.removeprefix(API_PREFIX).partition("/")[2].partition("/")[0]


def _order(path: str, method: str) -> tuple[int, str, int]:
    sections, methods = list(_TAGS), ["get", "post", "delete"]
    section = _section(path)
    at = sections.index(section) if section in sections else len(sections)
    return at, path, methods.index(method) if method in methods else len(methods)


def _describe(operation: Operation, path: str, method: str) -> dict[str, Any]:
    section = _section(path)
    names = re.findall(r"\{(\w+)\}", path)
    cached = method == "get" and section in {"facets", "photos"} and not operation.paginated
    parameters = [
        {"name": name, "in": "path", "required": True, **_IN_PATH[name]} for name in names
    ]
    if operation.parameters is not None:
        parameters += _describe_query(operation.parameters)
    if operation.replayable:
        parameters.append(_IDEMPOTENCY_KEY)
    checked = bool(parameters) or operation.body is not None
    if cached:
        parameters.append(_IF_NONE_MATCH)
    description: dict[str, Any] = {
        "operationId": operation.operation_id,
        "tags": [_TAGS[section][0]],
        "summary": operation.summary,
        "parameters": parameters,
        "responses": {
            **describe_success(operation, cached=cached),
            **describe_failures(operation, checked=checked),
        },
    }
    if operation.description:
        description["description"] = operation.description
    body = _describe_body(operation)
    return description | ({"requestBody": body} if body else {})


_IDEMPOTENCY_KEY = {
    "name": IDEMPOTENCY_KEY,
    "in": "header",
    "description": "1 to 255 visible ASCII characters that you choose. The same key with the same "
    "request within 24 hours gets the first successful answer again, and nothing is done twice; "
    "after a failure the request is tried again.",
    "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
}
_IF_NONE_MATCH = {
    "name": "If-None-Match",
    "in": "header",
    "description": "`ETag` of an earlier answer; answers 304 if that is still up to date.",
    "schema": {"type": "string"},
}


def _describe_query(struct: type[msgspec.Struct]) -> list[dict[str, Any]]:
    """Describe the fields of a Struct as query parameters."""
    _, components = msgspec.json.schema_components([struct])
    whole = components[struct.__name__]
    return [
        _describe_parameter(name, schema, required=name in whole["required"])
        for name, schema in whole["properties"].items()
    ]


def _describe_parameter(name: str, schema: dict[str, Any], *, required: bool) -> dict[str, Any]:
    # A parameter is left out, never null.
    kinds = [kind for kind in schema.get("anyOf", [schema]) if kind.get("type") != "null"]
    outer = dict(kinds[0])
    items = dict(outer["items"]) if "items" in outer else {}
    description, examples = (
        outer.pop(key, None) or items.pop(key, None) for key in ("description", "examples")
    )
    if items:
        outer["items"] = items
    if outer.get("default") in (None, ()):
        outer.pop("default", None)
    if name == "fields":
        outer["pattern"] = _FIELDS
    text = items or outer
    if text["type"] == "string" and not {"enum", "format", "pattern"} & set(text):
        text["pattern"] = NO_NUL
    parameter: dict[str, Any] = {"name": name, "in": "query", "required": required, "schema": outer}
    if items:
        parameter |= {"style": "form", "explode": True}
    if description:
        parameter["description"] = description
    if examples:
        values = [[example] if items else example for example in examples]
        parameter["examples"] = {f"example{n}": {"value": v} for n, v in enumerate(values, start=1)}
    return parameter


def _describe_body(operation: Operation) -> dict[str, Any]:
    if operation.picture:
        kinds = "image/jpeg, image/png, image/webp, image/avif"
        image = {
            "type": "string",
            "format": "binary",
            "description": "JPEG, PNG, WebP or AVIF, recognised by its content.",
        }
        # A form without parts counts as no body; parts of other names are ignored, but for those
        # of the query. A schema that says which makes tools send just them: so words do.
        either = [{"required": ["image"]}, {"maxProperties": 0}]
        form = {
            "schema": {"type": "object", "properties": {"image": image}, "anyOf": either},
            "encoding": {"image": {"contentType": kinds}},
        }
        return {
            "required": False,
            "description": "The picture; no body with `photo_id` or `cursor`. Parameters of the "
            "query are refused as parts of the body.",
            "content": {"multipart/form-data": form},
        }
    if operation.body is None:
        return {}
    example = {
        name: _IN_PATH[name]["example"] if name in _IN_PATH else value
        for name, value in make_example(operation.body).items()
        if value is not None
    }
    content = {"schema": refer_to(operation.body), "example": example}
    return {"required": True, "content": {"application/json": content}}
