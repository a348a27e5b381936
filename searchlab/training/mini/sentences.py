"""Sentences and names of things in many languages, with what they mean in English."""

from __future__ import annotations

import csv
import gzip
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HELD_OUT_SHARE = 40  # One in so many English sentences is kept apart, with its translations.


class Sentence(NamedTuple):
    """A sentence in any language.

    Attributes:
        language: BCP-47 tag.
        text: The sentence.
        english: Its English counterpart; empty if it has none.
        is_caption: Whether it says what a photo shows.
    """

    language: str
    text: str
    english: str
    is_caption: bool


class Name(NamedTuple):
    """A name of a thing in one language, with a name of it in English."""

    language: str
    text: str
    english: str


def read_sentences(datasets: Path) -> list[Sentence]:
    """Read all sentences of `sentences`; none where it is not at hand."""
    return [
        Sentence(row["lang"], row["text"], row["english"], row["kind"] == "caption")
        for path in sorted((datasets / "sentences").glob("*.tsv.gz"))
        for row in _read_rows(path)
    ]


def read_names(datasets: Path) -> list[Name]:
    """Read the names of things, each with the first English name of the same thing."""
    path = datasets / "sentences" / "names" / "names.tsv.gz"
    if not path.exists():
        return []
    rows = list(_read_rows(path))
    english: dict[str, str] = {}
    for row in rows:
        if row["lang"] == "en":
            english.setdefault(row["synset"], row["lemma"])
    return [Name(row["lang"], row["lemma"], english[row["synset"]]) for row in rows]


def is_held_out(english: str) -> bool:
    """Say whether an English sentence is one of those on which settings are chosen."""
    digest = hashlib.blake2b(english.encode(), digest_size=4).digest()
    return bool(english) and int.from_bytes(digest) % HELD_OUT_SHARE == 0


def _read_rows(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
