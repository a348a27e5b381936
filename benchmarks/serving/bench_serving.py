"""Cold start and memory of a server, of one search from a terminal, and of imports.

    python -m benchmarks.serving.bench_serving  about 10 minutes on two cores, 3 GB of disk
    python -m benchmarks.serving.bench_serving --smoke --out "$(mktemp -d)"

Writes results/serving/<dataset>/cold.json with a chart beside it, and skips what is on record
(--force measures again). It measures, on the bundled photos and on synthetic libraries made from
their records and vectors:

- `searchlab serve` with one and two workers: ms from the command until `/health` and until the
  first search is answered, and the memory of its processes then and 200 searches later;
- `searchlab search`: a whole process for one answer, beside the usual script that loads open_clip's
  ViT-B-32 (random weights load as fast) and multiplies by a matrix;
- what `import` costs, beside torch and open_clip;
- `searchlab serve` over a million photos with the clustered index: the same, the memory that each
  worker does not share, and new texts over 16 connections. The targets are 2 s and 1.2 GB until the
  first answer.

Modules are compiled, as pip installs them, and files are in the page cache, as at the second start
of a day. The median of --runs counts.
"""

from __future__ import annotations

import argparse
import importlib.util
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.common.load.libraries import library_of, synthetic_library
from benchmarks.common.load.searchlab_server import MAIN, new_key
from benchmarks.common.load.targets import show_targets, target
from benchmarks.common.recording import bench_parser, on_record, record
from benchmarks.serving.cold import compile_modules, medians, python_command, serve_once
from searchlab.cli.console import ConsoleProgress
from searchlab.evaluation.charts import COLORS, chart, save_chart
from searchlab.evaluation.metrics import latency
from searchlab.evaluation.provenance.manifest import make_manifest, models_of
from searchlab.evaluation.provenance.measurement import measurement_path
from searchlab.library.library import Library
from searchlab.progress import Progress

BENCHMARK, NAME = "serving", "cold"
SIZES = (10_000, 100_000)
HERE = Path(__file__).resolve().parents[1]
IMPORTS = {
    "python alone": "pass",
    "searchlab": "import searchlab",
    "searchlab, a model and an engine": "import searchlab.library.library\n"
    "import searchlab.models.mini.embedder",
    "searchlab, the HTTP API": "import searchlab.api.app",
}
PEER_IMPORTS = {
    "torch": "import torch",
    "open_clip": "from searchlab.models.openclip.torchvision_shim import import_torchvision\n"
    "import_torchvision()\nimport open_clip",
    "fastapi": "import fastapi",
}


def measure_imports(
    runs: int, progress: Progress, *, peers: bool, imports: Mapping[str, str] = IMPORTS
) -> list[dict[str, Any]]:
    """Time imports, each in a fresh process."""
    installed = {
        name: code
        for name, code in PEER_IMPORTS.items()
        if peers and importlib.util.find_spec(name)
    }
    rows = []
    with progress.step("importing", len(imports) + len(installed)) as step:
        for name, code in {**imports, **installed}.items():
            step.note(name)
            rows.append({"imported": name, **medians(python_command(code), runs)})
            step.advance(1)
    return rows


def measure_searches(
    libraries: dict[int, Library], runs: int, progress: Progress, *, peers: bool
) -> list[dict[str, Any]]:
    """Time one search from a terminal, ours and the usual script's."""
    commands = {
        n: {"searchlab search": (*MAIN, "search", "--data", str(library.folder), "castle")}
        for n, library in libraries.items()
    }
    if peers and importlib.util.find_spec("open_clip"):
        for n, words in commands.items():
            words["open_clip eager and numpy"] = (
                python_command("")[0],
                str(HERE / "http" / "clip_search.py"),
                str(n),
            )
    rows = []
    with progress.step("searching once", sum(map(len, commands.values()))) as step:
        for n, words in commands.items():
            for name, command in words.items():
                step.note(f"{name}, {n:,} photos")
                rows.append({"command": name, "photos": n, **medians(command, runs)})
                step.advance(1)
    return with_ratios(rows)


