"""Where the terms of sources and licences stand on the web.

A source's photos may have several licences; each photo names its own. What the sources facet links
to is the first that there is of:

1. the page of an upstream library that has one set of terms for all its photos;
2. the text of the licence that most of the source's photos have, as for a folder of one's own;
3. `NOT_EVALUATED`, the statement that nobody has said what may be done with them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

NOT_EVALUATED: Final = "https://rightsstatements.org/vocab/CNE/1.0/"

LIBRARIES: Final = {
    "burst": "https://www.shopify.com/stock-photos/licenses/shopify-some-rights-reserved",
    "nappy": "https://nappy.co/license",
    "nasa": "https://www.nasa.gov/nasa-brand-center/images-and-media/",
    "pexels": "https://www.pexels.com/license/",
    "pixabay": "https://pixabay.com/service/license-summary/",
    "rawpixel": "https://www.rawpixel.com/services/licenses",
    "stocksnap": "https://stocksnap.io/license",
    "unsplash": "https://unsplash.com/license",
}
"""Libraries with one set of terms."""

LICENSES: Final = {
    "bsd-3-clause": "https://opensource.org/license/bsd-3-clause",
    "cc0": "https://creativecommons.org/publicdomain/zero/1.0/",
    "gfdl-1.2": "https://www.gnu.org/licenses/old-licenses/fdl-1.2.html",
    "gfdl-1.3": "https://www.gnu.org/licenses/fdl-1.3.html",
    "gpl-2.0": "https://www.gnu.org/licenses/old-licenses/gpl-2.0.html",
    "gpl-3.0": "https://www.gnu.org/licenses/gpl-3.0.html",
    "lgpl-2.1": "https://www.gnu.org/licenses/old-licenses/lgpl-2.1.html",
    "lgpl-3.0": "https://www.gnu.org/licenses/lgpl-3.0.html",
    "public-domain": "https://creativecommons.org/publicdomain/mark/1.0/",
}
"""Licences by name, those of Creative Commons that follow a pattern excepted."""

_ATTRIBUTION = re.compile(r"(by(?:-nc)?(?:-sa|-nd)?)(?:-([1-4]\.[05]))?", re.ASCII)
_SAME = {"pdm": "public-domain", "cc0-1.0": "cc0", "cc-zero": "cc0"}


def license_url(license_type: str) -> str:
    """Return where a licence's text stands; empty where that is not known.

    >>> license_url("cc-by-sa-3.0")
    'https://creativecommons.org/licenses/by-sa/3.0/'
    >>> license_url("GPL-2.0-or-later")
    'https://www.gnu.org/licenses/old-licenses/gpl-2.0.html'
    """
    name = re.sub(r"[\s_-]+", "-", license_type.strip().lower())
    name = name.removesuffix("-or-later").removesuffix("-only")
    known = LICENSES.get(_SAME.get(name, name))
    if known is not None:
        return known
    parts = _ATTRIBUTION.fullmatch(name.removeprefix("cc-"))
    if parts is None:
        return ""
    return f"https://creativecommons.org/licenses/{parts[1]}/{parts[2] or '4.0'}/"


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
