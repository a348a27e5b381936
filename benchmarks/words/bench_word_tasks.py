"""How well photos are found with and without the text index: texts withheld, and texts there.

    SEARCHLAB_DATASETS=... python -m benchmarks.words.bench_word_tasks --data FOLDER
    python -m benchmarks.words.bench_word_tasks --smoke --out "$(mktemp -d)"

Writes results/word_tasks/<withheld or there>/<task>.json: the metrics of `mini` with and without
words, their 95 % intervals, and the paired difference. Tasks whose photos are not here are left
out, and said so. --data keeps the libraries, so that photos are embedded once.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.common.recording import bench_parser, on_record, record
from searchlab.cli.console import ConsoleProgress
from searchlab.config import Config
from searchlab.errors import NotFoundError
from searchlab.evaluation.datasets import load_dataset
from searchlab.studies.words.tasks import TASKS, WITHHELD, measure_task, sample_of

BENCHMARK = "word_tasks"


def main() -> None:
    """Measure what is not on record, and print a line for each task."""
    parser = bench_parser(__doc__, dataset="all", datasets=["all", *TASKS])
    parser.add_argument("--data", type=Path, help="folder to work in, which is kept")
    options = parser.parse_args()
    names = ["demo", "demo-written"] if options.smoke else list(TASKS)
    if options.dataset != "all":
        names = [options.dataset]
    for name in names:
        try:
            values = measure_one(options, name)
        except NotFoundError as error:
            sys.stderr.write(f"{name} is left out: {error}\n")
            continue
        mean, low, high = values["difference"]
        sys.stdout.write(
            f"{name:28} {values['metrics']['without']:.3f} -> {values['metrics']['with']:.3f}  "
            f"{mean:+.3f} [{low:+.3f}, {high:+.3f}] p = {values['p_value']:.4f}\n"
        )


def measure_one(options: argparse.Namespace, name: str) -> dict[str, Any]:
    """Measure one task, if it is not on record, and write it."""
    texts, about = TASKS[name]
    options.dataset = "withheld" if texts == WITHHELD else "there"
    existing = on_record(options, BENCHMARK, name)
    if existing is not None:
        return existing
    dataset = load_dataset(name)
    dataset = dataset.sample(["en"], 10, 0) if options.smoke else sample_of(dataset)
    values = measure_task(
        dataset,
        base=Config(model="palette") if options.smoke else None,
        cache=options.data,
        progress=ConsoleProgress(Console(stderr=True)),
        seed=options.seed,
    )
    values = {"task": name, "texts": texts, "about": about, **values}
    record(options, BENCHMARK, name, values)
    return values


if __name__ == "__main__":
    main()
