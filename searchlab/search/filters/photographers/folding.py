"""Folding: what names are compared by, so that neither case nor accents matter."""

from __future__ import annotations

import re
import unicodedata

# Accents and vowel points, and what cannot be seen; not the vowels of Indic scripts.
_DROPPED = re.compile(
    "[\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf"
    "\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u061c\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4"
    "\u06e7\u06e8\u06ea-\u06ed\u1ab0-\u1aff\u1dc0-\u1dff\u200b-\u200f\u202a-\u202e\u2060-\u2069"
    "\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f\ufeff]"
)
_ALIKE = str.maketrans(
    dict(zip("øđðłħŧıŋ‐‑‒–—―‘’ʼʻ′", "oddlhtin------'''''", strict=True))
    | {"æ": "ae", "œ": "oe", "þ": "th"}
)


def fold(text: str) -> str:
    """Reduce a text to what names are compared by: no case, no accents, single spaces.

    >>> fold("  Zoë  SØRENSEN-Łęcki "), fold("Straße"), fold("O’Neil")
    ('zoe sorensen-lecki', 'strasse', "o'neil")
    """
    if not text.isascii():
        bare = _DROPPED.sub("", unicodedata.normalize("NFKD", text)).casefold()
        text = unicodedata.normalize("NFKD", bare).translate(_ALIKE)
    return " ".join(_DROPPED.sub("", text).casefold().split())
