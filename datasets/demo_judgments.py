"""The queries of `datasets/demo` and which photos answer them, each judgment with its origin.

| origin | what makes a photo relevant |
|---|---|
| name | the text is its label, title or alt text, or the word for the very thing it shows |
| category | GCompris sorts it into the category that the text names |
| kind | it shows a kind of what the text names, by WordNet |
| eye | somebody looked at every photo for the query and said so; 0 where it is no answer |
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gcompris import MESSAGES, Gcompris
from kinds import Kinds

from searchlab.evaluation.datasets import language_tag

_KINDS = ("label", "title", "alt", "category")


@dataclass
class _Asked:
    """One text of a language, however it is spelt: its photos, and what it means."""

    photos: dict[str, str] = field(default_factory=dict)  # photo -> origin
    synsets: set[str] = field(default_factory=set)
    is_plain: bool = True  # every photo's English name says just what kind of thing it is


def read_tsv(path: Path) -> list[dict[str, str]]:
    """Return the rows of a TSV file with a header line."""
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def write_tsv(path: Path, header: str, rows: list[tuple[str, ...]]) -> None:
    """Write rows under a header of names divided by spaces."""
    lines = ["\t".join(header.split()), *("\t".join(row) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def folded(text: str) -> str:
    """Return a text without what does not change its meaning: case and a closing full stop."""
    return text.casefold().rstrip(" .。।")


class Judgments:
    """Texts are told one after another; queries are numbered in that order.

    Attributes:
        source_of: Photo -> its source.
        titles: Photo -> its English title.
        kinds: What photos show and words mean.
    """

    def __init__(self, source_of: dict[str, str], titles: dict[str, str], kinds: Kinds) -> None:
        self.source_of, self.titles, self.kinds = source_of, titles, kinds
        self._kind_of: dict[tuple[str, str], str] = {}
        self._asked: dict[tuple[str, str], _Asked] = {}

    def tell(self, kind: str, lang: str, text: str, photo: str, origin: str = "name") -> None:
        """Say that a text of a language names a photo."""
        asked = self._ask(kind, lang, text)
        asked.photos.setdefault(photo, origin)
        synset = self.kinds.words.labels.get(self.titles[photo])
        if kind in ("alt", "category") or synset is None:
            asked.is_plain = False
        else:
            asked.synsets.add(synset)

    def leave_out(self, kind: str, lang: str, text: str) -> None:
        """Say that a text is no query unless it is told as well; other queries keep their ids."""
        self._ask(kind, lang, text)

    def tell_word(self, kind: str, lang: str, text: str, synset: str) -> None:
        """Say what a text of a language means; nothing where no photo shows it."""
        if self.kinds.below([synset]):
            asked = self._ask(kind, lang, text)
            asked.synsets.add(synset)
            for photo in sorted(self.kinds.shown(synset)):
                asked.photos.setdefault(photo, "name")

    def _ask(self, kind: str, lang: str, text: str) -> _Asked:
        # Texts that differ only in case or full stop share their photos, and a title spelled like
        # a label is that label's query.
        key = (lang, folded(text))
        if kind == "label" or key not in self._asked:
            self._kind_of.setdefault((lang, text), kind)
        return self._asked.setdefault(key, _Asked())

    def write(self, target: Path, eye: dict[str, dict[str, int]]) -> None:
        """Write queries.tsv and qrels.tsv.

        Args:
            target: The folder.
            eye: English query -> photo -> grade; every other photo was looked at and is none.
        """
        counts: dict[tuple[str, str], int] = {}
        queries: list[tuple[str, ...]] = []
        qrels: list[tuple[str, ...]] = []

        def add(kind: str, lang: str, text: str, grades: Iterable[tuple[str, int, str]]) -> None:
            number = counts[kind, lang] = counts.get((kind, lang), 0) + 1
            query = f"{kind}-{lang}-{number:04d}"
            if not (grades := sorted(grades)):
                return
            queries.append((query, lang, kind, text))
            for photo, grade, origin in grades:
                qrels.append((query, self.source_of[photo], photo, str(grade), origin))

        for (lang, text), kind in self._kind_of.items():
            asked = self._asked[lang, folded(text)]
            wider = self.kinds.below(asked.synsets) if asked.is_plain else set()
            origins = dict.fromkeys(wider, "kind") | asked.photos
            add(kind, lang, text, ((photo, 1, origin) for photo, origin in origins.items()))
        for text, grades in eye.items():
            known = dict.fromkeys(self.source_of, 0) | grades
            add("everyday", "en", text, ((photo, grade, "eye") for photo, grade in known.items()))
        write_tsv(target / "queries.tsv", "query_id lang kind text", queries)
        write_tsv(target / "qrels.tsv", "query_id source source_photo_id relevance origin", qrels)


def tell_stamps(judgments: Judgments, shared: Path, dropped: Path) -> None:
    """Tell the labels of the stamps in Tux Paint's translations that name what is seen."""
    skipped = {(row["source_photo_id"], row["locale"]) for row in read_tsv(dropped)}
    relevant: dict[str, set[str]] = {}
    for row in read_tsv(shared / "stamps/qrels.tsv"):
        relevant.setdefault(row["query_id"], set()).add(row["photo_id"])
    for row in read_tsv(shared / "stamps/queries.tsv"):
        for photo in sorted(relevant[row["query_id"]]):
            lang, text = language_tag(row["lang"]), row["text"].strip()
            if skipped & {(photo, "*"), (photo, row["lang"])}:
                judgments.leave_out("label", lang, text)
            else:
                judgments.tell("label", lang, text, photo)


