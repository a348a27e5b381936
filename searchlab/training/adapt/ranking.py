"""How well rows find photos by their captions, and what heads gain over the rows they started from.

A query is a caption, its relevant photos are those that carry it, and what is searched are the
photos of the same part: none that was trained on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from searchlab.evaluation.significance import GroupedIntervals, Interval, bootstrap_intervals
from searchlab.models.protocol import Embeddings
from searchlab.training.adapt.pairs import CaptionPairs

HEADLINE = "mrr@10"
METRICS: dict[str, Callable[[NDArray[np.int64]], NDArray[np.float64]]] = {
    "mrr@10": lambda ranks: np.where(ranks < 10, 1 / (1.0 + ranks), 0.0),
    "success@1": lambda ranks: (ranks < 1).astype(np.float64),
    "success@10": lambda ranks: (ranks < 10).astype(np.float64),
}
"""Name -> function from ranks of the first relevant photo, (n_queries,) from 0, to scores."""
OTHER = "other"
"""Languages with few queries, taken together."""
_FEW = 20  # queries in a language; with fewer it counts as `OTHER`
_MOST = 4_000
_CHUNK = 1_024
_SHARPNESSES = (5.0, 10.0, 20.0, 40.0, 80.0)
RowMap: TypeAlias = Callable[[Embeddings], Embeddings]


@dataclass(frozen=True)
class Queries:
    """Captions to search by.

    Attributes:
        texts: (n_queries, dim) rows.
        langs: (n_queries,) language of each; those with few queries are `OTHER`.
        query_of: (n_relevant,) the query of each relevant pair of query and photo.
        photo_of: (n_relevant,) the photo of each relevant pair.
        captions: The texts themselves; empty where they are not needed.
    """

    texts: Embeddings
    langs: NDArray[np.str_]
    query_of: NDArray[np.int64]
    photo_of: NDArray[np.int64]
    captions: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        """12 hex digits over everything."""
        digest = hashlib.sha256(repr(self.langs.tolist()).encode())
        for array in (self.texts, self.query_of, self.photo_of):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()[:12]

    @property
    def cluster_ids(self) -> NDArray[np.int64]:
        """The first relevant photo of each query, (n_queries,): what the bootstrap resamples by."""
        first = np.full(len(self.texts), np.iinfo(np.int64).max)
        np.minimum.at(first, self.query_of, self.photo_of)
        return first

    def ranks(self, photos: Embeddings, head: RowMap | None = None) -> NDArray[np.int64]:
        """Rank photos for each query.

        Args:
            photos: (n_photos, dim) rows to search.
            head: Applied to the queries, which are left as they are without it.

        Returns:
            (n_queries,) rank, from 0, of the first relevant photo. Other photos with the same
            cosine are counted as ranked before it.
        """
        texts = self.texts if head is None else head(self.texts)
        ranks = np.empty(len(texts), dtype=np.int64)
        order = np.argsort(self.query_of, kind="stable")
        query_of, photo_of = self.query_of[order], self.photo_of[order]
        for start in range(0, len(texts), _CHUNK):
            cosines = texts[start : start + _CHUNK] @ photos.T
            first, last = np.searchsorted(query_of, [start, start + len(cosines)])
            rows, columns = query_of[first:last] - start, photo_of[first:last]
            best = np.full(len(cosines), -np.inf, dtype=np.float32)
            np.maximum.at(best, rows, cosines[rows, columns])
            cosines[rows, columns] = -np.inf
            ranks[start : start + len(cosines)] = (cosines >= best[:, None]).sum(axis=1)
        return ranks

    def likelihood(self, photos: Embeddings, head: RowMap | None = None) -> float:
        """Return the mean log-likelihood of the relevant photos: steadier than a metric.

        Args:
            photos: (n_photos, dim) rows to search.
            head: Applied to the queries, which are left as they are without it.

        Returns:
            The mean log of the share that a softmax over all photos gives to the relevant ones, at
            the best of a few sharpnesses; each language has the same weight.
        """
        texts = self.texts if head is None else head(self.texts)
        cosines = texts @ photos.T
        cosines -= cosines.max(axis=1, keepdims=True)
        means = []
        for sharpness in _SHARPNESSES:
            shares = np.exp(np.float32(sharpness) * cosines)
            of_pairs = shares[self.query_of, self.photo_of]
            of_relevant = np.bincount(self.query_of, weights=of_pairs, minlength=len(texts))
            values = np.log(of_relevant / shares.sum(axis=1) + 1e-12)
            means.append(np.mean([values[self.langs == lang].mean() for lang in set(self.langs)]))
        return float(max(means))


def queries_of(pairs: CaptionPairs, *, most: int = _MOST, seed: int = 0) -> Queries:
    """Make queries of captions: each different text of a language is one.

    Args:
        pairs: Photos and their captions.
        most: Of more queries, so many are drawn at random.
        seed: Seed of the draw.
    """
    keys = np.stack([pairs.text_ids.astype(np.str_), pairs.langs])
    _, first, query_of = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    query_of = query_of.ravel().astype(np.int64)
    sample = np.arange(len(first))
    if len(first) > most:
        sample = np.sort(np.random.default_rng(seed).choice(len(first), size=most, replace=False))
    number_of = np.full(len(first), -1)
    number_of[sample] = np.arange(len(sample))
    is_sampled = number_of[query_of] >= 0
    langs = pairs.langs[first[sample]]
    names, counts = np.unique(langs, return_counts=True)
    few = set(names[counts < _FEW].tolist()) if len(names) > 1 else set()
    langs = np.array([OTHER if lang in few else lang for lang in langs.tolist()], dtype=np.str_)
    return Queries(
        pairs.texts[first[sample]],
        langs,
        number_of[query_of[is_sampled]],
        pairs.owners[is_sampled],
    )


@dataclass(frozen=True)
class Gain:
    """What one system finds beyond another, on the same queries.

    Attributes:
        before: Metric -> averages of the first system.
        after: Metric -> averages of the second.
        difference: Metric -> averages of second minus first, query by query.
        n_photos: Number of photos searched.
        n_queries: Number of queries.
    """

    before: dict[str, GroupedIntervals]
    after: dict[str, GroupedIntervals]
    difference: dict[str, GroupedIntervals]
    n_photos: int
    n_queries: int

    @property
    def headline(self) -> Interval:
        """The difference that decides."""
        return self.difference[HEADLINE].macro

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, rounded to six digits."""
        return {
            "n_photos": self.n_photos,
            "n_queries": self.n_queries,
            **{
                name: {metric: intervals.to_dict() for metric, intervals in side.items()}
                for name, side in (
                    ("before", self.before),
                    ("after", self.after),
                    ("difference", self.difference),
                )
            },
        }


