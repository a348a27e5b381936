"""Client documents: a client whose id is an address, where it says its name and redirect addresses.

Whoever asks for access chooses the address, so it is fetched as a link from a stranger is: over
https, from public addresses only, to the address that was checked, without redirects, and little.
"""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from searchlab.api.accounts.accounts import check_visible
from searchlab.api.oauth.redirects import MAX_URIS, check_redirect_uri
from searchlab.errors import InputError, quote

if TYPE_CHECKING:
    import httpx

MAX_BYTES: Final = 5 * 1024
MAX_SECONDS: Final = 5.0
MAX_LENGTH: Final = 500
REMEMBERED_S: Final = 900.0
_MOST_REMEMBERED: Final = 256
_ADDRESS: Final = re.compile(
    r"https://(?=[A-Za-z0-9.\-]*[A-Za-z])[A-Za-z0-9.\-]{1,253}(?::[0-9]{1,5})?"
    r"(?!/(?:[^?#]*/)?\.{1,2}(?:/|$))/[A-Za-z0-9\-._~!$&'()*+,;=:@/]+"
)


class OAuthClient(NamedTuple):
    """A client that asks for access.

    Attributes:
        client_id: Identifies it.
        name: What it calls itself.
        redirect_uris: Where codes for it may be sent.
        host: Where its description lies, which its owner controls; empty if it is registered here.
        is_vouched_for: Whether somebody other than itself has entered it here.
    """

    client_id: str
    name: str
    redirect_uris: tuple[str, ...]
    host: str = ""
    is_vouched_for: bool = False


class _Document(msgspec.Struct):
    client_id: str
    redirect_uris: Annotated[list[str], msgspec.Meta(min_length=1, max_length=100)]
    client_name: str = ""
    token_endpoint_auth_method: str = "none"


def is_address(client_id: str) -> bool:
    """Say whether a client's id may be the address of its description.

    >>> is_address("https://app.test/client.json"), is_address("https://app.test/a/../b")
    (True, False)
    """
    return len(client_id) <= MAX_LENGTH and _ADDRESS.fullmatch(client_id) is not None


def open_transport() -> httpx.BaseTransport:
    """Make what documents are fetched with: it reaches the public internet alone."""
    from searchlab.sources.fetch.addresses import PinnedTransport

    return PinnedTransport(max_seconds=MAX_SECONDS)


class ClientDocuments:
    """Reads the descriptions of clients, and remembers those that could be read."""

    def __init__(
        self,
        *,
        transport: Callable[[], httpx.BaseTransport] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Remember nothing yet.

        Args:
            transport: Makes what one document is fetched with; `open_transport` if left out.
            clock: Returns seconds that only grow.
        """
        self._transport = transport
        self._clock = clock
        self._remembered: OrderedDict[str, tuple[OAuthClient, float]] = OrderedDict()
        self._gate = threading.Lock()

    def recall(self, client_id: str) -> OAuthClient | None:
        """Return a client that is remembered, else None."""
        with self._gate:
            client, until = self._remembered.get(client_id, (None, 0.0))
        return client if self._clock() < until else None

    def find(self, client_id: str) -> OAuthClient:
        """Return a client, from memory or from the web.

        Raises:
            InputError: The address is malformed, cannot be reached or is not public, or what lies
                there is no description of this client.
        """
        client = self.recall(client_id)
        if client is not None:
            return client
        if not is_address(client_id):
            form, came = "https://app.example/client.json", quote(client_id)
            msg = f"client_id must be an address like {form}, got {came}"
            raise InputError(msg)
        client = _read(client_id, self._fetch(client_id))
        with self._gate:
            self._remembered.pop(client_id, None)
            self._remembered[client_id] = (client, self._clock() + REMEMBERED_S)
            if len(self._remembered) > _MOST_REMEMBERED:
                self._remembered.popitem(last=False)
        return client

    def _fetch(self, address: str) -> bytes:
        import httpx  # a server that nobody signs in to with an address starts sooner without it

        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        transport = (self._transport or open_transport)()
        try:
            with (
                httpx.Client(transport=transport, trust_env=False, timeout=MAX_SECONDS) as client,
                client.stream("GET", address, headers=headers, follow_redirects=False) as answer,
            ):
                return _read_answer(answer)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            msg = f"client_id must lead to a document, got {type(error).__name__} from its address"
            raise InputError(msg) from error


def _read_answer(answer: httpx.Response) -> bytes:
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if answer.status_code != 200:
        msg = f"client_id must lead to a document without redirects, got {answer.status_code}"
        raise InputError(msg)
    if kind != "application/json" and not kind.endswith("+json"):
        msg = f"client_id must lead to a document of application/json, got {quote(kind)}"
        raise InputError(msg)
    if answer.headers.get("content-encoding", "identity") != "identity":
        msg = "client_id must lead to a document as it is, got a compressed one"
        raise InputError(msg)
    content = b""
    for piece in answer.iter_raw():
        content += piece
        if len(content) > MAX_BYTES:
            msg = f"client_id must lead to a document of at most {MAX_BYTES:,} bytes, got more"
            raise InputError(msg)
    return content


def _read(client_id: str, content: bytes) -> OAuthClient:
    try:
        document = msgspec.json.decode(content, type=_Document)
    except msgspec.DecodeError as error:
        msg = f"the document of client_id must describe a client, got: {error}"
        raise InputError(msg) from error
    if document.client_id != client_id:
        msg = f"the document must be of {client_id}, got one of {quote(document.client_id)}"
        raise InputError(msg)
    if document.token_endpoint_auth_method != "none":
        msg = (
            "the document's token_endpoint_auth_method must be 'none', "
            f"got {quote(document.token_endpoint_auth_method)}"
        )
        raise InputError(msg)
    host = urlsplit(client_id).netloc.lower()
    name = check_visible(document.client_name or host, "client_name")
    return OAuthClient(client_id, name, _usable(document.redirect_uris), host)


def _usable(uris: list[str]) -> tuple[str, ...]:
    """Return the addresses that may receive codes; one document serves many servers."""
    usable = []
    for uri in uris:
        try:
            usable.append(check_redirect_uri(uri))
        except InputError:
            continue
    if not usable:
        msg = f"the document must have redirect addresses, got none of {len(uris)} that may be used"
        raise InputError(msg)
    return tuple(usable[: 5 * MAX_URIS])
