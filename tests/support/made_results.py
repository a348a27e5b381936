"""Results made without measuring, for tests of what is done with them."""

import numpy as np

from searchlab.config import Config
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.evaluation.results import Result, Scores
from searchlab.evaluation.significance import bootstrap_intervals

N = 200
LANGS = tuple("de" if n % 4 == 0 else "en" for n in range(N))
ABOUT = tuple(f"p{n // 2}" for n in range(N))
EASY = np.random.default_rng(0).random(N)


def result(
    config,
    *,
    shift=0.0,
    noise=0,
    ms=1.0,
    mib=1.0,
    dataset="demo",
    revision="r1",
    **surroundings,
):
    """A result whose scores are those of an easy system, less `shift`, with seeded noise."""
    jitter = np.random.default_rng(noise).normal(0, 0.05, N) if noise else np.zeros(N)
    values = {"ndcg@10": np.round((EASY - shift + jitter).clip(0, 1), 6)}
    values["success@5"] = (values["ndcg@10"] > 0.5).astype(float)
    intervals = bootstrap_intervals(values, groups=LANGS, clusters=ABOUT, samples=300)
    metrics = {name: interval.macro.mean for name, interval in intervals.items()}
    metrics |= {"p50_ms": ms, "p95_ms": 2 * ms, "p99_ms": 3 * ms}
    metrics |= {"text_ms": 0.5, "build_s": 2.0, "size_mib": mib}
    return Result(
        benchmark="search_quality",
        dataset=dataset,
        dataset_revision=revision,
        config=config,
        metrics=metrics,
        intervals=intervals,
        photos={"n_photos": 349, "hash": "abc"},
        manifest={**make_manifest("search_quality", seed=0), "date": "2026-01-01", **surroundings},
        scores=Scores(tuple(f"q{n:03}" for n in range(N)), LANGS, ABOUT, values, np.full(N, ms)),
    )


MINI = Config(model="mini", model_id="mini-1")
GRAPH = Config(model="mini", model_id="mini-1", index="hnsw")
WIDE = Config(model="mini", model_id="mini-1", depth=500)
PALETTE = Config(model="palette", model_id="palette-1")