def measure_gain(
    queries: Queries,
    before: Embeddings,
    after: Embeddings,
    *,
    head: RowMap | None = None,
    seed: int = 0,
) -> Gain:
    """Compare two ways to embed the same photos, with bootstrap intervals over photos.

    Args:
        queries: As the first system embeds them.
        before: (n_photos, dim) rows of the first system.
        after: (n_photos, dim) rows of the second.
        head: Maps the first system's queries to the second's.
        seed: Seed of the resampling.
    """
    return gain_of_ranks(
        queries, queries.ranks(before), queries.ranks(after, head), len(before), seed=seed
    )


def gain_of_ranks(
    queries: Queries,
    before: NDArray[np.int64],
    after: NDArray[np.int64],
    n_photos: int,
    *,
    seed: int = 0,
) -> Gain:
    """Compare two systems by the ranks, (n_queries,), that they give."""
    columns: dict[str, NDArray[np.float64]] = {}
    for name, metric in METRICS.items():
        first, second = metric(before), metric(after)
        columns |= {
            f"before {name}": first,
            f"after {name}": second,
            f"difference {name}": second - first,
        }
    intervals = bootstrap_intervals(
        columns,
        groups=queries.langs.tolist(),
        clusters=queries.cluster_ids.astype(np.str_).tolist(),
        seed=seed,
    )
    before_intervals, after_intervals, difference = (
        {name: intervals[f"{side} {name}"] for name in METRICS}
        for side in ("before", "after", "difference")
    )
    return Gain(before_intervals, after_intervals, difference, n_photos, len(queries.langs))
