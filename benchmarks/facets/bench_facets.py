"""Facets: what conditions, counts and the newest photos cost, beside numpy, pandas and Arrow.

    python -m benchmarks.facets.bench_facets
    python -m benchmarks.facets.bench_facets --sizes 100000,1000000,10000000 --force
    python -m benchmarks.facets.bench_facets --smoke --out "$(mktemp -d)"

Writes results/facets/<dataset>/<n_photos>.json for each size, with a row for every piece of work,
and summary.json with two charts beside it. Skips what is on record (--force measures again).

The photos are drawn at random: 9 sources, 40 licences and one photographer for every 20 photos, all
with long tails; days of 22 years; shades mostly near the axis from black to white, as those of
photos are, or all over the cube (`any shade`). Every way (see `benchmarks.facets.ways`) must give
the same answer before it is timed. Times are medians over --runs of the mean of as many calls as
take 30 ms, in microseconds per million photos: lower is better. pandas and Arrow are left out where
they are not installed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.recording import bench_parser, on_record, record
from benchmarks.facets.ways import OTHERS, Searchlab
from searchlab.evaluation.charts import chart, look, save_chart
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.photos.colors import FAMILY_NAMES, shades_from_rgb
from searchlab.photos.columns import Texts
from searchlab.photos.table import NUMBER_COLUMNS, TEXT_COLUMNS, Codes, PhotoTable
from searchlab.search.filters.facets import Facets
from searchlab.search.filters.photo_filter import PhotoFilter

BENCHMARK = "facets"
DATASETS = ("drawn", "any-shade")
SHADE = "#1f6f8b"
LISTED = {
    "orientation": ("landscape",),
    "source": ("source-0", "source-2"),
    "license_type": ("license-00", "license-01"),
}
DAY = "2010-06-01"
FILTERS: dict[str, dict[str, Any]] = {
    "one orientation": {"orientation": ("landscape",)},
    "two of 9 sources": {"source": LISTED["source"]},
    "a rare licence of 40": {"license_type": ("license-39",)},
    "one photographer": {"photographer": "user-0000100"},
    "since a day": {"after_date": DAY},
    "a family of colours": {"color_name": "blue"},
    "the family widened to 40": {"color_name": "blue", "color_tolerance": 40},
    "within 5 of a shade": {"color_hex": SHADE, "color_tolerance": 5},
    "within 10 of a shade": {"color_hex": SHADE, "color_tolerance": 10},
    "within 20 of a shade": {"color_hex": SHADE, "color_tolerance": 20},
    "within 60 of a shade": {"color_hex": SHADE, "color_tolerance": 60},
    "five conditions, a shade": LISTED | {"after_date": DAY, "color_hex": SHADE},
    "five conditions, a family": LISTED | {"after_date": DAY, "color_name": "blue"},
}
OURS = "searchlab"
BUILT = ("made and written s", "opened ms", "bytes a photo")
FOLLOW_UPS = {"counts": "40 counts", "newest": "newest 20"}
# The photos that these filters keep are counted and sorted: one keeps about half, two very few.
COUNTED = ("two of 9 sources", "five conditions, a shade", "one photographer")


def main() -> None:
    """Measure each size that is not on record, summarise, draw."""
    parser = bench_parser(__doc__, dataset="drawn", datasets=DATASETS)
    parser.add_argument("--sizes", default="100000,1000000,10000000", help="photos, with commas")
    options = parser.parse_args()
    if options.smoke:
        options.sizes, options.runs = "2000,60000", 1
    measured_at = {}
    for size in map(int, options.sizes.split(",")):
        name = str(size)
        values = on_record(options, BENCHMARK, name)
        if values is None:
            values = measure(size, options)
            record(options, BENCHMARK, name, values)
        measured_at[size] = values
    sys.stdout.write(summarise(options, measured_at) + "\n")


def draw_table(n: int, options: argparse.Namespace) -> PhotoTable:
    """Draw n photos without texts at random."""
    rng = np.random.default_rng(options.seed)
    empty = Texts(np.zeros(n + 1, dtype=np.int64), np.zeros(0, dtype=np.uint8))
    numbers = {name: np.zeros(n, dtype=dtype) for name, dtype in NUMBER_COLUMNS.items()}
    if options.dataset == "any-shade":
        numbers["shade"] = rng.integers(0, 1 << 24, n, dtype=np.uint32)
    else:
        greys = rng.normal(110, 60, (n, 1)).astype(np.float32)
        rgb = greys + rng.normal(0, 25, (n, 3)).astype(np.float32)
        numbers["shade"] = shades_from_rgb(np.clip(rgb, 0, 255).astype(np.uint8))
    numbers["uploaded_day"] = rng.integers(12_000, 20_000, n).astype(np.int32)
    n_photographers = max(101, n // 20)
    values = {
        "orientation": ["landscape", "portrait", "square"],
        "color_name": sorted(FAMILY_NAMES),
        "source": [f"source-{number}" for number in range(9)],
        "license_type": [f"license-{number:02d}" for number in range(40)],
        "photographer_username": [f"user-{number:07d}" for number in range(n_photographers)],
    }
    codes = {}
    for name, names in values.items():
        shares = np.cumsum(1 / np.arange(1, len(names) + 1))
        rows = np.searchsorted(shares, rng.random(n) * shares[-1]).astype(np.int32)
        codes[name] = Codes(rows, names)
    return PhotoTable(numbers, codes, dict.fromkeys(TEXT_COLUMNS, empty))


def measure(n: int, options: argparse.Namespace) -> dict[str, Any]:
    """Build the facets of n photos and time every piece of work in every way."""
    table = draw_table(n, options)
    missing = {}
    with tempfile.TemporaryDirectory() as scratch:
        facets, build_metrics = measure_build(table, Path(scratch) / "facets.columns")
        ways: dict[str, Any] = {OURS: Searchlab(facets)}
        for name, make in OTHERS.items():
            try:
                ways[name] = make(table)
            except ImportError as error:
                missing[name] = str(error)
        rows = [
            row
            for what, conditions in FILTERS.items()
            for row in measure_filter(what, PhotoFilter(**conditions), n, ways, options)
        ]
    metrics = {f"{row['what']} us": row[OURS] for row in rows}
    packages = [name for name in ("pandas", "pyarrow") if name in ways]
    return {
        "parameters": {"n_photos": n, "runs": options.runs, "threads": options.threads},
        "metrics": metrics | build_metrics,
        "rows": rows,
        "missing": missing,
        "manifest": make_manifest(
            BENCHMARK, seed=options.seed, threads=options.threads, packages=packages
        ),
    }


def measure_build(table: PhotoTable, path: Path) -> tuple[Facets, dict[str, float]]:
    """Make, write and open facets; returns them, the times, and bytes per photo."""
    clock = [time.perf_counter()]
    Facets(table).save(path)
    clock.append(time.perf_counter())
    opened = Facets.open(path, table)
    clock.append(time.perf_counter())
    return opened, {
        "made and written s": round(clock[1] - clock[0], 3),
        "opened ms": round(1e3 * (clock[2] - clock[1]), 3),
        "bytes a photo": round(path.stat().st_size / len(table), 2),
    }


def measure_filter(
    what: str,
    conditions: PhotoFilter,
    n: int,
    ways: Mapping[str, Any],
    options: argparse.Namespace,
) -> Iterator[dict[str, Any]]:
    """Time a filter in every way; for filters of `COUNTED` also counts and the newest photos."""
    work = {what: {name: partial(way.select, conditions) for name, way in ways.items()}}
    answers = {name: call() for name, call in work[what].items()}
    masks = {name: ways[name].to_mask(answer) for name, answer in answers.items()}
    expect_equal(what, masks)
    if what in COUNTED:
        for method, title in FOLLOW_UPS.items():
            calls = {k: partial(getattr(way, method), answers[k]) for k, way in ways.items()}
            work[f"{title} of {what}"] = calls
            expect_equal(f"{title} of {what}", {name: call() for name, call in calls.items()})
    for title, calls in work.items():
        row = {"what": title, "kept": round(float(masks["numpy"].mean()), 6)}
        yield row | time_calls(calls, n, options)


def expect_equal(what: str, answers: Mapping[str, np.ndarray]) -> None:
    """End the script if two ways do not agree, as their times could not be compared."""
    for name, answer in answers.items():
        if not np.array_equal(answer, answers["numpy"]):
            sys.exit(f"{what}: {name} does not answer as numpy does")


def time_calls(
    calls: Mapping[str, Callable[[], object]], n: int, options: argparse.Namespace
) -> dict[str, float]:
    """Time calls in turn, so that a slow moment meets all; microseconds per million photos."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(options.runs):
        for name, call in calls.items():
            seconds[name].append(_mean_seconds(call, 0.002 if options.smoke else 0.03))
    return {name: round(1e12 * float(np.median(runs)) / n, 2) for name, runs in seconds.items()}


