"""The official SDK's client at the tools of a served library, with a token of a connected app."""

import asyncio
from contextlib import asynccontextmanager

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from benchmarks.tools.served_tools import EVERY_SCOPE, connect_app

BASE_URL = "https://photos.test"
RESOURCE = f"{BASE_URL}/mcp"
MODES = ("legacy", "2026-07-28")


def connect(database, account, scopes=EVERY_SCOPE):
    return connect_app(database, account, RESOURCE, scopes)


@asynccontextmanager
async def open_client(url, token, *, transport=None, mode="auto"):
    """Connect the SDK's client; `transport` replaces the network."""
    headers = {"authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(transport=transport, headers=headers, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


class ToolClient:
    """Calls tools of an application in this process, as `tests.support.apis.api` serves it."""

    def __init__(self, server, token, mode="2026-07-28"):
        self.server = server
        self.token = token
        self.mode = mode

    def run(self, work):
        """Run `await work(client)` on the application's event loop."""

        async def connected():
            transport = httpx2.ASGITransport(self.server.app)
            async with open_client(
                RESOURCE, self.token, transport=transport, mode=self.mode
            ) as client:
                return await work(client)

        return asyncio.run_coroutine_threadsafe(connected(), self.server.loop).result(60)

    def call(self, tool, **arguments):
        return self.run(lambda client: client.call_tool(tool, arguments))

    def data(self, tool, **arguments):
        """Call a tool that must succeed; returns its structured content."""
        result = self.call(tool, **arguments)
        assert not result.is_error, result.content
        return result.structured_content

    def refusal(self, tool, **arguments):
        """Call a tool that must refuse; returns what it says."""
        result = self.call(tool, **arguments)
        assert result.is_error, result
        assert result.structured_content is None
        return result.content[0].text


def post_message(client, token, message, **headers):
    """Send a message of the protocol as it is, past the SDK's client."""
    sent = {
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": "2025-11-25",
        **headers,
    }
    if token:
        sent["authorization"] = f"Bearer {token}"
    kind = "json" if isinstance(message, dict | list) else "content"
    return client.post(RESOURCE, headers=sent, **{kind: message})


def tool_call(name, arguments=None, number=1):
    return {
        "jsonrpc": "2.0",
        "id": number,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments or {}},
    }


def ask_api(server, path, **parameters):
    answer = server.client.get(f"/api/v1{path}", params=parameters)
    assert answer.status_code == 200, answer.text
    return answer.json()


def used(server):
    return ask_api(server, "/usage")["data"]["requests"]["used"]
