"""Fit the curves from cosine to `relevance_score`, and measure how far the scores hold.

    python -m benchmarks.calibration.bench_calibration
    SEARCHLAB_DATASETS=... python -m benchmarks.calibration.bench_calibration --dataset flickr8k
    python -m benchmarks.calibration.bench_calibration --smoke --out "$(mktemp -d)"

Curves are fitted on one half of the judged photos and measured on the other: for each model,
language and kind of query; with other curves; with answers taken out of the collection. Then a
threshold is chosen with each model and used with every other. Writes
results/calibration/<dataset>/<model>.json for each model, and threshold_transfer.json, with charts
beside them. On `demo`, without --smoke, the curves also go to
searchlab/models/shipped_calibration, where `default_calibration` finds them.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.common.recording import bench_parser, on_record, record
from searchlab.cli.console import ConsoleProgress
from searchlab.cli.demo import demo_configs
from searchlab.config import Config
from searchlab.config.calibration import UNCALIBRATED, Calibration
from searchlab.evaluation.charts import chart, save_chart
from searchlab.evaluation.datasets.dataset_library import dataset_library
from searchlab.evaluation.provenance.manifest import data_hashes, make_manifest, models_of
from searchlab.library.library import Library
from searchlab.models import load_model
from searchlab.models.shipped_calibration import default_calibration, save_calibration
from searchlab.studies.calibration.charts import (
    TITLES,
    draw_alphas,
    draw_reliability,
    draw_transfer,
    draw_unanswerable,
)
from searchlab.studies.calibration.study import PRECISIONS, TRANSFER, measure, measure_transfer
from searchlab.studies.query_sets import QuerySet, engine_of

BENCHMARK = "calibration"
SHIPPED = Path(__file__).resolve().parents[2] / "searchlab/models/shipped_calibration"


def main() -> None:
    """Measure what is not on record, and write."""
    parser = bench_parser(__doc__, dataset="demo", datasets=("demo", "flickr8k"))
    parser.add_argument("--least", type=int, default=60, help="queries that a language must have")
    parser.add_argument("--most", type=int, help="queries of a language (120, of flickr8k 1000)")
    parser.add_argument("--samples", type=int, default=1000, help="resamples of the intervals")
    parser.add_argument("--data", type=Path, help="folder to keep libraries in")
    options = parser.parse_args()
    options.most = options.most or (120 if options.dataset == "demo" else 1000)
    models = list(dict.fromkeys(config.model for config in demo_configs()))
    if options.dataset != "demo":
        models = [spec for spec in models if "captions" not in spec]  # its photos have no texts
    if options.smoke:
        models, options.most, options.samples = ["mini", "palette"], 5, 50
    query_set = QuerySet.load(
        options.dataset, least=options.least, most=options.most, seed=options.seed
    )
    if options.smoke and query_set.steered is not None:
        few = query_set.steered.sample(["de", "en", "es", "fr"], 40, seed=options.seed)
        query_set = replace(query_set, steered=few)
    with tempfile.TemporaryDirectory() as scratch:
        library = dataset_library(
            query_set.text,
            options.data or Path(scratch),
            config=Config(),
            progress=ConsoleProgress(Console(stderr=True)),
        )
        for spec in models:
            measure_model(options, library, spec, query_set)
        measure_thresholds(options, library, models, query_set)


def measure_model(
    options: argparse.Namespace, library: Library, spec: str, query_set: QuerySet
) -> None:
    """Fit the curves of one model and measure them, unless that is on record."""
    name = file_name(spec)
    if on_record(options, BENCHMARK, name) is not None:
        return
    config = Config(model=spec).with_model_id(load_model(spec).model_id)
    # The curves that ship were fitted on the demo; here they are measured on other photos.
    shipped = default_calibration(config.model_id)
    has_shipped = options.dataset != "demo" and shipped != UNCALIBRATED
    others = {"demo": shipped} if has_shipped else {}
    measured = measure(
        engine_of(library, config, query_set),
        query_set,
        others=others,
        samples=options.samples,
        seed=options.seed,
    )
    beside = draw(options, name, spec, measured)
    parameters = parameters_of(options, [spec]) | {
        "others": {k: v.to_dict() for k, v in others.items()}
    }
    values = {
        "config": config.to_dict(),
        "config_id": config.config_id,
        "parameters": parameters,
        **measured,
        "manifest": manifest_of(options, [spec], query_set),
    }
    record(options, BENCHMARK, name, values, beside=beside)
    # The curves that `bench_relevance` fits on graded judgments stay where a model has them.
    if options.dataset == "demo" and not options.smoke and shipped.query is None:
        fitted = Calibration.from_dict(measured["calibration"])
        save_calibration(fitted, config.model_id, SHIPPED)
    for kind in TITLES:
        ece, chance = (measured["metrics"][f"{n}.{kind}.top10"] for n in ("ece", "ece_chance"))
        sys.stdout.write(f"{spec}, {kind}: ECE {ece:.4f}, by chance alone {chance:.4f}\n")


def measure_thresholds(
    options: argparse.Namespace, library: Library, models: list[str], query_set: QuerySet
) -> None:
    """Use the thresholds of each model with every other, unless that is on record."""
    if on_record(options, BENCHMARK, TRANSFER) is not None:
        return
    engines = {spec: engine_of(library, Config(model=spec), query_set) for spec in models}
    measured = measure_transfer(engines, query_set, samples=options.samples, seed=options.seed)
    place = options.out / BENCHMARK / options.dataset / TRANSFER
    with chart(11, 0.6 + 0.32 * len(models) ** 2, columns=len(PRECISIONS), sharey=True) as (f, axs):
        for axes, precision in zip(axs, PRECISIONS, strict=True):
            rows = [row for row in measured["rows"] if row["asked"] == precision]
            draw_transfer(axes, rows, title=f"threshold for {precision:.0%}")
        axs[0].legend(loc="lower right")
        f.suptitle(f"A threshold chosen with one model, used with another: {options.dataset}")
        beside = save_chart(f, place)
    values = {
        "parameters": parameters_of(options, models) | {"precisions": list(PRECISIONS)},
        **measured,
        "manifest": manifest_of(options, models, query_set),
    }
    record(options, BENCHMARK, TRANSFER, values, beside=beside)
    for name, value in measured["metrics"].items():
        sys.stdout.write(f"{name}: {value:.3f}\n")


def draw(
    options: argparse.Namespace, name: str, spec: str, measured: Mapping[str, Any]
) -> list[Path]:
    """Draw reliability by kind of query; then thresholds without answers, and steered queries."""
    place = options.out / BENCHMARK / options.dataset / name
    diagrams = [diagram for diagram in measured["diagrams"] if diagram["reading"] == "top10"]
    with chart(11, 3.9, columns=len(diagrams), sharey=True) as (figure, axs):
        for axes, diagram in zip(axs, diagrams, strict=True):
            title = f"asked by {TITLES[diagram['kind']]}"
            draw_reliability(axes, diagram["bars"], title=title)
        axs[0].set_ylabel("share relevant")
        axs[0].legend(loc="upper left")
        figure.suptitle(f"What scores promise and keep: {spec} on {options.dataset}, ten nearest")
        written = save_chart(figure, place)
    with chart(11, 3.9, columns=2) as (figure, (left, right)):
        draw_unanswerable(
            left, measured["thresholds"], title="Does a threshold tell what is missing?"
        )
        draw_alphas(right, measured["alphas"], title="Steered queries, with more or less text")
        figure.suptitle(f"{spec} on {options.dataset}")
        return written + save_chart(figure, place.with_name(f"{name}.more"))


def parameters_of(options: argparse.Namespace, models: list[str]) -> dict[str, Any]:
    """Return the parameters that `recompute` needs to measure again."""
    choices = {name: getattr(options, name) for name in ("least", "most", "samples", "seed")}
    return {"models": models, **choices}


def manifest_of(
    options: argparse.Namespace, models: list[str], query_set: QuerySet
) -> dict[str, Any]:
    """Make the manifest: models, data and settings that the figures depend on."""
    data = {dataset.name: data_hashes(dataset) for dataset in query_set.each()}
    return make_manifest(
        BENCHMARK, models=models_of(*models), data=data, seed=options.seed, threads=options.threads
    )


def file_name(spec: str) -> str:
    """Turn a model's spec into a file name without suffix."""
    return re.sub(r"[^a-z0-9.]+", "-", spec.lower())


if __name__ == "__main__":
    main()
