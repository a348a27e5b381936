"""Settings: the options of `searchlab serve`, checked, and handed to its workers."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self
from urllib.parse import urlsplit

import msgspec

from searchlab.api.http.addresses import parse_networks
from searchlab.errors import InputError, quote

ENVIRONMENT = "SEARCHLAB_SERVE"
METRICS_ENVIRONMENT = "PROMETHEUS_MULTIPROC_DIR"
"""Variable with the folder of the workers' counters; prometheus_client reads it when imported."""
API_PREFIX = "/api/"
MCP_PATH = "/mcp"
API_VERSION = "v1.0.0"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The options of a server; its workers read them from one environment variable.

    Attributes:
        data: Folder of the library.
        config: A chosen configuration to publish before serving.
        database_url: Database of keys, collections and usage; a SQLite file in `data` if empty.
        host: Address to listen on.
        port: Port to listen on.
        workers: Processes that share the library.
        base_url: Address that links in answers start with; the request's own address if empty.
        mcp_url: Address under which clients of language models reach `/mcp`; `base_url` if empty.
        visitors: Account whose quota visitors of the pages search on without signing in; they must
            sign in if empty.
        cors_origins: Origins whose web pages may call the API; `*` allows every origin.
        rate_per_second: Requests per second that a key may send continuously.
        rate_burst: Requests that a key may send at once.
        max_in_flight: Requests that a worker handles at once; more are answered 503.
        max_connections_per_address: Connections to a worker that one address may hold.
        trusted_proxy_header: Header that says for which address a trusted proxy asks; none if
            empty.
        trusted_proxies: Addresses and networks of the proxies whose header is believed.
        send_timeout_s: Seconds after which a connection is closed whose client reads nothing.
        max_upload_bytes: Largest allowed size of an uploaded body.
        decode_slots: Pictures that a worker decodes at once.
        decode_timeout_s: Seconds that reading an uploaded picture may take.
        show_places: Whether originals are sent as they are, with places and keywords in them, and
            words are looked up in places, keywords and names of files and folders, too.
        poll_s: Seconds between two checks for a new snapshot.
        on: `ray:ADDRESS` of a cluster whose actors search the vectors; each worker does if empty.
        shards: Parts that the library is cut into there.
        replicas: Actors for each part.
        shard_cpus: Processors that an actor takes.
        shard_timeout_s: Seconds within which all parts must have answered.
        shard_open_timeout_s: Seconds within which all parts must have opened a snapshot.
        log_format: `text` or `json`.
        access_log: Whether to write a line for each request.
        run_folder: Folder where the workers of one server share counters; empty outside a server.

    Raises:
        InputError: A value is out of range or malformed.
    """

    data: Path
    config: Path | None = None
    database_url: str = field(default="", repr=False)
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    base_url: str = ""
    mcp_url: str = ""
    visitors: str = ""
    cors_origins: tuple[str, ...] = ()
    rate_per_second: float = 200.0
    rate_burst: int = 400
    max_in_flight: int = 512
    max_connections_per_address: int = 512
    trusted_proxy_header: str = ""
    trusted_proxies: tuple[str, ...] = ("127.0.0.0/8", "::1/128")
    send_timeout_s: float = 30.0
    max_upload_bytes: int = 20 * 2**20
    decode_slots: int = 2
    decode_timeout_s: float = 10.0
    show_places: bool = False
    poll_s: float = 0.1
    on: str = ""
    shards: int = 2
    replicas: int = 1
    shard_cpus: float = 1.0
    shard_timeout_s: float = 5.0
    shard_open_timeout_s: float = 600.0
    log_format: Literal["text", "json"] = "text"
    access_log: bool = True
    run_folder: str = ""

    def __post_init__(self) -> None:
        for name, low, high in (
            ("port", 0, 65_535),
            ("workers", 1, 256),
            ("rate_per_second", 0.001, 1e9),
            ("rate_burst", 1, 10**9),
            ("max_in_flight", 1, 10**6),
            ("max_connections_per_address", 1, 10**6),
            ("send_timeout_s", 0.1, 3600),
            ("max_upload_bytes", 1024, 2**31),
            ("decode_slots", 1, 256),
            ("decode_timeout_s", 0.1, 600),
            ("poll_s", 0.01, 60),
            ("shards", 1, 10_000),
            ("replicas", 1, 100),
            ("shard_cpus", 0.001, 1000),
            ("shard_timeout_s", 0.01, 600),
            ("shard_open_timeout_s", 0.01, 86_400),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                msg = f"{name} must be from {low:g} to {high:g}, got {quote(value)}"
                raise InputError(msg)
        if self.log_format not in {"text", "json"}:
            msg = f"log_format must be text or json, got {quote(self.log_format)}"
            raise InputError(msg)
        if self.on == "ray:local" and self.workers > 1:
            msg = (
                f"{self.workers} workers must share a cluster, got ray:local, which each would "
                "start for itself; run `ray start --head` and name ray:auto"
            )
            raise InputError(msg)
        parse_networks(self.trusted_proxies)
        # Normalised to the form that browsers send, since they are compared and joined as text.
        for name in ("base_url", "mcp_url"):
            address = getattr(self, name)
            object.__setattr__(self, name, address and _address(name, address))
        origins = tuple(_origin(text) for text in self.cors_origins)
        object.__setattr__(self, "cors_origins", origins)

    def to_env(self) -> str:
        """Return the settings as one line of JSON, for `from_env`."""
        return msgspec.json.encode(self, enc_hook=str).decode()

    @classmethod
    def from_env(cls) -> Self:
        """Read the settings that the parent process has put into the environment.

        Raises:
            InputError: The environment holds none; `searchlab serve` sets them.
        """
        line = os.environ.get(ENVIRONMENT)
        if line is None:
            msg = f"{ENVIRONMENT} must hold the settings, got none; start with `searchlab serve`"
            raise InputError(msg)
        return msgspec.json.decode(line, type=cls, dec_hook=lambda kind, value: kind(value))


def _address(name: str, text: str) -> str:
    msg = f"{name} must be like https://photos.example.org, got {quote(text)}"
    try:
        parts = urlsplit(text)
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError:  # a port that is no number, or an unclosed bracket
        raise InputError(msg) from None
    extra = " " in text or "?" in text or "#" in text or "@" in parts.netloc
    if parts.scheme not in {"http", "https"} or not parts.hostname or extra:
        raise InputError(msg)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"


def _origin(text: str) -> str:
    if text == "*":
        return text
    address = _address("cors_origins", text)
    if address.count("/") > 2:
        msg = f"cors_origins must be origins, without a path, got {quote(text)}"
        raise InputError(msg)
    scheme, _, rest = address.partition("://")
    # Browsers leave out the default port.
    return f"{scheme}://{rest.removesuffix(':443' if scheme == 'https' else ':80')}"
