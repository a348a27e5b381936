"""Connecting to Ray: one started here for as long as it is needed, or one that runs already."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from searchlab.errors import InputError, MissingExtraError, SearchlabError

_LOOK_S: Final = 5.0


def parse_address(name: str) -> str:
    """Return the address in `ray:local` or `ray:ADDRESS`.

    Raises:
        InputError: It is no such name.
        MissingExtraError: Ray is not installed.
    """
    kind, _, address = name.partition(":")
    if kind != "ray" or not address:
        msg = f"a runner must be ray:local or ray:ADDRESS, got {name!r}"
        raise InputError(msg)
    try:
        import ray  # noqa: F401 - only whether it is there
    except ImportError as error:
        msg = f"{name} must find ray, got none; pip install 'searchlab[cluster]'"
        raise MissingExtraError(msg) from error
    return address


@contextmanager
def connect(name: str) -> Iterator[None]:
    """Connect this process to Ray, and leave it at the end unless it was connected before.

    Args:
        name: `ray:local` starts Ray on this machine and stops it at the end.

    Raises:
        InputError: It is no such name.
        MissingExtraError: Ray is not installed.
        SearchlabError: It cannot be reached.
    """
    address = parse_address(name)
    import ray

    if ray.is_initialized():  # the caller's own, which stays
        yield
        return
    _look(name, address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    if address == "local":
        options |= {"num_cpus": os.cpu_count(), "include_dashboard": False}
    try:
        ray.init(address=address, **options)
    except (ConnectionError, RuntimeError, ValueError) as error:
        msg = f"{name} must be a cluster that can be reached, got: {error}"
        raise SearchlabError(msg) from error
    try:
        yield
    finally:
        ray.shutdown()


def _look(name: str, address: str) -> None:
    """Look whether anybody listens at HOST:PORT; Ray itself would go on trying for minutes.

    Raises:
        SearchlabError: Nobody does.
    """
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal():  # a name that Ray finds by itself
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_LOOK_S).close()
    except (OSError, OverflowError) as error:
        msg = f"{name} must be a cluster that can be reached, got: {error}"
        raise SearchlabError(msg) from error
