"""ToolServer: the tools as the official SDK serves them, in every revision of the protocol.

Requests are complete in themselves: no session is kept, so any worker answers any of them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from typing import Any, Final
from urllib.parse import urlsplit

import mcp_types as types
from litestar import Request
from litestar.types import ASGIApp
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError

from searchlab import __version__
from searchlab.api.http.context import context_of
from searchlab.api.mcp.access import MAX_BODY_BYTES, check_scope
from searchlab.api.mcp.answers import NOTICE, ToolAnswer
from searchlab.api.mcp.calls import AnyRequest, Calls
from searchlab.api.mcp.catalog import TOOLS
from searchlab.api.mcp.refusals import explain
from searchlab.api.mcp.tool import Tool, ToolCall
from searchlab.api.settings import Settings
from searchlab.api.wire.errors import HttpProblem, problem_of

_INSTRUCTIONS = (
    "Search free-licence stock photos by meaning, in any language, by picture and by filters. "
    "search_photos first; photo_id leads from an answer to get_photo, similar_photos and "
    "collections. Show the credit (`attribution`) beside every photo that you use. Each search "
    f"counts on the plan of the account. {NOTICE}"
)
_DAY_MS = 86_400_000


class ToolServer:
    """The tools of one worker."""

    def __init__(self, settings: Settings) -> None:
        """Describe the tools; `run` starts answering."""
        public = CacheHint(ttl_ms=_DAY_MS, scope="public")
        self._server: Server[Any] = Server(
            "searchlab",
            version=__version__,
            title="searchlab",
            instructions=_INSTRUCTIONS,
            cache_hints={"tools/list": public, "server/discover": public},
            get_tool_input_schema=lambda name: TOOLS[name].arguments if name in TOOLS else None,
            on_list_tools=_list_tools,
            on_call_tool=_call_tool,
        )
        self._manager = StreamableHTTPSessionManager(
            self._server,
            json_response=True,
            stateless=True,
            security_settings=_allow(settings),
            max_request_body_size=MAX_BODY_BYTES,
        )

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Answer until the block ends."""
        async with self._manager.run():
            yield

    def find(self, name: str) -> Tool | None:
        """Return a tool; None if there is none of this name."""
        return TOOLS.get(name)

    def answer(self, body: bytes, held: ExitStack) -> ASGIApp:
        """Return the application that answers a request.

        Args:
            body: The request's body, which is read already.
            held: Closed once it is answered.
        """

        async def app(scope: Any, receive: Any, send: Any) -> None:
            with held:
                await self._manager.handle_request(scope, _replay(body, receive), send)

        return app


def _replay(body: bytes, receive: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[Any]]:
    left = [{"type": "http.request", "body": body, "more_body": False}]

    async def read() -> Any:
        return left.pop() if left else await receive()

    return read


def _allow(settings: Settings) -> TransportSecuritySettings:
    """Name the hosts and origins that requests may have, against rebinding of DNS names.

    `admit_client` checks the same before; this is the SDK's own check, which knows no wildcard.
    """
    own = [urlsplit(address) for address in (settings.base_url, settings.mcp_url) if address]
    names = ["localhost", "127.0.0.1", "[::1]", settings.host]
    names += [parts.netloc.removesuffix(f":{parts.port}") for parts in own]
    hosts = [host for name in names for host in (name, f"{name}:*")]
    origins = [f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection="*" not in settings.cors_origins,
        allowed_hosts=hosts,
        allowed_origins=[*origins, *settings.cors_origins],
    )


# -- the protocol's two methods ---------------------------------------------------------------


def _describe(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.arguments,
        output_schema=tool.answer,
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.reads_only,
            destructive_hint=tool.destroys,
            idempotent_hint=tool.repeatable,
            open_world_hint=False,
        ),
    )


_LISTED: Final = types.ListToolsResult(tools=[_describe(tool) for tool in TOOLS.values()])


async def _list_tools(
    _context: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    return _LISTED


async def _call_tool(
    context: ServerRequestContext[Any], params: types.CallToolRequestParams
) -> types.CallToolResult:
    tool = TOOLS.get(params.name)
    if tool is None:
        msg = f"Unknown tool: {params.name[:80]}; tools/list names those that there are"
        raise MCPError(code=types.INVALID_PARAMS, message=msg)
    http: Any = context.request
    request: AnyRequest = Request(http.scope)
    context_of(request).facts["tool"] = tool.name
    try:
        check_scope(request, tool)
        arguments = tool.check(params.arguments or {})
        answer = await tool.run(ToolCall(arguments, Calls(request)))
    except Exception as error:  # whatever it is, the model gets a text and no traceback
        return _refuse(request, error)
    return _write(answer)


def _write(answer: ToolAnswer) -> types.CallToolResult:
    content = [{"type": "text", "text": answer.text}, *answer.blocks]
    result = {"content": content, "structuredContent": answer.data}
    return types.CallToolResult.model_validate(result, by_name=False)


def _refuse(request: AnyRequest, error: Exception) -> types.CallToolResult:
    problem, request_id = problem_of(error), context_of(request).request_id
    if isinstance(problem, HttpProblem) and problem.kind.status >= 500 and problem is not error:
        request.app.state.log.error("a tool failed", error, request_id=request_id)
    text = explain(problem, request_id)
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)
