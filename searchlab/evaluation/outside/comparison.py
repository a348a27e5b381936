"""Systems of any toolkit, compared: means with intervals, groups of equals, power, languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from searchlab.errors import InputError
from searchlab.evaluation.metrics import per_query
from searchlab.evaluation.outside.judged import OutsideJudgments, read_judgments, read_labels
from searchlab.evaluation.outside.names import metric_name
from searchlab.evaluation.outside.scored import ScoredSystems
from searchlab.evaluation.outside.systems import MAIN_SCORE, System, read_system
from searchlab.evaluation.outside.tables import comparison_text, standings_table
from searchlab.files import sha256_of

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

DEFAULT: tuple[str, ...] = ("ndcg@10", "recall@10")
_SHOWN = 3


class OutsideComparison(ScoredSystems):
    """Systems of any toolkit; printing it shows who stands where."""

    def text(self, *, languages: bool = False) -> str:
        """Return the tables without colour, for logs and plain terminals."""
        return comparison_text(self, languages=languages)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"OutsideComparison({len(self.systems)} systems, {len(self.query_ids)} {self.unit})"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield standings_table(self)


def compare_files(
    systems: Sequence[str | Path],
    qrels: Path | None = None,
    *,
    metrics: Sequence[str] = (),
    queries: Path | None = None,
    seed: int = 0,
) -> OutsideComparison:
    """Compare what files hold; `searchlab.evaluation.outside.systems` lists their forms.

    Args:
        systems: Two or more files or folders; `NAME=PATH` names one.
        qrels: Judgments, needed where a file holds answers and no scores.
        metrics: Metrics; the first one ranks. Left out: ndcg@10 and recall@10 with judgments,
            otherwise all that every system has.
        queries: Table of the queries with their languages (`lang`), and what they are `about`.
        seed: Seed of intervals and tests.

    Raises:
        NotFoundError: A file is not there.
        InputError: A file cannot be read, the systems have no query or metric in common, judgments
            are missing, or names are not all different.
        MissingExtraError: A Parquet file, and pyarrow is not installed.
    """
    read = [read_system(system) for system in systems]
    _check_names(read)
    judged = None if qrels is None else read_judgments(qrels)
    if judged is None and (runs := [one for one in read if not one.scores]):
        msg = f"answers must come with judgments, got none for {runs[0].path}; give --qrels"
        raise InputError(msg)
    names = _metrics(read, judged, metrics)
    tables = [_scores(one, judged, names) for one in read]
    every = [set(table[name]) for table in tables for name in names]
    common = sorted(set.intersection(*every))
    if not common:
        examples = " and ".join(", ".join(sorted(ids)[:_SHOWN]) for ids in (every[0], every[-1]))
        msg = f"systems must have queries in common, got none: {examples}"
        raise InputError(msg)
    langs: dict[str, str] = {}
    clusters = {} if judged is None else _best_documents(judged)
    for one in read:
        langs |= one.langs
        clusters |= one.clusters
    if queries is not None:
        their_langs, their_clusters = read_labels(queries)
        if missing := [one for one in common if their_langs and one not in their_langs]:
            msg = f"{queries} must have a line for each query, got none for {missing[0]!r}"
            raise InputError(msg)
        langs |= their_langs
        clusters |= their_clusters
    are_tasks = any(one.are_tasks for one in read)
    left_out = len(set.union(*every)) - len(common) + (judged.n_without if judged else 0)
    return OutsideComparison(
        systems=tuple(one.name for one in read),
        scores={
            one.name: {m: np.array([table[m][i] for i in common], dtype=np.float64) for m in names}
            for one, table in zip(read, tables, strict=True)
        },
        query_ids=tuple(common),
        langs=tuple(langs.get(one, "all") for one in common),
        clusters=tuple(clusters.get(one, one) for one in common),
        unanswered={
            one.name: sum(not one.run.get(query) for query in common) if one.run else 0
            for one in read
        },
        files={one.name: _file(one.path) for one in read},
        unit="tasks by language" if are_tasks else "queries",
        about="tasks" if are_tasks else "documents" if clusters else "queries",
        left_out=left_out,
        seed=seed,
    )


def _check_names(systems: Sequence[System]) -> None:
    # Runs of one toolkit are often called the same, each in a folder of its own.
    names = [one.name for one in systems]
    for one in systems:
        if names.count(one.name) > 1 and one.path.resolve().parent.name:
            one.name = f"{one.path.resolve().parent.name}/{one.name}"
    names = [one.name for one in systems]
    if len(systems) < 2 or len(set(names)) < len(names):
        msg = f"two or more systems must be given, each with its name, got {names}; NAME=FILE names"
        raise InputError(msg)


def _metrics(
    systems: Sequence[System], judged: OutsideJudgments | None, wanted: Sequence[str]
) -> tuple[str, ...]:
    scored = [set(one.scores) for one in systems if not one.run]
    shared = set.intersection(*scored) if scored else set()
    names = tuple(dict.fromkeys(map(metric_name, wanted)))
    if not names and scored and MAIN_SCORE in shared:
        names = (MAIN_SCORE,)
    if not names:
        first = next((one for one in systems if not one.run), None)
        names = DEFAULT if first is None else tuple(m for m in first.scores if m in shared)
        if judged is not None and first is not None and any(one.run for one in systems):
            names = tuple(name for name in names if "@" in name)
    missing = [name for name in names if scored and name not in shared]
    if missing or not names:
        what = f"no {missing[0]}" if missing else "none"
        listed = ", ".join(sorted(shared)) or "none that all have"
        msg = f"every system must have the metrics, got {what}; in common are {listed}"
        raise InputError(msg)
    return names


def _scores(
    system: System, judged: OutsideJudgments | None, metrics: Sequence[str]
) -> Mapping[str, Mapping[str, float]]:
    if not system.run or judged is None:
        return system.scores
    answered = [query_id for query_id in judged.qrels if system.run.get(query_id)]
    if not answered:
        theirs, ours = sorted(system.run)[:_SHOWN], sorted(judged.qrels)[:_SHOWN]
        msg = (
            f"{system.path} must answer queries of the judgments, got {', '.join(theirs)} "
            f"where {', '.join(ours)} are judged; check that both name queries alike"
        )
        raise InputError(msg)
    values = per_query(judged.qrels, system.run, metrics)
    ids = sorted(judged.qrels)
    return {m: dict(zip(ids, column.tolist(), strict=True)) for m, column in values.items()}


def _best_documents(judged: OutsideJudgments) -> dict[str, str]:
    return {
        query_id: min(grades, key=lambda document: (-grades[document], document))
        for query_id, grades in judged.qrels.items()
    }


def _file(path: Path) -> dict[str, str]:
    return {"path": str(path)} | ({"sha256": sha256_of(path)} if path.is_file() else {})
