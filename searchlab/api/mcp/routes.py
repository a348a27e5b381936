"""The route of the tool server, and what is answered where it is not installed."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from litestar import post, route
from litestar.types import ASGIApp

from searchlab.api.http.bodies import JSON_S, AnyRequest, read_whole
from searchlab.api.http.context import caller_of, services_of
from searchlab.api.mcp.access import MAX_BODY_BYTES, admit_client, called_tool, check_scope
from searchlab.api.mcp.pictures import ROUTES as PICTURE_ROUTES
from searchlab.api.settings import MCP_PATH, Settings
from searchlab.api.wire.errors import HttpProblem

if TYPE_CHECKING:
    from searchlab.api.mcp.server import ToolServer


def is_installed() -> bool:
    """Say whether the extra `mcp` is installed."""
    return find_spec("mcp") is not None


def routes() -> list[Any]:
    """Return the routes of the tool server, or the one that says how to install it."""
    return [_serve_tools, *PICTURE_ROUTES] if is_installed() else [_say_missing]


class Tools:
    """The tool server of a worker, opened when it is first asked.

    The SDK takes a second and 35 MB, which a server that nobody asks for tools does without.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._ready: asyncio.Future[ToolServer] | None = None
        self._serving: asyncio.Task[None] | None = None
        self._closed = asyncio.Event()

    async def get(self) -> ToolServer:
        """Return the server, once it is open."""
        if self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
            self._serving = asyncio.create_task(self._serve(self._ready))
        return await asyncio.shield(self._ready)

    async def _serve(self, ready: asyncio.Future[ToolServer]) -> None:
        try:
            server = await asyncio.to_thread(self._load)
            async with server.run():
                ready.set_result(server)
                await self._closed.wait()
        except Exception as error:  # whoever waits for the start is told why there was none
            if ready.done():
                raise
            self._ready = None
            ready.set_exception(error)

    def _load(self) -> ToolServer:
        from searchlab.api.mcp.server import ToolServer

        return ToolServer(self._settings)

    async def close(self) -> None:
        """End the requests that are still running."""
        self._closed.set()
        if self._serving is not None:
            await self._serving


@route(MCP_PATH, http_method=["GET", "POST"], status_code=404, include_in_schema=False)
async def _say_missing(request: AnyRequest) -> None:
    msg = "this server has no tools installed; its owner can run pip install 'searchlab[mcp]'"
    raise HttpProblem(msg, "NOT_FOUND")


@post(MCP_PATH, status_code=200, include_in_schema=False)
async def _serve_tools(request: AnyRequest) -> ASGIApp:
    """Answer a message of a language-model client."""
    await admit_client(request)
    tools: Tools = request.app.state.tools
    server = await tools.get()
    with ExitStack() as held:
        holding = services_of(request).slots.bodies.holding(caller_of(request).account_id)
        take = held.enter_context(holding)
        body = await read_whole(request, MAX_BODY_BYTES, take=take, whole_s=JSON_S)
        tool = server.find(called_tool(body))
        if tool is not None:
            check_scope(request, tool)
        return server.answer(body, held.pop_all())
