"""Strange clients: what a server does with requests that no browser sends."""

from __future__ import annotations

import re
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

ASK = b"GET /api/v1/search/photos HTTP/1.1\r\nHost: a\r\n"
SEND = b"POST /api/v1/search/photos HTTP/1.1\r\nHost: a\r\n"
HALF_CLOSED = "a request, and then the sending half is closed"
STRANGE = {
    "an ordinary request": ASK + b"\r\n",
    "three requests at once (pipelining)": 3 * (ASK + b"\r\n"),
    "a connection that sends nothing": b"",
    "half a request head, and then nothing (slowloris)": ASK[:20],
    HALF_CLOSED: ASK + b"\r\n",
    "16 KB in one header": ASK + b"X-A: " + b"a" * 16_000 + b"\r\n\r\n",
    "1 MB in one header": ASK + b"X-A: " + b"a" * 1_000_000 + b"\r\n\r\n",
    "200 headers": ASK + b"".join(b"X-%d: a\r\n" % n for n in range(200)) + b"\r\n",
    "a path of 100 KB": b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
    "bytes that are no HTTP": b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
    "HTTP/9.9": b"GET / HTTP/9.9\r\nHost: a\r\n\r\n",
    "a NUL in a header": ASK + b"X-A: a\0b\r\n\r\n",
    "two different lengths of the body": SEND
    + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "a length below zero": SEND + b"Content-Length: -1\r\n\r\n",
    "HTTP/1.0": b"GET /api/v1/search/photos HTTP/1.0\r\n\r\n",
}


def try_strange_clients(address: str, *, patience_s: float) -> dict[str, str]:
    """Act as all strange clients at once; returns the answers and how each connection ended."""
    port = urlsplit(address).port or 80
    with ThreadPoolExecutor(len(STRANGE)) as pool:
        answers = {
            name: pool.submit(_try_strange_client, port, name, data, patience_s)
            for name, data in STRANGE.items()
        }
        return {name: answer.result() for name, answer in answers.items()}


def _try_strange_client(port: int, name: str, data: bytes, patience_s: float) -> str:
    started, received = time.perf_counter(), b""
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.settimeout(patience_s)
        try:
            client.sendall(data)
            if name == HALF_CLOSED:
                client.shutdown(socket.SHUT_WR)
            while part := client.recv(65_536):
                received += part
            end = f"closed after {time.perf_counter() - started:.0f} s"
        except TimeoutError:
            end = f"open after {patience_s:.0f} s"
        except OSError:
            end = "reset"
    statuses = re.findall(rb"HTTP/1\.[01] (\d{3})", received)
    return f"{', '.join(one.decode() for one in statuses) or 'no answer'}; {end}"
