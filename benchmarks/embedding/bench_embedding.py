"""How fast models embed photos and texts, by stage, beside open_clip as its examples use it.

    python -m benchmarks.embedding.bench_embedding               about 5 minutes on two cores
    python -m benchmarks.embedding.bench_embedding --smoke --out "$(mktemp -d)"

Writes results/embedding/<dataset>/<model>.json for each model, and compared.json with ratios to
`open_clip eager`, targets and charts; models on record are not measured again (--force does).
limits.json has the time that BLAS alone takes for the matrix products of the same towers.

A photo passes four stages: reading its bytes (from the page cache), decoding (a JPEG at 1/2, 1/4 or
1/8 where that is enough), preprocessing (resize, crop, normalise) and the model. Ours decode and
scale as `searchlab index` does. `open_clip eager` is Pillow, open_clip's transform and torch. Its
weights and those of `openclip:` and ONNX are random: none ship, and trained ones are as fast. Each
model has a process of its own for each number of cores (1 and --threads), bound to so many.

Pictures are bundled photos, which are small (`320 px` at most), and drawn JPEGs of 1920 x 1280.
The records have photos and texts per second, CPU ms by stage and the peak of memory, each the
median of --runs. `no model` is what indexing does with a picture besides embedding it.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.common.recording import bench_parser, on_record, record
from benchmarks.embedding.charts import draw_stages, draw_texts
from benchmarks.embedding.limits import LIMITS
from benchmarks.embedding.pictures import draw_pictures, list_bundled
from benchmarks.embedding.stages import ANALYSIS, EAGER
from benchmarks.embedding.targets import check_targets
from searchlab.cli.console import ConsoleProgress
from searchlab.errors import MismatchError
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.evaluation.provenance.measurement import measurement_path, read_measurement
from searchlab.progress import Progress

BENCHMARK = "embedding"
ROOT = Path(__file__).resolve().parents[2]
CLIP = "openclip:ViT-B-32/random-7"
EXPORTS = {"onnx ViT-B-32 fp32": "fp32", "onnx ViT-B-32 int8": "int8"}
SHIPPED = (
    "mini",
    "palette",
    "captions",
    "hybrid:mini=0.7,captions=0.3",
    "hybrid:mini=0.85,palette=0.15",
    ANALYSIS,
)
TEXTS = (
    "a dog",
    "two people walking along a beach at sunset",
    "Ein rotes Fahrrad lehnt an einer Wand",
    "une tasse de café sur une table",
    "山の上の雪",
    "собака бежит по траве",
    "aerial view of a city at night, long exposure",
    "castle",
)
BATCHES = (1, 8)


def list_models(options: argparse.Namespace) -> list[str]:
    """List the models that are timed, the peer first."""
    if options.smoke:
        return ["mini", "palette", "captions"]
    clip = [EAGER, CLIP, *EXPORTS]
    return [*(clip if importlib.util.find_spec("open_clip") else []), *SHIPPED]


def file_name(name: str) -> str:
    """Turn a model's name into a file name without suffix."""
    return "".join(c if c.isalnum() or c in ".-" else "-" for c in name).strip("-")


def measure(name: str, spec: str, job: dict[str, Any], options: argparse.Namespace) -> None:
    """Time one model in processes of its own, and record it."""
    tables: dict[str, list[dict[str, Any]]] = {"images": [], "texts": [], "memory": []}
    cached: dict[str, float] = {}
    for cores in sorted({1, options.threads}):
        answer = _run(job | {"model": spec, "name": name, "cores": cores})
        if cores == 1 and "cached_text_us" in answer:
            cached = {"cached_text_us": answer["cached_text_us"]}
        tables["images"] += answer["images"]
        tables["texts"] += answer["texts"]
        models = answer["models"]
        tables["memory"].append({"model": name, "cores": cores, "peak_mib": answer["peak_mib"]})
    values = {
        "parameters": {
            "spec": name,
            "runs": options.runs,
            "photos": options.photos,
            "texts": len(TEXTS),
        },
        "metrics": flatten(tables) | cached,
        **tables,
        "manifest": make_manifest(
            BENCHMARK,
            models=models,
            seed=options.seed,
            threads=options.threads,
            packages=_packages(name),
        ),
    }
    record(options, BENCHMARK, file_name(name), values)


