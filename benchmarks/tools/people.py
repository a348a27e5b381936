"""A person at a browser, as a script: signed in, reads what an app asks for, and allows it."""

from __future__ import annotations

import html
import re
from typing import NamedTuple

import httpx

from benchmarks.tools.served_tools import ServedTools
from searchlab.api.accounts.database import open_database
from searchlab.api.accounts.sessions import create_link, sign_in
from searchlab.api.web.session_cookies import Site
from searchlab.errors import DataError


class Allowed(NamedTuple):
    """What a person has allowed.

    Attributes:
        heading: Of the consent page.
        scopes: What the app could then do, in the page's words.
        address: Where the browser is sent, which holds the code.
    """

    heading: str
    scopes: list[str]
    address: str


class Person:
    """Somebody who is signed in to the account of a server."""

    def __init__(self, server: ServedTools, account: str = "local") -> None:
        """Sign in with a one-time link."""
        self._base_url = server.base_url
        database = open_database(server.database_url)
        token, _ = create_link(database, account)
        secret = sign_in(database, token, browser="a script") or ""
        database.close()
        self._cookies = {Site(server.base_url).cookie: secret}

    def allow(self, address: str) -> Allowed:
        """Open the consent page, and press Allow.

        Raises:
            DataError: The page leads nowhere.
        """
        with httpx.Client(cookies=self._cookies, timeout=60) as browser:
            page = browser.get(address).text
            fields = dict(re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', page))
            form = {name: html.unescape(value) for name, value in fields.items()}
            answer = browser.post(
                f"{self._base_url}/connect",
                data=form | {"decision": "allow"},
                headers={"sec-fetch-site": "same-origin"},
            )
        if answer.status_code != 303:
            msg = f"consent must lead back to the app, got {answer.status_code}: {page[:300]}"
            raise DataError(msg)
        title = re.search(r"<h1>(.*?)</h1>", page)
        heading = re.sub(r"<[^>]+>", "", title[1]) if title else ""
        asked = re.findall(r"<li>([^<]+)</li>", page)
        return Allowed(html.unescape(heading), asked, answer.headers["location"])
