"""Metadata: what a client reads first, to learn where to ask (RFC 9728 and RFC 8414)."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from litestar import Request, Response, get
from litestar.enums import MediaType
from litestar.params import FromPath

from searchlab.api.oauth.addresses import (
    AUTHORIZATION_SERVER,
    PROTECTED_RESOURCE,
    check_host,
    issuer_of,
    resource_of,
)
from searchlab.api.oauth.scopes import SCOPES
from searchlab.api.wire.errors import HttpProblem

AnyRequest = Request[Any, Any, Any]

_HEADERS: Final = {"Cache-Control": "public, max-age=300"}


@get([PROTECTED_RESOURCE, f"{PROTECTED_RESOURCE}/{{path:path}}"])
async def show_resource(request: AnyRequest, path: FromPath[str] = "") -> Response[bytes]:
    """Describe the tool server, and say who issues tokens for it."""
    resource = resource_of(request)
    _check_path(path, resource)
    return _answer(
        request,
        {
            "resource": resource,
            "authorization_servers": [issuer_of(request)],
            "scopes_supported": list(SCOPES),
            "bearer_methods_supported": ["header"],
            "resource_name": "searchlab",
            "resource_documentation": f"{issuer_of(request)}/docs/mcp",
        },
    )


@get([AUTHORIZATION_SERVER, f"{AUTHORIZATION_SERVER}/{{path:path}}"])
async def show_issuer(request: AnyRequest, path: FromPath[str] = "") -> Response[bytes]:
    """Describe who issues tokens."""
    issuer = issuer_of(request)
    _check_path(path, issuer)
    return _answer(
        request,
        {
            "issuer": issuer,
            "authorization_endpoint": f"{issuer}/connect",
            "token_endpoint": f"{issuer}/oauth/token",
            "revocation_endpoint": f"{issuer}/oauth/revoke",
            "registration_endpoint": f"{issuer}/oauth/register",
            "scopes_supported": list(SCOPES),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": ["none"],
            "revocation_endpoint_auth_methods_supported": ["none"],
            "code_challenge_methods_supported": ["S256"],
            "client_id_metadata_document_supported": True,
            "authorization_response_iss_parameter_supported": True,
            "service_documentation": f"{issuer}/docs/mcp",
        },
    )


def _check_path(path: str, address: str) -> None:
    """Refuse metadata of another address: a client must not take ours for it.

    Raises:
        HttpProblem: The path is not that of the address (404).
    """
    if path.strip("/") not in {"", urlsplit(address).path.strip("/")}:
        msg = f"metadata are those of {address}, got a path of another address"
        raise HttpProblem(msg, "NOT_FOUND")


def _answer(request: AnyRequest, metadata: dict[str, Any]) -> Response[bytes]:
    check_host(request)
    body = msgspec.json.encode(metadata)
    return Response(body, media_type=MediaType.JSON, headers=_HEADERS)


ROUTES: Final = [show_resource, show_issuer]
