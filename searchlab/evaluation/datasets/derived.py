"""Photo queries derived from text judgments: a photo alone, or a photo with one of its names."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from itertools import combinations

from searchlab.evaluation.datasets.dataset import Dataset
from searchlab.evaluation.datasets.labelled import NO_LANGUAGE, LabelledQuery

_MOST = 50  # a query with more relevant photos says little about how similar these are
_LEAST_LANGUAGES = 2  # one may be an error: "cow" and "crow" share a name in one language of 68


def derive_similar(base: Dataset, name: str) -> Dataset:
    """Derive photo queries that look for photos with the same names as the photo.

    The languages that name both of two photos decide on their grade: 3 if at least half of them
    have a query that both are relevant to, 2 if at least a tenth have, 1 if at least two languages
    have; otherwise the pair is unjudged. Queries with more than 50 relevant photos do not count.

    Args:
        base: Text queries of several languages, such as the labels of `demo`.
        name: Name of the new dataset, whose queries have the language `zxx` and the kind of the
            first query that names the photo.

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
    """Derive queries of a text with one of its relevant photos, which look for the other ones.

    The reference photo is drawn from the relevant photos by their hash, so queries with the same
    relevant photos, such as translations, have the same reference. The judgments are those of the
    text query without the reference, so text alone and photo alone can be evaluated on them too.
    Query ids stay the same.

    Args:
        base: Text queries.
        name: Name of the new dataset.
        least: Least grade of the reference, and of at least one photo that is left to find.

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