def measure_servers(
    libraries: dict[int, Library], options: argparse.Namespace, progress: Progress
) -> list[dict[str, Any]]:
    """Start servers, send searches and measure their memory."""
    rows, runs = [], options.runs
    with progress.step("serving", len(options.workers) * runs * len(libraries)) as step:
        for n, library in libraries.items():
            key = new_key(library.folder)
            for workers in options.workers:
                step.note(f"{n:,} photos, {workers} workers")
                figures = []
                for _ in range(runs):
                    figures.append(
                        serve_once(library.folder, key, workers=workers, queries=options.queries)
                    )
                    step.advance(1)
                medians_of = {name: _median([run[name] for run in figures]) for name in figures[0]}
                rows.append({"photos": n, "workers": workers, **medians_of})
    return rows


def measure_large(
    library: Library, options: argparse.Namespace, progress: Progress
) -> list[dict[str, Any]]:
    """Serve a large library with one and two workers under load, and measure."""
    n, key, rows = len(library.engine.table), new_key(library.folder), []
    with progress.step(f"serving {n:,} photos", len(options.workers) * options.runs) as step:
        for workers in options.workers:
            figures = []
            for _ in range(options.runs):
                figures.append(
                    serve_once(
                        library.folder,
                        key,
                        workers=workers,
                        queries=options.queries,
                        seconds=options.seconds,
                    )
                )
                step.advance(1)
            medians_of = {name: _median([run[name] for run in figures]) for name in figures[0]}
            rows.append({"photos": n, "workers": workers, **medians_of})
    return rows


def check_targets(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Compare start and memory of one worker over a large library with their bounds."""
    row = next(row for row in rows if row["workers"] == 1)
    photos = f"{row['photos']:,} photos"
    seconds, gigabytes = row["first_search_ms"] / 1e3, row["worker_rss_mib"] * 2**20 / 1e9
    return [
        target(f"s from the command to the first answer, {photos}", most=2.0, measured=seconds),
        target(f"GB resident in the worker then, {photos}", most=1.2, measured=round(gigabytes, 3)),
    ]


def _median(values: list[float]) -> float:
    return round(latency(values)["p50_ms"] / 1e3, 1)


def with_ratios(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add `ms_ratio` and `peak_ratio`, relative to `searchlab search` on as many photos."""
    ours = {row["photos"]: row for row in rows if row["command"] == "searchlab search"}
    return [
        row
        | {
            "ms_ratio": round(row["ms"] / ours[row["photos"]]["ms"], 2),
            "peak_ratio": round(row["peak_mib"] / ours[row["photos"]]["peak_mib"], 2),
        }
        for row in rows
    ]


def metrics_of(tables: dict[str, list[dict[str, Any]]]) -> dict[str, float]:
    """Give names to the figures for prose, ratios first."""
    metrics = {
        f"{row['command']}.{row['photos']}.{name}": row[name]
        for row in tables["searches"]
        for name in ("ms_ratio", "peak_ratio", "ms", "cpu_ms", "peak_mib")
    }
    bare = next(iter(tables["imports"]))
    for row in tables["imports"]:
        metrics[f"import.{row['imported']}.ms"] = row["ms"]
        metrics[f"import.{row['imported']}.ms beyond python"] = round(row["ms"] - bare["ms"], 1)
    for row in (*tables["serving"], *tables["large"]):
        where = f"serve.{row['photos']}.{row['workers']}"
        metrics |= {f"{where}.{name}": value for name, value in row.items() if "_" in name}
    return metrics


def draw(tables: dict[str, list[dict[str, Any]]], path: Path, queries: int) -> list[Path]:
    """Draw time until the first answer, and memory."""
    rows = tables["serving"]
    names = [
        f"{row['photos']:,} photos\n{row['workers']} worker{'s' * (row['workers'] > 1)}"
        for row in rows
    ]
    parts = (
        (
            "s until the first answer",
            (("first_search_ms", 1e-3, "a search"), ("health_ms", 1e-3, "/health")),
        ),
        (
            "MiB of all processes (PSS)",
            (
                ("total_pss_mib_later", 1.0, f"{queries} searches later"),
                ("total_pss_mib", 1.0, "after the first search"),
            ),
        ),
    )
    with chart(9.5, 1.6 + 0.5 * len(rows), columns=2, sharey=True) as (figure, both):
        for axes, (label, series) in zip(both, parts, strict=True):
            for place, (name, scale, label) in enumerate(series):
                heights = [at + (place - 0.5) * 0.36 for at in range(len(rows))]
                widths = [row[name] * scale for row in rows]
                bars = axes.barh(heights, widths, height=0.34, color=COLORS[place], label=label)
                bars_labels = [f"{width:.2f}" if scale < 1 else f"{width:.0f}" for width in widths]
                axes.bar_label(bars, bars_labels, padding=3, fontsize=8)
            axes.set_xlabel(label)
            axes.margins(x=0.15)
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.16), ncols=2)
        both[0].set_yticks(range(len(rows)), names)
        both[0].invert_yaxis()
        figure.suptitle("How soon does a server answer, and how much memory does it hold?")
        return save_chart(figure, path)


