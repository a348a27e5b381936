"""Photo queries made from text judgments: photos that share a name, and a photo with its name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from itertools import combinations

from searchlab.evaluation.datasets.dataset import Dataset
from searchlab.evaluation.datasets.labelled import NO_LANGUAGE, LabelledQuery

_MOST = 50  # a query that more photos answer says little about how alike these are
_LEAST_LANGUAGES = 2  # one alone may be a slip: "cow" and "crow" share a name in one language of 68


def derive_similar(base: Dataset, name: str) -> Dataset:
    """Ask for the photos that people call by the same name as a photo.

    Two photos are judged by the languages that name both: grade 3 where at least half of them have
    a query that both are relevant to, 2 where at least a tenth have, 1 where at least two languages
    have; else the pair is unjudged. Queries that more than 50 photos answer are passed over.

    Args:
        base: Text queries of several languages, such as the labels of `demo`.
        name: Of the new dataset, whose queries have the language `zxx` and the kind of the first
            query that names the photo.

    Raises:
        InputError: No two photos share a name.
    """
    named: dict[str, set[str]] = {}
    shared: dict[tuple[str, str], set[str]] = {}
    kinds: dict[str, str] = {}
    for query in base.queries:
        relevant = _relevant(base, query, least=1)
        for photo_id in relevant:
            named.setdefault(photo_id, set()).add(query.lang)
            kinds.setdefault(photo_id, query.kind)
        if len(relevant) <= _MOST:
            for pair in combinations(relevant, 2):
                shared.setdefault(pair, set()).add(query.lang)
    qrels: dict[str, dict[str, int]] = {}
    for (one, other), langs in sorted(shared.items()):
        if len(langs) >= _LEAST_LANGUAGES:
            share = len(langs) / len(named[one] & named[other])
            grade = 1 + (share >= 0.1) + (share >= 0.5)
            qrels.setdefault(one, {})[other] = grade
            qrels.setdefault(other, {})[one] = grade
    queries = [
        LabelledQuery(photo_id, NO_LANGUAGE, kinds[photo_id], photo_id=photo_id)
        for photo_id in base.ids_of_records
        if photo_id in qrels
    ]
    return base.derive(name, queries, qrels)


def derive_steered(base: Dataset, name: str, *, least: int = 1) -> Dataset:
    """Ask each text query together with one of its own photos, for its other photos.

    The reference is drawn from the relevant photos by their hash, so queries with the same relevant
    photos, such as translations, have the same reference. What is left of the query's judgments is
    what the new query looks for: photos that the text names and that are like the reference in
    this. Text alone and photo alone can be asked of the same judgments. Query ids stay.

    Args:
        base: Text queries.
        name: Of the new dataset.
        least: Grade of a photo that may be a reference, and that must be left to be found.

    Raises:
        InputError: No query has two such photos.
    """
    queries, qrels = [], {}
    for query in base.queries:
        relevant = _relevant(base, query, least=least)
        if len(relevant) >= 2:
            reference = _draw(relevant)
            labelled = LabelledQuery(
                query.query_id, query.lang, query.kind, query.text, photo_id=reference
            )
            queries.append(labelled)
            grades = dict(base.qrels[query.query_id])
            del grades[reference]
            qrels[query.query_id] = grades
    return base.derive(name, queries, qrels)


def _relevant(base: Dataset, query: LabelledQuery, *, least: int) -> list[str]:
    return sorted(i for i, grade in base.qrels[query.query_id].items() if grade >= least)


def _draw(photo_ids: Iterable[str]) -> str:
    ids = sorted(photo_ids)
    return min(ids, key=lambda i: hashlib.sha256(json.dumps([i, *ids]).encode()).digest())
