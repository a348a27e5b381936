"""Links to the terms of sources and licences on the web.

A source's photos may have several licences; each photo names its own. The sources facet links to
the first of these that exists:

1. the page of an upstream library that has one set of terms for all its photos;
2. the text of the licence that most of the source's photos have, for example of your own folder;
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
"""Pages of the libraries with one set of terms; the first two are reached through aggregators."""

LICENSES: Final = {name: terms.url for name, terms in NAMED.items() if terms.url}
"""Address by licence, without the Creative Commons licences, whose addresses follow a pattern."""


def source_license_url(source: str, counts: Mapping[str, int]) -> str:
    """Return the address of the terms of a source's photos.

    Args:
        source: Name of the source.
        counts: Number of its photos by licence.
    """
    if source.lower() in LIBRARIES:
        return LIBRARIES[source.lower()]
    most_first = sorted(counts, key=lambda name: (-counts[name], name))
    return next(filter(None, map(license_url, most_first)), NOT_EVALUATED)
