"""Site: the address of a server as its visitors see it, and the cookie that it may set there.

Browsers keep a cookie `__Host-...` only with `Secure`, and Chrome and Safari not over plain HTTP,
even on this machine. So there, and only there, the cookie has neither; and since browsers send a
machine's cookies to all of its ports, its name holds the port.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

from litestar import Request

from searchlab.api.accounts.sessions import LONGEST_LIFE
from searchlab.api.http.context import context_of

NEEDS_HTTPS: Final = (
    "signing in needs an address that begins with https://, or one of this machine such as "
    "http://127.0.0.1; put a proxy with a certificate in front and name it with --base-url"
)
_ATTRIBUTES = "Path=/; HttpOnly; SameSite=Lax"
_MAX_NEXT = 20_000  # an app may ask for access with thousands of characters, quoted here
_UNPLAIN = ' \\"<>^`{|}'


class Site:
    """An address that visitors use.

    Attributes:
        base_url: The address, without a slash at its end.
        is_secure: Whether it is HTTPS.
        can_sign_in: Whether a session's cookie is safe there: on HTTPS, or on this machine.
        cookie: Name of the cookie.
    """

    def __init__(self, base_url: str) -> None:
        """Take an address such as https://photos.example.org or http://127.0.0.1:8000."""
        parts = urlsplit(base_url)
        self.base_url = base_url
        self.is_secure = parts.scheme == "https"
        self.can_sign_in = self.is_secure or is_loopback(parts.hostname or "")
        self.cookie = "__Host-searchlab" if self.is_secure else f"searchlab-{parts.port or 80}"

    def sign_in_link(self, token: str) -> str:
        """Return the address that signs in with a token, which no browser sends to a server."""
        return f"{self.base_url}/sign-in#token={token}"

    def set_cookie(self, secret: str) -> str:
        """Return the header that makes the browser keep a session's secret."""
        return self._cookie(secret, int(LONGEST_LIFE.total_seconds()))

    def clear_cookie(self) -> str:
        """Return the header that makes the browser forget it."""
        return self._cookie("", 0)

    def _cookie(self, value: str, max_age_s: int) -> str:
        secure = "; Secure" if self.is_secure else ""
        return f"{self.cookie}={value}; Max-Age={max_age_s}; {_ATTRIBUTES}{secure}"


def site_of(request: Request[Any, Any, Any]) -> Site:
    """Return the site that a request came to."""
    return Site(context_of(request).base_url)


def secret_of(request: Request[Any, Any, Any]) -> str:
    """Return the session's secret that a request came with; empty if there is none."""
    site = site_of(request)
    return request.cookies.get(site.cookie, "") if site.can_sign_in else ""


def safe_next(text: str) -> str:
    """Return where to go after signing in, if that is a path of this server, else `/`.

    >>> safe_next("/photos/7?q=a#b"), safe_next("//evil.test"), safe_next("https://evil.test")
    ('/photos/7?q=a#b', '/', '/')
    """
    is_plain = text.isascii() and text.isprintable() and not set(text) & set(_UNPLAIN)
    # Also once decoded, as some proxies do before they pass a path on or redirect to it.
    path = unquote(text.partition("?")[0].partition("#")[0])
    is_path = path.startswith("/") and "//" not in path and "\\" not in path
    is_ours = is_plain and text.startswith("/") and is_path and path.isprintable()
    return text if is_ours and len(text) <= _MAX_NEXT else "/"


def sign_in_path(next_path: str) -> str:
    """Return the path of the sign-in page that leads on to another page."""
    return f"/sign-in?next={quote(next_path, safe='/')}"


def is_loopback(host: str) -> bool:
    """Say whether a name or address is one of this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
