"""Where the terms of sources and licences stand on the web.

A source's photos may have several licences; each photo names its own. What the sources facet links
to is the first that there is of:

1. the page of an upstream library that has one set of terms for all its photos;
2. the text of the licence that most of the source's photos have, as for a folder of one's own;
3. `NOT_EVALUATED`, the statement that nobody has said what may be done with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from searchlab.photos.licenses import NAMED, license_url
from searchlab.sources import SOURCES

__all__ = ["LIBRARIES", "LICENSES", "NOT_EVALUATED", "license_url", "source_license_url"]

NOT_EVALUATED: Final = "https://rightsstatements.org/vocab/CNE/1.0/"

LIBRARIES: Final = {
    "burst": "https://www.shopify.com/stock-photos/licenses/shopify-some-rights-reserved",
    "nappy": "https://nappy.co/license",
    **{source.name: source.terms_url for source in SOURCES.values() if source.terms_url},
}
"""Pages of the libraries with one set of terms; two of them come through aggregators alone."""

LICENSES: Final = {name: terms.url for name, terms in NAMED.items() if terms.url}
"""Licences by name, those of Creative Commons that follow a pattern excepted."""


def source_license_url(source: str, counts: Mapping[str, int]) -> str:
    """Return where the terms of a source's photos stand.

    Args:
        source: Its name.
        counts: Its photos by licence.
    """
    if source.lower() in LIBRARIES:
        return LIBRARIES[source.lower()]
    most_first = sorted(counts, key=lambda name: (-counts[name], name))
    return next(filter(None, map(license_url, most_first)), NOT_EVALUATED)
