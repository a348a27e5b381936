"""What kinds of thing photos show and words mean, by WordNet: a hen is a chicken and a bird.

`demo/kinds.tsv` says by hand what each photo shows, `demo/words.tsv` what a word means; both name
synsets of WordNet 3.0 by their offsets in `data.noun`. A photo answers a word where it shows what
the word means or a kind of it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from searchlab.training.mini.labels import Nouns, read_nouns


class Words(NamedTuple):
    """Synset of each text, by where the text is from."""

    labels: dict[str, str]
    """English labels and titles."""
    keys: dict[str, str]
    """Keys of GCompris's words."""
    messages: dict[str, str]
    """English messages of GCompris."""
    english: dict[str, str]
    """Other words in English."""


class Kinds:
    """Which photos show a kind of thing.

    Raises:
        ValueError: A table names a synset that WordNet does not have, or by another name.
    """

    def __init__(self, folder: Path, wordnet: Path) -> None:
        nouns = read_nouns(wordnet)
        self._shown: dict[str, set[str]] = {}
        self._below: dict[str, set[str]] = {}
        for row in _rows(folder / "kinds.tsv", nouns):
            photo = row["source_photo_id"]
            for synset in {row["synset"], *nouns.find_above(row["synset"])}:
                self._below.setdefault(synset, set()).add(photo)
            self._shown.setdefault(row["synset"], set()).add(photo)
        tables: dict[str, dict[str, str]] = {
            "label": {},
            "word": {},
            "message": {},
            "english": {},
        }
        for row in _rows(folder / "words.tsv", nouns):
            tables[row["from"]][row["text"]] = row["synset"]
        self.words = Words(*(tables[name] for name in ("label", "word", "message", "english")))

    def shown(self, synset: str) -> set[str]:
        """Photos that show the very thing."""
        return self._shown.get(synset, set())

    def below(self, synsets: Iterable[str]) -> set[str]:
        """Photos that show one of the things, or a kind of one."""
        return set[str]().union(*(self._below.get(synset, set()) for synset in synsets))


def _rows(path: Path, nouns: Nouns) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    for row in rows:
        if nouns.names.get(row["synset"]) != row["name"]:
            msg = f"{path} must name synsets of WordNet 3.0, got {row['synset']} {row['name']}"
            raise ValueError(msg)
    return rows
