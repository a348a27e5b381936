"""Addresses: who a request comes from, directly or through a proxy that is trusted."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from searchlab.errors import InputError, quote

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_V6_PREFIX = 64  # what one customer of a provider gets, who can use any address of it
_MAX_HOPS = 20


@lru_cache(maxsize=16_384)
def group_of(address: str) -> str:
    """Return what limits by address count by: an IPv4 address, or the /64 of an IPv6 address.

    >>> group_of("203.0.113.7"), group_of("::ffff:203.0.113.7"), group_of("2001:db8::7")
    ('203.0.113.7', '203.0.113.7', '2001:db8::/64')
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:  # a name, as in tests, or nothing
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, _V6_PREFIX), strict=False))


def parse_networks(texts: Sequence[str]) -> tuple[Network, ...]:
    """Read addresses and networks such as 10.0.0.0/8.

    Raises:
        InputError: One is malformed.
    """
    networks = []
    for text in texts:
        try:
            networks.append(ipaddress.ip_network(text.strip(), strict=False))
        except ValueError:
            msg = f"a trusted proxy must be an address or a network, got {quote(text)}"
            raise InputError(msg) from None
    return tuple(networks)


class Proxies:
    """Proxies whose header is believed when it says for whom they ask.

    A header is believed only from those, since anybody else may send it too.
    """

    def __init__(self, header: str, networks: Sequence[str]) -> None:
        """Trust some proxies.

        Args:
            header: Name of the header, such as X-Forwarded-For; none is believed if empty.
            networks: Addresses and networks of the proxies.

        Raises:
            InputError: A network is malformed.
        """
        self._header = header.strip().lower().encode("latin-1", "replace")
        self._networks = parse_networks(networks) if header else ()
        self._trusts = lru_cache(maxsize=16_384)(self._is_inside)

    @property
    def are_named(self) -> bool:
        """Whether any proxy is trusted."""
        return bool(self._networks)

    def trusts(self, address: str) -> bool:
        """Whether an address is that of a trusted proxy."""
        return bool(self._networks) and self._trusts(address)

    def _is_inside(self, address: str) -> bool:
        try:
            parsed = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return False
        mapped = getattr(parsed, "ipv4_mapped", None)
        return any((mapped or parsed) in network for network in self._networks)

    def client_of(self, scope: Any) -> str:
        """Return the group of the address that a request comes from; see `group_of`.

        Of a list, as in X-Forwarded-For, the last address that is no trusted proxy counts: what
        stands before it was written by the client.
        """
        peer = (scope.get("client") or ("", 0))[0]
        if not self.trusts(peer):
            return group_of(peer)
        values = [value for name, value in scope["headers"] if name == self._header]
        hops = b",".join(values).decode("latin-1").split(",")[-_MAX_HOPS:]
        for hop in reversed(hops):
            address = _without_port(hop.strip())
            if address and not self.trusts(address):
                return group_of(address)
        return group_of(peer)


def _without_port(text: str) -> str:
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0] if text.count(":") == 1 else text
