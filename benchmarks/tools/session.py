"""The official SDK's client signs in at a server that runs, and finds photos: a recorded session.

    python -m benchmarks.tools.session --data LIBRARY  # as `searchlab demo` makes it

Writes results/tools/demo/session.json: each HTTP request that the client made and what it was
answered, and each call of a tool with the text that came back. The client knows the address of the
tools and nothing else. The person's part, consent in the dashboard, is done by a small script with
a person's session; `tests/browser` does it with a real browser. In the middle the client calls a
tool that it is not allowed, and asks for one scope more.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, TokenStorage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from benchmarks.common.recording import record
from benchmarks.tools.people import Person
from benchmarks.tools.served_tools import ServedTools, serve_tools
from searchlab.evaluation.provenance.manifest import make_manifest

_RESULTS = Path(__file__).resolve().parents[2] / "results"
_REDIRECT = "http://127.0.0.1:8765/back"
_SECRETS = re.compile(r"\b(?:sl[acr]_|app_)[\w-]+|(?<=code_challenge=)[\w-]+|(?<=state=)[\w-]+")


class _Memory(TokenStorage):
    """Keeps what the client gets."""

    def __init__(self) -> None:
        self._tokens: OAuthToken | None = None
        self._client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


class _Browser:
    """Takes the person to the consent page, and brings the answer back to the app."""

    def __init__(self, person: Person, steps: list[dict[str, Any]]) -> None:
        self._person = person
        self._steps = steps
        self._landed = ""

    async def open(self, address: str) -> None:
        """Let the person read the page and press Allow."""
        allowed = await asyncio.to_thread(self._person.allow, address)
        self._landed = allowed.address
        step = {"person": "allowed", "page": allowed.heading, "reads": allowed.scopes}
        self._steps.append(step)

    async def return_code(self) -> AuthorizationCodeResult:
        """Return what the browser brought back to the app."""
        query = {name: one[0] for name, one in parse_qs(urlsplit(self._landed).query).items()}
        return AuthorizationCodeResult(**query)


def _hide(text: str) -> str:
    return _SECRETS.sub("…", text)


async def _talk(server: ServedTools) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    browser = _Browser(Person(server), steps)

    async def note(response: httpx2.Response) -> None:
        request = response.request
        step = {"client": f"{request.method} {request.url.path}", "status": response.status_code}
        if "www-authenticate" in response.headers:
            step["challenge"] = response.headers["www-authenticate"]
        steps.append(step)

    metadata = OAuthClientMetadata.model_validate(
        {"client_name": "A script", "redirect_uris": [_REDIRECT]}
    )
    auth = OAuthClientProvider(
        f"{server.base_url}/mcp",
        metadata,
        _Memory(),
        redirect_handler=browser.open,
        callback_handler=browser.return_code,
    )
    url = f"{server.base_url}/mcp"
    async with (
        httpx2.AsyncClient(auth=auth, timeout=60, event_hooks={"response": [note]}) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):

        async def call(tool: str, **arguments: Any) -> Any:
            answer = await client.call_tool(tool, arguments)
            blocks = [block.type for block in answer.content]
            text = _hide(answer.content[0].text)
            called = {"tool": tool, "arguments": arguments, "blocks": blocks, "text": text}
            steps.append(called | {"is_error": answer.is_error})
            return answer.structured_content

        steps.append({"protocol": client.protocol_version})
        await call("search_photos", q="a castle by the water", per_page=3, show_pictures=True)
        found = await call("search_photos", q="ein roter Vogel", orientation=["landscape"], limit=2)
        photo_id = found["photos"][0]["photo_id"]
        await call("similar_photos", photo_id=photo_id, per_page=2)
        await call("get_photo", photo_id=photo_id)
        made = await call("create_collection", name="Birds")
        number = made["collection"]["id"]
        await call("add_to_collection", collection_id=number, photo_id=photo_id)
        await call("search_photos", colour="red")
        await call("usage", by_key=True)
    return steps


def main() -> None:
    """Hold the session and record it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a library to serve")
    parser.add_argument("--out", type=Path, default=_RESULTS, help="folder of results")
    options = parser.parse_args(namespace=argparse.Namespace(dataset="demo", smoke=False))
    with serve_tools(options.data) as server:
        steps = asyncio.run(_talk(server))
        address = server.base_url
    text = str([step["text"] for step in steps if "text" in step])
    metrics = {"steps": len(steps), "tools_called": text.count("', '") + 1}
    shown = [_without(step, address) for step in steps]
    record(
        options,
        "tools",
        "session",
        {"metrics": metrics, "steps": shown, "manifest": make_manifest("tools", packages=("mcp",))},
    )
    for step in shown:
        sys.stdout.write(f"{step}\n")


def _without(value: Any, address: str) -> Any:
    """Replace the server's address, whose port is another each time."""
    if isinstance(value, str):
        return value.replace(address, "https://photos.example.org")
    if isinstance(value, list):
        return [_without(one, address) for one in value]
    if isinstance(value, dict):
        return {name: _without(one, address) for name, one in value.items()}
    return value


if __name__ == "__main__":
    main()
