"""Scopes: what a client may be allowed to do, and what people read about it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

SEARCH: Final = "search"
READ_COLLECTIONS: Final = "collections:read"
WRITE_COLLECTIONS: Final = "collections:write"
SCOPES: Final = {
    SEARCH: "Search photos, look at them, and see how much of your plan is used. Each search "
    "counts as one of yours.",
    READ_COLLECTIONS: "See your collections, private ones too, and the photos in them.",
    WRITE_COLLECTIONS: "Create, change and delete your collections, and put photos into them and "
    "take photos out.",
}
"""Each scope in words, in the order in which they are shown."""
DEFAULT_SCOPE: Final = SEARCH
"""Scope of a client that asks for none by name."""


def parse_scope(text: str) -> frozenset[str]:
    """Read the scopes in a parameter `scope`; unknown ones, which others know, are left out.

    >>> sorted(parse_scope("search offline_access collections:read"))
    ['collections:read', 'search']
    """
    return frozenset(text.split(" ")) & frozenset(SCOPES)


def write_scope(scopes: Iterable[str]) -> str:
    """Write scopes as a parameter, in the order in which they are shown.

    >>> write_scope({"collections:write", "search"})
    'search collections:write'
    """
    wanted = set(scopes)
    return " ".join(scope for scope in SCOPES if scope in wanted)
