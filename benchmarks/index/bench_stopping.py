"""Does the clustered index find the share of neighbours that it is asked for, and no more?

    python -m benchmarks.index.bench_stopping --cache /tmp/vectors   # spliced-1M, 10 minutes
    python -m benchmarks.index.bench_stopping --dataset photos-mini
    python -m benchmarks.index.bench_stopping --smoke --out "$(mktemp -d)"

Writes results/stopping/<dataset>/clustered.json, and skips what is on record (--force measures
again). Half of the queries of each kind are known to the index: it learns from nothing, from those
of kind `image`, or from those of kind `text`, and is then asked the other half of both kinds at
several recall targets, without a filter and with two: a tenth of the rows at random, and the tenth
nearest to a query. Recalls and rows read are no times: they are the same on every machine.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.common.recording import bench_parser, on_record, record
from searchlab.cli.console import ConsoleProgress
from searchlab.config import Config
from searchlab.evaluation.metrics import recall_of_each
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.indexes import ExactIndex, build_index
from searchlab.studies.vectors.made import VectorSet
from searchlab.studies.vectors.real import vector_set

TARGETS = (0.9, 0.95, 0.98, 0.99, 0.995)
_K = 20


def make_filters(vectors: VectorSet, seed: int) -> dict[str, Bitmap | None]:
    """Let all rows through, a tenth at random, and the tenth nearest to a query by text."""
    n = len(vectors.photos)
    nearness = vectors.photos @ vectors.queries["text"][-1]
    masks = {
        "a tenth at random": np.random.default_rng(seed).random(n) < 0.1,
        "the tenth near a text": nearness >= np.quantile(nearness, 0.9),
    }
    return {"none": None} | {name: Bitmap.of_mask(mask) for name, mask in masks.items()}


def measure(vectors: VectorSet, seed: int, progress: ConsoleProgress) -> list[dict[str, Any]]:
    """Ask after each lesson; one row for each kind of query, filter and target."""
    index = build_index(vectors.photos, Config(model="given", index="clustered", seed=seed))
    exact = ExactIndex(vectors.photos)
    half = len(vectors.queries["image"]) // 2
    known = {kind: queries[:half] for kind, queries in vectors.queries.items()}
    asked = {kind: queries[half:] for kind, queries in vectors.queries.items()}
    filters = make_filters(vectors, seed)
    truths = {
        (kind, name): exact.search(queries, _K, allowed=allowed)
        for kind, queries in asked.items()
        for name, allowed in filters.items()
    }
    rows = []
    with progress.step("asking", 3 * len(truths) * len(TARGETS), unit="points") as step:
        for learnt in ("nothing", "image", "text"):
            if learnt in known:
                index.learn(known[learnt])
            for (kind, name), truth in truths.items():
                for target in TARGETS:
                    answers = index.search(asked[kind], _K, allowed=filters[name], recall=target)
                    each = recall_of_each(answers, truth)
                    rows.append(
                        {
                            "learnt from": learnt,
                            "queries": kind,
                            "filter": name,
                            "asked": target,
                            "recall": round(float(each.mean()), 4),
                            "worst": round(float(each.min()), 2),
                            "rows read": int(np.mean(answers.rows_read)),
                        }
                    )
                    step.advance(1)
    return rows


def summarise(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Set what came before and after learning from such queries side by side, without a filter."""
    came = {
        (row["learnt from"], row["queries"], row["asked"]): row
        for row in rows
        if row["filter"] == "none"
    }
    return [
        {
            "queries": kind,
            "asked": asked,
            "recall before": row["recall"],
            "rows read before": row["rows read"],
            "recall": came[kind, kind, asked]["recall"],
            "worst": came[kind, kind, asked]["worst"],
            "rows read": came[kind, kind, asked]["rows read"],
        }
        for (learnt, kind, asked), row in came.items()
        if learnt == "nothing"
    ]


def main() -> None:
    """Measure and write."""
    parser = bench_parser(__doc__, dataset="spliced-1M")
    parser.add_argument("--queries", type=int, default=600, help="queries of each kind")
    parser.add_argument("--cache", type=Path, help="folder that keeps vectors of real texts")
    options = parser.parse_args()
    if options.smoke:
        options.dataset, options.queries = "clustered-3k-32", 40
    if on_record(options, "stopping", "clustered") is None:
        run(options)


def run(options: argparse.Namespace) -> None:
    """Measure one set of vectors and record it."""
    progress = ConsoleProgress(Console(stderr=True))
    vectors = vector_set(
        options.dataset,
        n_queries=options.queries,
        seed=options.seed,
        progress=progress,
        cache=options.cache,
    )
    rows = measure(vectors, options.seed, progress)
    learnt = summarise(rows)
    off = [abs(row["recall"] - row["asked"]) for row in learnt]
    manifest = make_manifest(
        "stopping", seed=options.seed, threads=1, data={"vectors": vectors.digest}
    )
    values = {
        "parameters": {
            "n_photos": len(vectors.photos),
            "n_queries": len(vectors.queries["image"]) // 2,
            "k": _K,
            "about": vectors.about,
        },
        "metrics": {"most off, of queries learnt from": round(max(off), 4)},
        "learnt": learnt,
        "rows": rows,
        "manifest": manifest,
    }
    record(options, "stopping", "clustered", values)
    for row in rows:
        sys.stdout.write("  ".join(f"{value!s:>22}" for value in row.values()) + "\n")


if __name__ == "__main__":
    main()