def print_tables(tables: dict[str, list[dict[str, Any]]]) -> None:
    """Print the tables."""
    for rows in tables.values():
        names = list(rows[0])
        widths = [max(len(str(cell)) for cell in (n, *(row[n] for row in rows))) for n in names]
        for cells in (names, *([row[n] for n in names] for row in rows)):
            print("  ".join(f"{cell!s:>{w}}" for cell, w in zip(cells, widths, strict=True)))
        print()


def main() -> None:
    """Measure, show and record."""
    parser = bench_parser(__doc__, dataset="demo", datasets=("demo", "plain"))
    parser.set_defaults(runs=3)
    parser.add_argument(
        "--sizes", type=int, nargs="*", default=SIZES, help="photos of the synthetic libraries"
    )
    parser.add_argument("--large", type=int, default=1_000_000, help="photos of the largest one")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of each load")
    parser.add_argument(
        "--queries", type=int, default=200, help="searches before memory is read again"
    )
    options = parser.parse_args()
    options.workers, options.imports = (1, 2), IMPORTS
    if options.smoke:
        options.workers, options.imports = (1,), dict(list(IMPORTS.items())[:2])
        options.dataset, options.runs, options.sizes, options.queries = "plain", 1, [], 2
        options.large, options.seconds = 1_000, 0.02
    if on_record(options, BENCHMARK, NAME) is not None:
        return
    compile_modules()
    model, tables = measure(options)
    metrics = metrics_of(tables)
    targets = check_targets(tables["large"])
    print_tables(tables)
    show_targets(targets)
    place = measurement_path(options.out, BENCHMARK, options.dataset, NAME).with_suffix("")
    values = {
        "parameters": {
            "runs": options.runs,
            "queries": options.queries,
            "sizes": list(options.sizes),
            "large": options.large,
        },
        "metrics": metrics,
        **tables,
        "targets": targets,
        "manifest": make_manifest(BENCHMARK, models=models_of(model), seed=options.seed),
    }
    record(options, BENCHMARK, NAME, values, beside=draw(tables, place, options.queries))


def measure(options: argparse.Namespace) -> tuple[str, dict[str, list[dict[str, Any]]]]:
    """Make the libraries and measure all; returns the spec of the model, and the tables."""
    progress = ConsoleProgress(Console(stderr=True))
    with tempfile.TemporaryDirectory() as folder:
        first = library_of(options.dataset, Path(folder), progress=progress)
        libraries = {len(first.engine.table): first}
        for n in options.sizes:
            with progress.step(f"making a library of {n:,} photos"):
                libraries[n] = synthetic_library(first, Path(folder) / str(n), n)
        return first.engine.config.model, {
            "searches": measure_searches(
                libraries, options.runs, progress, peers=not options.smoke
            ),
            "imports": measure_imports(
                options.runs, progress, peers=not options.smoke, imports=options.imports
            ),
            "serving": measure_servers(libraries, options, progress),
            "large": measure_large(
                _large_library(first, Path(folder), options, progress), options, progress
            ),
        }


def _large_library(
    first: Library, folder: Path, options: argparse.Namespace, progress: Progress
) -> Library:
    with progress.step(f"making a library of {options.large:,} photos"):
        return synthetic_library(first, folder / "large", options.large, index="clustered")


if __name__ == "__main__":
    main()
