"""The routes of the application, to tell which of them a soak has asked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

from searchlab.api.app import create_app
from searchlab.api.settings import Settings
from searchlab.api.snapshots.encoded_photos import MEDIA_PREFIX

NO_ROUTE = "(no route)"
_PART = re.compile(r"\{(\w+)\}")
_VERSION = re.compile(r"static/[^/]+/")  # of the files that pages name, another with each change
_DEEP = frozenset({"file_path", "path", "username"})  # parts of an address that may hold slashes


class Routes:
    """All routes that the application has; one that is new is in here by itself."""

    def __init__(self) -> None:
        """Read them from the application, which opens nothing for that."""
        methods = create_app(Settings(data=Path())).methods
        # Other HEADs than those of pictures are answered by the GET of the same path.
        self._methods = {
            path: frozenset(names.decode().split(", "))
            - ({"OPTIONS"} if path.startswith(MEDIA_PREFIX) else {"OPTIONS", "HEAD"})
            for path, names in methods.items()
        }
        # Of two that fit, as /judge/new and /judge/{name}, the one with more letters of its own.
        paths = sorted(self._methods, key=lambda path: -len(_PART.sub("", path)))
        self._patterns = [(re.compile(_pattern_of(path)), path) for path in paths]
        self._find = lru_cache(maxsize=8_192)(self._look)

    def name(self, method: str, address: str) -> str:
        """Name the route of a request, as `GET /api/v1/photos/{photo_id}`."""
        return f"{method} {_VERSION.sub('static/*/', self._find(urlsplit(address).path))}"

    def unasked(self, asked: Iterable[str]) -> list[str]:
        """List the routes that are not among some names."""
        every = {
            f"{method} {_VERSION.sub('static/*/', path)}"
            for path, names in self._methods.items()
            for method in names
        }
        return sorted(every.difference(asked))

    def _look(self, path: str) -> str:
        return next((name for form, name in self._patterns if form.fullmatch(path)), NO_ROUTE)


def _pattern_of(path: str) -> str:
    literal = iter(_PART.split(path))
    pattern = re.escape(next(literal))
    for name in literal:
        pattern += (".+" if name in _DEEP else "[^/]+") + re.escape(next(literal))
    return pattern
