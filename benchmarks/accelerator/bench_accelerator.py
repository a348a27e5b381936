"""Images a second on an accelerator, beside open_clip's own loop, as a share of the device's limit.

    python -m benchmarks.accelerator.bench_accelerator  on cuda, xpu or mps, whichever torch has
    python -m benchmarks.accelerator.bench_accelerator --device cpu  without one; slow
    python -m benchmarks.accelerator.bench_accelerator --smoke --out "$(mktemp -d)"

Writes results/accelerator/<dataset>/<device>.json and a chart. The limit is the speed of large
square matrix products in the same precision, in the same run. Both get pictures that lie on the
device already, and autocast. The weights are random: trained ones are as fast. Operations are
counted for the whole tower, so a tower that leaves some out counts as faster. From files to vectors
is `bench_indexing`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.accelerator.devices import choose_device, device_name
from benchmarks.common.recording import bench_parser, median_ms, on_record, record
from searchlab.cli.console import ConsoleProgress
from searchlab.evaluation.charts import COLORS, chart, save_chart
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.evaluation.provenance.measurement import measurement_path

BENCHMARK = "accelerator"
WAYS = ("open_clip", "ours")


def measure(spec: str, precision: str, options: argparse.Namespace) -> dict[str, Any]:
    """Time one model in one precision; returns a row of figures."""
    import torch

    from benchmarks.accelerator.loops import count_operations, multiply, run_tower
    from searchlab.models import load_model
    from searchlab.models.openclip.embedder import OpenClipEmbedder

    name = spec if precision == "fp32" else f"{spec}:{precision}"
    model = load_model(name, device=options.device)
    assert isinstance(model, OpenClipEmbedder)
    device = torch.device(model.device)
    if options.smoke:
        torch.set_num_threads(1)  # with so little work, threads would only wait for each other
    shape = (options.batch, 3, model.preprocess.height, model.preprocess.width)
    pixels = torch.rand(shape, device=device)
    products_ms = median_ms(
        lambda: multiply(device, precision, options.size, options.products), options.runs
    )
    limit = 2.0 * options.size**3 * options.products / products_ms / 1e9
    per_s = {
        way: 1e3
        * len(pixels)
        / median_ms(lambda way=way: run_tower(model, pixels, shortened=way == "ours"), options.runs)
        for way in WAYS
    }
    operations = count_operations(model) / 1e12
    return {
        "model": spec,
        "precision": precision,
        "limit_tflops": round(limit, 5),
        "gflops_per_image": round(1e3 * operations, 3),
        **{f"{way}, images/s": round(value, 2) for way, value in per_s.items()},
        "share of limit": round(per_s["ours"] * operations / limit, 4),
        "times open_clip": round(per_s["ours"] / per_s["open_clip"], 3),
    }


def draw(rows: list[dict[str, Any]], device: str, path: Path) -> list[Path]:
    """Draw images a second by precision, and the limit."""
    with chart(8, 1.8 + 0.9 * len(rows)) as (figure, axes):
        for place, row in enumerate(rows):
            for number, way in enumerate(WAYS):
                value = row[f"{way}, images/s"]
                axes.barh(
                    place + 0.3 * number - 0.15,
                    value,
                    height=0.28,
                    color=COLORS[number],
                    label=way if place == 0 else None,
                )
            limit = 1e3 * row["limit_tflops"] / row["gflops_per_image"]
            axes.plot([limit] * 2, [place - 0.4, place + 0.4], color="black")
        axes.set_yticks(range(len(rows)), [row["precision"] for row in rows])
        axes.invert_yaxis()
        axes.set_xlabel("images a second; the black line is the limit of the device")
        axes.set_title(f"{rows[0]['model']} on {device}", loc="left")
        figure.legend(loc="outside lower center", ncols=2)
        return save_chart(figure, path)


def main() -> None:
    """Measure every precision."""
    parser = bench_parser(__doc__, dataset="drawn", datasets=("drawn",))
    parser.set_defaults(runs=5)
    parser.add_argument("--device", default="auto", help="torch device; auto for an accelerator")
    parser.add_argument("--model", default="openclip:ViT-B-32/random-7", help="open_clip model")
    parser.add_argument("--batch", type=int, default=256, help="pictures at once")
    parser.add_argument("--size", type=int, default=8_192, help="rows of the square matrices")
    options = parser.parse_args()
    options.device = choose_device(parser, "cpu" if options.smoke else options.device)
    options.products = 20
    precisions = ["fp32", "bf16", *(["fp16"] if options.device.startswith("cuda") else [])]
    if options.device == "cpu":
        options.batch = min(options.batch, 16)
        options.size, options.products = min(options.size, 1_024), 5
    if options.smoke:
        options.model, options.batch = "openclip:ViT-S-32/random-7", 1
        options.runs, options.size, options.products = 1, 128, 2
        precisions = precisions[-1:]
    name = options.device.replace(":", "-")
    if on_record(options, BENCHMARK, name) is None:
        run(options, precisions, name)


def run(options: argparse.Namespace, precisions: list[str], name: str) -> None:
    """Measure all precisions and record them."""
    progress = ConsoleProgress(Console(stderr=True))
    rows = []
    with progress.step("timing precisions", len(precisions), unit="precisions") as step:
        for precision in precisions:
            step.note(precision)
            rows.append(measure(options.model, precision, options))
            step.advance(1)
    for row in rows:
        print(f"{row['model']} in {row['precision']}")
        for figure, value in list(row.items())[2:]:
            print(f"  {figure:<45}{value:>12,}")
    metrics = {
        f"{row['precision']}.{figure}": value
        for row in rows
        for figure, value in list(row.items())[2:]
    }
    place = measurement_path(options.out, BENCHMARK, options.dataset, name)
    values = {
        "parameters": {
            "device": device_name(options.device),
            "batch": options.batch,
            "size": options.size,
        },
        "metrics": metrics,
        "rows": rows,
        "manifest": make_manifest(
            BENCHMARK, seed=options.seed, packages=["torch", "open_clip_torch"]
        ),
    }
    drawn_chart = draw(rows, values["parameters"]["device"], place.with_name(name))
    record(options, BENCHMARK, name, values, beside=drawn_chart)


if __name__ == "__main__":
    main()
