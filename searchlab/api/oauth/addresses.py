"""Addresses: who issues tokens, what they are for, and under which names the server is asked."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from litestar import Request

from searchlab.api.http.context import context_of, services_of
from searchlab.api.settings import Settings
from searchlab.api.web.session_cookies import Site, is_loopback
from searchlab.api.wire.errors import HttpProblem

AUTHORIZATION_SERVER: Final = "/.well-known/oauth-authorization-server"
PROTECTED_RESOURCE: Final = "/.well-known/oauth-protected-resource"
_DEFAULT_PORTS: Final = {"https": 443, "http": 80}

AnyRequest = Request[Any, Any, Any]


def issuer_of(request: AnyRequest) -> str:
    """Return who issues tokens: the address of this server, without a slash at its end."""
    return context_of(request).base_url


def resource_of(request: AnyRequest) -> str:
    """Return the address of the tool server, which tokens are for."""
    return f"{services_of(request).settings.mcp_url or issuer_of(request)}/mcp"


def metadata_url_of(request: AnyRequest) -> str:
    """Return the address of the tool server's metadata (RFC 9728), for `challenge`."""
    parts = urlsplit(resource_of(request))
    return f"{parts.scheme}://{parts.netloc}{PROTECTED_RESOURCE}{parts.path}"


def is_resource(text: str, resource: str) -> bool:
    """Say whether a parameter `resource` names the tool server.

    >>> is_resource("HTTPS://Photos.test:443/mcp/", "https://photos.test/mcp")
    True
    >>> is_resource("https://photos.test.evil.test/mcp", "https://photos.test/mcp")
    False
    """
    return _normalize(text) == _normalize(resource)


def _normalize(address: str) -> tuple[str, str, int, str] | None:
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return None
    if not address.isascii() or parts.query or parts.fragment or "@" in parts.netloc:
        return None
    port = _DEFAULT_PORTS.get(parts.scheme, 0) if port is None else port
    return parts.scheme, parts.hostname or "", port, parts.path.rstrip("/")


def check_host(request: AnyRequest) -> None:
    """Refuse a request under a name that is not the server's, as after DNS rebinding.

    Without `base_url` a server has no name but those of its own machine.

    Raises:
        HttpProblem: The header `Host` names another server (403), or the connection is not safe
            enough for tokens (403).
    """
    settings = services_of(request).settings
    host = request.headers.get("host", "")
    if not is_own_host(host, settings):
        msg = "Host must be this server's, got another name; start the server with --base-url"
        raise HttpProblem(msg, "FORBIDDEN")
    if not Site(issuer_of(request)).can_sign_in:
        msg = "access is given over https:// alone, or on this machine; see --base-url"
        raise HttpProblem(msg, "FORBIDDEN")


def is_own_host(host: str, settings: Settings) -> bool:
    """Say whether a header `Host` names this server."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    own = {urlsplit(address).hostname for address in (settings.base_url, settings.mcp_url)}
    return is_loopback(name) or name in own - {None} or name == settings.host


def check_origin(request: AnyRequest) -> None:
    """Refuse what another site's page sends, unless the server allows its origin.

    Raises:
        HttpProblem: The header `Origin` is another site's (403).
    """
    settings = services_of(request).settings
    own = {_origin(issuer_of(request)), _origin(resource_of(request))}
    for origin in request.headers.getall("origin", []):
        if (
            origin not in own
            and origin not in settings.cors_origins
            and "*" not in (settings.cors_origins)
        ):
            msg = "Origin must be this server's or an allowed one, got another; see --cors-origin"
            raise HttpProblem(msg, "FORBIDDEN")


def _origin(address: str) -> str:
    parts = urlsplit(address)
    if parts.port == _DEFAULT_PORTS.get(parts.scheme):
        return f"{parts.scheme}://{parts.hostname}"
    return f"{parts.scheme}://{parts.netloc}"
