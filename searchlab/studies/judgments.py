"""Judgments by kinds against judgments by eye: how far WordNet says what somebody sees.

An everyday query of `demo` was judged by looking at every photo; a word of the same meaning is
judged by WordNet's kinds. Both are taken for judges of the same pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from searchlab.errors import InputError
from searchlab.evaluation.datasets import Dataset, load_dataset
from searchlab.evaluation.judging import Pair, agreement
from searchlab.evaluation.significance import Interval

SAME_MEANING: Final = {
    "a ball": "ball",
    "a bird": "bird",
    "a boat": "boat",
    "a bridge": "bridge",
    "a building": "building",
    "a car": "car",
    "a castle": "castle",
    "a cat": "cat",
    "a dog": "dog",
    "a fish": "fish",
    "a horse": "horse",
    "a monkey": "monkey",
    "a musical instrument": "musical instrument",
    "a planet": "planet",
    "a reptile": "reptile",
    "a tree": "tree",
    "a windmill": "windmill",
    "an insect": "insect",
    "flowers": "flower",
    "mountains": "mountain",
    "people": "person",
    "some fruit": "fruit",
    "something to eat": "food",
    "the sea": "sea",
    "tools": "tool",
}
"""Everyday query -> the English word that is judged by kinds."""

_SEEN = 2  # the least grade by eye of a photo where the thing is to be seen


def measure(
    dataset: Dataset | None = None,
    *,
    same: Mapping[str, str] = SAME_MEANING,
    samples: int = 2000,
    seed: int = 0,
) -> dict[str, Any]:
    """Compare the two judges on every photo of every query that both have judged.

    Args:
        dataset: Its judgments by eye, and those of words by other origins; `demo` if left out.
        same: Everyday query -> word of the same meaning.
        samples: Bootstrap resamples of queries.
        seed: Of the resampling.

    Returns:
        `metrics` (n_queries, n_pairs, kappa, the share of equal judgments, and how much of what one
        calls relevant the other does), `intervals` and `queries`: the counts of each query.

    Raises:
        InputError: A query was not judged by eye, or a word by nothing else.
    """
    data = load_dataset("demo") if dataset is None else dataset
    english = [query for query in data.queries if query.lang == "en"]
    by_text = {(query.kind == "everyday", query.text): query for query in english}
    kinds: dict[Pair, int] = {}
    eye: dict[Pair, int] = {}
    rows: list[dict[str, Any]] = []
    for text, word in same.items():
        asked, named = by_text.get((True, text)), by_text.get((False, word))
        if asked is None or named is None:
            missing = text if asked is None else word
            msg = (
                f"{data.name!r} must have judged {text!r} and {word!r}, got nothing of {missing!r}"
            )
            raise InputError(msg)
        grades = data.qrels[asked.query_id]
        seen = {photo for photo, grade in grades.items() if grade >= _SEEN}
        told = {photo for photo, grade in data.qrels[named.query_id].items() if grade >= 1}
        for photo in grades:
            pair = Pair(asked.query_id, photo)
            eye[pair], kinds[pair] = int(photo in seen), int(photo in told)
        both = len(seen & told)
        rows.append({"query": text, "kinds": len(told), "eye": len(seen), "both": both})
    (judges,) = agreement({"kinds": kinds, "eye": eye}, samples=samples, seed=seed).pairs
    n_both = sum(row["both"] for row in rows)
    return {
        "parameters": {"samples": samples, "seed": seed},
        "metrics": {
            "n_queries": len(rows),
            "n_pairs": judges.n_pairs,
            "kappa": round(judges.kappa.mean, 4),
            "equal": round(judges.percent.mean, 4),
            "kinds_seen": round(n_both / sum(kinds.values()), 4),
            "eye_told": round(n_both / sum(eye.values()), 4),
        },
        "intervals": {"kappa": _rounded(judges.kappa), "equal": _rounded(judges.percent)},
        "queries": rows,
    }


def recompute(measurement: Mapping[str, Any]) -> dict[str, Any]:
    """Measure again what is on record, with the parameters that it names."""
    parameters = measurement["parameters"]
    return measure(samples=parameters["samples"], seed=parameters["seed"])


def _rounded(interval: Interval) -> dict[str, float]:
    return {part: round(value, 4) for part, value in interval._asdict().items()}
