"""What texts add to the chance that a photo is relevant, on judgments that were left out.

Photos are ranked by picture and texts, as libraries do. What the words of a query gain there puts
them in order; how much it says of relevance is fitted on graded judgments, each time without one
data set or language, and measured on what was left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from searchlab.config.calibration import QueryTraits
from searchlab.evaluation.calibration.query_fit import (
    RankedPairs,
    TextFit,
    WrittenFit,
    fit_written,
)
from searchlab.evaluation.calibration.scored_queries import TOP, score_queries
from searchlab.evaluation.significance import Interval
from searchlab.search.query_reading import known_words
from searchlab.search.words.matches import Gains
from searchlab.studies.calibration.reliability import cluster_draws, measure_reliability

if TYPE_CHECKING:
    from searchlab.evaluation.datasets import Dataset
    from searchlab.search.engine import SearchEngine

FITTED: Final = {
    "sentences": "flickr8k-described",
    "words": "flickr8k-words-described",
    "sentences, Chinese texts": "flickr8k-described-zh",
    "words, Chinese texts": "flickr8k-words-described-zh",
}
"""What the shipped values are fitted on. Of each kind there is one whose queries are of the texts'
language, English or Chinese, so that there are matches to fit on with either of them left out."""

SETS: Final = {**FITTED, "everyday": "demo-everyday"}


def rank_pairs(engine: SearchEngine, dataset: Dataset, fit: TextFit) -> RankedPairs:
    """Return each query's ten best photos by picture and texts; unjudged ones are not relevant.

    Args:
        engine: Over the photos, with texts and with weights of words.
        dataset: Text queries and judgments.
        fit: Curve of the pictures.
    """
    weights = engine.config.words
    scored = score_queries(engine, dataset)
    if weights is None or scored.traits is None:
        msg = "texts must be read, and the model must tell traits of queries, got another engine"
        raise ValueError(msg)
    ranked, seen, is_written, shares, reaches, relevant = [], [], [], [], [], []
    for text, cosines, grades, traits in zip(
        scored.texts, scored.cosines, scored.grades, scored.traits.tolist(), strict=True
    ):
        intercept = fit.curve.intercept + fit.weights.log_odds(QueryTraits(*traits))
        logits = fit.curve.slope * cosines.astype(np.float64) + intercept
        matches = engine.words.match(text, known=known_words(text, engine.model))
        gains = Gains.of_words(matches, weights, fit.curve)
        both = logits + fit.curve.slope * gains.of(np.arange(len(logits)))
        best = np.argsort(-both, kind="stable")[:TOP]
        ranked.append(both[best])
        seen.append(logits[best])
        is_written.append(np.full(len(best), any(matches.counts.values())))
        shares.append(np.full(len(best), matches.share))
        reaches.append(np.full(len(best), matches.reach))
        relevant.append(grades[best] >= 1)
    repeats = [len(some) for some in ranked]
    return RankedPairs(
        np.concatenate(ranked),
        np.concatenate(seen),
        np.concatenate(is_written),
        np.concatenate(shares),
        np.concatenate(reaches),
        np.concatenate(relevant),
        np.repeat(np.array(scored.cluster_ids), repeats),
        np.repeat(np.array(scored.langs), repeats),
    )


def measure_written(
    pairs: Mapping[str, RankedPairs], *, least: int, samples: int, seed: int
) -> tuple[WrittenFit, list[dict[str, Any]]]:
    """Fit what texts add, and measure it on what was left out.

    Args:
        pairs: For each of `SETS`.
        least: Queries that a language must have to be left out.
        samples: Number of resamples of the intervals.
        seed: Seed of the resampling.

    Returns:
        What is fitted on `FITTED`, and a row for each left-out set and way of scoring: by the
        picture alone, by the log-odds that photos are ranked by, and as fitted on the others.
    """
    rows = []

    def add(name: str, kind: str, fitted_on: Sequence[RankedPairs], read: RankedPairs) -> None:
        fit = fit_written(fitted_on)
        ways = {"picture alone": None, "as ranked": WrittenFit(), "fitted": fit}
        for way, chosen in ways.items():
            seen = read._replace(ranked=read.seen) if chosen is None else read
            scores = seen.scores(chosen or WrittenFit())
            diagram = measure_reliability(
                scores, read.relevant, clusters=read.clusters, samples=samples, seed=seed
            )
            auc = pair_auc(scores, read.relevant, read.clusters, samples=samples, seed=seed)
            rows.append(
                {
                    "left_out": name,
                    "kind": kind,
                    "scored_by": way,
                    **({} if chosen is None else chosen._asdict()),
                    "auc": auc._asdict(),
                    **diagram.to_dict(),
                }
            )

    fitted = {name: pairs[name] for name in FITTED if name in pairs}
    for name, some in pairs.items():
        kind = name.partition(",")[0]  # the same in another language is left out with it
        others = [pairs[other] for other in fitted if other.partition(",")[0] != kind]
        add(name, "data set" if name in FITTED else "data set and library", others, some)
    sentences, langs = pairs["sentences"], pairs["sentences"].langs
    for lang in sorted(set(langs.tolist())):
        mine = langs == lang
        if len(set(sentences.clusters[mine].tolist())) < least:
            continue
        # Sets that have queries of this language alone go as well.
        rest = [some.take(some.langs != lang) for some in fitted.values()]
        add(lang, "language", [some for some in rest if len(some.relevant)], sentences.take(mine))
    return fit_written(list(fitted.values())), rows


def pair_auc(
    scores: NDArray[np.float64],
    relevant: NDArray[np.bool_],
    clusters: NDArray[np.str_],
    *,
    samples: int,
    seed: int,
) -> Interval:
    """Return how often a relevant pair scores above another one, with its bootstrap interval.

    Args:
        scores: (n,) scores; ties count half.
        relevant: (n,) whether each pair is relevant; there must be both kinds.
        clusters: (n,) names; pairs of one name are drawn together.
        samples: Number of resamples.
        seed: Seed of the resampling.
    """
    names, cluster_of = np.unique(clusters, return_inverse=True)
    levels, level_of = np.unique(scores, return_inverse=True)

    def auc(times: NDArray[np.float64]) -> float:
        weights = times[cluster_of]
        good = np.bincount(level_of, weights * relevant, len(levels))
        bad = np.bincount(level_of, weights * ~relevant, len(levels))
        below = np.cumsum(bad) - bad / 2
        return float(good @ below) / (float(good.sum()) * float(bad.sum()))

    rng = np.random.default_rng(seed)
    drawn = [auc(times) for block in cluster_draws(len(names), samples, rng) for times in block]
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Interval(auc(np.ones(len(names))), float(low), float(high))
