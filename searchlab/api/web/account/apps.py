"""Connected apps, and the apps that an account registers itself."""

from __future__ import annotations

from typing import Any, Final

from litestar import Request, Response, get, post
from litestar.params import FromPath

from searchlab.api.accounts.apps import delete_app, list_apps, propose_app_id, register_app
from searchlab.api.accounts.grants import revoke_grant_of
from searchlab.api.http.context import services_of
from searchlab.api.oauth.addresses import resource_of
from searchlab.api.oauth.redirects import check_redirect_uris
from searchlab.api.web.account.pages import PRIVATE
from searchlab.api.web.forms import read_form
from searchlab.api.web.session_cookies import sign_in_path
from searchlab.api.web.templates import redirect, respond
from searchlab.api.web.visitor import require_sign_in, visitor_of
from searchlab.api.wire.parameters import query_value
from searchlab.errors import InputError

AnyRequest = Request[Any, Any, Any]

_DONE: Final = {
    "registered": "The app is registered. Give it its client id.",
    "deleted": "The app is deleted. Nobody can connect it any more.",
}


@post("/account/grants/{grant_id:str}/revoke", status_code=200)
async def revoke_grant(request: AnyRequest, grant_id: FromPath[str]) -> Response[bytes]:
    """Disconnect an app."""
    visitor, services = require_sign_in(request), services_of(request)
    await services.in_database(revoke_grant_of, services.database, visitor.account_id, grant_id)
    return redirect(request, "/account?done=disconnected#apps", headers=PRIVATE)


@get("/account/apps")
async def show_apps(request: AnyRequest) -> Response[bytes]:
    """Show the apps that the account has registered."""
    visitor = visitor_of(request)
    if visitor is None or not visitor.is_signed_in:
        return redirect(request, sign_in_path("/account/apps"), headers=PRIVATE)
    return await _show(request, done=_DONE.get(query_value(request, "done"), ""))


@post("/account/apps", status_code=200)
async def register(request: AnyRequest) -> Response[bytes]:
    """Register an app."""
    visitor, services = require_sign_in(request), services_of(request)
    form = await read_form(request)
    name, uris = form.first("name").strip(), form.first("redirect_uris")
    try:
        await services.in_database(
            register_app,
            services.database,
            visitor.account_id,
            name=name,
            redirect_uris=check_redirect_uris(uris.split()),
            client_id=form.first("client_id"),
        )
    except InputError as error:
        return await _show(request, refused=str(error), name=name, uris=uris)
    return redirect(request, "/account/apps?done=registered", headers=PRIVATE)


@post("/account/apps/{client_id:str}/delete", status_code=200)
async def delete(request: AnyRequest, client_id: FromPath[str]) -> Response[bytes]:
    """Delete an app that the account has registered."""
    visitor, services = require_sign_in(request), services_of(request)
    await services.in_database(delete_app, services.database, visitor.account_id, client_id)
    return redirect(request, "/account/apps?done=deleted", headers=PRIVATE)


async def _show(
    request: AnyRequest, *, done: str = "", refused: str = "", name: str = "", uris: str = ""
) -> Response[bytes]:
    visitor, services = require_sign_in(request), services_of(request)
    return respond(
        request,
        "account/apps.html",
        status=422 if refused else 200,
        headers=PRIVATE,
        apps=await services.in_database(list_apps, services.database, visitor.account_id),
        client_id=propose_app_id(),
        resource=resource_of(request),
        done=done,
        refused=refused,
        name=name,
        uris=uris,
    )


ROUTES: Final = [revoke_grant, show_apps, register, delete]
