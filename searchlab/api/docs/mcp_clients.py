"""How the programs that people use are told of the tool server."""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class McpClient(NamedTuple):
    """A program, how it is connected, and what to paste."""

    name: str
    how: str
    snippet: str


_SCRIPT = """\
import asyncio, webbrowser
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, TokenStorage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

URL = "{address}"


class Memory(TokenStorage):  # keep both in a file to stay signed in
    tokens = client = None
    async def get_tokens(self): return self.tokens
    async def set_tokens(self, tokens): self.tokens = tokens
    async def get_client_info(self): return self.client
    async def set_client_info(self, client): self.client = client


async def open_page(address):
    webbrowser.open(address)


async def read_code():
    landed = await asyncio.to_thread(input, "Address that the browser was sent to: ")
    query = parse_qs(urlsplit(landed).query)
    return AuthorizationCodeResult(
        code=query["code"][0], state=query["state"][0], iss=query["iss"][0]
    )


async def main():
    metadata = OAuthClientMetadata(
        client_name="My script", redirect_uris=["http://127.0.0.1:8765/back"]
    )
    auth = OAuthClientProvider(
        URL, metadata, Memory(), redirect_handler=open_page, callback_handler=read_code
    )
    async with (
        httpx2.AsyncClient(auth=auth, timeout=60) as http,
        Client(streamable_http_client(URL, http_client=http)) as client,
    ):
        answer = await client.call_tool("search_photos", {{"q": "a lake in the mountains"}})
        print(answer.content[0].text)


asyncio.run(main())"""


def list_clients(address: str) -> list[McpClient]:
    """List the programs with what connects them to a tool server at an address."""
    return [
        McpClient(
            "Claude (web and desktop)",
            "Settings, Connectors, Add custom connector; paste the address. The server must be "
            "reachable from the internet.",
            address,
        ),
        McpClient(
            "Claude Code",
            "In a shell; then type `/mcp` in a session and sign in.",
            f"claude mcp add --transport http photos {address}",
        ),
        McpClient(
            "Claude Desktop, with a server on your own machine",
            "Through `mcp-remote`, in `claude_desktop_config.json`.",
            _dump({"mcpServers": {"photos": {"command": "npx", "args": ["mcp-remote", address]}}}),
        ),
        McpClient(
            "Cursor",
            "In `.cursor/mcp.json` of a project, or `~/.cursor/mcp.json` for all.",
            _dump({"mcpServers": {"photos": {"url": address}}}),
        ),
        McpClient(
            "VS Code",
            "In `.vscode/mcp.json`.",
            _dump({"servers": {"photos": {"type": "http", "url": address}}}),
        ),
        McpClient(
            "ChatGPT",
            "Settings, Connectors, Advanced, Developer mode; create a connector with this address "
            "and OAuth. The server must be reachable from the internet.",
            address,
        ),
        McpClient(
            "A Python script",
            "With the official SDK: `pip install 'mcp==2.3.0'`.",
            _SCRIPT.format(address=address),
        ),
    ]


def _dump(document: Any) -> str:
    return json.dumps(document, indent=2)
