"""Fit the curve of text queries on graded judgments, and measure it on what was left out.

    SEARCHLAB_DATASETS=... python -m benchmarks.relevance.bench_relevance
    python -m benchmarks.relevance.bench_relevance --smoke --out "$(mktemp -d)"

The curve is fitted without one data set or one language at a time and measured on that one. Writes
results/relevance/flickr8k/mini.json, with a reliability diagram for each set that was left out.
Without --smoke the curve that is fitted on everything goes to searchlab/models/shipped_calibration.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.common.recording import bench_parser, on_record, record
from searchlab.config.calibration import Curve, QueryWeights
from searchlab.config.word_weights import USUAL_WORDS
from searchlab.evaluation.calibration.query_fit import TextFit, WrittenFit
from searchlab.evaluation.charts import chart, save_chart
from searchlab.evaluation.datasets import Dataset, load_dataset
from searchlab.evaluation.provenance.manifest import data_hashes, make_manifest, models_of
from searchlab.models.shipped_calibration import save_calibration
from searchlab.studies.calibration.charts import draw_missing, draw_reliability
from searchlab.studies.calibration.relevance import (
    FITTED,
    READ_ONLY,
    SETS,
    THRESHOLDS,
    calibration_of,
    measure,
    open_sets,
    paired,
)
from searchlab.studies.calibration.written import SETS as WITH_TEXTS

BENCHMARK = "relevance"
MODEL = "mini"
SHIPPED = Path(__file__).resolve().parents[2] / "searchlab/models/shipped_calibration"


def main() -> None:
    """Measure what is not on record, and write."""
    parser = bench_parser(__doc__, dataset="flickr8k", datasets=("flickr8k",))
    parser.add_argument("--least", type=int, default=60, help="queries that a language must have")
    parser.add_argument("--samples", type=int, default=1000, help="resamples of the intervals")
    parser.add_argument("--data", type=Path, help="folder to keep libraries in")
    options = parser.parse_args()
    if on_record(options, BENCHMARK, MODEL) is not None:
        return
    names = dict.fromkeys(SETS, "demo-everyday") if options.smoke else {**SETS, **READ_ONLY}
    with_texts = dict.fromkeys(WITH_TEXTS, "demo-everyday") if options.smoke else WITH_TEXTS
    options.samples = 50 if options.smoke else options.samples
    with tempfile.TemporaryDirectory() as scratch:
        place = options.data or Path(scratch)
        engines, datasets = open_sets(MODEL, names, place)
        read = open_sets(MODEL, with_texts, place, words=USUAL_WORDS)
        parameters = {name: getattr(options, name) for name in ("least", "samples", "seed")}
        measured = measure(engines, datasets, paired(*read), **parameters)
        if not options.smoke:
            ship(measured, engines["sentences"], datasets)
    place = options.out / BENCHMARK / options.dataset / MODEL
    values = {
        "parameters": {"model": MODEL, "sets": names, "read": dict(with_texts), **parameters},
        **measured,
        "manifest": manifest_of(
            options, {**datasets, **{f"{n}, texts": d for n, d in read[1].items()}}
        ),
    }
    record(
        options,
        BENCHMARK,
        MODEL,
        values,
        beside=draw(place, measured, panels=2 if options.smoke else None),
    )
    for name, value in measured["metrics"].items():
        sys.stdout.write(f"{name}: {value:.3f}\n")


def ship(measured: Mapping[str, Any], engine: Any, datasets: Mapping[str, Dataset]) -> None:
    """Write the calibration that is fitted on everything where libraries find it."""
    weights = QueryWeights.from_dict(measured["fit"]["weights"])
    fit = TextFit(Curve(*measured["fit"]["curve"]), weights)
    source = "+".join(f"{datasets[name].name}@{datasets[name].revision}" for name in FITTED)
    pictures = (load_dataset(f"flickr8k-{kind}") for kind in ("similar", "steered"))
    calibration = calibration_of(fit, engine, *pictures, source)
    with_texts = {name: measured["fit"][name] for name in WrittenFit._fields}
    calibration = replace(calibration, **with_texts)
    save_calibration(calibration, engine.model.model_id, SHIPPED)


def draw(place: Path, measured: Mapping[str, Any], *, panels: int | None = None) -> list[Path]:
    """Draw reliability by left-out set, and what scores tell of queries without an answer.

    Args:
        place: Where charts are written.
        measured: Of `measure`.
        panels: Most left-out sets of a chart; all if left out.
    """
    said = f"{MODEL}: scores of what the curve was not fitted on, ten"
    written = draw_left_out(place, measured["left_out"][:panels], f"{said} nearest")
    fitted = [row for row in measured["written"] if row["scored_by"] != "picture alone"]
    by_way = [{**row, "left_out": f"{row['left_out']}, {row['scored_by']}"} for row in fitted]
    beside = place.with_name(f"{MODEL}.written")
    written += draw_left_out(beside, by_way[:panels], f"{said} best by picture and texts")
    missing = measured["missing"]
    with chart(11, 3.9, columns=3, sharey=True) as (figure, axs):
        for axes, name in zip(axs, SETS, strict=True):
            draw_missing(axes, [r for r in missing if r["set"] == name], THRESHOLDS, title=name)
        axs[0].set_ylabel("share of queries that show a photo")
        axs[1].legend(loc="lower left")
        figure.suptitle(f"{MODEL}: does a threshold tell what is missing?")
        return written + save_chart(figure, place.with_name(f"{MODEL}.missing"))


def draw_left_out(place: Path, rows: Sequence[Mapping[str, Any]], title: str) -> list[Path]:
    """Draw the reliability of scores of each set that was left out."""
    n_rows = -(-len(rows) // 3)
    with chart(11, 3.6 * n_rows, columns=3, rows=n_rows, sharey=True, squeeze=False) as (f, axs):
        for axes, row in zip(axs.flat, rows, strict=False):
            label = f"without {row['left_out']}: ECE {row['ece']['mean']:.3f}"
            draw_reliability(axes, row["bars"], title=label)
        for axes in axs.flat[len(rows) :]:
            axes.set_visible(False)
        axs[0, 0].legend(loc="upper left")
        for axes in axs[:, 0]:
            axes.set_ylabel("share relevant")
        f.suptitle(title)
        return save_chart(f, place)


def manifest_of(options: argparse.Namespace, datasets: Mapping[str, Dataset]) -> dict[str, Any]:
    """Make the manifest: model, data and settings that the figures depend on."""
    data = {dataset.name: data_hashes(dataset) for dataset in datasets.values()}
    return make_manifest(
        BENCHMARK, models=models_of(MODEL), data=data, seed=options.seed, threads=options.threads
    )


if __name__ == "__main__":
    main()
