"""How often a reader sees a photo twice, or never, while the library changes between pages.

    python -m benchmarks.paging.bench_paging
    python -m benchmarks.paging.bench_paging --smoke --out "$(mktemp -d)"

Writes results/paging/<dataset>/walks.json and its chart, and skips what is on record (--force
measures again). Datasets: `synthetic-600`, 200 walks through all pages of 600 made-up photos for
each rate of change, by searchlab's cursors and by four ways of paging that are in use elsewhere;
`demo`, the bundled photos as a real library whose snapshots change on disk.
`searchlab.studies.paging.walks` says what is counted.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.common.demo_photos import some_photos
from benchmarks.common.recording import bench_parser, on_record, record
from searchlab.evaluation.charts import chart, look, save_chart
from searchlab.evaluation.provenance.manifest import make_manifest, models_of
from searchlab.evaluation.provenance.measurement import measurement_path
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library
from searchlab.library.roots import check_root
from searchlab.studies.paging.study import measure_churn, measure_library

BENCHMARK, NAME = "paging", "walks"
DATASETS = ("synthetic-600", "demo")


def main() -> None:
    """Measure and write what is not on record, and print it."""
    options = bench_parser(__doc__, dataset="all", datasets=["all", *DATASETS]).parse_args()
    for dataset in DATASETS if options.dataset == "all" else [options.dataset]:
        of_dataset = argparse.Namespace(**vars(options) | {"dataset": dataset})
        values = on_record(of_dataset, BENCHMARK, NAME) or measure_and_record(of_dataset)
        (print_library if dataset == "demo" else print_churn)(values)


def measure_and_record(options: argparse.Namespace) -> dict[str, Any]:
    """Measure one dataset, draw it and write it."""
    path = measurement_path(options.out, BENCHMARK, options.dataset, NAME)
    if options.dataset == "demo":
        values = measure_few(options.seed) if options.smoke else measure_library(seed=options.seed)
        beside, models = [], models_of("mini")
    else:
        few = {"n_photos": 200, "n_histories": 2, "n_queries": 2} if options.smoke else {}
        values = measure_churn(seed=options.seed, **few)
        beside, models = draw_churn(values, path.with_name("churn")), []
    values |= {"manifest": make_manifest(BENCHMARK, models=models, seed=options.seed, threads=1)}
    record(options, BENCHMARK, NAME, values, beside=beside)
    return values


def measure_few(seed: int) -> dict[str, Any]:
    """Measure a library of sixteen photos."""
    with tempfile.TemporaryDirectory() as scratch:
        library = create_library(Path(scratch) / "library")
        index_photos(library, [check_root(some_photos(Path(scratch) / "photos", 16))])
        return measure_library(texts=("animal",), per_page=2, seed=seed, library=library)


def print_churn(values: dict[str, Any]) -> None:
    """Print a line for each rate of change and way of paging."""
    print("changes   swaps    duplicates  gaps        new     way")
    for row in values["rows"]:
        print(
            f"{row['changes']:7.1%} {row['swaps']:7.0%}    {row['duplicates']['mean']:8.2%}  "
            f"{row['gaps']['mean']:8.2%}  {row['new']['mean']:8.0%}    {row['way']}"
        )
    metrics = values["metrics"]
    print(
        f"searchlab: {metrics['searchlab walks with a fault']} of {metrics['searchlab walks']} "
        f"walks with a fault; none would mean at most "
        f"{metrics['faulty at most where none was']:.2%} of collections, at 95 %"
    )


def print_library(values: dict[str, Any]) -> None:
    """Print a line for each number of new states and way of paging."""
    print("new states  walks  cut short  faulty  duplicates  gaps      way")
    for row in values["rows"]:
        gaps = "       -" if row["gaps"] is None else f"{row['gaps']:8.2%}"
        print(
            f"{row['new_states']:10}  {row['n_walks']:5}  {row['n_cut_short']:9}  "
            f"{row['n_faulty']:6}  {row['duplicates']:10.2%}  {gaps}  {row['way']}"
        )


def draw_churn(values: dict[str, Any], path: Path) -> list[Path]:
    """Draw duplicates and gaps by the share of changes, and gaps where the model changes."""
    rows, metrics = values["rows"], values["metrics"]
    ways = list(dict.fromkeys(row["way"] for row in rows))
    with chart(12, 4.4, columns=3, sharey=True) as (figure, (first, second, third)):
        for axes, rate in ((first, "duplicates"), (second, "gaps")):
            for number, way in reversed(list(enumerate(ways))):
                of_way = [row for row in rows if row["way"] == way and not row["swaps"]]
                x = [100 * row["changes"] for row in of_way]
                axes.errorbar(x, *error_bars(of_way, rate), label=way, capsize=2, **look(number))
            axes.set(xlabel="% of the photos that leave and come per page", title=rate)
        swapped = [row for row in rows if row["swaps"] and not row["changes"]]
        for number, row in enumerate(swapped):
            style = look(number) | {"linestyle": "none"}
            third.errorbar([number], *error_bars([row], "gaps"), capsize=2, **style)
        third.set_title("gaps where 1 page in 10 meets a new model")
        third.set_xticks(
            range(len(swapped)), [row["way"] for row in swapped], rotation=30, ha="right"
        )
        third.tick_params(axis="x", labelsize=8)
        first.set_ylabel("% of results, % of photos; 95 % intervals")
        handles, labels = first.get_legend_handles_labels()
        first.legend(handles[::-1], labels[::-1], fontsize=8)
        figure.suptitle(
            f"{metrics['searchlab walks with a fault']} of {metrics['searchlab walks']:,} walks by "
            "searchlab's cursors met a duplicate or a gap"
        )
        return save_chart(figure, path)


def error_bars(rows: list[dict[str, Any]], rate: str) -> tuple[list[float], list[list[float]]]:
    """Return means in percent, and how far their intervals reach below and above."""
    intervals = [row[rate] for row in rows]
    reach = [
        [100 * (interval["mean"] - interval["low"]) for interval in intervals],
        [100 * (interval["high"] - interval["mean"]) for interval in intervals],
    ]
    return [100 * interval["mean"] for interval in intervals], reach


if __name__ == "__main__":
    main()
