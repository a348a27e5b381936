"""Addresses of foreign engines, as `pgvector:URL` names one: what they may hold.

A config is stored in snapshots and results, and stands in the arguments of commands that everybody
on a machine can list. So an address holds no password.
"""

from __future__ import annotations

import re
from pathlib import PurePath
from urllib.parse import SplitResult, parse_qsl, urlsplit

from searchlab.errors import InputError, quote

_SECRET = re.compile(r"(password|passwd|pwd|token|secret|api_?key)", re.ASCII | re.IGNORECASE)
_LONGEST = 1_000


def check_postgres_url(name: str, address: str) -> None:
    """Check the address of a PostgreSQL database.

    Args:
        name: Name of the index, for messages.
        address: Such as `"postgresql://searchlab@db.example:5432/photos"`.

    Raises:
        InputError: It is no such URL, or it holds a password.
    """
    parts = _parts_of(name, address, "postgresql://USER@HOST/DATABASE")
    if parts.scheme not in ("postgresql", "postgres"):
        msg = f"{name} must have a URL like postgresql://USER@HOST/DATABASE, got {_shown(address)}"
        raise InputError(msg)
    _refuse_secrets(name, address, "put it into ~/.pgpass, PGPASSFILE or PGPASSWORD")


def check_milvus_uri(name: str, address: str) -> None:
    """Check the address of a Milvus: a file of Milvus Lite, or the URL of a server.

    Args:
        name: Name of the index, for messages.
        address: Such as `"./milvus.db"` or `"https://milvus.example:19530"`.

    Raises:
        InputError: It is neither, or it holds a password or a token.
    """
    form = "FILE.db or http://HOST:19530"
    parts = _parts_of(name, address, form)
    is_server = parts.scheme in ("http", "https") and parts.hostname
    if not is_server and ("://" in address or PurePath(address).suffix != ".db"):
        msg = f"{name} must have an address like {form}, got {_shown(address)}"
        raise InputError(msg)
    if is_server:
        _refuse_secrets(name, address, "put it into MILVUS_TOKEN")


def _parts_of(name: str, address: str, form: str) -> SplitResult:
    try:
        if 0 < len(address) <= _LONGEST and address.isprintable() and " " not in address:
            return urlsplit(address)
    except ValueError:
        pass
    msg = f"{name} must have an address, as {name}:{form}, got {_shown(address)}"
    raise InputError(msg)


def _refuse_secrets(name: str, address: str, remedy: str) -> None:
    parts = urlsplit(address)
    named = [key for key, value in parse_qsl(parts.query) if _SECRET.search(key) and value]
    if parts.password or [key for key in named if key != "passfile"]:
        msg = (
            f"the address of {name} must hold no password, since it is stored in snapshots and "
            f"listed by `ps`, got one; {remedy}"
        )
        raise InputError(msg)


def _shown(address: str) -> str:
    """Quote an address without what may be a password in it."""
    return quote(re.sub(r"//[^/]*@", "//...@", address.partition("?")[0]))
