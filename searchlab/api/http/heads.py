"""HEAD: the head of what GET would answer, as load balancers and link checkers ask for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from searchlab.api.http.bodies import Message, Receive
from searchlab.api.snapshots.encoded_photos import MEDIA_PREFIX

Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Any, Receive, Send], Awaitable[None]]


def answer_heads(app: App) -> App:
    """Wrap an application, so that HEAD gets the head of what it answers to GET.

    Pictures are left to their own handler, which need not read a file for its head.
    """

    async def answer(scope: Any, receive: Receive, send: Send) -> None:
        if scope.get("method") != "HEAD" or scope["path"].startswith(MEDIA_PREFIX):
            await app(scope, receive, send)
            return
        is_ended = False

        async def send_head(message: Message) -> None:
            nonlocal is_ended
            if message["type"] == "http.response.start":
                await send(message)
            elif not is_ended:
                is_ended = True
                await send({"type": "http.response.body", "body": b""})

        scope["method"] = "GET"
        try:
            await app(scope, receive, send_head)
        finally:
            scope["method"] = "HEAD"

    return answer
