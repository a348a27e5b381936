"""Ranking with and without the text index, on tasks of two kinds.

With texts withheld, queries were taken from what is written about the photos, or nothing is written
about them: the text index must neither help nor harm. With texts there it should help, and must not
harm the queries that it cannot read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from searchlab.config import Config
from searchlab.config.word_weights import USUAL_WORDS, WordWeights
from searchlab.errors import InputError
from searchlab.evaluation.datasets import Dataset, load_dataset
from searchlab.evaluation.experiments import Experiment
from searchlab.evaluation.reporting.diff import compare
from searchlab.evaluation.results import Result
from searchlab.models.shipped_calibration import calibrate
from searchlab.progress import Progress

WITHHELD, THERE = "texts withheld", "texts there"
TASKS: Final = {
    "demo": (WITHHELD, "names, kinds and categories, many languages"),
    "flickr8k": (WITHHELD, "captions; nothing is written about the photos"),
    "demo-written": (THERE, "the same, with titles and descriptions"),
    "demo-everyday": (THERE, "everyday queries, every photo looked at"),
    "demo-written-abroad": (THERE, "queries in other languages than the titles'"),
    "demo-written-misspelt": (THERE, "a typing error in each query"),
    "demo-written-half": (THERE, "half of the photos have no words"),
    "demo-proper-names": (THERE, "photographers, people, places"),
    "flickr8k-described": (THERE, "each photo has another caption"),
    "flickr8k-described-misspelt": (THERE, "and a typing error in each query"),
    "flickr8k-described-half": (THERE, "half of the photos have a caption"),
}
"""Dataset -> which texts are there, and what is asked."""

METRICS: Final = ("ndcg@10", "success@5", "mrr@10")
_LEAST, _MOST = 60, 60


def measure_task(
    dataset: Dataset,
    *,
    base: Config | None = None,
    weights: WordWeights = USUAL_WORDS,
    metrics: Sequence[str] = METRICS,
    cache: Path | None = None,
    progress: Progress | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Measure one configuration with and without the text index on one task.

    Args:
        dataset: The task.
        base: Configuration without words; the default one with its calibration if left out.
        weights: What words count.
        metrics: Metrics; the first one decides.
        cache: Folder that keeps libraries.
        progress: Shows the queries.
        seed: Seed of intervals and tests.

    Returns:
        Figures of a measurement: the metrics of both with 95 % intervals, and the difference.
    """
    without = calibrate(Config()) if base is None else base
    if without.words is not None:
        msg = f"base must rank without words, got {without.words}; give it words=None"
        raise InputError(msg)
    configs = [without, replace(without, words=weights)]
    report = Experiment(dataset, configs, metrics, cache=cache, seed=seed).run(progress)
    results = {result.config.words is not None: result for result in report.results}
    both = compare(results[False], results[True], seed=seed).whole
    headline = metrics[0]
    return {
        "system": results[True].name,
        "config_id": results[True].config_id,
        "config": results[True].config.to_dict(),
        "n_photos": len(dataset.photo_ids),
        "n_queries": len(dataset.queries),
        "n_languages": len(dataset.languages),
        "without": _figures(results[False]),
        "with": _figures(results[True]),
        "difference": list(both.difference),
        "p_value": both.p_value,
        "wins": both.wins,
        "ties": both.ties,
        "losses": both.losses,
        "headline": headline,
        "metrics": {
            "without": results[False].metrics[headline],
            "with": results[True].metrics[headline],
            "added_p50_ms": results[True].metrics["p50_ms"] - results[False].metrics["p50_ms"],
        },
        "manifest": results[True].manifest,
    }


def recompute(measurement: Mapping[str, Any]) -> dict[str, Any]:
    """Rank, score and test the queries of a record again; without times.

    Raises:
        NotFoundError: The photos are not in the folder that SEARCHLAB_DATASETS names.
    """
    dataset = sample_of(load_dataset(str(measurement["task"])))
    again = measure_task(dataset, seed=int(measurement["manifest"]["seed"]))
    del again["manifest"], again["metrics"]["added_p50_ms"]
    return again


def sample_of(dataset: Dataset, *, most: int | None = None) -> Dataset:
    """Keep 60 queries of each language that has as many, or all of a small or graded dataset."""
    counts = Counter(query.lang for query in dataset.queries)
    enough = sorted(lang for lang, count in counts.items() if count >= _LEAST)
    if most is None and len(enough) <= 5:
        return dataset
    return dataset.sample(enough or list(counts), most or _MOST, seed=0)


def _figures(result: Result) -> dict[str, list[float]]:
    return {name: list(averages.macro) for name, averages in result.intervals.items()}
