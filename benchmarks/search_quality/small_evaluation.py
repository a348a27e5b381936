"""A small evaluation, as the whole life of a process: answers are read, scored, and printed.

    python -m benchmarks.search_quality.small_evaluation ranx task.json

`bench_cold_start` starts it again and again. A module is imported where it is used, since the time
that its import takes is a part of what is measured.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TypeAlias

METRICS = ("ndcg@10", "mrr@10", "recall@10", "map@10")
WAYS = ("searchlab", "ranx")

Qrels: TypeAlias = dict[str, dict[str, int]]
Run: TypeAlias = dict[str, list[str]]


def score_by_searchlab(qrels: Qrels, run: Run) -> dict[str, float]:
    """Return the mean of each metric, by searchlab's own functions."""
    from searchlab.evaluation.metrics import evaluate

    return evaluate(qrels, run, METRICS)


def score_by_ranx(qrels: Qrels, run: Run) -> dict[str, float]:
    """Return the mean of each metric by ranx, which wants scores: 1 / rank."""
    import ranx

    scored = {
        query_id: {photo_id: 1 / rank for rank, photo_id in enumerate(photo_ids, start=1)}
        for query_id, photo_ids in run.items()
    }
    found = ranx.evaluate(ranx.Qrels(qrels), ranx.Run(scored), list(METRICS))
    return {metric: float(value) for metric, value in found.items()}


def main(way: str, task: Path) -> None:
    """Read judgments and answers, print means and seconds as JSON."""
    started = time.perf_counter()
    read = json.loads(task.read_text(encoding="utf-8"))
    score = {"searchlab": score_by_searchlab, "ranx": score_by_ranx}[way]
    means = score(read["qrels"], read["run"])
    first = time.perf_counter()
    score(read["qrels"], read["run"])
    again = time.perf_counter()
    seconds = {"figures_s": first - started, "again_s": again - first}
    sys.stdout.write(json.dumps({"means": means, **seconds}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
