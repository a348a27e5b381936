"""Endpoints for programs: tokens for codes, revocation (RFC 7009), registration (RFC 7591)."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

import msgspec
from litestar import Request, Response, Router, post
from litestar.enums import MediaType

from searchlab.api.accounts.apps import register_client
from searchlab.api.accounts.issuing import (
    ACCESS_LIFE,
    Issued,
    redeem_code,
    refresh,
    revoke_token,
)
from searchlab.api.http.bodies import JSON_S, IncomingBody
from searchlab.api.http.context import services_of
from searchlab.api.oauth.addresses import check_host, check_origin, is_resource, resource_of
from searchlab.api.oauth.clients import check_client_rate
from searchlab.api.oauth.problems import NO_STORE, OAuthProblem, RefusalCode, answer_problem
from searchlab.api.oauth.redirects import check_redirect_uris
from searchlab.api.oauth.scopes import parse_scope, write_scope
from searchlab.api.web.forms import FormFields, read_form
from searchlab.api.wire.errors import HttpProblem
from searchlab.errors import InputError

AnyRequest = Request[Any, Any, Any]

_MAX_REGISTRATION_BYTES: Final = 16 * 1024
_VERIFIER = re.compile(r"[A-Za-z0-9\-._~]{43,128}")


class _Registration(msgspec.Struct):
    redirect_uris: Annotated[list[str], msgspec.Meta(min_length=1)]
    client_name: str = "An app without a name"
    grant_types: tuple[str, ...] = ("authorization_code",)
    response_types: tuple[str, ...] = ("code",)


@post("/token", status_code=200)
async def give_tokens(request: AnyRequest) -> Response[bytes]:
    """Give tokens for a code, or for a refresh token."""
    form = await _read(request)
    _check_rate(request)
    resource = resource_of(request)
    if "resource" in form and not is_resource(form.first("resource"), resource):
        raise OAuthProblem(RefusalCode.INVALID_TARGET, f"resource must be {resource}")
    kind, services = form.first("grant_type"), services_of(request)
    issued: Issued | None
    if kind == "authorization_code":
        verifier = _required(form, "code_verifier")
        if not _VERIFIER.fullmatch(verifier):
            msg = "code_verifier must be 43 to 128 letters, digits and -._~ (RFC 7636)"
            raise OAuthProblem(RefusalCode.INVALID_REQUEST, msg)
        issued = await services.in_database(
            redeem_code,
            services.database,
            _required(form, "code"),
            client_id=_required(form, "client_id"),
            redirect_uri=_required(form, "redirect_uri"),
            verifier=verifier,
            resource=resource,
        )
    elif kind == "refresh_token":
        issued = await _refresh(request, form, resource)
    else:
        refusal = RefusalCode.UNSUPPORTED_GRANT_TYPE if kind else RefusalCode.INVALID_REQUEST
        raise OAuthProblem(refusal, "grant_type must be authorization_code or refresh_token")
    if issued is None:
        _count_failure(request)
        what = "code" if kind == "authorization_code" else "refresh_token"
        msg = f"the {what} must be in force, of this client and unused; connect again"
        raise OAuthProblem(RefusalCode.INVALID_GRANT, msg)
    return _answer(
        {
            "access_token": issued.access_token,
            "token_type": "Bearer",
            "expires_in": int(ACCESS_LIFE.total_seconds()),
            "refresh_token": issued.refresh_token,
            "scope": issued.scopes,
        }
    )


async def _refresh(request: AnyRequest, form: FormFields, resource: str) -> Issued | None:
    services = services_of(request)
    scopes = write_scope(parse_scope(form.first("scope"))) if form.first("scope") else None
    if scopes == "":
        raise OAuthProblem(RefusalCode.INVALID_SCOPE, "scope must be within what was allowed")
    try:
        return await services.in_database(
            refresh,
            services.database,
            _required(form, "refresh_token"),
            client_id=_required(form, "client_id"),
            resource=resource,
            scopes=scopes,
        )
    except InputError as error:
        raise OAuthProblem(RefusalCode.INVALID_SCOPE, str(error)) from None


@post("/revoke", status_code=200)
async def revoke(request: AnyRequest) -> Response[bytes]:
    """End a token that a client no longer needs; one that is unknown is none, too."""
    form, services = await _read(request), services_of(request)
    _check_rate(request)
    await services.in_database(
        revoke_token,
        services.database,
        _required(form, "token"),
        client_id=_required(form, "client_id"),
    )
    return _answer({})


@post("/register", status_code=201)
async def register(request: AnyRequest) -> Response[bytes]:
    """Register a client that neither has an address nor was entered in the dashboard."""
    _check_sender(request)
    services = services_of(request)
    check_client_rate(request, f"register:{services.proxies.client_of(request.scope)}")
    asked = await _read_registration(request)
    try:
        uris = check_redirect_uris(asked.redirect_uris)
    except InputError as error:
        raise OAuthProblem(RefusalCode.INVALID_REDIRECT_URI, str(error)) from None
    try:
        made = await services.in_database(
            register_client, services.database, name=asked.client_name.strip(), redirect_uris=uris
        )
    except InputError as error:
        raise OAuthProblem(RefusalCode.INVALID_CLIENT_METADATA, str(error)) from None
    if made is None:
        msg = "the server must have room for one more app, got none; try again tomorrow"
        raise OAuthProblem(RefusalCode.TEMPORARILY_UNAVAILABLE, msg, 503)
    return _answer(
        {
            "client_id": made.client_id,
            "client_id_issued_at": int(made.created_at.timestamp()),
            "client_name": made.name,
            "redirect_uris": list(made.redirect_uris),
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        },
        status=201,
    )


async def _read_registration(request: AnyRequest) -> _Registration:
    body = IncomingBody(request, _MAX_REGISTRATION_BYTES, whole_s=JSON_S)
    body.check_announced()
    content = b"".join([chunk async for chunk in body.chunks()])
    try:
        asked = msgspec.json.decode(content, type=_Registration)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        msg = f"the body must be JSON that describes a client, got: {error}"
        raise OAuthProblem(RefusalCode.INVALID_CLIENT_METADATA, msg) from None
    if "authorization_code" not in asked.grant_types or asked.response_types != ("code",):
        msg = "grant_types must have authorization_code, and response_types be ['code']"
        raise OAuthProblem(RefusalCode.INVALID_CLIENT_METADATA, msg)
    return asked


async def _read(request: AnyRequest) -> FormFields:
    """Read a form whose fields come once each, of a client that has no secret."""
    _check_sender(request)
    form = await read_form(request)
    for name, values in form.items():
        if len(values) > 1:
            raise OAuthProblem(RefusalCode.INVALID_REQUEST, f"{name} must come once, got it again")
    if "authorization" in request.headers or "client_secret" in form:
        msg = "a client must name itself with client_id alone, got a secret, which none has here"
        raise OAuthProblem(RefusalCode.INVALID_CLIENT, msg, 401)
    return form


def _check_sender(request: AnyRequest) -> None:
    check_host(request)
    check_origin(request)


def _required(form: FormFields, name: str) -> str:
    value = form.first(name)
    if not value:
        raise OAuthProblem(RefusalCode.INVALID_REQUEST, f"{name} must come, got none")
    return value


def _check_rate(request: AnyRequest) -> None:
    """Refuse an address that has sent too many codes and tokens that nobody gave it.

    Raises:
        HttpProblem: It has (429).
    """
    services = services_of(request)
    verdict = services.wrong_keys.check(services.proxies.client_of(request.scope), take=False)
    if not verdict.allowed:
        services.metrics.count_refusal("guess")
        msg = "an address may send few wrong tokens, got more; wait for Retry-After seconds"
        wait = str(int(verdict.retry_after_s) + 1)
        raise HttpProblem(msg, "RATE_LIMITED", headers={"Retry-After": wait})


def _count_failure(request: AnyRequest) -> None:
    services = services_of(request)
    services.wrong_keys.check(services.proxies.client_of(request.scope))


def _answer(values: dict[str, Any], *, status: int = 200) -> Response[bytes]:
    body = msgspec.json.encode(values)
    return Response(body, status_code=status, media_type=MediaType.JSON, headers=NO_STORE)


ROUTES: Final[list[Any]] = [
    Router(
        "/oauth",
        route_handlers=[give_tokens, revoke, register],
        exception_handlers={Exception: answer_problem},
    )
]
