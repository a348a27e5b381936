"""Datasets with texts there: what is written about the photos may be read by what is measured.

The others measure with texts withheld, as if nothing were written, because their queries were taken
from these texts. Libraries of people are of both kinds, so both are measured.
"""

from __future__ import annotations

import hashlib
import random
import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import replace

from searchlab.errors import InputError
from searchlab.evaluation.datasets.dataset import Dataset
from searchlab.evaluation.datasets.labelled import TEXT_FIELDS, LabelledQuery

_WRITTEN = (*sorted(TEXT_FIELDS), "tags")
_WORDS_TO_MISSPELL = re.compile(r"[^\W\d_]{5,}")
_SCRIPTS = ("LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "GEORGIAN", "HEBREW", "ARABIC")


def derive_written(base: Dataset, name: str) -> Dataset:
    """Make the dataset of the same queries with every text there, also those they were taken from.

    Args:
        base: Any dataset.
        name: Name of the new dataset.
    """
    kinds = {*base.withholds, *(query.kind for query in base.queries)}
    nothing: dict[str, frozenset[str]] = dict.fromkeys(kinds, frozenset())
    made = replace(base, name=name, withholds=nothing, part_of="")
    return replace(made, revision=_hash(f"{base.revision} written"))


def rewrite(base: Dataset, name: str, texts: Mapping[str, Mapping[str, str]]) -> Dataset:
    """Make the dataset of the same photos about which just these texts are written.

    Args:
        base: Any dataset.
        name: Name of the new dataset.
        texts: photo_id -> field of the record, such as `"title"` -> text. Other texts are removed,
            and photos that are not named have none.

    Raises:
        InputError: A photo is not in the dataset.
    """
    if unknown := sorted(texts.keys() - base.photo_ids):
        msg = f"texts must be of photos of {base.name!r}, got {unknown[0]!r}"
        raise InputError(msg)
    records = tuple(
        {
            **{key: value for key, value in record.items() if key not in _WRITTEN},
            **texts.get(photo_id, {}),
        }
        for photo_id, record in zip(base.ids_of_records, base.records, strict=True)
    )
    listed = repr(sorted((photo, sorted(fields.items())) for photo, fields in texts.items()))
    made = derive_written(base, name)
    return replace(
        made,
        revision=_hash(f"{base.revision}{listed}"),
        records=records,
        photos=None,
        rewritten=True,
    )


def derive_half_written(base: Dataset, name: str) -> Dataset:
    """Make the dataset in which half of the photos have no words, drawn by a hash of the photo_id.

    Args:
        base: A dataset with texts there.
        name: Name of the new dataset.
    """
    texts = {
        photo_id: {name: record[name] or "" for name in _WRITTEN if record.get(name)}
        for photo_id, record in zip(base.ids_of_records, base.records, strict=True)
        if has_words(photo_id)
    }
    return rewrite(base, name, texts)


def has_words(photo_id: str) -> bool:
    """Tell whether a photo is of the half that keeps its words."""
    return hashlib.sha256(f"words {photo_id}".encode()).digest()[0] % 2 == 0


def derive_misspelt(base: Dataset, name: str, *, seed: int = 0) -> Dataset:
    """Make one typing error in each query: one edit in one word of five letters or more.

    A letter is left out, doubled, replaced by another of the query, or swapped with its neighbour.
    Queries without such a word, and those in scripts without spaces or with conjuncts, are left
    out. Ids stay the same, so that a query can be compared with the same one spelt right.

    Args:
        base: Text queries.
        name: Name of the new dataset.
        seed: Seed of the errors.

    Raises:
        InputError: No query has such a word.
    """
    queries = [
        replace(query, text=text)
        for query in base.queries
        if (text := misspell(query.text or "", seed=f"{seed} {query.query_id}")) is not None
    ]
    if not queries:
        msg = f"a query of {base.name!r} must have a word of five letters to misspell, got none"
        raise InputError(msg)
    return _of_queries(base, name, queries)


def misspell(text: str, *, seed: str) -> str | None:
    """Make one typing error in a text; None where it has no word of five letters.

    >>> misspell("a golden castle", seed="5"), misspell("an owl", seed="0")
    ('a golden caslte', None)
    """
    rng = random.Random(seed)
    words = [word for word in _WORDS_TO_MISSPELL.finditer(text) if _is_alphabetic(word.group())]
    if not words:
        return None
    word = rng.choice(words)
    letters = word.group()
    letters_elsewhere = sorted({c for c in text.lower() if c.isalpha()})
    edits = set()
    for place in range(1, len(letters)):
        left, letter, right = letters[:place], letters[place], letters[place + 1 :]
        edits |= {left + right, left + letter + letter + right}
        edits |= {left + other + right for other in letters_elsewhere}
        edits.add(left[:-1] + letter + left[-1] + right)
    changed = rng.choice(sorted(edits - {letters}))
    return text[: word.start()] + changed + text[word.end() :]


def _is_alphabetic(word: str) -> bool:
    return all(unicodedata.name(letter, "").startswith(_SCRIPTS) for letter in word)


def without_language(base: Dataset, name: str, languages: Collection[str]) -> Dataset:
    """Keep the queries in other languages than those that the texts are written in.

    Args:
        base: Text queries.
        name: Name of the new dataset.
        languages: Tags to leave out; variants such as `en-GB` go with `en`.

    Raises:
        InputError: No query is left.
    """
    queries = [query for query in base.queries if query.lang.split("-")[0] not in languages]
    return _of_queries(base, name, queries)


def _of_queries(base: Dataset, name: str, queries: list[LabelledQuery]) -> Dataset:
    qrels = {query.query_id: base.qrels[query.query_id] for query in queries}
    made = base.derive(name, queries, qrels)
    return replace(made, origins=base.origins)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
