"""The pages of the dashboard; each form changes something and leads back by a redirect."""

from __future__ import annotations

import shlex
from typing import Any, Final

from litestar import Request, Response, get, post
from litestar.params import FromPath

from searchlab.api.accounts.accounts import add_key, propose_key_id, revoke_key_of
from searchlab.api.accounts.clock import utc_now
from searchlab.api.accounts.sessions import end_sessions
from searchlab.api.http.context import services_of
from searchlab.api.oauth.redirects import host_of
from searchlab.api.oauth.scopes import SCOPES
from searchlab.api.web.account.overview import read_overview
from searchlab.api.web.forms import read_form
from searchlab.api.web.session_cookies import sign_in_path, site_of
from searchlab.api.web.templates import redirect, respond
from searchlab.api.web.visitor import require_sign_in, visitor_of
from searchlab.api.wire.parameters import query_value
from searchlab.errors import InputError

AnyRequest = Request[Any, Any, Any]

PRIVATE: Final = {"Cache-Control": "no-store"}
_DONE: Final = {
    "revoked": "The key is revoked. Requests with it are refused from now on.",
    "ended": "The session has ended.",
    "disconnected": "The app is disconnected. Its requests are refused from now on.",
}


@get("/account")
async def show_account(request: AnyRequest) -> Response[bytes]:
    """Show the account, or the way to it."""
    return await _show(request, done=_DONE.get(query_value(request, "done"), ""))


@post("/account/keys", status_code=200)
async def create_key(request: AnyRequest) -> Response[bytes]:
    """Create a key, and show it this once."""
    visitor, services = require_sign_in(request), services_of(request)
    form = await read_form(request)
    name = form.first("name").strip()
    try:
        record, secret = await services.in_database(
            add_key,
            services.database,
            visitor.account_id,
            name=name,
            key_id=form.first("key_id"),
        )
    except InputError as error:
        return await _show(request, refused=str(error), name=name)
    return respond(
        request,
        "account/key.html",
        headers=PRIVATE,
        key=record,
        secret=secret,
        base_url=site_of(request).base_url,
    )


@post("/account/keys/{key_id:str}/revoke", status_code=200)
async def revoke_key(request: AnyRequest, key_id: FromPath[str]) -> Response[bytes]:
    """Revoke a key."""
    visitor, services = require_sign_in(request), services_of(request)
    await services.in_database(revoke_key_of, services.database, visitor.account_id, key_id)
    return redirect(request, "/account?done=revoked#keys", headers=PRIVATE)


@post("/account/sessions/{session_id:str}/end", status_code=200)
async def end_session(request: AnyRequest, session_id: FromPath[str]) -> Response[bytes]:
    """End one session, or all with the id `all`."""
    visitor, services = require_sign_in(request), services_of(request)
    which = None if session_id == "all" else session_id
    await services.in_database(end_sessions, services.database, visitor.account_id, which)
    if which is None or which == visitor.session_id:
        cookie = {"Set-Cookie": site_of(request).clear_cookie()}
        return redirect(request, "/", headers=PRIVATE | cookie)
    return redirect(request, "/account?done=ended#sessions", headers=PRIVATE)


async def _show(
    request: AnyRequest, *, done: str = "", refused: str = "", name: str = ""
) -> Response[bytes]:
    visitor = visitor_of(request)
    if visitor is None or not visitor.is_signed_in:
        return redirect(request, sign_in_path("/account"), headers=PRIVATE)
    services = services_of(request)
    await services.meter.flush()  # so that a search a moment ago is seen
    overview = await services.in_database(read_overview, services.database, visitor, utc_now())
    return respond(
        request,
        "account/account.html",
        status=422 if refused else 200,
        headers=PRIVATE,
        overview=overview,
        scope_words=SCOPES,
        host_of=host_of,
        key_id=propose_key_id(),
        done=done,
        refused=refused,
        name=name,
        link_command=f"searchlab accounts link --account {shlex.quote(visitor.account)}",
    )


ROUTES: Final = [show_account, create_key, revoke_key, end_session]
