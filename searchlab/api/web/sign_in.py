"""Signing in and out. A link's token stands in the fragment, and is spent by POST alone.

So no log, Referer or preview of the address holds or spends it: a module of the page sends it, or
the person pastes it into the form.
"""

from __future__ import annotations

import ipaddress
import math
import time
from typing import Any, Final

from litestar import Request, Response, get, post

from searchlab.api.accounts.sessions import account_of_link, end_sessions, sign_in
from searchlab.api.http.addresses import group_of
from searchlab.api.http.context import services_of
from searchlab.api.web.browsers import describe_browser
from searchlab.api.web.forms import read_form
from searchlab.api.web.session_cookies import NEEDS_HTTPS, safe_next, secret_of, site_of
from searchlab.api.web.templates import redirect, respond
from searchlab.api.web.visitor import visitor_of
from searchlab.api.wire.errors import HttpProblem
from searchlab.api.wire.parameters import query_value

AnyRequest = Request[Any, Any, Any]

SIGN_INS_AT_ONCE: Final = 10
SIGN_INS_PER_SECOND: Final = 0.1
"""Attempts of one address."""
_PRIVATE: Final = {"Cache-Control": "no-store", "Referrer-Policy": "same-origin"}


@get("/sign-in")
async def show_sign_in(request: AnyRequest) -> Response[bytes]:
    """Show the page that spends the token in its address."""
    return _show(request, query_value(request, "next", "/"))


@post("/sign-in", status_code=200)
async def spend_token(request: AnyRequest) -> Response[bytes]:
    """Begin a session, and lead on to the page that was asked for."""
    site, services = site_of(request), services_of(request)
    if not site.can_sign_in:
        raise HttpProblem(NEEDS_HTTPS, "FORBIDDEN")
    _check_rate(request)
    form = await read_form(request)
    token, visitor = _token_in(form.first("token")), visitor_of(request)
    if visitor is not None and visitor.is_signed_in and not form.first("switch"):
        account = await services.in_database(account_of_link, services.database, token)
        if account not in {None, visitor.account}:
            # Else a link from a stranger would move people into the stranger's account unseen.
            return respond(
                request,
                "switch.html",
                headers=_PRIVATE,
                token=token,
                account=account,
                next=safe_next(form.first("next", "/")),
            )
    secret = await services.in_database(
        sign_in,
        services.database,
        token,
        browser=describe_browser(request.headers.get("user-agent", "")),
        replaced=secret_of(request),
    )
    if secret is None:
        return _show(request, form.first("next", "/"), failed=True)
    following = safe_next(form.first("next", "/"))
    headers = _headers(following) | {"Set-Cookie": site.set_cookie(secret)}
    return redirect(request, following, headers=headers)


@post("/sign-out", status_code=200)
async def sign_out(request: AnyRequest) -> Response[bytes]:
    """End the session of this browser."""
    visitor, services = visitor_of(request), services_of(request)
    if visitor is not None and visitor.is_signed_in:
        await services.in_database(
            end_sessions, services.database, visitor.account_id, visitor.session_id
        )
    headers = _PRIVATE | {"Set-Cookie": site_of(request).clear_cookie()}
    return redirect(request, "/", headers=headers)


def _show(request: AnyRequest, next_path: str, *, failed: bool = False) -> Response[bytes]:
    # Unknown, spent and expired tokens get the same answer.
    can_sign_in, following = site_of(request).can_sign_in, safe_next(next_path)
    return respond(
        request,
        "sign_in.html",
        status=403 if failed else 200,
        headers=_headers(following),
        failed=failed,
        next=following,
        refusal="" if can_sign_in else NEEDS_HTTPS,
    )


def _headers(following: str) -> dict[str, str]:
    # An app may have opened the consent page, which leads here, in a window of its own, and waits
    # for that window to come back.
    is_of_app = following.startswith("/connect?")
    return _PRIVATE | ({"Cross-Origin-Opener-Policy": "unsafe-none"} if is_of_app else {})


def _token_in(text: str) -> str:
    """Return the token of what a person has pasted: itself, or the whole address with it."""
    return text.strip().rpartition("token=")[2]


def _check_rate(request: AnyRequest) -> None:
    services = services_of(request)
    # By a clock that nobody can set, and that all workers of a machine share.
    verdict = services.sign_in_rates.check(_sender_of(request), now=time.monotonic())
    if verdict.allowed:
        return
    services.metrics.count_refusal("rate")
    wait_s = math.ceil(verdict.retry_after_s)
    msg = f"too many attempts to sign in from your address; try again in {wait_s} s"
    raise HttpProblem(msg, "RATE_LIMITED", headers={"Retry-After": str(wait_s)})


def _sender_of(request: AnyRequest) -> str:
    """Return whose attempts count together: an address, or a network of IPv6."""
    client, proxies = request.scope.get("client"), services_of(request).proxies
    if proxies.are_named:
        return proxies.client_of(request.scope)
    address = _parse_address(client[0] if client else "")
    is_near = address is not None and (address.is_loopback or address.is_private)
    if is_near and (forwarded := request.headers.get("x-forwarded-for")):
        # A proxy on this network has added where the request came from as the last one.
        address = _parse_address(forwarded.rpartition(",")[2].strip()) or address
    return group_of(str(address))


def _parse_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


ROUTES: Final = [show_sign_in, spend_token, sign_out]
