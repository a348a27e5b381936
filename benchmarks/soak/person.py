"""A person at a browser: signed in by a one-time link, with a session that must last."""

from __future__ import annotations

import asyncio
import html
import re
import time
from typing import Any

from benchmarks.soak.http_client import Answer, HttpClient
from benchmarks.soak.world import FORWARDED, World
from searchlab.api.accounts.sessions import create_link

_HIDDEN = re.compile(r'type="hidden" name="(\w+)" value="([^"]*)"')
_FROM_HERE = {"accept": "text/html", "sec-fetch-site": "same-origin"}


class Person:
    """Somebody of an account, at the pages.

    Attributes:
        world: The round that this is in.
        account: Name of the account.
    """

    def __init__(self, world: World, account: str, client: HttpClient) -> None:
        self.world, self.account, self._client = world, account, client
        self._cookie = ""
        self._began = 0.0
        # The few tries to sign in, and requests of a session that has ended, are an address's own.
        self._address = world.draw_address()

    async def sign_in(self) -> bool:
        """Spend a new link; says whether a session came of it."""
        token, _ = await asyncio.to_thread(create_link, self.world.database, self.account)
        await self.get("/sign-in")
        # The few tries of an address are its own.
        came_from = {FORWARDED: self.world.draw_address()}
        answer = await self.post("/sign-in", {"token": token, "next": "/"}, headers=came_from)
        if answer is None:
            return False
        self._cookie, self._began = answer.headers["set-cookie"].partition(";")[0], time.monotonic()
        again = await self.post("/sign-in", {"token": token}, allowed=(403, 303))
        if again is not None and again.status == 303:
            self.world.ledger.report_broken("a link that was spent signed in once more")
        return True

    async def sign_out(self) -> None:
        """End the session; from then on no worker may know it."""
        if await self.post("/sign-out", {}) is None:
            return
        for _ in range(4):
            answer = await self._send("GET", "/account", allowed=(303,))
            if answer is not None and not answer.headers["location"].startswith("/sign-in"):
                self.world.ledger.report_broken("a session that was ended is still known")
        self._cookie = ""

    async def get(
        self, path: str, *, allowed: tuple[int, ...] = (200,), searches: int = 0, **options: Any
    ) -> Answer | None:
        """Open a page."""
        return self._check(
            path, await self._send("GET", path, allowed=allowed, searches=searches, **options)
        )

    async def post(
        self,
        path: str,
        form: dict[str, str] | None = None,
        *,
        allowed: tuple[int, ...] = (303,),
        searches: int = 0,
        **options: Any,
    ) -> Answer | None:
        """Send a form; by default it must lead on to a page."""
        return self._check(
            path,
            await self._send(
                "POST", path, form=form, allowed=allowed, searches=searches, **options
            ),
        )

    async def _send(
        self, method: str, path: str, *, headers: dict[str, str] | None = None, **options: Any
    ) -> Answer | None:
        lines = _FROM_HERE | {FORWARDED: self._address} | (headers or {})
        if self._cookie:
            lines["cookie"] = self._cookie
        return await self.world.request(
            self._client, self.account, method, path, headers=lines, **options
        )

    def _check(self, path: str, answer: Answer | None) -> Answer | None:
        """A session lasts, also over the end and the start of the server."""
        if answer is None or not self._cookie:
            return answer
        refused = answer.status == 401 or answer.headers.get("location", "").startswith("/sign-in")
        if refused and not self.world.faults.clock_was_set_since(self._began):
            self.world.ledger.report_broken(f"a session that lasts was refused by {path}")
        return answer


def fields_of(page: str) -> dict[str, str]:
    """Read the hidden fields of a page's forms."""
    return {name: html.unescape(value) for name, value in _HIDDEN.findall(page)}


def last_part(answer: Answer) -> str:
    """Return the last part of the path that an answer leads to."""
    return answer.headers["location"].partition("?")[0].rpartition("/")[2]
