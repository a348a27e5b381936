"""Downloads of pictures: limited in size, time, redirects and address, stored by their content."""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urljoin

import httpx

from searchlab.errors import InputError
from searchlab.files import PARTIAL
from searchlab.photos.images.decode import MAX_BYTES
from searchlab.photos.images.headers import FORMATS, sniff
from searchlab.photos.photo import web_url

_SUFFIXES: Final = {"JPEG": "jpg", "TIFF": "tif"}
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_HEAD: Final = 256


@dataclass(frozen=True)
class Limits:
    """What one download may take.

    Attributes:
        max_bytes: Size of the picture.
        max_seconds: Time from the first request to the last byte.
        max_redirects: Redirects on the way.
    """

    max_bytes: int = MAX_BYTES
    max_seconds: float = 60.0
    max_redirects: int = 5


class RetryLaterError(InputError):
    """A server asks to come back later.

    Attributes:
        response: The server's answer, whose headers may say when.
    """

    def __init__(self, message: str, response: httpx.Response) -> None:
        super().__init__(message)
        self.response = response


def download(
    client: httpx.Client,
    url: str,
    folder: Path,
    *,
    limits: Limits | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Path:
    """Download a picture into `folder/ab/SHA256.jpg`; the same content is kept once.

    Args:
        client: Over a `PinnedTransport`, which refuses private networks.
        url: Address of the picture.
        folder: Folder in which pictures are stored.
        limits: What the download may take; those of `Limits` if left out.
        clock: Returns seconds that only grow.

    Returns:
        Path of the picture.

    Raises:
        RetryLaterError: The server wants fewer requests.
        InputError: It is no picture, exceeds a limit, or cannot be downloaded.
    """
    limits = limits or Limits()
    until = clock() + limits.max_seconds
    try:
        for _ in range(limits.max_redirects + 1):
            # Compressed answers could become far too large when they are unpacked.
            request = client.build_request("GET", url, headers={"Accept-Encoding": "identity"})
            response = client.send(request, stream=True, follow_redirects=False)
            try:
                if response.status_code not in _REDIRECTS:
                    return _store_picture(response, folder, limits, until, clock)
                url = _target(url, response)
            finally:
                response.close()
            if clock() > until:
                raise InputError(_slow(limits))
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        msg = f"the picture cannot be downloaded: {type(error).__name__}"
        raise InputError(msg) from error
    msg = f"the picture must be at most {limits.max_redirects} redirects away"
    raise InputError(msg)


def _target(url: str, response: httpx.Response) -> str:
    try:
        target = web_url(urljoin(url, response.headers.get("location", "")))
    except ValueError:
        target = ""
    if not target or (url.startswith("https:") and not target.startswith("https:")):
        msg = "a redirect must lead to a web address, and from https to https"
        raise InputError(msg)
    return target


def _store_picture(
    response: httpx.Response,
    folder: Path,
    limits: Limits,
    until: float,
    clock: Callable[[], float],
) -> Path:
    if response.status_code in (429, 503):
        msg = f"the server answered {response.status_code}"
        raise RetryLaterError(msg, response)
    if response.status_code != 200:
        msg = f"the picture must be there, the server answered {response.status_code}"
        raise InputError(msg)
    if response.headers.get("content-encoding", "identity") != "identity":
        msg = "a picture must be sent as it is, got one that is compressed on the way"
        raise InputError(msg)
    length = response.headers.get("content-length", "")
    if length.isdigit() and int(length[:20]) > limits.max_bytes:
        raise InputError(_large(limits))
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f".{uuid.uuid4().hex}{PARTIAL}"
    try:
        digest, head, n_bytes = hashlib.sha256(), b"", 0
        with unfinished.open("xb") as file:
            for chunk in response.iter_raw():
                n_bytes += len(chunk)
                if n_bytes > limits.max_bytes:
                    raise InputError(_large(limits))
                if clock() > until:
                    raise InputError(_slow(limits))
                head = (head + chunk)[:_HEAD] if len(head) < _HEAD else head
                digest.update(chunk)
                file.write(chunk)
        kind = sniff(head)
        if kind not in FORMATS:
            msg = f"a link must lead to a picture, got {kind or 'something else'}"
            raise InputError(msg)
        suffix = _SUFFIXES.get(kind, kind.lower())
        place = folder / digest.hexdigest()[:2] / f"{digest.hexdigest()}.{suffix}"
        place.parent.mkdir(exist_ok=True)
        unfinished.replace(place)
        return place
    finally:
        unfinished.unlink(missing_ok=True)


def _large(limits: Limits) -> str:
    return f"a picture must be at most {limits.max_bytes:,} bytes"


def _slow(limits: Limits) -> str:
    return f"a picture must arrive within {limits.max_seconds:g} s"