def _mean_seconds(call: Callable[[], object], budget: float) -> float:
    started, count = time.perf_counter(), 0
    while True:
        call()
        count += 1
        elapsed_s = time.perf_counter() - started
        if elapsed_s > budget:
            return elapsed_s / count


def summarise(options: argparse.Namespace, measured_at: Mapping[int, Mapping[str, Any]]) -> str:
    """Write summary.json and its charts; returns the table."""
    folder = options.out / BENCHMARK / options.dataset
    sizes = sorted(measured_at)
    main_size = 1_000_000 if 1_000_000 in measured_at else sizes[-1]
    rows = measured_at[main_size]["rows"]
    names = [name for name in (OURS, *OTHERS) if name in rows[0]]
    metrics = {f"{row['what']} us": row[OURS] for row in rows}
    for name in names[1:]:
        for row in rows:
            metrics[f"{row['what']}: {name} / {OURS}"] = round(row[name] / row[OURS], 2)
    beside = [*draw_work(main_size, rows, folder), *draw_sizes(measured_at, folder)]
    values = {
        "parameters": {"sizes": sizes, "n_photos": main_size, "threads": options.threads},
        "metrics": metrics,
        "builds": [
            {"n_photos": size} | {name: measured_at[size]["metrics"][name] for name in BUILT}
            for size in sizes
        ],
        "missing": measured_at[main_size]["missing"],
        "manifest": make_manifest(BENCHMARK, seed=options.seed, threads=options.threads),
    }
    record(options, BENCHMARK, "summary", values, beside=beside)
    head = f"{main_size:,} photos, microseconds per million"
    lines = [f"{head:44}{'kept':>9}" + "".join(f"{name:>12}" for name in names)]
    for row in rows:
        times = "".join(f"{row[name]:12,.1f}" for name in names)
        lines.append(f"{row['what']:44}{row['kept']:9.4%}{times}")
    for size in sizes:
        figures = measured_at[size]["metrics"]
        lines.append(
            f"{size:>10,} photos: {figures['made and written s']:.2f} s to make and write, "
            f"{figures['opened ms']:.1f} ms to open, {figures['bytes a photo']:.1f} bytes per photo"
        )
    return "\n".join(lines)


