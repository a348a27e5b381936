"""Images a second on an accelerator, beside open_clip's own loop, as a share of the device's limit.

    python -m benchmarks.accelerator.bench_accelerator  on cuda, xpu or mps, whichever torch has
    python -m benchmarks.accelerator.bench_accelerator --device cpu  without one; slow
    python -m benchmarks.accelerator.bench_accelerator --smoke --out "$(mktemp -d)"

Writes results/accelerator/<dataset>/<device>.json and a chart. The limit is the speed of large
square matrix products in the same precision, in the same run. `model alone` gets pictures that lie
on the device already, `files to vectors` JPEGs of 1920 x 1280 from the page cache. Ours decodes in
threads and sends bytes from two pinned buffers; open_clip's is a DataLoader with a worker per core
and its own transform. Both autocast. The weights are random: trained ones are as fast. Operations
are counted for the whole tower, so a tower that leaves some out counts as faster.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.common.recording import bench_parser, median_ms, on_record, record
from benchmarks.embedding.pictures import draw_pictures
from searchlab.cli.console import ConsoleProgress
from searchlab.evaluation.charts import COLORS, chart, save_chart
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.evaluation.provenance.measurement import measurement_path

BENCHMARK = "accelerator"
WAYS = ("model alone, open_clip", "model alone", "files to vectors, open_clip", "files to vectors")


def measure(
    spec: str, precision: str, files: list[Path], options: argparse.Namespace
) -> dict[str, Any]:
    """Time one model in one precision; returns a row of figures."""
    import torch

    from benchmarks.accelerator.loops import (
        count_operations,
        embed_by_loader,
        embed_by_threads,
        multiply,
        run_tower,
    )
    from searchlab.models import load_model
    from searchlab.models.openclip.embedder import OpenClipEmbedder
    from searchlab.models.openclip.weights import import_open_clip
    from searchlab.models.protocol import unit_rows

    name = spec if precision == "fp32" else f"{spec}:{precision}"
    model = load_model(name, device=options.device)
    assert isinstance(model, OpenClipEmbedder)
    device = torch.device(model.device)
    if options.smoke:
        torch.set_num_threads(1)  # with so little work, threads would only wait for each other
    transform = import_open_clip().image_transform(model.module.visual.image_size, is_train=False)
    shape = (options.batch, 3, model.preprocess.height, model.preprocess.width)
    pixels = torch.rand(shape, device=device)
    products = 2.0 * options.size**3 * options.products

    def per_s(work: Any, n: int) -> float:
        return round(1e3 * n / median_ms(work, options.runs), 2)

    rate = 1e3 / median_ms(
        lambda: multiply(device, precision, options.size, options.products), options.runs
    )
    figures = {
        WAYS[0]: per_s(lambda: run_tower(model, pixels, shortened=False), len(pixels)),
        WAYS[1]: per_s(lambda: run_tower(model, pixels, shortened=True), len(pixels)),
        WAYS[2]: per_s(
            lambda: embed_by_loader(model, files, transform, workers=options.workers), len(files)
        ),
        WAYS[3]: per_s(lambda: embed_by_threads(model, files), len(files)),
    }
    rows, theirs = (
        embed_by_threads(model, files[:8]),
        embed_by_loader(model, files[:8], transform, workers=0),
    )
    limit = rate * products / 1e12
    operations = count_operations(model) / 1e12
    return {
        "model": spec,
        "precision": precision,
        "limit_tflops": round(limit, 5),
        "gflops_per_image": round(1e3 * operations, 3),
        **{f"{way}, images/s": value for way, value in figures.items()},
        "model alone, share of limit": round(figures[WAYS[1]] * operations / limit, 4),
        "files to vectors, share of limit": round(figures[WAYS[3]] * operations / limit, 4),
        "files to vectors, times open_clip": round(figures[WAYS[3]] / figures[WAYS[2]], 3),
        # The two scale a JPEG down differently, so their vectors differ a little.
        "least cosine with open_clip": round(
            float(np.sum(rows * unit_rows(theirs), axis=1).min()), 5
        ),
    }


def draw(rows: list[dict[str, Any]], device: str, path: Path) -> list[Path]:
    """Draw images a second by precision, and the limit."""
    with chart(8, 1.8 + 0.9 * len(rows)) as (figure, axes):
        for place, row in enumerate(rows):
            for number, way in enumerate(WAYS):
                value = row[f"{way}, images/s"]
                axes.barh(
                    place + 0.2 * number - 0.3,
                    value,
                    height=0.18,
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


def device_name(device: str) -> str:
    """Name a device for people."""
    import torch

    kind = torch.device(device).type
    if kind in ("cuda", "xpu"):
        return str(getattr(torch, kind).get_device_name(device))
    return f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores ({kind})"


def main() -> None:
    """Measure every precision."""
    parser = bench_parser(__doc__, dataset="drawn", datasets=("drawn",))
    parser.set_defaults(runs=3)
    parser.add_argument("--device", default="auto", help="torch device; auto for an accelerator")
    parser.add_argument("--model", default="openclip:ViT-B-32/random-7", help="open_clip model")
    parser.add_argument("--photos", type=int, default=2_048, help="files that are embedded")
    parser.add_argument("--batch", type=int, default=256, help="batch of the model alone")
    parser.add_argument("--size", type=int, default=8_192, help="rows of the square matrices")
    options = parser.parse_args()
    try:
        from searchlab.models.devices import choose_device
    except ImportError as error:
        sys.exit(f"this benchmark must have torch, got {error}; pip install 'searchlab[clip]'")
    options.device = str(choose_device("cpu" if options.smoke else options.device))
    options.workers, options.products = os.cpu_count() or 1, 20
    precisions = ["fp32", "bf16", *(["fp16"] if options.device.startswith("cuda") else [])]
    if options.device == "cpu":
        options.photos, options.batch = min(options.photos, 64), min(options.batch, 16)
        options.size, options.products = min(options.size, 1_024), 5
    if options.smoke:
        options.model, options.photos, options.batch = "openclip:ViT-S-32/random-7", 2, 1
        options.runs, options.workers, options.size, options.products = 1, 0, 128, 2
    name = options.device.replace(":", "-")
    if on_record(options, BENCHMARK, name) is None:
        run(options, precisions, name)


def run(options: argparse.Namespace, precisions: list[str], name: str) -> None:
    """Measure all precisions and record them."""
    progress = ConsoleProgress(Console(stderr=True))
    rows = []
    width, height = (480, 320) if options.smoke else (1920, 1280)
    with tempfile.TemporaryDirectory() as folder:
        n_drawn = min(options.photos, 64)  # few are drawn, and read several times
        drawn_files = draw_pictures(
            Path(folder), n_drawn, width=width, height=height, seed=options.seed
        )
        files = [drawn_files[i % n_drawn] for i in range(options.photos)]
        with progress.step("timing precisions", len(precisions), unit="precisions") as step:
            for precision in precisions:
                step.note(precision)
                rows.append(measure(options.model, precision, files, options))
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
            "photos": options.photos,
            "batch": options.batch,
            "size": options.size,
            "workers": options.workers,
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
