"""The vocabulary of licences: one name each, whatever a library calls it, and what it forbids.

Names are lower case with the version: `cc-by-2.0`, `cc-by-sa-4.0`, `cc0`, `public-domain`, and
`free` for the libraries' own licences that let anybody use a photo (Unsplash, Pexels, Pixabay ...).
Where the version is not known, the name has none: `cc-by`. National versions of Creative Commons
have the name of the international one; the link leads to theirs where the library gives it.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import urlsplit

FREE: Final = "free"
RESERVED: Final = "all-rights-reserved"

RESTRICTIONS: Final = {
    "nc": "forbids commercial use",
    "nd": "forbids adaptations",
    "reserved": "reserves rights that showing the photo needs",
    "none": "is no licence",
}
"""What keeps a photo out of a library, by the word for `--allow` that lets it in nevertheless."""


class Terms(NamedTuple):
    """What is known of a licence.

    Attributes:
        label: Name as people write it.
        url: Address of its text; empty where every library has its own.
        forbids: Words of `RESTRICTIONS` that hold for it.
    """

    label: str
    url: str = ""
    forbids: tuple[str, ...] = ()


_CC: Final = "https://creativecommons.org"
_GNU: Final = "https://www.gnu.org/licenses"
_RIGHTS: Final = "https://rightsstatements.org/vocab"

NAMED: Final = {
    "all-rights-reserved": Terms("All rights reserved", "", ("reserved",)),
    "attribution": Terms("Attribution"),
    "bsd-3-clause": Terms("BSD 3-Clause", "https://opensource.org/license/bsd-3-clause"),
    "cc-nc-sampling-plus-1.0": Terms(
        "CC NC-Sampling+ 1.0", f"{_CC}/licenses/nc-sampling+/1.0/", ("nc", "nd")
    ),
    "cc-sampling-plus-1.0": Terms(
        "CC Sampling+ 1.0", f"{_CC}/licenses/sampling+/1.0/", ("nc", "nd")
    ),
    "cc0": Terms("CC0 1.0", f"{_CC}/publicdomain/zero/1.0/"),
    "copyrighted-free-use": Terms("Copyrighted free use"),
    "fal-1.3": Terms("Free Art License 1.3", "https://artlibre.org/licence/lal/en/"),
    "free": Terms("Free licence"),
    "gfdl-1.2": Terms("GFDL 1.2", f"{_GNU}/old-licenses/fdl-1.2.html"),
    "gfdl-1.3": Terms("GFDL 1.3", f"{_GNU}/fdl-1.3.html"),
    "gpl-2.0": Terms("GPL 2.0", f"{_GNU}/old-licenses/gpl-2.0.html"),
    "gpl-3.0": Terms("GPL 3.0", f"{_GNU}/gpl-3.0.html"),
    "in-copyright": Terms("In copyright", f"{_RIGHTS}/InC/1.0/", ("reserved",)),
    "lgpl-2.1": Terms("LGPL 2.1", f"{_GNU}/old-licenses/lgpl-2.1.html"),
    "lgpl-3.0": Terms("LGPL 3.0", f"{_GNU}/lgpl-3.0.html"),
    "no-copyright-nc": Terms(
        "No copyright, non-commercial use only", f"{_RIGHTS}/NoC-NC/1.0/", ("nc",)
    ),
    "no-copyright-restricted": Terms(
        "No copyright, other restrictions", f"{_RIGHTS}/NoC-OKLR/1.0/", ("reserved",)
    ),
    "no-copyright-us": Terms("No copyright in the United States", f"{_RIGHTS}/NoC-US/1.0/"),
    "no-known-copyright": Terms("No known copyright restrictions", f"{_RIGHTS}/NKC/1.0/"),
    "not-evaluated": Terms("Copyright not evaluated", f"{_RIGHTS}/CNE/1.0/", ("none",)),
    "ogl-3.0": Terms(
        "OGL 3.0",
        "https://www.nationalarchives.gov.uk/doc/open-government-licence/version/3/",
    ),
    "public-domain": Terms("Public domain", f"{_CC}/publicdomain/mark/1.0/"),
    "undetermined": Terms("Copyright undetermined", f"{_RIGHTS}/UND/1.0/", ("none",)),
    "us-government-work": Terms(
        "United States government work", "https://www.usa.gov/government-copyright"
    ),
}
"""Licences by name, without those of Creative Commons that follow the pattern `cc-by-...`."""

_SAME: Final = {
    "arr": "all-rights-reserved",
    "cc-zero": "cc0",
    "cc0-1.0": "cc0",
    "cc-pdm": "public-domain",
    "cc-public-domain": "public-domain",
    "cc-public-domain-mark": "public-domain",
    "cc-sampling+-1.0": "cc-sampling-plus-1.0",
    "cc-nc-sampling+-1.0": "cc-nc-sampling-plus-1.0",
    "copyrighted": "in-copyright",
    "cc-pd-mark": "public-domain",
    "fal": "fal-1.3",
    "gfdl": "gfdl-1.2",
    "nc-sampling+": "cc-nc-sampling-plus-1.0",
    "nc-sampling+-1.0": "cc-nc-sampling-plus-1.0",
    "no-known-copyright-restrictions": "no-known-copyright",
    "no-known-restrictions": "no-known-copyright",
    "no-restrictions": "no-known-copyright",
    "ogl-3": "ogl-3.0",
    "pd": "public-domain",
    "pdm": "public-domain",
    "pdm-1.0": "public-domain",
    "pexels-license": "free",
    "pixabay-content-license": "free",
    "pixabay-license": "free",
    "public-domain-mark": "public-domain",
    "public-domain-mark-1.0": "public-domain",
    "sampling+": "cc-sampling-plus-1.0",
    "sampling+-1.0": "cc-sampling-plus-1.0",
    "unsplash-license": "free",
    "us-government": "us-government-work",
    "zero": "cc0",
}
_STATEMENTS: Final = {
    "cne": "not-evaluated",
    "nkc": "no-known-copyright",
    "noc-cr": "no-copyright-restricted",
    "noc-nc": "no-copyright-nc",
    "noc-oklr": "no-copyright-restricted",
    "noc-us": "no-copyright-us",
    "und": "undetermined",
}
_ATTRIBUTION: Final = re.compile(
    r"(cc-)?((?:by|nc|nd|sa)(?:-(?:nc|nd|sa))*)(?:-([1-4]\.[05])(?:-[1-4]\.[05])*)?"
    # The country of a national version; without either, "by Tom" is no licence.
    r"(?(1)(?:-[a-z]{2,3})?|(?(3)(?:-[a-z]{2,3})?))",
    re.ASCII,
)
_LONG: Final = (
    (r"creative-commons-", "cc-"),
    (r"attribution", "by"),
    (r"non-?commercial", "nc"),
    (r"no-?deriv(?:ative-?work|ative|)s?", "nd"),
    (r"share-?alike", "sa"),
    (r"-(?:international|unported|generic|licen[cs]e)(?=-|$)", ""),
)


@lru_cache(maxsize=4_096)
def normal_license(text: str, *, version: str = "") -> str:
    """Return a licence's name in this vocabulary; empty where it is not known.

    Args:
        text: What a library gives: a name, a code or the address of the licence.
        version: Its version, where the library gives it separately.

    >>> normal_license("CC BY-SA 3.0 de"), normal_license("by", version="2.0")
    ('cc-by-sa-3.0', 'cc-by-2.0')
    >>> normal_license("http://creativecommons.org/licenses/by-nc/4.0/deed.fr")
    'cc-by-nc-4.0'
    >>> normal_license("Unsplash License"), normal_license("WTFPL")
    ('free', '')
    """
    if "://" in text or text.startswith("//"):
        return _license_of_url(text)
    name = re.sub(r"[\s_,/-]+", "-", text.strip().lower().replace("(", "").replace(")", ""))
    plain = name.removesuffix("-or-later").removesuffix("-only")
    for candidate in (f"{name}-{version}", name, plain):
        known = _SAME.get(candidate, candidate)
        if known in NAMED:
            return known
    for pattern, short in _LONG:
        name = re.sub(pattern, short, name)
    return _creative_commons_name(name, version)


def _creative_commons_name(name: str, version: str = "") -> str:
    parts = _ATTRIBUTION.fullmatch(name)
    if parts is None:
        return ""
    given = set(parts[2].split("-"))
    elements = [element for element in ("by", "nc", "nd", "sa") if element in given]
    number = parts[3] or (version if re.fullmatch(r"[1-4]\.[05]", version, re.ASCII) else "")
    return "-".join(["cc", *elements, *([number] if number else [])])


def _license_of_url(url: str) -> str:
    try:
        parts = urlsplit(url.strip().lower())
    except ValueError:
        return ""
    host = (parts.hostname or "").removeprefix("www.")
    path = [step for step in parts.path.split("/") if step]
    if host == "creativecommons.org" and len(path) >= 2:
        if path[0] == "publicdomain":
            return {"zero": "cc0", "mark": "public-domain"}.get(path[1], "")
        if path[0] == "licenses":
            if path[1] == "publicdomain":
                return "public-domain"
            name = "-".join(path[1:3])
            return _SAME.get(name, "") if "sampling" in name else _creative_commons_name(name)
    if host == "rightsstatements.org" and len(path) >= 2:
        return "in-copyright" if path[1].startswith("inc") else _STATEMENTS.get(path[1], "")
    for start, name in (
        ("unsplash.com/license", FREE),
        ("pexels.com/license", FREE),
        ("pixabay.com/service/license", FREE),
        ("flickr.com/commons/usage", "no-known-copyright"),
        ("usa.gov/", "us-government-work"),
        ("europeana.eu/rights/rr-f", "in-copyright"),
        ("europeana.eu/rights/rr-p", "in-copyright"),
        ("europeana.eu/rights/out-of-copyright-non-commercial", "no-copyright-nc"),
        ("europeana.eu/rights/unknown", "undetermined"),
    ):
        if f"{host}{parts.path}".startswith(start):
            return name
    known = {terms.url.split("://")[1]: name for name, terms in NAMED.items() if terms.url}
    return known.get(f"{host}{parts.path}", known.get(f"www.{host}{parts.path}", ""))


def license_url(license_type: str) -> str:
    """Return the address of a licence's text; empty where it is not known.

    >>> license_url("cc-by-sa-3.0")
    'https://creativecommons.org/licenses/by-sa/3.0/'
    >>> license_url("GPL-2.0-or-later")
    'https://www.gnu.org/licenses/old-licenses/gpl-2.0.html'
    """
    name = normal_license(license_type)
    if name in NAMED:
        return NAMED[name].url
    parts = _ATTRIBUTION.fullmatch(name)
    return f"{_CC}/licenses/{parts[2]}/{parts[3] or '4.0'}/" if parts else ""


def license_label(license_type: str) -> str:
    """Return a licence's name as people write it.

    >>> license_label("cc-by-nc-sa-2.0"), license_label("cc0"), license_label("my own")
    ('CC BY-NC-SA 2.0', 'CC0 1.0', 'my own')
    """
    if license_type in NAMED:
        return NAMED[license_type].label
    parts = _ATTRIBUTION.fullmatch(license_type)
    return " ".join(filter(None, ("CC", parts[2].upper(), parts[3]))) if parts else license_type


def restrictions(license_type: str) -> frozenset[str]:
    """Return which words of `RESTRICTIONS` hold for a licence.

    >>> [sorted(restrictions(name)) for name in ("cc-by-nc-nd-4.0", "cc-by-4.0", "")]
    [['nc', 'nd'], [], ['none']]
    """
    if license_type in NAMED:
        return frozenset(NAMED[license_type].forbids)
    parts = _ATTRIBUTION.fullmatch(license_type)
    return frozenset({"nc", "nd"} & set(parts[2].split("-")) if parts else {"none"})


def refusal(license_type: str, allowed: Collection[str] = ()) -> str:
    """Say why a photo is not taken in; empty where it may be.

    Args:
        license_type: A name of this vocabulary.
        allowed: Words of `RESTRICTIONS` that the user lets in nevertheless.

    >>> refusal("cc-by-nc-2.0"), refusal("cc-by-nc-2.0", ["nc"])
    ('its licence cc-by-nc-2.0 forbids commercial use; `--allow nc` takes it in', '')
    """
    words = sorted(restrictions(license_type) - set(allowed))
    if not words:
        return ""
    options = " ".join(f"--allow {word}" for word in words)
    if not license_type:
        return f"its licence is not known; `{options}` takes it in"
    why = " and ".join(RESTRICTIONS[word] for word in words)
    return f"its licence {license_type} {why}; `{options}` takes it in"
