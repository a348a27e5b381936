"""What a colour tolerance means in CIEDE2000, beside simpler metrics, and what it costs.

    python -m benchmarks.color.bench_color_tolerance
    python -m benchmarks.color.bench_color_tolerance --smoke --out "$(mktemp -d)"

Writes results/color_tolerance/<dataset>/curves.json and its charts, and skips what is on record
(--force measures again). Datasets: `xkcd`, the 949 shades of the colour survey as references;
`cube`, 729 shades spread evenly over the sRGB cube; `demo`, which bundled photos a tolerance keeps.
Around each reference, 35,937 shades of the sRGB cube are kept or not. `searchlab.studies.color`
says how sets are compared. `speed` has CPU milliseconds for a million photos, one thread.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.recording import bench_parser, median_ms, on_record, record
from searchlab.config import COLOR_METRIC
from searchlab.evaluation.charts import chart, look, save_chart, with_intervals
from searchlab.evaluation.datasets import bundled_root
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.evaluation.provenance.measurement import measurement_path
from searchlab.files import sha256_of
from searchlab.photos.colors import shades_to_oklab, within_hex
from searchlab.studies.color.metrics import ciede2000, shades_to_cielab
from searchlab.studies.color.names import SURVEYS
from searchlab.studies.color.tolerance import measure, measure_photos

BENCHMARK, NAME = "color_tolerance", "curves"
DATASETS = ("xkcd", "cube", "demo")
REFERENCE = "#4682b4"


def main() -> None:
    """Measure and write what is not on record, and print it."""
    options = bench_parser(__doc__, dataset="all", datasets=["all", *DATASETS]).parse_args()
    for dataset in DATASETS if options.dataset == "all" else [options.dataset]:
        of_dataset = argparse.Namespace(**vars(options) | {"dataset": dataset})
        values = on_record(of_dataset, BENCHMARK, NAME) or measure_and_record(of_dataset)
        (print_photos if dataset == "demo" else print_curves)(values)


def measure_and_record(options: argparse.Namespace) -> dict[str, Any]:
    """Measure one dataset, draw it and write it."""
    path = measurement_path(options.out, BENCHMARK, options.dataset, NAME)
    if options.dataset == "demo":
        values = measure_photos(**({"stride": 50, "every": 20} if options.smoke else {}))
        values |= {"speed": measure_speed(20_000 if options.smoke else 1_000_000, options.runs)}
        values["metrics"] |= {"times CIEDE2000": values["speed"]["ciede2000 / within_hex"]}
        beside = draw_photos(values, path.with_name("kept"))
    else:
        smoke = {"stride": 50, "pool_steps": 13, "tolerances": (20, 60)} if options.smoke else {}
        values = measure(options.dataset, **smoke)
        beside = draw_meaning(values, path.with_name("meaning"))
        beside += draw_overlap(values, path.with_name("overlap"))
    names = sha256_of(bundled_root() / "colour-names" / SURVEYS["xkcd"])[:12]
    values |= {
        "manifest": make_manifest(BENCHMARK, data={"names": names}, threads=1, packages=["scipy"])
    }
    record(options, BENCHMARK, NAME, values, beside=beside)
    return values


def measure_speed(n: int, runs: int) -> dict[str, float]:
    """Measure the CPU milliseconds to filter a million photos by our metric and by CIEDE2000."""
    shades = np.random.default_rng(0).integers(0, 1 << 24, n).astype(np.uint32)
    oklab, cielab = shades_to_oklab(shades), shades_to_cielab(shades)
    centre = shades_to_cielab(np.array([int(REFERENCE[1:], 16)], dtype=np.uint32))
    scale = 1e6 / n
    median = partial(median_ms, runs=runs, clock=time.process_time)
    milliseconds = {
        "within_hex_ms": scale * median(lambda: within_hex(shades, REFERENCE, lab=oklab)),
        "within_hex_from_shades_ms": scale * median(lambda: within_hex(shades, REFERENCE)),
        "ciede2000_ms": scale * median(lambda: ciede2000(cielab, centre) <= 10),
    }
    milliseconds["ciede2000 / within_hex"] = (
        milliseconds["ciede2000_ms"] / milliseconds["within_hex_ms"]
    )
    return {name: round(value, 2) for name, value in milliseconds.items()}


def print_curves(values: dict[str, Any]) -> None:
    """Print what each tolerance means, and how well metrics agree with CIEDE2000."""
    parameters, metrics = values["parameters"], values["metrics"]
    print(f"{parameters['source']}: {metrics['n_shades']} shades")
    print("tolerance  CIEDE2000, 5 to 95 % of shades   share    overlap with CIEDE2000, by metric")
    for row in values["rows"]:
        overlaps = "  ".join(f"{interval['mean']:.3f}" for interval in row["overlap"].values())
        print(
            f"{row['tolerance']:9}  {row['ciede2000']['mean']:6.1f}  {row['ciede2000_p5']:5.1f} to "
            f"{row['ciede2000_p95']:5.1f}         {row['share']['mean']:8.4f}    {overlaps}"
        )
    for metric, interval in values["order"].items():
        print(f"  orders {interval['mean']:.3f} of pairs as CIEDE2000 does: {metric}")


def print_photos(values: dict[str, Any]) -> None:
    """Print the share of photos that each tolerance keeps."""
    print("tolerance  of photos kept about a shade, about a name")
    for row in values["rows"]:
        print(f"{row['tolerance']:9}  {row['hex']['mean']:8.4f}  {row['name']['mean']:8.4f}")
    print(f"photos lost by widening: {values['metrics']['n_lost']}; {values['speed']}")


def draw_meaning(values: dict[str, Any], path: Path) -> list[Path]:
    """Draw which CIEDE2000 distance a tolerance stands for, and how far apart its shades are."""
    rows, metrics, at = values["rows"], values["metrics"], values["parameters"]["at"]
    equivalent = metrics[f"ciede2000_p50@{at}"]
    with chart() as (figure, axes):
        x = [row["tolerance"] for row in rows]
        low, middle, high = ([row[f"ciede2000_{p}"] for row in rows] for p in ("p5", "p50", "p95"))
        with_intervals(
            axes, x, middle, low, high, label="holds as many shades (5 to 95 % of shades)", number=0
        )
        for number, (name, label) in enumerate(
            (("at_most_p50", "farthest shade kept"), ("surely_p50", "nearest shade left out")), 1
        ):
            axes.plot(x, [row[name] for row in rows], label=label, **look(number))
        axes.axvline(at, color="#888888", linewidth=1)
        axes.set(xlabel=f"color_tolerance ({COLOR_METRIC})", ylabel="CIEDE2000", xlim=0, ylim=0)
        axes.set_title(f"A tolerance of {at} is about {equivalent:.0f} in CIEDE2000")
        axes.legend()
        return save_chart(figure, path)


def draw_overlap(values: dict[str, Any], path: Path) -> list[Path]:
    """Draw how much the sets of each metric share with those of CIEDE2000."""
    rows = values["rows"]
    with chart() as (figure, axes):
        for number, metric in enumerate(rows[0]["overlap"]):
            overlaps = [row["overlap"][metric] for row in rows]
            ends = ([interval[part] for interval in overlaps] for part in ("mean", "low", "high"))
            with_intervals(
                axes, [row["tolerance"] for row in rows], *ends, label=metric, number=number
            )
        axes.set(xlabel="color_tolerance", ylabel="overlap (Jaccard), 95 % intervals", ylim=(0, 1))
        axes.set_title("How much of what a metric keeps would CIEDE2000 keep too?")
        axes.legend()
        return save_chart(figure, path)


def draw_photos(values: dict[str, Any], path: Path) -> list[Path]:
    """Draw the share of photos that a tolerance keeps."""
    rows = values["rows"]
    x = [row["tolerance"] for row in rows]
    with chart() as (figure, axes):
        for number, (kind, label) in enumerate((("hex", "about a shade"), ("name", "of a family"))):
            ends = ([row[f"{kind}_{p}"] for row in rows] for p in ("p50", "p5", "p95"))
            with_intervals(axes, x, *ends, label=f"{label} (5 to 95 %)", number=number)
        axes.axvline(20, color="#888888", linewidth=1)
        axes.set(
            xlabel="color_tolerance", ylabel="share of the bundled photos kept", ylim=(0, 1.02)
        )
        axes.set_title("Widening a colour filter only ever adds photos")
        axes.legend()
        return save_chart(figure, path)


if __name__ == "__main__":
    main()
