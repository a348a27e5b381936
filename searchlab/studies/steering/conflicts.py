"""Conflicts: a photo and words that do not describe it, ranked at every weight of the words."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import InputError
from searchlab.evaluation.calibration.scored_queries import TOP, cluster_id_of
from searchlab.evaluation.metrics import per_query
from searchlab.evaluation.significance import bootstrap_interval
from searchlab.search.queries import Query
from searchlab.studies.calibration.reliability import cluster_draws

if TYPE_CHECKING:
    from searchlab.evaluation.datasets import Dataset
    from searchlab.search.engine import SearchEngine

METRIC = f"ndcg@{TOP}"
ALPHAS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.7, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0)
_ENDS = (2.5, 97.5)


@dataclass(frozen=True)
class SteeringConflict:
    """A photo and words that do not describe it.

    Attributes:
        conflict_id: The id of the text query.
        photo_id: The reference photo.
        text: The words.
        lang: Language of the words.
        cluster_id: The photo that the words are about; conflicts about the same photo are drawn
            together.
        alike: photo_id -> grade of photos that resemble the reference.
        meant: photo_id -> grade of photos that the words describe.
    """

    conflict_id: str
    photo_id: str
    text: str
    lang: str
    cluster_id: str
    alike: Mapping[str, int]
    meant: Mapping[str, int]


def draw_conflicts(text: Dataset, similar: Dataset, *, seed: int) -> list[SteeringConflict]:
    """Join each text query with a photo that it does not describe.

    Args:
        text: Text queries.
        similar: Photo queries over the same photos; their photos are the references.
        seed: Seed of the drawing, which depends only on it and on the query.

    Raises:
        InputError: For no query there is such a photo.
    """
    conflicts = []
    references = [(query.query_id, query.photo_id or "") for query in similar.queries]
    for query in text.queries:
        meant = text.qrels[query.query_id]
        free = [pair for pair in references if meant.get(pair[1], 0) < 1]
        if free and query.text is not None:
            digest = hashlib.sha256(f"{seed}:{query.query_id}".encode()).digest()
            name, photo_id = free[int.from_bytes(digest[:8]) % len(free)]
            cluster_id = cluster_id_of(query, text)
            alike = similar.qrels[name]
            rest = {photo: grade for photo, grade in meant.items() if photo != photo_id}
            conflicts.append(
                SteeringConflict(
                    query.query_id, photo_id, query.text, query.lang, cluster_id, alike, rest
                )
            )
    if not conflicts:
        msg = f"{similar.name!r} must have photos that {text.name!r} does not describe, got none"
        raise InputError(msg)
    return conflicts


@dataclass(frozen=True, eq=False)
class SteeringScores:
    """nDCG@10 of conflicts at each weight of the text.

    Attributes:
        alphas: (n_alphas,) weights, ascending from 0.
        look: (n_alphas, n_conflicts) nDCG@10 of photos that resemble the reference.
        text: (n_alphas, n_conflicts) nDCG@10 of photos that the words describe.
        text_alone: (n_conflicts,) nDCG@10 of the words alone.
        overlap: (n_alphas, n_conflicts) share of the ten results that the photo alone finds too.
        cluster_ids: (n_conflicts,) conflicts of one name are drawn together.
        langs: (n_conflicts,) languages of the words.
    """

    alphas: NDArray[np.float64]
    look: NDArray[np.float64]
    text: NDArray[np.float64]
    text_alone: NDArray[np.float64]
    overlap: NDArray[np.float64]
    cluster_ids: tuple[str, ...]
    langs: tuple[str, ...]

    def curves(self, *, samples: int, seed: int) -> dict[str, NDArray[np.float64]]:
        """Return the curves and their resamples: (1 + samples, n_alphas) each, estimates first.

        Returns:
            `look_kept` and `text_obeyed` as ratios of means, and `balance`, their harmonic mean.
        """
        names, cluster_of = np.unique(np.asarray(self.cluster_ids), return_inverse=True)
        columns = np.vstack([self.look, self.text, self.text_alone]).T  # (n_conflicts, ...)
        sums = np.zeros((len(names), columns.shape[1]))
        np.add.at(sums, cluster_of, columns)
        draws = cluster_draws(len(names), samples, np.random.default_rng(seed))
        drawn = np.concatenate(
            [sums.sum(axis=0, keepdims=True), *(times @ sums for times in draws)]
        )
        n_alphas = len(self.alphas)
        look = _ratio(drawn[:, :n_alphas], drawn[:, :1])
        text = _ratio(drawn[:, n_alphas : 2 * n_alphas], drawn[:, -1:])
        balance = _ratio(2 * look * text, look + text)
        return {"look_kept": look, "text_obeyed": text, "balance": balance}

    def best(self, *, samples: int, seed: int) -> dict[str, float]:
        """Return the weight of the best balance as `mean`, with its bootstrap interval."""
        balance = self.curves(samples=samples, seed=seed)["balance"]
        peaks = self.alphas[balance.argmax(axis=1)]
        low, high = np.percentile(peaks[1:], _ENDS)
        return {"mean": float(peaks[0]), "low": float(low), "high": float(high)}

    def only(self, places: Sequence[int]) -> SteeringScores:
        """Keep some conflicts, by their places."""
        some = np.asarray(places, dtype=np.int64)
        return replace(
            self,
            look=self.look[:, some],
            text=self.text[:, some],
            text_alone=self.text_alone[some],
            overlap=self.overlap[:, some],
            cluster_ids=tuple(self.cluster_ids[place] for place in places),
            langs=tuple(self.langs[place] for place in places),
        )

    def rows(self, *, samples: int, seed: int) -> list[dict[str, Any]]:
        """Return a row for each weight, every value with its interval."""
        curves = self.curves(samples=samples, seed=seed)
        rows = []
        for place, alpha in enumerate(self.alphas):
            row: dict[str, Any] = {"text_alpha": float(alpha)}
            for name, drawn in curves.items():
                low, high = np.percentile(drawn[1:, place], _ENDS)
                row[name] = {"mean": drawn[0, place], "low": low, "high": high}
            overlap = bootstrap_interval(
                self.overlap[place], clusters=self.cluster_ids, samples=samples, seed=seed
            )
            rows.append(row | {"overlap": overlap._asdict()})
        return rows


def steer(
    engine: SearchEngine, conflicts: Sequence[SteeringConflict], *, alphas: Sequence[float] = ALPHAS
) -> SteeringScores:
    """Rank every conflict at every weight, as a server does, and score the ten nearest photos.

    Args:
        engine: Engine, whose `steering` scales the weights.
        conflicts: Photos and words.
        alphas: Values of `text_alpha`, 0 to 10, ascending from 0.

    Raises:
        InputError: The first weight is not 0, or the engine lacks a reference.
    """
    if not alphas or alphas[0] != 0:
        msg = f"alphas must begin with 0, the photo alone, got {list(alphas)}"
        raise InputError(msg)
    engine.warm([conflict.text for conflict in conflicts])

    def run_at(alpha: float | None) -> dict[str, list[str]]:
        return {p.conflict_id: rank_ids(engine, p.photo_id, p.text, alpha) for p in conflicts}

    meant = {conflict.conflict_id: conflict.meant for conflict in conflicts}
    alone = per_query(meant, run_at(None), [METRIC])[METRIC]
    return score_conflicts(conflicts, alphas, [run_at(alpha) for alpha in alphas], alone)


def score_conflicts(
    conflicts: Sequence[SteeringConflict],
    alphas: Sequence[float],
    runs: Sequence[Mapping[str, Sequence[str]]],
    text_alone: NDArray[np.float64],
) -> SteeringScores:
    """Score rankings of conflicts.

    Args:
        conflicts: Photos and words.
        alphas: (n_alphas,) weights of the words, ascending from 0.
        runs: conflict_id -> photo_ids, for each weight.
        text_alone: (n_conflicts,) nDCG@10 of the words alone, in the order of the ids.
    """
    # In the order in which `per_query` returns scores.
    ordered = sorted(conflicts, key=lambda conflict: conflict.conflict_id)
    alike = {conflict.conflict_id: conflict.alike for conflict in ordered}
    meant = {conflict.conflict_id: conflict.meant for conflict in ordered}
    first = {conflict_id: set(photo_ids) for conflict_id, photo_ids in runs[0].items()}
    shared = [
        [
            len(first[conflict.conflict_id].intersection(run[conflict.conflict_id])) / TOP
            for conflict in ordered
        ]
        for run in runs
    ]
    return SteeringScores(
        alphas=np.asarray(alphas, dtype=np.float64),
        look=np.array([per_query(alike, run, [METRIC])[METRIC] for run in runs]),
        text=np.array([per_query(meant, run, [METRIC])[METRIC] for run in runs]),
        text_alone=text_alone,
        overlap=np.array(shared),
        cluster_ids=tuple(conflict.cluster_id for conflict in ordered),
        langs=tuple(conflict.lang for conflict in ordered),
    )


def rank_ids(engine: SearchEngine, photo_id: str, text: str, text_alpha: float | None) -> list[str]:
    """Rank for a photo and words, or for the words alone if there is no weight; omits the photo."""
    if text_alpha is not None:
        query = Query(text=text, photo_id=photo_id, text_alpha=text_alpha)
        return engine.table.photo_ids(engine.rank(query, TOP).rows)
    rows = engine.rank(Query(text=text), TOP + 1).rows
    return [other_id for other_id in engine.table.photo_ids(rows) if other_id != photo_id][:TOP]


def _ratio(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide; the result is 0 where `whole` is 0."""
    return np.divide(
        part, whole, out=np.zeros_like(part), where=np.broadcast_to(whole > 0, part.shape)
    )
