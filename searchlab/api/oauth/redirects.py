"""Redirect addresses: which ones a client may have, and whether one that it names is among them.

An address is compared character by character, but for the port of one on the person's own machine,
which programs choose when they start (RFC 8252). So the forms that are allowed are narrow: no
parser may read another host from them than ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import quote_plus, urlencode

from searchlab.errors import InputError, quote

MAX_URIS: Final = 10
MAX_LENGTH: Final = 1_000
_MAX_PORT: Final = 65_535
_PATH = r"(?P<path>(?:/[A-Za-z0-9\-._~!$&'()*+,;=:@%/]*)?(?:\?[A-Za-z0-9\-._~!$&'()*+,;=:@%/?]*)?)"
_LABEL = r"(?!-)[A-Za-z0-9\-]{1,63}(?<!-)"
_WEB = re.compile(rf"https://(?P<host>{_LABEL}(?:\.{_LABEL})*)(?P<port>:[0-9]{{1,5}})?{_PATH}")
_LOOPBACK = re.compile(
    rf"http://(?P<host>127\.0\.0\.1|\[::1\]|localhost)(?P<port>:[0-9]{{1,5}})?{_PATH}"
)
_APP = re.compile(rf"(?P<scheme>[a-z][a-z0-9+\-.]*):(?://(?P<host>[A-Za-z0-9\-._]*))?{_PATH}")
# Schemes with a dot belong to whoever owns the name, as RFC 8252 asks; these are older than that.
_KNOWN_SCHEMES: Final = frozenset({"cursor", "vscode", "vscode-insiders", "windsurf", "zed"})


def check_redirect_uri(uri: str) -> str:
    """Check that an address may receive codes, and return it unchanged.

    Raises:
        InputError: It is none of https, of this machine by http, or of an app's own scheme; or it
            has a fragment, a name and password, or characters that belong in no address.
    """
    if len(uri) <= MAX_LENGTH and (_is_web(uri) or _is_of_app(uri)):
        return uri
    msg = (
        "a redirect address must be like https://app.example/callback, http://127.0.0.1/callback "
        f"or com.example.app:/callback, without a fragment, got {quote(uri)}"
    )
    raise InputError(msg)


def check_redirect_uris(uris: Iterable[str]) -> tuple[str, ...]:
    """Check the addresses that a client registers.

    Raises:
        InputError: There are none or too many, or one is malformed.
    """
    checked = tuple(dict.fromkeys(check_redirect_uri(uri) for uri in uris))
    if not 1 <= len(checked) <= MAX_URIS:
        msg = f"a client must have 1 to {MAX_URIS} redirect addresses, got {len(checked)}"
        raise InputError(msg)
    return checked


def is_loopback(uri: str) -> bool:
    """Say whether an address is on the machine of the person who uses it.

    >>> is_loopback("http://127.0.0.1:8912/x"), is_loopback("http://localhost.evil.test/")
    (True, False)
    """
    return _LOOPBACK.fullmatch(uri) is not None


def is_registered(uri: str, registered: Iterable[str]) -> bool:
    """Say whether a client may have its code sent to an address.

    >>> is_registered("http://localhost:7000/cb", ["http://localhost/cb"])
    True
    >>> is_registered("https://app.test/cb/", ["https://app.test/cb"])
    False
    """
    form = _without_port(uri)
    return any(
        uri == one or (form is not None and form == _without_port(one)) for one in registered
    )


def host_of(uri: str) -> str:
    """Return what people are shown of where a code goes: the host, or the scheme of an app."""
    match = _WEB.fullmatch(uri) or _LOOPBACK.fullmatch(uri)
    return match["host"] if match else uri.partition(":")[0]


def add_parameters(uri: str, parameters: Mapping[str, str]) -> str:
    """Append parameters to a redirect address, those that are empty left out."""
    query = urlencode({n: v for n, v in parameters.items() if v}, quote_via=quote_plus)
    return f"{uri}{'&' if '?' in uri else '?'}{query}"


def _is_web(uri: str) -> bool:
    match = _WEB.fullmatch(uri) or _LOOPBACK.fullmatch(uri)
    return match is not None and int((match["port"] or ":0")[1:]) <= _MAX_PORT


def _is_of_app(uri: str) -> bool:
    match = _APP.fullmatch(uri)
    return match is not None and ("." in match["scheme"] or match["scheme"] in _KNOWN_SCHEMES)


def _without_port(uri: str) -> tuple[str, str] | None:
    match = _LOOPBACK.fullmatch(uri)
    return None if match is None else (match["host"], match["path"])
