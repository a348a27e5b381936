"""What an account's owner takes along, and how the account is deleted."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from litestar import Request, Response, get, post
from litestar.enums import MediaType

from searchlab.api.accounts.administration import close_account
from searchlab.api.accounts.clock import utc_now
from searchlab.api.accounts.export import export_account
from searchlab.api.http.context import Services, services_of
from searchlab.api.web.account.pages import PRIVATE
from searchlab.api.web.forms import read_form
from searchlab.api.web.session_cookies import site_of
from searchlab.api.web.templates import page_headers, respond
from searchlab.api.web.visitor import Visitor, forget_visitor, require_sign_in
from searchlab.evaluation.judging.makers import forget_maker, list_made
from searchlab.evaluation.judging.tasks import delete_journals, journals_of

AnyRequest = Request[Any, Any, Any]


@get("/account/export")
async def export(request: AnyRequest) -> Response[bytes]:
    """Send all that is stored of the account, as a file."""
    visitor, services = require_sign_in(request), services_of(request)
    await services.meter.flush()
    data = await services.in_database(_gather, services, visitor)
    name = quote(f"searchlab {visitor.account} {utc_now().date()}.json", safe="")
    disposition = f"attachment; filename=\"searchlab.json\"; filename*=UTF-8''{name}"
    headers = page_headers() | PRIVATE | {"Content-Disposition": disposition}
    content = json.dumps(data, ensure_ascii=False, indent=1).encode("utf-8", "replace")
    return Response(content, media_type=MediaType.JSON, headers=headers)


@get("/account/close")
async def show_closing(request: AnyRequest) -> Response[bytes]:
    """Ask whether the account is to be deleted."""
    require_sign_in(request)
    return respond(request, "account/close.html", headers=PRIVATE, refused=False)


@post("/account/close", status_code=200)
async def close(request: AnyRequest) -> Response[bytes]:
    """Delete the account, if its name was typed."""
    visitor, services = require_sign_in(request), services_of(request)
    typed = unicodedata.normalize("NFC", (await read_form(request)).first("confirm").strip())
    if typed != visitor.account:
        return respond(request, "account/close.html", status=422, headers=PRIVATE, refused=True)
    has_made_tasks = await services.in_database(_delete, services, visitor)
    forget_visitor(request)
    cookie = {"Set-Cookie": site_of(request).clear_cookie()}
    return respond(
        request,
        "account/closed.html",
        headers=PRIVATE | cookie,
        account=typed,
        has_made_tasks=has_made_tasks,
    )


def _gather(services: Services, visitor: Visitor) -> dict[str, Any]:
    library, owner = services.settings.data, str(visitor.account_id)
    paths = journals_of(library, owner)
    return export_account(services.database, visitor.account_id) | {
        "judgments": [
            {"task": path.parent.parent.name, "lines": _read_lines(path)} for path in paths
        ],
        "judging_tasks": list_made(library, owner, visitor.account),
    }


def _read_lines(path: Path) -> list[Any]:
    return [_parse(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _parse(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:  # half a line of a process that died
        return line


def _delete(services: Services, visitor: Visitor) -> bool:
    """Delete an account; returns whether it had made judging tasks, which stay."""
    library, owner = services.settings.data, str(visitor.account_id)
    has_made_tasks = bool(list_made(library, owner, visitor.account))
    # First, as it may fail: then there still is an account that can be closed again.
    forget_maker(library, owner, visitor.account)
    close_account(services.database, visitor.account)
    delete_journals(library, owner)
    forget_maker(library, owner, visitor.account)  # of a task that was made just now
    return has_made_tasks


ROUTES: Final = [export, show_closing, close]
