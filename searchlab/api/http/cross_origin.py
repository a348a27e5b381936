"""CORS: which web pages of other origins may call the API from a browser."""

from __future__ import annotations

from typing import Final, NamedTuple

_METHODS = b"GET, POST, PUT, DELETE, OPTIONS"
_SENT = (
    b"authorization, content-type, idempotency-key, if-none-match, mcp-method, mcp-name, "
    b"mcp-protocol-version, mcp-session-id, x-api-key"
)
_SHOWN = (
    b"etag, idempotency-replayed, ratelimit, ratelimit-policy, retry-after, server-timing, "
    b"www-authenticate, x-request-id, x-searchlab-config, x-searchlab-plan, x-searchlab-snapshot"
)
_DAY_S = b"86400"


class CrossOrigin(NamedTuple):
    """The allowed origins; `*` allows all.

    Keys and tokens travel in a header and never in a cookie, so no credentials are allowed.
    """

    origins: tuple[str, ...]

    def headers(self, origin: bytes) -> list[tuple[bytes, bytes]]:
        """Return the headers of an answer to a page of this origin."""
        vary = (b"vary", b"Origin")
        if "*" in self.origins:
            allowed = b"*"
        elif origin.decode("latin-1") in self.origins:
            allowed = origin
        else:
            return [vary] if self.origins else []
        shown = (b"access-control-expose-headers", _SHOWN)
        return [(b"access-control-allow-origin", allowed), shown, vary]

    def preflight(self, origin: bytes) -> list[tuple[bytes, bytes]]:
        """Return what else the answer to a preflight request has, which browsers send first."""
        if len(self.headers(origin)) < 2:
            return []
        return [
            (b"access-control-allow-methods", _METHODS),
            (b"access-control-allow-headers", _SENT),
            (b"access-control-max-age", _DAY_S),
        ]


FOR_ALL: Final = CrossOrigin(("*",))
"""Lets pages of any origin read what is public anyway."""
