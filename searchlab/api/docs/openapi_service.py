"""The service's own paths, outside the API and without a key, as OpenAPI describes them."""

from __future__ import annotations

from typing import Any

import msgspec

from searchlab import __version__
from searchlab.api.docs.openapi_answers import refer_to
from searchlab.api.routes.system import Health
from searchlab.photos.photo import URL_SIZES

_TAGS = ["Service"]
_OPEN: list[Any] = []
_REQUEST_ID = {"X-Request-Id": {"$ref": "#/components/headers/X-Request-Id"}}
_FAILURES = {
    "400": "BAD_REQUEST",
    "404": "NOT_FOUND",
    "414": "URI_TOO_LONG",
    "431": "HEADERS_TOO_LARGE",
    "500": "INTERNAL_ERROR",
    "503": "OVERLOADED",
}
_OF_ALL = ("400", "414", "431", "500")
_HEALTHY = Health(
    status="ok",
    ready=True,
    problems=[],
    version=__version__,
    snapshot_id="000012-5d41402a",
    config_id="ddd102c1",
    n_photos=602,
)
_NOT_READY = msgspec.structs.replace(
    _HEALTHY,
    status="not ready",
    ready=False,
    problems=["the database is locked by another process"],
)
_PICTURES = ("image/jpeg", "image/png", "image/webp", "image/avif", "image/gif", "image/tiff")


def _describe_failures(*more: str) -> dict[str, Any]:
    statuses = (*_OF_ALL, *more)
    return {
        status: {"$ref": f"#/components/responses/{code}"}
        for status, code in _FAILURES.items()
        if status in statuses
    }


def _header(description: str) -> dict[str, Any]:
    return {"description": description, "schema": {"type": "string"}}


def _describe_picture(description: str, **more: dict[str, Any]) -> dict[str, Any]:
    headers = {
        "ETag": _header("Tag of the picture's bytes; strong."),
        "Cache-Control": {"$ref": "#/components/headers/Cache-Control"},
        "Accept-Ranges": _header("`bytes`."),
    }
    return {
        "description": description,
        "headers": _REQUEST_ID | headers | more,
        "content": {kind: {} for kind in _PICTURES},
    }


def _describe_state(
    operation_id: str, summary: str, *answers: tuple[int, str, Health]
) -> dict[str, Any]:
    return {
        "get": {
            "operationId": operation_id,
            "tags": _TAGS,
            "summary": summary,
            "security": _OPEN,
            "responses": {
                str(status): {
                    "description": description,
                    "headers": _REQUEST_ID,
                    "content": {
                        "application/json": {
                            "schema": refer_to(Health),
                            "example": msgspec.to_builtins(example),
                        }
                    },
                }
                for status, description, example in answers
            }
            | _describe_failures(),
        }
    }


SERVICE_PATHS: dict[str, Any] = {
    "/media/{photo_id}/{size}": {
        "get": {
            "operationId": "getPicture",
            "tags": _TAGS,
            "summary": "Get the picture of a photo",
            "description": "The addresses in `urls` lead here for photos that the service itself "
            "keeps. With their parameter `v` they may be cached for ever.",
            "security": _OPEN,
            "parameters": [
                {
                    "name": "photo_id",
                    "in": "path",
                    "required": True,
                    "schema": {"type": "string", "minLength": 1},
                },
                {
                    "name": "size",
                    "in": "path",
                    "required": True,
                    "schema": {"enum": list(URL_SIZES)},
                    "example": "regular",
                },
                {
                    "name": "v",
                    "in": "query",
                    "description": "Version of the picture, as in `urls`.",
                    "schema": {"type": "string"},
                },
                {
                    "name": "If-None-Match",
                    "in": "header",
                    "schema": {"type": "string"},
                },
                {
                    "name": "Range",
                    "in": "header",
                    "schema": {"type": "string"},
                    "example": "bytes=0-1023",
                },
                {
                    "name": "If-Range",
                    "in": "header",
                    "description": "Tag of the picture that the part is for; of another one, the "
                    "whole is sent.",
                    "schema": {"type": "string"},
                },
            ],
            "responses": {
                "200": _describe_picture("The picture."),
                "206": _describe_picture(
                    "The part that `Range` asks for.",
                    **{"Content-Range": _header("Which bytes, and of how many.")},
                ),
                "304": {"description": "The earlier picture is still up to date; no body."},
                "416": {"description": "The picture is shorter than `Range` asks for."},
            }
            | _describe_failures("404", "503"),
        }
    },
    "/health": _describe_state(
        "getHealth", "Whether the server lives", (200, "The server lives.", _HEALTHY)
    ),
    "/ready": _describe_state(
        "getReadiness",
        "Whether the server can search and count, which it proves by a write",
        (200, "The server is ready.", _HEALTHY),
        (503, "The server lives, but something is wrong.", _NOT_READY),
    ),
    "/metrics": {
        "get": {
            "operationId": "getMetrics",
            "tags": _TAGS,
            "summary": "Metrics of all workers, for Prometheus",
            "security": _OPEN,
            "responses": {
                "200": {
                    "description": "The text format of Prometheus.",
                    "headers": _REQUEST_ID,
                    "content": {"text/plain": {"schema": {"type": "string"}}},
                }
            }
            | _describe_failures(),
        }
    },
}
