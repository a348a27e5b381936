"""Judging few of many photos: which to judge next, and what follows from those that were judged.

A metric such as precision@10 adds up, over the photos of a ranking, what a place weighs times what
a grade counts. Where all runs have a photo at the same place, its grade changes no difference
between them. Photos are therefore drawn by chances in proportion to how far the runs disagree on
them (priority sampling: Duffield, Lund and Thorup, JACM 54, 2007), and each grade counts as often
as its chance is small (Horvitz and Thompson, JASA 47, 1952; for rankings: Yilmaz, Kanoulas and
Aslam, SIGIR 2008). Means and differences are then right on average, whatever was left out, which a
pool that takes what was not judged for not relevant cannot say.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from searchlab.errors import InputError
from searchlab.evaluation.datasets import LabelledQuery
from searchlab.evaluation.judging.partial import Drawn, Floats, PartialEstimate, estimate_partial
from searchlab.evaluation.judging.pools import Pair, Pool
from searchlab.evaluation.metrics import Qrels, Run
from searchlab.evaluation.metrics.names import Metric, parse_metric

ADDITIVE = ("precision", "success", "dcg")
_FLOOR = 0.2  # of its weight, for a photo that all runs have at the same place


@dataclass(frozen=True, eq=False, repr=False)
class JudgingPlan:
    """Photos in the order in which they are to be judged, however many will be.

    Attributes:
        metric: Name of the metric that is estimated.
        queries: All queries, those without a photo to judge too.
        systems: Names of the runs.
        pairs: What is not judged yet, the most urgent first.
        priorities: (n_pairs,) what they are ordered by, ascending.
        importance: (n_pairs,) what their chances are in proportion to.
        shares: (n_systems, n_pairs) what a grade of 1 adds to a query's score.
        runs: System -> query_id -> photo_ids.
        judged: Earlier judgments, which count as they are.
        between: The systems whose differences order the photos; all if None.
        seed: Seed of the draw.
    """

    metric: str
    queries: Mapping[str, LabelledQuery]
    systems: tuple[str, ...]
    pairs: tuple[Pair, ...]
    priorities: Floats
    importance: Floats
    shares: Floats
    runs: Mapping[str, Run]
    judged: Qrels
    between: tuple[str, ...] | None
    seed: int

    def __len__(self) -> int:
        return len(self.pairs)

    def __repr__(self) -> str:
        before = sum(map(len, self.judged.values()))
        return (
            f"{len(self):,} photos that could be judged for {self.metric} of {len(self.queries):,} "
            f"queries by {len(self.systems)} systems, {before:,} judged before"
        )

    def first(self, n: int) -> Pool:
        """Return the `n` most urgent photos as a pool, in an order that says nothing of them.

        All of them must be judged before the estimate is seen: stopping when it looks good
        makes it wrong.

        Args:
            n: From 1 to the length of the plan.

        Raises:
            InputError: `n` is out of range.
        """
        if isinstance(n, bool) or not 1 <= n <= len(self):
            msg = f"n must be from 1 to the {len(self):,} photos of the plan, got {n!r}"
            raise InputError(msg)
        chosen = sorted(
            self.pairs[:n],
            key=lambda pair: (_uniform("order", self.seed, pair.query_id), _drawn(self.seed, pair)),
        )
        queries = {pair.query_id: self.queries[pair.query_id] for pair in chosen}
        depth = parse_cutoff(self.metric).k
        n_before = sum(map(len, self.judged.values()))
        return Pool(queries, tuple(chosen), frozenset(), depth, self.systems, n_before)

    def chances(self, n: int) -> Floats:
        """Return the (n,) chances, above 0 to 1, by which the first `n` photos were drawn."""
        return self._chances(n)[:n]

    def _chances(self, n: int) -> Floats:
        """Return the (n_pairs,) chances of all photos to be among the first `n`."""
        if n == len(self):
            return np.ones(n)
        chances: Floats = np.minimum(1.0, self.importance * self.priorities[n])
        return chances

    def estimate(
        self,
        qrels: Qrels,
        *,
        n: int | None = None,
        about: Mapping[str, str] | None = None,
        samples: int = 2000,
    ) -> PartialEstimate:
        """Estimate the mean of each system over queries like these, from what was judged.

        Args:
            qrels: The grades, those from before too or not.
            n: How many photos were to be judged; as many as were, from the first on, if left out.
            about: Query_id -> what it is about; queries about one thing are drawn together.
            samples: Number of bootstrap resamples.

        Raises:
            InputError: One of the first `n` has no grade, or nothing was judged at all.
        """
        graded = [pair.photo_id in qrels.get(pair.query_id, {}) for pair in self.pairs]
        if n is None:
            n = graded.index(False) if False in graded else len(graded)
        missing = n - sum(graded[:n])
        if missing or n > len(self) or not (n or self.judged):
            msg = (
                f"the first {n:,} of {len(self):,} photos must be judged, at least one, got "
                f"{missing:,} without a grade"
            )
            raise InputError(msg)
        metric = parse_cutoff(self.metric)
        gains = [gain_of(metric, qrels[pair.query_id][pair.photo_id]) for pair in self.pairs[:n]]
        numbers = {query_id: number for number, query_id in enumerate(self.queries)}
        rows = np.array([numbers[pair.query_id] for pair in self.pairs[:n]], dtype=np.intp)
        counted = np.array(gains) / self.chances(n)
        values = {
            system: self._known(system, metric)
            + np.bincount(rows, weights=self.shares[place, :n] * counted, minlength=len(numbers))
            for place, system in enumerate(self.systems)
        }
        relevant: Floats = (np.array(gains) > 0).astype(np.float64) / self.chances(n)
        missed: Floats = np.bincount(rows, weights=relevant, minlength=len(numbers)).astype(float)
        langs = [query.lang for query in self.queries.values()]
        size = Counter(langs)
        weights = np.array(
            [1 / (len(size) * size[self.queries[pair.query_id].lang]) for pair in self.pairs]
        )
        return estimate_partial(
            self.metric,
            values,
            missed=missed,
            langs=langs,
            clusters=[(about or {}).get(query_id, query_id) for query_id in self.queries],
            drawn=Drawn(
                effects=dict(zip(self.systems, self.shares * weights, strict=True)),
                on_missed=weights,
                gains=np.array(gains),
                chances=self._chances(n),
            ),
            samples=samples,
            seed=self.seed,
        )

    def go_on(self, qrels: Qrels, *, between: Sequence[str] | None = None) -> JudgingPlan:
        """Plan what to judge next: what was judged counts as it is, the rest is drawn anew.

        Since all that was judged is then known, the next estimate is right on average however the
        systems were chosen.

        Args:
            qrels: The grades so far.
            between: The systems whose differences matter now, such as `PartialEstimate.undecided`.
        """
        judged = {query_id: dict(grades) for query_id, grades in self.judged.items()}
        for query_id, grades in qrels.items():
            judged.setdefault(query_id, {}).update(grades)
        return plan_judging(
            self.queries.values(),
            self.runs,
            metric=self.metric,
            judged=judged,
            between=between,
            seed=self.seed + 1,
        )

    def _known(self, system: str, metric: Metric) -> Floats:
        """Return the (n_queries,) scores by what was judged before alone."""
        known = np.zeros(len(self.queries))
        for number, query_id in enumerate(self.queries):
            grades = self.judged.get(query_id, {})
            if grades:
                ranked = list(self.runs[system].get(query_id, ()))[: metric.k]
                known[number] = sum(
                    share_of(metric, rank) * gain_of(metric, grades.get(photo, 0))
                    for rank, photo in enumerate(ranked, start=1)
                )
        return known


def plan_judging(
    queries: Iterable[LabelledQuery],
    runs: Mapping[str, Run],
    *,
    metric: str = "precision@10",
    judged: Qrels | None = None,
    between: Sequence[str] | None = None,
    seed: int = 0,
) -> JudgingPlan:
    """Put the photos of several runs in the order in which judging them tells most.

    Args:
        queries: A sample of the queries that the estimate is for.
        runs: System -> query_id -> photo_ids, best first; queries may be missing.
        metric: `precision@k`, `success@1` or `dcg@k`, with a level such as `precision@10/l2` where
            only that grade counts. Other metrics divide by how many photos are relevant, which a
            sample does not know.
        judged: What was judged before, such as `dataset.qrels` of known items: an estimate then
            says what those judgments leave out (`PartialEstimate.missed`).
        between: Systems whose differences matter; all if left out.
        seed: Seed of the draw.

    Raises:
        InputError: There is no query or run, a run or system is unknown, the metric does not add
            up, or nothing is left to judge.
    """
    parsed = parse_cutoff(metric)
    by_id = {query.query_id: query for query in queries}
    compared = list(runs) if between is None else list(between)
    strange = [name for name in compared if name not in runs]
    if not by_id or not runs or not compared or strange:
        msg = (
            "a plan must have queries, runs, and systems among the runs, got "
            f"{len(by_id)} queries, runs {', '.join(runs) or 'none'} and between {strange}"
        )
        raise InputError(msg)
    known = judged or {}
    places: dict[Pair, list[int]] = {}
    for number, run in enumerate(runs.values()):
        for query_id in by_id:
            for rank, photo in enumerate(list(run.get(query_id, ()))[: parsed.k], start=1):
                if photo not in known.get(query_id, {}):
                    places.setdefault(Pair(query_id, photo), [0] * len(runs))[number] = rank
    if not places:
        msg = "a plan must have a photo to judge, got none: all that the runs found was judged"
        raise InputError(msg)
    pairs = list(places)
    ranks = np.array(list(places.values())).T  # (n_systems, n_pairs), 0 where it is not found
    table = np.array([0.0, *(share_of(parsed, rank) for rank in range(1, parsed.k + 1))])
    shares = table[ranks]
    some = shares[[place for place, name in enumerate(runs) if name in compared]]
    spread = some.max(axis=0) - some.min(axis=0) if len(some) > 1 else some[0]
    # What many runs have high up is likelier relevant, and only what is relevant adds to a score.
    high = np.where(ranks > 0, 1 / np.log2(np.maximum(ranks, 1) + 1.0), 0.0).mean(axis=0)
    importance = (spread + _FLOOR * shares.max(axis=0)) * np.sqrt(high)
    priorities = np.array([_drawn(seed, pair) for pair in pairs]) / importance
    order = np.argsort(priorities, kind="stable")
    return JudgingPlan(
        metric=metric,
        queries=by_id,
        systems=tuple(runs),
        pairs=tuple(pairs[place] for place in order),
        priorities=priorities[order],
        importance=importance[order],
        shares=shares[:, order],
        runs=runs,
        judged=known,
        between=None if between is None else tuple(between),
        seed=seed,
    )


def parse_cutoff(name: str) -> Metric:
    """Parse the name of a metric that adds up over photos.

    Raises:
        InputError: It does not.
    """
    metric = parse_metric(name.replace("dcg@", "ndcg@", 1) if name.startswith("dcg@") else name)
    kind = "dcg" if name.startswith("dcg@") else metric.name
    adds_up = kind in ADDITIVE and not metric.condensed and (kind != "success" or metric.k == 1)
    if not adds_up:
        msg = f"metric must be precision@k, success@1 or dcg@k, which add up, got {name!r}"
        raise InputError(msg)
    return Metric(kind, metric.k, least=metric.least)


def share_of(metric: Metric, rank: int) -> float:
    """Return what a grade that counts once adds to a query's score at a rank, from 1 to k."""
    return 1 / math.log2(rank + 1) if metric.name == "dcg" else 1 / metric.k


def gain_of(metric: Metric, grade: int) -> float:
    """Return how often a grade counts: 0 or 1, the grade itself for `dcg`."""
    return float(grade) if metric.name == "dcg" else float(grade >= metric.least)


def _drawn(seed: int, pair: Pair) -> float:
    return _uniform("draw", seed, *pair)


def _uniform(*parts: object) -> float:
    """Return a number above 0 to 1 for some ids: the same whatever else is drawn."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode()).digest()
    return (int.from_bytes(digest[:8], "big") + 1) / 2**64
