"""A small evaluation, as the whole life of a process: answers are read, scored, and printed.

    python -m benchmarks.search_quality.small_evaluation ranx task.json

`bench_cold_start` starts it again and again. A module is imported where it is used, since the time
that its import takes is a part of what is measured.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

METRICS = ("ndcg@10", "mrr@10", "recall@10", "map@10")
DEPTH = 10

Qrels: TypeAlias = dict[str, dict[str, int]]
Run: TypeAlias = dict[str, list[str]]


def score_by_searchlab(qrels: Qrels, run: Run) -> dict[str, float]:
    """Return the mean of each metric, by searchlab's own functions."""
    from searchlab.evaluation.metrics import evaluate

    return evaluate(qrels, run, METRICS)


def score_by_ranx(qrels: Qrels, run: Run) -> dict[str, float]:
    """Return the mean of each metric by ranx's usual way in, which wants scores: 1 / rank."""
    import ranx

    scored = {
        query_id: {photo_id: 1 / rank for rank, photo_id in enumerate(photo_ids, start=1)}
        for query_id, photo_ids in run.items()
    }
    means = ranx.evaluate(ranx.Qrels(qrels), ranx.Run(scored), list(METRICS))
    return {metric: float(mean) for metric, mean in means.items()}


def score_by_ranx_arrays(qrels: Qrels, run: Run) -> dict[str, float]:
    """Return the mean of each metric by ranx, of arrays, as searchlab once called it.

    No dictionaries of ids are compiled then, so that it takes less than ranx's usual way in.
    """
    import numpy as np
    import ranx

    widest = max(len(grades) for grades in qrels.values())
    judged = np.zeros((len(qrels), widest, 2))
    judged[:, :, 0] = np.arange(widest)
    ranked = np.full((len(qrels), DEPTH, 2), -1.0)  # -1 stands for every photo without a judgment
    ranked[:, :, 1] = 1 / np.arange(1, DEPTH + 1)
    for row, (query_id, grades) in enumerate(qrels.items()):
        # ranx takes this order as the ideal ranking.
        best_first = sorted(grades, key=grades.__getitem__, reverse=True)
        judged[row, : len(best_first), 1] = [grades[photo_id] for photo_id in best_first]
        numbers = {photo_id: number for number, photo_id in enumerate(best_first)}
        answer = run[query_id][:DEPTH]
        ranked[row, : len(answer), 0] = [numbers.get(photo_id, -1) for photo_id in answer]
    means = ranx.evaluate(judged, ranked, list(METRICS), threads=1)
    return {metric: float(mean) for metric, mean in means.items()}


WAYS: Final[dict[str, Callable[[Qrels, Run], dict[str, float]]]] = {
    "searchlab": score_by_searchlab,
    "ranx, arrays": score_by_ranx_arrays,
    "ranx": score_by_ranx,
}


def main(way: str, task: Path) -> None:
    """Read judgments and answers, print means and seconds as JSON."""
    read = json.loads(task.read_text(encoding="utf-8"))
    started = time.perf_counter()
    means = WAYS[way](read["qrels"], read["run"])
    first = time.perf_counter()
    WAYS[way](read["qrels"], read["run"])
    again = time.perf_counter()
    seconds = {"figures_s": first - started, "again_s": again - first}
    sys.stdout.write(json.dumps({"means": means, **seconds}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
