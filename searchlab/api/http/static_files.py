"""Static files: the scripts, styles and pictures of pages, read once, told apart by their content.

Litestar's router sends validators that it does not compare: a browser that has a file would get it
again.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Final

from litestar import Request, Response, get
from litestar.exceptions import NotFoundException
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from searchlab.api.http.caching import names_tag

FOREVER: Final = "public, max-age=31536000, immutable"
"""For files whose address changes with them."""
_KINDS: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml; charset=utf-8",
}


def hash_files(folder: Path) -> str:
    """Return a hash of the names and contents of the files of a folder, 12 hex digits."""
    digest = hashlib.sha256()
    for name, content in sorted(_read(folder).items()):
        digest.update(name.encode() + b"\0" + hashlib.sha256(content).digest())
    return digest.hexdigest()[:12]


def serve_files(address: str, folder: Path) -> HTTPRouteHandler:
    """Make the route that sends the files of a folder, or 304 to who has them.

    Args:
        address: Path that they lie below; it must name `hash_files`, since they are kept for ever.
        folder: The folder, which is read once.
    """
    files = _read(folder)
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    tags = {name: f'"{digest[:24]}"' for name, digest in digests.items()}

    @get(f"{address}/{{name:path}}", sync_to_thread=False)
    def send_file(request: Request[Any, Any, Any], name: FromPath[str]) -> Response[bytes]:
        """Send a file."""
        name = str(name).lstrip("/")
        if name not in files:
            raise NotFoundException
        headers = {"ETag": tags[name], "Cache-Control": FOREVER}
        if names_tag(request, tags[name]):
            return Response(b"", status_code=304, headers=headers)
        return Response(files[name], media_type=_KINDS[Path(name).suffix], headers=headers)

    return send_file


def _read(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*.*") if path.suffix in _KINDS)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
