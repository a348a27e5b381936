"""How well the configurations of the demo find photos, per language, with intervals.

    python benchmarks/bench_search_quality.py --dataset demo
    SEARCHLAB_DATASETS=... python benchmarks/bench_search_quality.py --dataset flickr8k
    python benchmarks/bench_search_quality.py --smoke --out "$(mktemp -d)"

Writes results/search_quality/<dataset>/<config_id>.json, the scores of every query beside it, and
<dataset>.md with the leaderboard. What is on record for the same configuration, data and code is
not measured again (--force does). --data holds the library and links to the photos; it is a
temporary folder if left out.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

from rich.console import Console

from searchlab.console import ConsoleProgress
from searchlab.datasets import Dataset, load_dataset
from searchlab.demo import demo_configs
from searchlab.experiments import Experiment
from searchlab.ingest import index_photos
from searchlab.library import create_library
from searchlab.records import SIDECAR_NAME
from searchlab.scan import check_root

ROOT = Path(__file__).resolve().parent.parent


def sampled(dataset: Dataset, *, least: int, most: int) -> Dataset:
    """Keep the languages with `least` queries, and at most `most` queries of each."""
    counts = Counter(query.lang for query in dataset.queries)
    languages = sorted(lang for lang, count in counts.items() if count >= least)
    return dataset.sample(languages, most, seed=0)


def linked(dataset: Dataset, folder: Path) -> Path:
    """Make a folder of links to just the photos of a dataset, with their records."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for number, record in enumerate(dataset.records):
        file = Path(str(record["file"]))
        name = f"{number}{file.suffix}"
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(file)
        lines.append(json.dumps(dict(record) | {"file": name}))
    (folder / SIDECAR_NAME).write_text("\n".join(lines), encoding="utf-8")
    return folder


def main() -> None:
    """Build the library, evaluate, write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="demo", help="demo, stamps, flickr8k ...")
    parser.add_argument("--data", type=Path, help="folder to work in, kept")
    parser.add_argument("--least", type=int, default=60, help="queries that a language must have")
    parser.add_argument("--most", type=int, default=1000, help="queries of a language")
    parser.add_argument("--force", action="store_true")
    parser.add_argument("--smoke", action="store_true", help="one language, two configurations")
    parser.add_argument("--out", type=Path, default=ROOT / "results")
    options = parser.parse_args()

    dataset = load_dataset(options.dataset)
    dataset = (
        dataset.sample(["en"], 20, seed=0)
        if options.smoke
        else sampled(dataset, least=options.least, most=options.most)
    )
    progress = ConsoleProgress(Console(stderr=True))
    configs = demo_configs()
    configs = configs[:1] if options.smoke else configs
    with tempfile.TemporaryDirectory() as scratch:
        place = options.data or Path(scratch)
        library = create_library(place / "library")
        root = check_root(linked(dataset, place / "photos" / dataset.name))
        index_photos(library, [root], progress=progress)
        experiment = Experiment(
            library, dataset, configs, out=options.out, benchmark="search_quality", save_runs=False
        )
        report = experiment.run(progress, force=options.force)
    table = options.out / "search_quality" / f"{dataset.name}.md"
    table.write_text(report.markdown(), encoding="utf-8")
    sys.stdout.write(report.text(languages=not options.smoke) + "\n")


if __name__ == "__main__":
    main()
