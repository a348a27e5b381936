"""Somebody connects an app in a real browser: the official SDK's client, from 401 to photos."""

import asyncio
import queue
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

pytestmark = pytest.mark.slow

PATIENCE_S = 60


class App:
    """A program on this machine, with the SDK's client in it, that waits for its code on a port.

    Attributes:
        addresses: Where it wants to send the browser.
        answers: What its port was sent.
        tokens: What it got.
        client_info: How it was registered.
    """

    def __init__(self, server_url):
        self.addresses, self.answers = queue.Queue(), queue.Queue()
        self.tokens = self.client_info = None
        self._server_url = server_url
        answers = self.answers

        class Listener(BaseHTTPRequestHandler):
            def do_GET(self):
                answers.put(self.path)
                # With an icon of its own: nobody answers any more when a browser asks for one.
                page = b'<!doctype html><link rel="icon" href="data:,"><title>Back</title>'
                self.send_response(200)
                self.send_header("content-type", "text/html")
                self.send_header("content-length", str(len(page)))
                self.end_headers()
                self.wfile.write(page)

            def log_message(self, *_):
                pass

        self._port = HTTPServer(("127.0.0.1", 0), Listener)
        self.redirect_uri = f"http://127.0.0.1:{self._port.server_port}/callback"

    # What the SDK asks of a storage.

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client_info

    async def set_client_info(self, client_info):
        self.client_info = client_info

    async def _redirect(self, address):
        self.addresses.put(address)

    async def _wait(self):
        path = await asyncio.to_thread(self.answers.get, timeout=PATIENCE_S)
        query = {name: values[0] for name, values in parse_qs(urlsplit(path).query).items()}
        assert "error" not in query, query
        return AuthorizationCodeResult(**query)

    async def _run(self, work):
        provider = OAuthClientProvider(
            self._server_url,
            OAuthClientMetadata(client_name="Finder", redirect_uris=[self.redirect_uri]),
            self,
            redirect_handler=self._redirect,
            callback_handler=self._wait,
        )
        async with (
            httpx2.AsyncClient(auth=provider, timeout=PATIENCE_S) as http,
            Client(streamable_http_client(self._server_url, http_client=http)) as client,
        ):
            return await work(client)

    @contextmanager
    def working(self, work):
        """Run `await work(client)` beside the block; yields a list that then holds the answer."""
        answer, failures = [], []

        def run():
            try:
                answer.append(asyncio.run(self._run(work)))
            except BaseException as error:
                failures.append(error)
                self.addresses.put(None)

        threads = [
            threading.Thread(target=run),
            threading.Thread(target=self._port.serve_forever),
        ]
        for thread in threads:
            thread.start()
        try:
            yield answer
            threads[0].join(PATIENCE_S)
        finally:
            self._port.shutdown()
            self._port.server_close()
            threads[1].join()
        if failures:
            raise failures[0]


async def find_a_castle(client):
    return await client.call_tool("search_photos", {"q": "a castle", "per_page": 3})


def press(one, app, button):
    """Press a button of the consent page; the browser ends at the app."""
    one.expect(app.redirect_uri)
    one.expect("ERR_CONNECTION_")  # the app listens for one answer alone
    one.page.get_by_role("button", name=button).click()
    one.page.wait_for_url(f"{app.redirect_uri}**")


@pytest.mark.parametrize("scripts", [True, False])
def test_the_official_client_signs_in_finds_photos_and_is_disconnected(signed_in, served, scripts):
    app = App(f"{served.base_url}/mcp")
    with app.working(find_a_castle) as answer:
        address = app.addresses.get(timeout=PATIENCE_S)
        one = signed_in("apps", java_script_enabled=scripts)
        one.page.goto(address)
        assert one.page.get_by_role("heading", name="Connect Finder?").is_visible()
        assert app.redirect_uri in one.page.locator("main").inner_text()
        assert one.page.get_by_text("a program on this computer").is_visible()
        press(one, app, "Allow")
    (result,) = answer
    assert not result.is_error
    assert len(result.structured_content["photos"]) == 3
    token = app.tokens.access_token
    one.page.goto("/account#apps")
    row = one.page.locator("#apps li", has_text="Finder").first
    assert "last used" in row.inner_text()
    row.get_by_text("Disconnect", exact=False).first.click()
    row.get_by_role("button", name="Disconnect it now").click()
    one.page.wait_for_url("**/account?done=disconnected**")
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    refused = httpx.post(
        f"{served.base_url}/mcp", json=message, headers={"authorization": f"Bearer {token}"}
    )
    assert refused.status_code == 401
    assert 'error="invalid_token"' in refused.headers["www-authenticate"]


def wish(served, redirect_uri):
    """Register an app; returns what it asks at /connect."""
    registered = httpx.post(
        f"{served.base_url}/oauth/register",
        json={"redirect_uris": [redirect_uri], "client_name": "Finder"},
    ).json()
    return {
        "response_type": "code",
        "client_id": registered["client_id"],
        "redirect_uri": redirect_uri,
        "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
        "code_challenge_method": "S256",
        "resource": f"{served.base_url}/mcp",
        "state": "a b&c=d/é".encode().hex(),
    }


def test_consent_leads_through_signing_in_and_back(window, link, served):
    query = wish(served, "https://app.example/back")
    one = window(java_script_enabled=False)
    one.page.goto(str(httpx.URL("/connect", params=query)))
    one.page.get_by_label("one-time link").fill(link("apps"))
    one.follow(one.page.get_by_role("button", name="Sign in"))
    assert one.page.get_by_role("heading", name="Connect Finder?").is_visible()
    assert one.page.get_by_text("app.example", exact=True).is_visible()
    one.expect("https://app.example/back")
    one.page.route("https://app.example/**", lambda route: route.fulfill(body="back"))
    with one.page.expect_request("https://app.example/**") as sent:
        one.page.get_by_role("button", name="Refuse").click()
    back = parse_qs(urlsplit(sent.value.url).query)
    assert back["error"] == ["access_denied"]
    assert back["iss"] == [served.base_url]
    assert "referer" not in sent.value.headers


class _Onward(BaseHTTPRequestHandler):
    """An app whose callback leads on to a page of its own, at another address."""

    def do_GET(self):
        path, port = urlsplit(self.path).path, self.server.server_port
        if path == "/callback":
            self.send_response(302)
            self.send_header("location", f"http://localhost:{port}/done")
            self.end_headers()
            return
        page = b'<!doctype html><link rel="icon" href="data:,"><title>Done</title>'
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_):
        pass


def test_an_app_may_lead_on_from_where_its_code_went(signed_in, served):
    app = HTTPServer(("127.0.0.1", 0), _Onward)
    thread = threading.Thread(target=app.serve_forever)
    thread.start()
    try:
        redirect_uri = f"http://127.0.0.1:{app.server_port}/callback"
        query = wish(served, redirect_uri)
        one = signed_in("apps")
        one.page.goto(str(httpx.URL("/connect", params=query)))
        one.expect(f":{app.server_port}/")
        one.page.get_by_role("button", name="Allow").click()
        one.page.wait_for_url(f"http://localhost:{app.server_port}/done")
    finally:
        app.shutdown()
        app.server_close()
        thread.join()
