"""FacetLists: the values that the filters accept, encoded once per snapshot."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from searchlab.api.snapshots.encoded_photos import MEDIA_PREFIX
from searchlab.api.snapshots.lazy import Lazy
from searchlab.api.wire.license_links import source_license_url
from searchlab.api.wire.schema import Color, License, OrientationName, Source
from searchlab.photos.colors import FAMILIES
from searchlab.photos.photo import ORIENTATIONS
from searchlab.photos.table import PhotoTable
from searchlab.search.filters.photo_filter import known_values


class FacetLists:
    """The facets of one snapshot as JSON.

    Attributes:
        colors: The families of colours, from black over the rainbow to pink.
        sources: The upstream libraries of the photos, by name.
        orientations: The three orientations.
        licenses: Those of the photos and `free`, by name.
        has_remote_pictures: Whether the pictures of any photo lie at an upstream library.
    """

    def __init__(self, table: PhotoTable) -> None:
        self.colors = _encode([Color(name=n, hex=h.removeprefix("#")) for n, h in FAMILIES.items()])
        self.sources = _encode(_list_sources(table))
        self.orientations = _encode([OrientationName(name=name) for name in ORIENTATIONS])
        self.licenses = _encode([License(name=n) for n in known_values(table, "license_type")])
        self.has_remote_pictures = Lazy(
            lambda: not all(url.startswith(MEDIA_PREFIX) for url in table.texts("url_thumb"))
        )


def _list_sources(table: PhotoTable) -> list[Source]:
    sources, licenses = table.codes("source"), table.codes("license_type")
    pairs = sources.rows.astype(np.int64) * len(licenses.values) + licenses.rows
    n_pairs = len(sources.values) * len(licenses.values)
    counts = np.bincount(pairs, minlength=n_pairs).reshape(len(sources.values), -1)
    return [
        Source(
            name=name,
            license_url=source_license_url(
                name, {k: n for k, n in zip(licenses.values, row, strict=True) if n}
            ),
        )
        for name, row in zip(sources.values, counts.tolist(), strict=True)
    ]


def _encode(entries: Sequence[msgspec.Struct]) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(entries))