def tell_titles(judgments: Judgments, shared: Path, dropped: Path) -> None:
    """Tell the titles of the wallpapers and test pictures that say what is seen."""
    for photo, lang, text in _title_texts(shared, dropped):
        judgments.tell("title", lang, text.strip(), photo)


def _title_texts(shared: Path, dropped: Path) -> Iterator[tuple[str, str, str]]:
    skipped = {(row["source_photo_id"], row["locale"]) for row in read_tsv(dropped)}
    for line in (shared / "demo-photos/photos.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        photo, english = row["photo_id"], row["title"]
        if (photo, "*") in skipped:
            continue
        yield photo, "en", english
        for locale, text in sorted((row["title_translations"] or {}).items()):
            # "By the water 河畔" and "Evening Glow (brillantia de vespere)": the new part only.
            # A translation equal to the English title may be none, so it goes as well.
            again = re.compile(rf"{re.escape(english)}(?!\w)", re.IGNORECASE)
            text = again.sub("", text, count=1).strip(" ()")
            if text and locale not in {"en", "x-test"} and (photo, locale) not in skipped:
                yield photo, language_tag(locale), text


def tell_english(judgments: Judgments) -> None:
    """Tell the English words that no package has."""
    for text, synset in judgments.kinds.words.english.items():
        judgments.tell_word("label", "en", text, synset)


def tell_gcompris(judgments: Judgments, package: Gcompris, records: list[dict[str, Any]]) -> None:
    """Tell titles, categories and words of GCompris in every language that it has them in."""
    words, titles = judgments.kinds.words, judgments.titles
    for locale in package.locales:
        lang = language_tag(locale)
        messages = package.messages.get(locale, {})
        for record in records:
            photo = record["source_photo_id"]
            text = titles[photo] if locale == "en" else messages.get(titles[photo])
            if text:
                judgments.tell("title", lang, text.strip(), photo)
        for category, message in MESSAGES.items():
            text = message if locale == "en" else messages.get(message)
            for record in records:
                if text and category in record["tags"]:
                    photo = record["source_photo_id"]
                    judgments.tell("category", lang, text.strip(), photo, "category")
        for message, synset in words.messages.items():
            text = message if locale == "en" else messages.get(message)
            if text:
                judgments.tell_word("category", lang, text.strip(), synset)
        known = package.words(locale)
        for key, synset in words.keys.items():
            if known.get(key, "").strip():
                judgments.tell_word("label", lang, known[key].strip(), synset)
