"""Upstream libraries: one small file each turns the library's own records into searchlab's.

A library's file says how its records are read, how its five sizes are addressed, what a credit must
say by its guideline, and how its API is searched. To add one, write the file and list it here; or
name its `Source` in a package of your own as an entry point of the group `searchlab.sources`.
"""

from __future__ import annotations

from typing import Final

from searchlab.errors import InputError, quote
from searchlab.plugins import load_plugin, plugin_names
from searchlab.sources.providers import (
    europeana,
    flickr,
    inaturalist,
    met,
    nasa,
    openverse,
    pexels,
    pixabay,
    rawpixel,
    smithsonian,
    stocksnap,
    unsplash,
    wikimedia,
    wordpress,
)
from searchlab.sources.source import Source

SHIPPED: Final[tuple[Source, ...]] = (
    unsplash.SOURCE,
    pexels.SOURCE,
    pixabay.SOURCE,
    flickr.SOURCE,
    wikimedia.SOURCE,
    openverse.SOURCE,
    stocksnap.SOURCE,
    rawpixel.SOURCE,
    nasa.SOURCE,
    inaturalist.SOURCE,
    met.SOURCE,
    smithsonian.SOURCE,
    europeana.SOURCE,
    wordpress.SOURCE,
)
SOURCES: Final = {source.name: source for source in SHIPPED}
"""Libraries by name: first the nine of the service, then later additions."""

PLUGINS: Final = "searchlab.sources"
"""Entry points by which other packages add libraries."""


def find_source(name: str) -> Source:
    """Return the library of a name.

    Raises:
        InputError: There is none of that name.
        MismatchError: It belongs to a plugin that cannot be imported.
    """
    source: Source | None = SOURCES.get(name) or load_plugin(PLUGINS, name)
    if source is None:
        listed = ", ".join([*SOURCES, *plugin_names(PLUGINS)])
        msg = f"source must be one of {listed}, got {quote(name)}"
        raise InputError(msg)
    return source
