"""A library read through for damage: the state in force, and every database."""

from __future__ import annotations

from collections.abc import Iterator

from searchlab.library.databases import check_database
from searchlab.library.library import Library

_REMEDIES = {
    "cache.db": "delete it and index again, which embeds all photos anew",
    "api.db": "put that of a backup in its place with `searchlab restore`",
}


def check_library(library: Library) -> Iterator[str]:
    """Read every file of the state in force, and every database.

    Older states, which are kept for cursors alone, are left out: they go by themselves.

    Args:
        library: It may be served and indexed meanwhile.

    Yields:
        The name of each, once it was found sound.

    Raises:
        DataError: One is damaged; names it and the remedy.
        NotFoundError: Nothing was indexed yet.
    """
    yield from library.check()
    for path in sorted(library.folder.glob("*.db")):
        check_database(path, remedy=_REMEDIES.get(path.name, "put that of a backup in its place"))
        yield path.name
