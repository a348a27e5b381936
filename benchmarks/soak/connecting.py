"""Apps: they are allowed by a person, call tools, renew their tokens, and are shut out again."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from benchmarks.common.load.closed_loop import WORDS
from benchmarks.soak.http_client import Answer, HttpClient
from benchmarks.soak.world import FORWARDED, World
from searchlab.api.accounts.apps import propose_app_id
from searchlab.api.accounts.issuing import Consent, challenge_of, create_code
from searchlab.api.accounts.visitors import find_account

_ACCOUNT = "finder"
_SCOPES = "search collections:read collections:write"
_REDIRECT = "http://127.0.0.1/back"
_VERIFIER = "v" * 43
_PROTOCOL = "2025-11-25"
_CALLS = 10
_REGISTRATIONS = 6
_REFUSED_WITHIN = 40  # tries at most until a server that was killed answers again


class _App:
    """An app that is connected to an account.

    Attributes:
        tokens: As the token endpoint gave them; empty before a person has allowed it anything.
    """

    def __init__(self, world: World, client: HttpClient) -> None:
        self._world, self._client = world, client
        self._id = propose_app_id()
        self._resource = f"{world.server.base_url}/mcp"
        self.tokens: dict[str, str] = {}

    async def connect(self) -> bool:
        """Redeem the code that follows on a person's consent; says whether tokens came."""
        code = await asyncio.to_thread(self._consent)
        return await self._take_tokens(
            {
                "grant_type": "authorization_code",
                "code": code,
                "redirect_uri": _REDIRECT,
                "code_verifier": _VERIFIER,
            }
        )

    async def renew(self) -> bool:
        """Replace the tokens; says whether new ones came."""
        token = self.tokens["refresh_token"]
        return await self._take_tokens({"grant_type": "refresh_token", "refresh_token": token})

    async def leave(self) -> bool:
        """End the connection; says whether the server answered that it is done."""
        form = {"token": self.tokens["refresh_token"], "client_id": self._id}
        answer = await self._post("/oauth/revoke", form=form)
        return answer is not None

    async def call(
        self, tool: str, *, searches: int = 0, **arguments: Any
    ) -> tuple[int, dict[str, Any]]:
        """Call a tool; returns the status, 0 where no answer came, and the structured content.

        A search that is answered with photos was counted, any other was not.
        """
        message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": tool, "arguments": arguments},
        }
        headers = {
            "authorization": f"Bearer {self.tokens['access_token']}",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": _PROTOCOL,
        }
        answer = await self._post(
            "/mcp", json=message, headers=headers, allowed=(200, 401), searches=searches
        )
        if answer is None or answer.status != 200:
            return (0 if answer is None else answer.status), {}
        ledger = self._world.ledger
        result = answer.json().get("result", {})
        content: dict[str, Any] = result.get("structuredContent") or {}
        if result.get("isError"):
            ledger.acknowledged[_ACCOUNT] -= searches
            ledger.events["tools that refused"] += 1
        elif searches and not content.get("photos"):
            ledger.report_broken(f"{tool} must find photos, got {answer.text[:300]}")
        ledger.events["tools called"] += 1
        return 200, content

    async def send_picture(self, address: str) -> str:
        """Send a picture to an address; returns the text that stands for it, empty if none came."""
        path = address.removeprefix(self._world.server.base_url)
        answer = await self._world.request(
            self._client, _ACCOUNT, "PUT", path, content=self._world.upload
        )
        return "" if answer is None else str(answer.json()["data"]["picture"])

    def _consent(self) -> str:
        world = self._world
        consent = Consent(
            account_id=find_account(world.database, _ACCOUNT).account_id,
            client_id=self._id,
            client_name="Finder",
            redirect_uri=_REDIRECT,
            scopes=_SCOPES,
            resource=self._resource,
            challenge=challenge_of(_VERIFIER),
        )
        return create_code(world.database, consent)

    async def _take_tokens(self, form: dict[str, str]) -> bool:
        form |= {"client_id": self._id, "resource": self._resource}
        answer = await self._post("/oauth/token", form=form, allowed=(200, 400))
        if answer is None or answer.status != 200:
            return False
        self.tokens = answer.json()
        return True

    async def _post(self, path: str, **options: Any) -> Answer | None:
        return await self._world.request(self._client, _ACCOUNT, "POST", path, **options)


async def use_tools(world: World) -> None:
    """Connect app after app; each searches, renews its tokens, leaves, and is refused then."""
    async with HttpClient(world.server.base_url) as client:
        while not world.is_over:
            app = _App(world, client)
            began = time.monotonic()
            if not await app.connect():
                # A code lasts a minute by a clock that may be set, and once: an answer was lost.
                world.ledger.events["codes that gave no tokens"] += 1
                continue
            world.ledger.events["apps connected"] += 1
            for _ in range(_CALLS):
                await _call_at_random(world, app, began)
            if await app.renew():
                await _call_at_random(world, app, began)
            if await app.leave():
                await _check_refused(world, app)


async def _call_at_random(world: World, app: _App, began: float) -> None:
    photo_id = world.choose_photo()
    tool, arguments = world.random.choice(
        (
            ("search_photos", {"q": world.random.choice(WORDS)}),
            ("similar_photos", {"photo_id": photo_id}),
            ("get_photo", {"photo_id": photo_id, "show_pictures": True}),
            ("facets", {"facet": "colors"}),
            ("suggest_photographers", {"q": "an"}),
            ("usage", {}),
            ("list_collections", {}),
            ("create_collection", {"name": "of an app"}),
            ("get_upload_address", {}),
        )
    )
    searches = int(tool in ("search_photos", "similar_photos"))
    status, content = await app.call(tool, searches=searches, **arguments)
    if status == 401 and not world.faults.clock_was_set_since(began):
        world.ledger.report_broken(f"a token that lasts was refused by {tool}")
    if tool == "create_collection" and content:
        await _fill_collection(app, content["collection"]["id"], photo_id)
    if tool == "get_upload_address" and content:
        picture = await app.send_picture(content["address"])
        if picture:
            await app.call("search_photos", searches=1, picture=picture)


async def _fill_collection(app: _App, number: int, photo_id: str) -> None:
    entry = {"collection_id": number, "photo_id": photo_id}
    await app.call("add_to_collection", **entry)
    await app.call("get_collection", collection_id=number)
    await app.call("remove_from_collection", **entry)
    await app.call("delete_collection", collection_id=number)


async def _check_refused(world: World, app: _App) -> None:
    """An app that was shut out must be refused at once, by every worker."""
    status = 0
    for _ in range(_REFUSED_WITHIN):
        status, _ = await app.call("facets", facet="colors")
        if status:
            break
    if status == 200:
        world.ledger.report_broken("an app that had left could call a tool")
    world.ledger.events["apps shut out"] += 1


async def register_apps(world: World) -> None:
    """Register apps that nobody knows, each from another address."""
    app = {"client_name": "Stranger", "redirect_uris": [_REDIRECT]}
    async with HttpClient(world.server.base_url) as client:
        async for _ in world.turns(_REGISTRATIONS):
            came_from = {FORWARDED: world.draw_address()}
            await world.request(
                client,
                "stranger",
                "POST",
                "/oauth/register",
                allowed=(201,),
                json=app,
                headers=came_from,
            )
