"""Requests that never reach a private network: names are resolved once, checked, and pinned.

Whoever writes a record chooses the links in it. A link, or what it redirects to, may lead to a
machine inside the network of whoever fetches it, or to a name that has a public address when it is
checked and a private one when it is used. Here the connection goes to the address that was checked.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import httpcore
import httpx

from searchlab.errors import InputError

# All that IANA has given out for the public internet; every other block is for something else.
_GLOBAL_UNICAST: Final = ipaddress.ip_network("2000::/3")
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")

Resolve = Callable[[str, int], list[str]]


def is_public(address: str) -> bool:
    """Say whether an address is on the public internet.

    Of IPv6 that is what was given out for it, and not what stands for an address of IPv4 by a form
    of its own: where such a one leads to, only the network that it is used in knows.

    >>> is_public("93.184.215.14"), is_public("10.0.0.1"), is_public("::ffff:127.0.0.1")
    (True, False, False)
    """
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour
        if ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
        if ip.teredo is not None or ip not in _GLOBAL_UNICAST:
            return False
    return ip.is_global and not ip.is_multicast


def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a name.

    Raises:
        OSError: It has none.
    """
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


class PinnedTransport(httpx.BaseTransport):
    """Connects to public addresses only; every request, redirected or not, is checked anew.

    A name is resolved when a connection is opened, and the address that was checked is the one
    that is connected to; certificates are checked against the name. A request as a whole, to the
    last byte of its answer, takes no longer than `max_seconds`, however slowly bytes drip in. Not
    for several requests at the same time.
    """

    def __init__(
        self,
        *,
        allowed: Collection[str] = (),
        resolve: Resolve = resolve,
        max_seconds: float = 60.0,
    ) -> None:
        """Make a transport without open connections.

        Args:
            allowed: Addresses that may be reached although they are not public, for tests.
            resolve: Returns the addresses of a name and port.
            max_seconds: The longest that one request may take.
        """
        self._backend = _CheckedBackend(frozenset(allowed), resolve)
        self._max_seconds = max_seconds
        self._pool = httpcore.ConnectionPool(
            ssl_context=httpx.create_ssl_context(),
            max_connections=4,
            max_keepalive_connections=2,
            network_backend=self._backend,
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a request.

        Raises:
            InputError: Its address is not on the public web.
            httpx.TransportError: The network fails, or takes too long.
        """
        url = request.url
        if url.scheme not in ("http", "https") or not url.host or url.userinfo:
            msg = f"a link must be a plain web address, got one to {url.host or 'nowhere'!r}"
            raise InputError(msg)
        self._backend.until = time.monotonic() + self._max_seconds
        sent = httpcore.Request(
            request.method,
            httpcore.URL(
                scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _as_httpx():
            answer = self._pool.handle_request(sent)
        return httpx.Response(
            answer.status,
            headers=answer.headers,
            stream=_Body(answer),
            extensions=answer.extensions,
        )

    def close(self) -> None:
        """Close every connection."""
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        with _as_httpx():
            yield from self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


@contextmanager
def _as_httpx() -> Iterator[None]:
    try:
        yield
    except httpcore.TimeoutException as error:
        raise httpx.ReadTimeout(str(error)) from error
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol) as error:
        raise httpx.NetworkError(str(error)) from error


class _CheckedBackend(httpcore.NetworkBackend):
    def __init__(self, allowed: frozenset[str], resolve: Resolve) -> None:
        self._allowed, self._resolve = allowed, resolve
        self._inner = httpcore.SyncBackend()
        self.until = 0.0

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        address = self._check_addresses(host, port)
        stream = self._inner.connect_tcp(
            address, port, self.left(timeout), local_address, socket_options
        )
        return _TimedStream(stream, self)

    def _check_addresses(self, host: str, port: int) -> str:
        try:
            addresses = self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            msg = f"no address of {host}: {error}"
            raise httpcore.ConnectError(msg) from error
        # A name with one private address among public ones is refused, too.
        for address in addresses:
            if not is_public(address) and address not in self._allowed:
                msg = f"a link must lead to the public web, got {host}, which is {address}"
                raise InputError(msg)
        if not addresses:
            msg = f"no address of {host}"
            raise httpcore.ConnectError(msg)
        return addresses[0]

    def left(self, timeout: float | None) -> float:
        """Return how many seconds the next step may take."""
        seconds = self.until - time.monotonic()
        if seconds <= 0:
            msg = "the request takes too long"
            raise httpcore.ReadTimeout(msg)
        return seconds if timeout is None else min(timeout, seconds)


class _TimedStream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream, backend: _CheckedBackend) -> None:
        self._inner, self._backend = inner, backend

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, self._backend.left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, self._backend.left(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        left = self._backend.left(timeout)
        return _TimedStream(
            self._inner.start_tls(ssl_context, server_hostname, left), self._backend
        )

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
