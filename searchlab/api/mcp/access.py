"""Access to the tools: whose token a request brings, and what it allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from searchlab.api.http.admission import admit, look_up
from searchlab.api.http.context import context_of, services_of
from searchlab.api.mcp.calls import AnyRequest
from searchlab.api.oauth.addresses import check_host, check_origin, metadata_url_of, resource_of
from searchlab.api.oauth.scopes import SEARCH
from searchlab.api.oauth.tokens import Grant, challenge
from searchlab.api.wire.errors import HttpProblem

if TYPE_CHECKING:
    from searchlab.api.mcp.tool import Tool

MAX_BODY_BYTES: Final = 4 * 2**20
"""Most bytes of a message, a picture in it included; larger ones are sent to an address."""
_GRANT: Final = "searchlab.grant"


async def admit_client(request: AnyRequest) -> None:
    """Find the grant that a request's token stands for, and admit its caller.

    Raises:
        HttpProblem: No token is in force (401, with a challenge), another server's host or a
            foreign origin (403), or what `admit` refuses.
    """
    check_host(request)
    check_origin(request)
    token = _read_token(request)
    grant = await _find(request, token) if token else None
    if grant is None:
        services_of(request).metrics.count_refusal("token")
        error = "invalid_token" if token else ""
        came = "another" if token else "none"
        msg = f"Authorization must bring an access token in force, got {came}; sign in again"
        header = challenge(metadata_url_of(request), SEARCH, error=error)
        raise HttpProblem(msg, "UNAUTHORIZED", headers={"WWW-Authenticate": header})
    request.scope["state"][_GRANT] = grant
    await admit(services_of(request), context_of(request), grant.caller)


def _read_token(request: AnyRequest) -> str:
    values = request.headers.getall("authorization", [])
    scheme, _, token = values[0].partition(" ") if len(values) == 1 else ("", "", "")
    return token.strip() if scheme.lower() == "bearer" else ""


async def _find(request: AnyRequest, token: str) -> Grant | None:
    services, resource = services_of(request), resource_of(request)
    known = services.tokens.recall(token, resource)
    if known is not None:
        return known
    return await look_up(
        services, request.scope, lambda secret: services.tokens.resolve(secret, resource), token
    )


def grant_of(request: AnyRequest) -> Grant:
    """Return the grant of an admitted request."""
    grant: Grant = request.scope["state"][_GRANT]
    return grant


def check_scope(request: AnyRequest, tool: Tool) -> None:
    """Refuse the call of a tool that the client is not allowed.

    Raises:
        HttpProblem: The scope is missing (403, with a challenge that names it).
    """
    grant = grant_of(request)
    if tool.scope in grant.scopes:
        return
    services_of(request).metrics.count_refusal("scope")
    header = challenge(
        metadata_url_of(request), *grant.scopes, tool.scope, error="insufficient_scope"
    )
    msg = f"{tool.name} must be allowed with the scope {tool.scope}, got a token without it"
    raise HttpProblem(msg, "FORBIDDEN", headers={"WWW-Authenticate": header})


class _Params(msgspec.Struct, frozen=True):
    name: str = ""


class _Message(msgspec.Struct, frozen=True):
    method: str = ""
    params: _Params = _Params()


def called_tool(body: bytes) -> str:
    """Return the name of the tool that a message calls; empty if it calls none."""
    try:
        message = msgspec.json.decode(body, type=_Message)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""  # the protocol's own answer says what is wrong
    return message.params.name if message.method == "tools/call" else ""
