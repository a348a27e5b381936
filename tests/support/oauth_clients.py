"""A client of OAuth as a program of others is: it registers, asks, and redeems what it gets."""

import hashlib
import html
import re
import secrets
from base64 import urlsafe_b64encode
from urllib.parse import parse_qs, urlencode

from tests.support.people import hidden

REDIRECT = "http://127.0.0.1:8765/callback"
LINK = re.compile(r'rel="noreferrer" href="([^"]*)"')


class Pretender:
    """A client and the person at its browser.

    Attributes:
        program: Client of HTTP without a session.
        person: Browser in which somebody is signed in.
        client_id: Given at registration.
        verifier: Of the request that was made last.
    """

    def __init__(
        self, program, person, *, redirect_uris=(REDIRECT,), client_id=None, name="Finder"
    ):
        self.program, self.person = program, person
        self.redirect_uri = redirect_uris[0]
        self.verifier = secrets.token_urlsafe(32)
        self.base_url = str(person.base_url).rstrip("/")
        self.client_id = client_id or self.register(redirect_uris, name).json()["client_id"]

    def register(self, redirect_uris, name="Finder", **more):
        body = {"redirect_uris": list(redirect_uris), "client_name": name, **more}
        return self.program.post("/oauth/register", json=body)

    def wish(self, **changes):
        """Return the parameters of a request for access; a value None leaves one out."""
        digest = hashlib.sha256(self.verifier.encode()).digest()
        wish = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "scope": "search collections:read",
            "state": "s 1&=",
            "code_challenge": urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
            "resource": f"{self.base_url}/mcp",
        } | changes
        return {name: value for name, value in wish.items() if value is not None}

    def ask(self, **changes):
        """Open the consent page."""
        return self.person.get(f"/connect?{urlencode(self.wish(**changes))}")

    def press(self, page, decision="allow"):
        """Press a button of the consent page; returns what the app gets."""
        answer = self.person.post("/connect", data=hidden(page.text) | {"decision": decision})
        assert answer.status_code == 303, answer.text
        return self.read_back(answer.headers["location"])

    def read_back(self, address):
        place, _, query = address.partition("?")
        assert place == self.redirect_uri
        return {name: values[0] for name, values in parse_qs(query).items()}

    def misfit(self, page):
        """Read what the app would get from a page that says what does not fit."""
        assert page.status_code == 422
        return self.read_back(html.unescape(LINK.search(page.text)[1]))

    def redeem(self, code, **changes):
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "code_verifier": self.verifier,
            "resource": f"{self.base_url}/mcp",
        } | changes
        return self.post("token", form)

    def renew(self, token, **changes):
        form = {"grant_type": "refresh_token", "refresh_token": token, "client_id": self.client_id}
        return self.post("token", form | changes)

    def post(self, what, form):
        sent = {name: value for name, value in form.items() if value is not None}
        return self.program.post(f"/oauth/{what}", data=sent)

    def connect(self, **changes):
        """Go through everything, and return the tokens."""
        answer = self.redeem(self.press(self.ask(**changes))["code"])
        assert answer.status_code == 200, answer.text
        return answer.json()
