"""The whole application in this process: a library of plain photos and an HTTP client on it."""

import asyncio
import threading
from contextlib import contextmanager, suppress
from types import SimpleNamespace

import httpx

from searchlab.api.accounts.accounts import create_key
from searchlab.api.accounts.administration import create_account
from searchlab.api.accounts.database import open_database, sqlite_url
from searchlab.api.accounts.migrations import migrate
from searchlab.api.accounts.sessions import create_link, sign_in
from searchlab.api.app import create_app
from searchlab.api.settings import Settings
from searchlab.api.web.session_cookies import Site
from searchlab.errors import ConflictError


class _OnLoop(httpx.BaseTransport):
    """Hands requests to an application that lives on another thread's event loop."""

    def __init__(self, app, loop):
        self._inner = httpx.ASGITransport(app, raise_app_exceptions=False)
        self._loop = loop

    def handle_request(self, request):
        async def answer():
            body = b"".join([chunk async for chunk in _chunks(request)])
            sent = httpx.Request(request.method, request.url, headers=request.headers, content=body)
            response = await self._inner.handle_async_request(sent)
            content = b"".join([chunk async for chunk in response.stream])
            return httpx.Response(response.status_code, headers=response.headers, content=content)

        return asyncio.run_coroutine_threadsafe(answer(), self._loop).result(60)


async def _chunks(request):
    for chunk in request.stream:
        yield chunk


@contextmanager
def loop_thread():
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def lifespan(app, loop):
    """Start an application as a server does, and stop it."""
    to_app, from_app = asyncio.Queue(), asyncio.Queue()
    scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}
    done = asyncio.run_coroutine_threadsafe(app(scope, to_app.get, from_app.put), loop)

    def tell(kind):
        asyncio.run_coroutine_threadsafe(to_app.put({"type": f"lifespan.{kind}"}), loop)
        answer = asyncio.run_coroutine_threadsafe(from_app.get(), loop).result(60)
        assert answer["type"] == f"lifespan.{kind}.complete", answer

    tell("startup")
    try:
        yield
    finally:
        tell("shutdown")
        done.result(60)


@contextmanager
def api(library, **changes):
    """Serve a library folder; yields `client`, `key`, `make_client`, `make_browser` and more."""
    settings = Settings(data=library, access_log=False, **changes)
    database = open_database(settings.database_url or sqlite_url(library))
    migrate(database)
    if settings.visitors:
        create_key(database, account=settings.visitors, name="visitors", plan="scale")

    with loop_thread() as loop:
        app = create_app(settings)
        with lifespan(app, loop):

            def make_client(account="tests", plan="scale", name="key", **headers):
                _, secret = create_key(database, account=account, name=name, plan=plan)
                return httpx.Client(
                    transport=_OnLoop(app, loop),
                    base_url="http://photos.test",
                    headers={"x-api-key": secret, **headers},
                )

            def make_browser(account=None, plan="scale", base_url="https://photos.test"):
                """Make a client that sends forms as pages do, signed in to the account named."""
                browser = httpx.Client(
                    transport=_OnLoop(app, loop),
                    base_url=base_url,
                    headers={"sec-fetch-site": "same-origin"},
                )
                if account is not None:
                    with suppress(ConflictError):
                        create_account(database, account, plan=plan)
                    # Not by the form, which takes few attempts from one address.
                    token, _ = create_link(database, account)
                    secret = sign_in(database, token, browser="Firefox on Linux")
                    browser.cookies.set(Site(base_url).cookie, secret, domain=browser.base_url.host)
                return browser

            client = make_client()
            yield SimpleNamespace(
                client=client,
                key=client.headers["x-api-key"],
                anonymous=httpx.Client(transport=_OnLoop(app, loop), base_url="http://photos.test"),
                make_client=make_client,
                make_browser=make_browser,
                database=database,
                app=app,
                loop=loop,
                library=library,
            )
    database.close()
