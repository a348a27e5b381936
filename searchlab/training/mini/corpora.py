"""The words and captions that the text tower learns from."""

from __future__ import annotations

import csv
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

LOCALES = (
    "uk", "sv", "sl", "sk", "ru", "pt", "pl", "nl", "ka", "ja", "is", "hr", "gu", "gl", "gd", "ga",
    "fr", "es", "en", "en-GB", "el", "de", "da", "cs", "ca", "sq", "eu", "tr", "sr", "sr-Latn",
    "ro", "ml", "lv", "ko", "it", "id", "hy", "hu", "hi", "fi", "bg", "be", "am", "nn", "no", "af",
    "vi", "zh", "zh-Hant", "th", "ms", "ar", "zu", "he", "km", "fa", "kab", "mk", "sw", "cy", "lt",
    "ta", "ku", "pt-PT", "ast", "et", "vec", "ff", "br", "en-AU", "es-MX", "fil",
)  # fmt: skip
"""Locales of CLDR whose words the tower learns."""

CAPTION_LANGUAGES = ("en", "zh", "ar", "de", "fr", "cs", "pt", "hi", "nl")
CAPTION_FILES = (
    ("flickr8k-train", "captions.tsv"),
    ("flickr8k", "captions.tsv"),
    ("flickr8k-train", "captions_more.tsv"),
    ("web-photos", "captions.tsv"),
)
"""Folders and files of captions; the last two are left out where they are not at hand."""

_SKIN_TONES = re.compile("[\U0001f3fb-\U0001f3ff]")


class Caption(NamedTuple):
    """One line of a captions file."""

    photo_id: str
    language: str
    text: str


class Annotations(NamedTuple):
    """CLDR's short names and keywords: locale -> symbol -> text."""

    names: dict[str, dict[str, str]]
    keywords: dict[str, dict[str, list[str]]]


def read_annotations(folder: Path) -> Annotations:
    """Read the annotations of every locale in `LOCALES`.

    Symbols with a skin tone and flags are left out.

    Args:
        folder: Where the packages `cldr-annotations-full` and `cldr-annotations-derived-full` lie.
    """
    annotations = Annotations({}, {})
    for locale in LOCALES:
        for kind, package in (("annotations", "full"), ("annotationsDerived", "derived-full")):
            path = folder / f"cldr-annotations-{package}" / kind / locale / "annotations.json"
            if not path.exists():
                continue
            entries = json.loads(path.read_text(encoding="utf-8"))[kind]["annotations"]
            for symbol, entry in entries.items():
                if _SKIN_TONES.search(symbol) or _is_flag(symbol):
                    continue
                if "tts" in entry:
                    annotations.names.setdefault(locale, {})[symbol] = entry["tts"][0]
                if "default" in entry:
                    annotations.keywords.setdefault(locale, {})[symbol] = entry["default"]
    return annotations


def _is_flag(symbol: str) -> bool:
    return "\U0001f1e6" <= symbol[0] <= "\U0001f1ff"


def is_thing(symbol: str) -> bool:
    """Say whether a symbol shows what a photo could show: no arrow, clock, face or sign."""
    code = ord(symbol[0])
    unseen = ((0x2700, 0x2900), (0x1F500, 0x1F580), (0x1F600, 0x1F650), (0x1F910, 0x1F930))
    signs = (0x1F170, 0x1F300)
    return (
        code >= 0x2600
        and len(symbol) <= 2
        and not any(first <= code < last for first, last in (*unseen, signs))
    )


def list_phrases(annotations: Annotations) -> Iterator[tuple[str, str, list[str], str]]:
    """Yield (locale, phrase, English names that it stands for, "name" or "keyword")."""
    english = annotations.names["en"]
    for locale in LOCALES:
        for symbol, name in annotations.names.get(locale, {}).items():
            if symbol in english:
                yield locale, name, [english[symbol]], "name"
        meanings: dict[str, list[str]] = defaultdict(list)
        for symbol, words in annotations.keywords.get(locale, {}).items():
            if symbol in english:
                for word in words:
                    meanings[word].append(english[symbol])
        for word, names in meanings.items():
            yield locale, word, names, "keyword"


def read_tsv(path: Path) -> Iterator[dict[str, str]]:
    """Read a tab-separated file with a header and no quoting."""
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)


def training_captions(datasets: Path, photos: Collection[str]) -> Iterator[Caption]:
    """Yield the captions of some photos, given by their ids, in `CAPTION_LANGUAGES`."""
    for name, file in CAPTION_FILES:
        path = datasets / name / file
        if not path.exists():
            continue
        for row in read_tsv(path):
            if row["photo_id"] in photos and row["lang"] in CAPTION_LANGUAGES:
                yield Caption(row["photo_id"], row["lang"], row["text"])
