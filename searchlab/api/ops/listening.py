"""The socket that all workers of a server listen on."""

from __future__ import annotations

import errno
import socket

from searchlab.errors import ConflictError, InputError

# A client that vanished is noticed within a minute. Beyond what is on its way, the kernel keeps so
# many bytes of a connection. The end of an answer does not wait until the client has acknowledged
# its beginning, which browsers do 40 ms later.
_INHERITED = {
    "TCP_NODELAY": 1,
    "TCP_KEEPIDLE": 30,
    "TCP_KEEPINTVL": 10,
    "TCP_KEEPCNT": 3,
    "TCP_NOTSENT_LOWAT": 128 * 1024,
}


def address_of(listener: socket.socket) -> str:
    """Return the address that a socket is bound to, such as http://127.0.0.1:8000."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def bind(host: str, port: int) -> socket.socket:
    """Open the socket that workers will listen on.

    Args:
        host: Name or address of an interface.
        port: Port number; 0 for any free one.

    Raises:
        InputError: The host is not one of this machine's.
        ConflictError: The port is in use, or this user may not use it.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        msg = f"host must be a name or address of this machine, got {host!r}"
        raise InputError(msg) from error
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _set_for_connections(listener)
        listener.bind(address)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRNOTAVAIL:
            msg = f"host must be a name or address of this machine, got {host!r}"
            raise InputError(msg) from error
        reason = {
            errno.EADDRINUSE: "one in use; stop what uses it or choose another with --port",
            errno.EACCES: "one for the administrator; choose one of 1024 and more with --port",
        }.get(error.errno or 0, str(error.strerror))
        msg = f"port must be free, got {port}, {reason}"
        raise ConflictError(msg) from error
    return listener


def _set_for_connections(listener: socket.socket) -> None:
    """Set what all connections inherit: clients that vanished are noticed, little is held back."""
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _INHERITED.items():
        if hasattr(socket, name):  # not every system has them all
            listener.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
