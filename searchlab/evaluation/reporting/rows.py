"""Results as rows of plain values, one table each: systems, queries, answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from searchlab.evaluation.comparison import Comparison
from searchlab.evaluation.datasets.judgments import read_run_scores

if TYPE_CHECKING:
    from searchlab.evaluation.datasets import Dataset
    from searchlab.library.library import Library


def system_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """Return a row for each system, best first: rank, figures, ends of intervals, p-value."""
    rows = []
    for values in comparison.to_dict()["systems"]:
        intervals = values.pop("intervals")
        for metric, (mean, low, high) in intervals.items():
            values |= {metric: mean, f"{metric} low": low, f"{metric} high": high}
        rows.append(values | values.pop("metrics"))
    return rows


def query_rows(comparison: Comparison, dataset: Dataset | None = None) -> list[dict[str, Any]]:
    """Return a row for each system and query: its words, what it is about, metrics, milliseconds.

    Args:
        comparison: The results.
        dataset: What they were measured on, for the words; they are empty without.
    """
    texts = {} if dataset is None else {one.query_id: one.text for one in dataset.queries}
    rows = []
    for result in comparison.results:
        scores = result.scores
        for place, query_id in enumerate(scores.query_ids):
            row: dict[str, Any] = {
                "system": comparison.names[result.config_id],
                "config_id": result.config_id,
                "query_id": query_id,
                "lang": scores.langs[place],
                "text": texts.get(query_id) or "",
                "about": scores.cluster_ids[place],
            }
            row |= {name: float(column[place]) for name, column in scores.values.items()}
            rows.append(row | {"ms": float(scores.ms[place])})
    return rows


def answer_rows(
    comparison: Comparison,
    out: Path,
    dataset: Dataset | None = None,
    library: Library | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield a row for each system, query and photo that was answered, best first.

    Args:
        comparison: The results.
        out: Folder of results, where their rankings lie; one without a ranking has no rows.
        dataset: What they were measured on, for words, grades, titles and files.
        library: A library of the photos, for titles and files.
    """
    texts = {} if dataset is None else {one.query_id: one.text for one in dataset.queries}
    qrels: Mapping[str, Mapping[str, int]] = {} if dataset is None else dataset.qrels
    known = _titles_and_files(dataset, library)
    for result in comparison.results:
        file = result.path(out).with_suffix(".run.gz")
        ranked = read_run_scores(file) if file.exists() else {}
        for query_id, answers in ranked.items():
            for rank, (photo_id, score) in enumerate(answers, start=1):
                title, path = known.get(photo_id, ("", ""))
                yield {
                    "system": comparison.names[result.config_id],
                    "config_id": result.config_id,
                    "query_id": query_id,
                    "text": texts.get(query_id) or "",
                    "rank": rank,
                    "photo_id": photo_id,
                    "score": score,
                    "grade": qrels.get(query_id, {}).get(photo_id),
                    "title": title,
                    "file": path,
                }


def _titles_and_files(
    dataset: Dataset | None, library: Library | None
) -> dict[str, tuple[str, str]]:
    known: dict[str, tuple[str, str]] = {}
    if dataset is not None:
        for photo_id, record in zip(dataset.ids_of_records, dataset.records, strict=True):
            known[photo_id] = (record.get("title") or "", record.get("file") or "")
    if library is not None:
        table = library.engine.table
        columns = (table.texts(name) for name in ("photo_id", "title", "file"))
        known |= {photo_id: (title, path) for photo_id, title, path in zip(*columns, strict=True)}
    return known
