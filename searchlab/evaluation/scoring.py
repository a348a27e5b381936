"""Scoring: the result of one configuration, from what it answered to the queries of a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from searchlab.config import Config
from searchlab.evaluation.datasets import Dataset
from searchlab.evaluation.metrics import latency, per_query
from searchlab.evaluation.provenance.manifest import data_hashes, make_manifest, models_of
from searchlab.evaluation.query_answers import Answers
from searchlab.evaluation.results import Result, Scores
from searchlab.evaluation.significance import bootstrap_intervals
from searchlab.library.embed import BATCH

if TYPE_CHECKING:
    from searchlab.evaluation.datasets import LabelledQuery


def score_answers(
    answers: Answers,
    dataset: Dataset,
    config: Config,
    metrics: Sequence[str],
    *,
    photos: dict[str, Any],
    benchmark: str,
    study: str,
    seed: int,
    where: str,
) -> Result:
    """Score the answers to all queries of a dataset.

    Args:
        answers: What the configuration answered.
        dataset: Queries and judgments.
        config: The configuration, with its `model_id`.
        metrics: Names; the first one is the headline.
        photos: `n_photos` that were searched, and their `hash`.
        benchmark: Name of the measurement.
        study: The line of `STUDIES` that names its code.
        seed: Of the intervals.
        where: The machine that answered; `SHARED` if its times say nothing.

    Raises:
        InputError: A ranking holds a photo that it must not.
    """
    queries = sorted(dataset.queries, key=lambda query: query.query_id)
    qrels = {query.query_id: dataset.qrels[query.query_id] for query in queries}
    rankings = {i: [photo for photo, _ in ranked] for i, ranked in answers.run.items()}
    dataset.check_run(rankings)
    seconds = np.array([answers.seconds[query.query_id] for query in queries])
    # Six digits, as on disk, so that a result that was read back tests the same.
    values = {
        name: np.round(column, 6) for name, column in per_query(qrels, rankings, metrics).items()
    }
    scores = Scores(
        query_ids=tuple(query.query_id for query in queries),
        langs=tuple(query.lang for query in queries),
        cluster_ids=tuple(_cluster_id(query, qrels[query.query_id]) for query in queries),
        values=values,
        ms=seconds * 1000,
    )
    intervals = bootstrap_intervals(
        values, groups=scores.langs, clusters=scores.cluster_ids, seed=seed
    )
    quality = {name: averages.macro.mean for name, averages in intervals.items()}
    cost = {
        **latency(seconds),
        "text_ms": answers.text_ms,
        "build_s": answers.build_s,
        "size_mib": answers.size_mib,
    }
    manifest = make_manifest(
        study,
        models=models_of(config.model),
        data={**data_hashes(dataset), "photos": photos["hash"]},
        seed=seed,
        threads=1,
        batch_size=BATCH,
        dtype=answers.dtype,
    )
    return Result(
        benchmark=benchmark,
        dataset=dataset.name,
        dataset_revision=dataset.revision,
        config=config,
        metrics=quality | cost,
        intervals=intervals,
        photos=photos,
        manifest=manifest | {"machine": where},
        scores=scores,
        task=dataset.task,
        judged_by=dataset.judged_by,
        answered_by=answers.answered_by,
    )


def _cluster_id(query: LabelledQuery, grades: Mapping[str, int]) -> str:
    """Return the photo that a query is about: its own, or the one with the best grade."""
    if query.photo_id is not None:
        return query.photo_id
    return min(grades, key=lambda photo_id: (-grades[photo_id], photo_id))
