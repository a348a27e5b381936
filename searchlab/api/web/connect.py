"""The consent page: a person allows an app to use the account, or does not.

What does not fit is shown here with a link back to the app; only a button that the person presses
sends the browser to another site, so that nobody can use this server to send people anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from litestar import Request, Response, get, post
from litestar.enums import MediaType

from searchlab.api.accounts.apps import note_consent
from searchlab.api.accounts.database import Database
from searchlab.api.accounts.grants import scopes_of_client
from searchlab.api.accounts.issuing import Consent, create_code
from searchlab.api.http.context import services_of
from searchlab.api.oauth.addresses import check_host, issuer_of, resource_of
from searchlab.api.oauth.asking import Asked, check_redirect, read_asked, read_parameters
from searchlab.api.oauth.clients import find_client
from searchlab.api.oauth.documents import OAuthClient
from searchlab.api.oauth.problems import OAuthProblem
from searchlab.api.oauth.redirects import add_parameters, host_of, is_loopback
from searchlab.api.oauth.scopes import SCOPES
from searchlab.api.web.forms import read_form
from searchlab.api.web.session_cookies import NEEDS_HTTPS, sign_in_path, site_of
from searchlab.api.web.templates import page_headers, redirect, respond
from searchlab.api.web.visitor import Visitor, visitor_of
from searchlab.api.wire.errors import HttpProblem, invalid
from searchlab.errors import InputError

AnyRequest = Request[Any, Any, Any]

PATH: Final = "/connect"
_MAX_FIELDS: Final = 50
# An app may have opened this page in a window of its own, to which it must keep the way.
_PRIVATE: Final = {"Cache-Control": "no-store", "Cross-Origin-Opener-Policy": "unsafe-none"}


@dataclass(frozen=True, slots=True)
class _Wish:
    """Who asks, where the answer goes, and for what; or why not."""

    parameters: dict[str, str]
    client: OAuthClient
    redirect_uri: str
    asked: Asked | None
    problem: OAuthProblem | None = None


@get(PATH)
async def show_consent(request: AnyRequest) -> Response[bytes]:
    """Show who asks for what, to whoever is signed in."""
    parameters = _read(_parse(request.scope["query_string"]))
    visitor = visitor_of(request)
    _check(request)
    if visitor is None or not visitor.is_signed_in:
        return _lead_to_sign_in(request, parameters)
    return await _show(request, visitor, await _find(request, visitor, parameters))


@post(PATH, status_code=200)
async def decide(request: AnyRequest) -> Response[bytes]:
    """Send the browser back to the app, with a code or the answer no."""
    form, visitor = await read_form(request), visitor_of(request)
    parameters = _read((name, value) for name, values in form.items() for value in values)
    _check(request)
    if visitor is None or not visitor.is_signed_in:
        return _lead_to_sign_in(request, parameters)
    wish = await _find(request, visitor, parameters)
    decision = form.first("decision")
    # Somebody may have signed in to another account since the page was shown.
    is_same = form.first("account_id") == str(visitor.account_id)
    if wish.asked is None or not is_same or decision not in {"allow", "refuse"}:
        return await _show(request, visitor, wish)
    if decision == "refuse":
        answer = {"error": "access_denied", "error_description": "the person refused"}
        return _go_back(request, wish, answer)
    consent = Consent(
        account_id=visitor.account_id,
        client_id=wish.client.client_id,
        client_name=wish.client.name,
        redirect_uri=wish.redirect_uri,
        scopes=wish.asked.scopes,
        resource=wish.asked.resource,
        challenge=wish.asked.challenge,
    )
    services = services_of(request)
    code = await services.in_database(_allow, services.database, consent)
    return _go_back(request, wish, {"code": code})


def _allow(database: Database, consent: Consent) -> str:
    note_consent(database, consent.client_id)
    return create_code(database, consent)


def _check(request: AnyRequest) -> None:
    if not site_of(request).can_sign_in:
        raise HttpProblem(NEEDS_HTTPS, "FORBIDDEN")
    check_host(request)


def _parse(query: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            query.decode(),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_MAX_FIELDS,
        )
    except ValueError as error:
        msg = f"the address must be as the app made it, got {error}; connect again from the app"
        raise invalid(("query",), msg) from None


def _read(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    try:
        return read_parameters(pairs)
    except InputError as error:
        raise invalid(("query",), str(error)) from None


def _lead_to_sign_in(request: AnyRequest, parameters: dict[str, str]) -> Response[bytes]:
    address = sign_in_path(f"{PATH}?{urlencode(parameters)}")
    return redirect(request, address, headers=_PRIVATE)


async def _find(request: AnyRequest, visitor: Visitor, parameters: dict[str, str]) -> _Wish:
    """Find out who asks for what.

    Raises:
        Invalid: It is not certain who asks, or that the answer would reach nobody else.
    """
    try:
        client = await find_client(request, parameters.get("client_id", ""), visitor.account_id)
        redirect_uri = check_redirect(client, parameters.get("redirect_uri", ""))
    except InputError as error:
        raise invalid(("query",), str(error)) from None
    try:
        asked = read_asked(parameters, resource_of(request))
    except OAuthProblem as problem:
        return _Wish(parameters, client, redirect_uri, None, problem)
    return _Wish(parameters, client, redirect_uri, asked)


async def _show(request: AnyRequest, visitor: Visitor, wish: _Wish) -> Response[bytes]:
    if wish.asked is None:
        problem = wish.problem
        answer = (
            {"error": problem.error, "error_description": problem.description} if problem else {}
        )
        return respond(
            request,
            "connect/misfit.html",
            status=422,
            headers=_PRIVATE,
            client=wish.client,
            reason=problem.description if problem else "",
            back=_address(request, wish, answer),
            back_host=host_of(wish.redirect_uri),
        )
    services = services_of(request)
    held = await services.in_database(
        scopes_of_client,
        services.database,
        visitor.account_id,
        client_id=wish.client.client_id,
        resource=wish.asked.resource,
    )
    # The form leads to the app, and on to wherever that leads: browsers check each step.
    policy = page_headers()["Content-Security-Policy"].replace("form-action 'self'; ", "")
    return respond(
        request,
        "connect/consent.html",
        headers=_PRIVATE | {"Content-Security-Policy": policy},
        client=wish.client,
        parameters=wish.parameters,
        account_id=visitor.account_id,
        redirect_uri=wish.redirect_uri,
        redirect_host=host_of(wish.redirect_uri),
        is_loopback=is_loopback(wish.redirect_uri),
        held=[words for scope, words in SCOPES.items() if scope in held],
        added=[SCOPES[scope] for scope in wish.asked.scopes.split() if scope not in held],
    )


def _go_back(request: AnyRequest, wish: _Wish, answer: dict[str, str]) -> Response[bytes]:
    headers = page_headers() | _PRIVATE
    headers |= {"Location": _address(request, wish, answer), "Referrer-Policy": "no-referrer"}
    return Response(b"", status_code=303, media_type=MediaType.HTML, headers=headers)


def _address(request: AnyRequest, wish: _Wish, answer: dict[str, str]) -> str:
    """Return where the browser goes; `iss` says who answers, against mix-ups (RFC 9207)."""
    more = {"state": wish.parameters.get("state", ""), "iss": issuer_of(request)}
    return add_parameters(wish.redirect_uri, answer | more)


ROUTES: Final = [show_consent, decide]