def draw_work(n: int, rows: list[dict[str, Any]], folder: Path) -> list[Path]:
    """Draw the time of every piece of work, a point for each way."""
    with chart(9, 1.6 + 0.3 * len(rows)) as (figure, axis):
        places = np.arange(len(rows))[::-1]
        for number, name in enumerate(way for way in (OURS, *OTHERS) if way in rows[0]):
            style = look(number) | {"linestyle": "", "markersize": 8 if number == 0 else 6}
            axis.plot([row[name] for row in rows], places, label=name, **style)
        axis.set_yticks(places, [f"{row['what']} ({100 * row['kept']:.2g} %)" for row in rows])
        axis.set(xscale="log", xlabel="microseconds per million photos, less is better")
        axis.set_title(f"{n:,} photos; in brackets how many are kept")
        figure.legend(loc="outside lower center", ncols=4)
        return save_chart(figure, folder / "work")


SCALED = (
    "five conditions, a shade",
    "five conditions, a family",
    "within 20 of a shade",
    "40 counts of two of 9 sources",
    "newest 20 of five conditions, a shade",
)


def draw_sizes(measured_at: Mapping[int, Mapping[str, Any]], folder: Path) -> list[Path]:
    """Draw how a few pieces of work grow with the number of photos."""
    sizes = sorted(measured_at)
    with chart(8, 4.6) as (figure, axis):
        for number, what in enumerate(SCALED):
            rows = [
                next(row for row in measured_at[size]["rows"] if row["what"] == what)
                for size in sizes
            ]
            call_us = [row[OURS] * size / 1e6 for row, size in zip(rows, sizes, strict=True)]
            axis.plot(sizes, call_us, label=what, **look(number))
        axis.set(xscale="log", yscale="log", xlabel="photos", ylabel="microseconds a call")
        axis.set_title("How the time grows")
        figure.legend(loc="outside right center")
        return save_chart(figure, folder / "sizes")


if __name__ == "__main__":
    main()