def measure_limit(options: argparse.Namespace) -> None:
    """Measure the time of the matrix products alone on one core, and record it."""
    batch = 1 if options.smoke else BATCHES[-1]
    job = {"model": LIMITS, "name": LIMITS, "batch": batch, "cores": 1}
    values = {
        "parameters": {"batch": batch, "runs": options.runs},
        "metrics": _run(job | {"runs": options.runs}),
        "manifest": make_manifest(BENCHMARK, seed=options.seed, threads=1),
    }
    record(options, BENCHMARK, file_name(LIMITS), values)


def _packages(name: str) -> list[str]:
    return ["torch", "open_clip_torch"] if "clip" in name or "onnx" in name else []


def _run(job: dict[str, Any]) -> dict[str, Any]:
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(job, file)
        file.flush()
        threads = str(job["cores"])
        process = subprocess.run(
            [sys.executable, "-m", "benchmarks.embedding.worker", file.name],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads},
        )
    if process.returncode:
        sys.exit(f"{job['name']} must be timed, got: {process.stderr[-2000:]}")
    return dict(json.loads(process.stdout.splitlines()[-1]))


def flatten(tables: dict[str, list[dict[str, Any]]]) -> dict[str, float]:
    """Give each figure a name: `photo.1920 px.b8.c1.cpu_ms`, `text.b1.c2.per_s`, `peak_mib.c1`."""
    metrics: dict[str, float] = {}
    for row in tables["images"]:
        where = f"photo.{row['pictures']}.b{row['batch']}.c{row['cores']}"
        metrics |= {f"{where}.{name}": row[name] for name in row if name.endswith(("_ms", "_s"))}
    for row in tables["texts"]:
        where = f"text.b{row['batch']}.c{row['cores']}"
        metrics |= {f"{where}.{name}": row[name] for name in row if name.endswith(("_ms", "_s"))}
    return metrics | {f"peak_mib.c{row['cores']}": row["peak_mib"] for row in tables["memory"]}


def compare(timed: list[str], options: argparse.Namespace) -> None:
    """Put all models side by side, as ratios to the first one."""
    paths = [measurement_path(options.out, BENCHMARK, options.dataset, file_name(n)) for n in timed]
    records = {name: read_measurement(path) for name, path in zip(timed, paths, strict=True)}
    base = records[timed[0]]["metrics"]
    metrics, rows = {}, []
    for name, measured in records.items():
        ratios = {
            figure: round(_times_as_good(figure, value, base[figure]), 3)
            for figure, value in measured["metrics"].items()
            if figure in base and figure.endswith((".per_s", ".cpu_ms")) and base[figure]
        }
        peak = base["peak_mib.c1"] / measured["metrics"]["peak_mib.c1"]
        ratios["peak_mib.c1"] = round(peak, 3)
        rows.append({"model": name, **ratios})
        metrics |= {f"{name}.{figure}": ratio for figure, ratio in ratios.items()}
    limits = measurement_path(options.out, BENCHMARK, options.dataset, file_name(LIMITS))
    reached = check_targets(
        {name: measured["metrics"] for name, measured in records.items()},
        read_measurement(limits)["metrics"],
        EAGER,
    )
    _show(rows, timed[0])
    for row in reached:
        print(f"{row['target']}: {row['found']:g}, wanted {row['wanted']}: {row['reached']}")
    images = [
        row
        for one in records.values()
        for row in one["images"]
        if _is_on_one_core(row, BATCHES[-1])
    ]
    texts = [row for one in records.values() for row in one["texts"] if _is_on_one_core(row, 1)]
    place = measurement_path(options.out, BENCHMARK, options.dataset, "compared")
    drawn_files = draw_stages(images, place.with_name("photos"))
    drawn_files += draw_texts(texts, place.with_name("texts"))
    values = {
        "parameters": {"base": timed[0], "models": timed, **_asked(records.values())},
        "metrics": metrics,
        "ratios": rows,
        "targets": reached,
        "images": [row for one in records.values() for row in one["images"]],
        "texts": [row for one in records.values() for row in one["texts"]],
        "memory": [row for one in records.values() for row in one["memory"]],
        "manifest": make_manifest(BENCHMARK, seed=options.seed, threads=options.threads),
    }
    record(options, BENCHMARK, "compared", values, beside=drawn_files)


