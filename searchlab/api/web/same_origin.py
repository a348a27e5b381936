"""The guard against forged requests: who may send a form to a page.

A browser says with `Sec-Fetch-Site` where a request comes from. One that does not is judged by its
`Origin`, which must be the host that it asks.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from litestar import Request

from searchlab.api.wire.errors import HttpProblem

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_SITES = frozenset({"same-origin", "none"})


def check_same_origin(request: Request[Any, Any, Any]) -> None:
    """Refuse a request that changes something and was not sent by a page of this server.

    Raises:
        HttpProblem: It came from elsewhere, or does not say where from (403).
    """
    if request.method in _SAFE:
        return
    headers = request.headers
    sites, origins = headers.getall("sec-fetch-site", []), headers.getall("origin", [])
    if len(sites) == 1 and sites[0] in _OWN_SITES:
        return
    if not sites and len(origins) == 1 and _is_at(origins[0], headers.getall("host", [])):
        return
    msg = "a form must be sent from a page of this server, got one from elsewhere; open it here"
    raise HttpProblem(msg, "FORBIDDEN")


def _is_at(origin: str, hosts: list[str]) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    is_web = parts.scheme in {"http", "https"}
    return is_web and len(hosts) == 1 and parts.netloc.lower() == hosts[0].lower() != ""