def _asked(records: Iterable[dict[str, Any]]) -> dict[str, int]:
    """Say how many photos and texts each model embedded, and how often; all did alike.

    Raises:
        MismatchError: Some models were timed with more than others.
    """
    names = ("runs", "photos", "texts")
    asked = {tuple(record["parameters"].get(name) for name in names) for record in records}
    if len(asked) > 1:
        msg = f"all models must embed as many, got {names} of {asked}: measure with --force"
        raise MismatchError(msg)
    return dict(zip(names, asked.pop(), strict=True))


def _times_as_good(figure: str, value: float, base: float) -> float:
    """Return how many times as good as the base a value is: faster, or cheaper."""
    return value / base if figure.endswith(".per_s") else base / value


def _is_on_one_core(row: dict[str, Any], batch: int) -> bool:
    return row["cores"] == 1 and row["batch"] == batch


def _show(rows: list[dict[str, Any]], base: str) -> None:
    """Print the ratios on one core as a table."""
    figures = [name for name in rows[0] if ".c1" in name and not name.endswith(".cpu_ms")]
    print(f"times as fast as {base} on one core, and as small; above 1 is better")
    heads = [name.replace(".c1", "").replace(".per_s", "") for name in figures]
    print(f"{'model':<40}" + "".join(f"{head:>18}" for head in heads))
    for row in rows:
        cells = "".join(f"{row[name]:>18.2f}" if name in row else f"{'-':>18}" for name in figures)
        print(f"{row['model']:<40}{cells}")


def main() -> None:
    """Measure each model, then compare."""
    parser = bench_parser(__doc__, dataset="photos", datasets=("photos",))
    parser.set_defaults(runs=3, threads=min(2, os.cpu_count() or 1))
    parser.add_argument("--photos", type=int, default=12, help="pictures of each kind")
    options = parser.parse_args()
    size = (1920, 1280)
    if options.smoke:
        options.runs, options.photos, options.threads, size = 1, 2, 1, (480, 320)
    progress = ConsoleProgress(Console(stderr=True))
    timed = list_models(options)
    todo = [name for name in timed if on_record(options, BENCHMARK, file_name(name)) is None]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        large = draw_pictures(
            place, options.photos, width=size[0], height=size[1], seed=options.seed
        )
        job = {
            "runs": options.runs,
            "pictures": {
                "320 px": list(map(str, list_bundled(options.photos))),
                f"{size[0]} px": list(map(str, large)),
            },
            "texts": TEXTS,
            "image_batches": BATCHES,
            "text_batches": BATCHES,
        }
        specs = _export_models(todo, place, progress)
        with progress.step("timing models", len(todo), unit="models") as step:
            for name in todo:
                step.note(name)
                measure(name, specs.get(name, name), job, options)
                step.advance(1)
        if todo or on_record(options, BENCHMARK, file_name(LIMITS)) is None:
            measure_limit(options)
    compare(timed, options)


def _export_models(todo: list[str], place: Path, progress: Progress) -> dict[str, str]:
    """Export the open_clip model where it is timed; name -> spec."""
    if not set(todo) & set(EXPORTS):
        return {}
    from searchlab.models.onnx.export import export_onnx

    with progress.step("exporting ViT-B-32 as ONNX"):
        export_onnx(CLIP, place / "onnx")
    return {name: f"onnx:{place / 'onnx'}:{precision}" for name, precision in EXPORTS.items()}


if __name__ == "__main__":
    main()
