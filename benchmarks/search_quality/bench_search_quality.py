"""How well every configuration that can run here finds photos, by language, with intervals.

    python -m benchmarks.search_quality.bench_search_quality --dataset demo
    SEARCHLAB_DATASETS=... python -m benchmarks.search_quality.bench_search_quality \
        --dataset flickr8k
    python -m benchmarks.search_quality.bench_search_quality --smoke --out "$(mktemp -d)"

Writes results/search_quality/<dataset>/<model>-<index>-<hash>.json with scores and ranking of every
query beside it, and <dataset>.md with the leaderboard. What is on record for the same
configuration, data and code is not measured again (--force does). --data holds the library and
links to the photos; it is a temporary folder if left out.

--on ray:ADDRESS runs a task for each language of a configuration on a Ray cluster whose nodes mount
--data and --out alike. Such records say that their times are none, and replace none that have.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from rich.console import Console

from benchmarks.common.recording import bench_parser
from searchlab.cli.console import ConsoleProgress
from searchlab.cluster.runners import open_runner
from searchlab.config import Config
from searchlab.evaluation.config_grids import grid
from searchlab.evaluation.datasets import Dataset, load_dataset
from searchlab.evaluation.experiments import BENCHMARK, Experiment

MODELS = (
    "mini",
    "captions",
    "palette",
    "hybrid:captions=0.3,mini=0.7",
    "hybrid:mini=0.85,palette=0.15",
)
METRICS = ("ndcg@10", "success@5", "recall@10", "mrr@10")
_GROUNDS = {
    "demo": "Abroad: `mini` was taught on none of these photos; it ships with searchlab.",
    "flickr8k": "Home: photos of the kind that `mini` was taught on; needs `SEARCHLAB_DATASETS`.",
}
"""How the name of a dataset begins -> on which ground it stands."""


def sample_languages(dataset: Dataset, *, least: int, most: int) -> Dataset:
    """Keep the languages with `least` queries, and at most `most` queries of each."""
    counts = Counter(query.lang for query in dataset.queries)
    languages = sorted(lang for lang, count in counts.items() if count >= least)
    return dataset.sample(languages, most, seed=0)


def list_configs(dataset: Dataset) -> list[Config]:
    """List the configurations: every model, and the graph with settings for few photos."""
    has_descriptions = any(record.get("source_description") for record in dataset.records)
    models = [spec for spec in MODELS if has_descriptions or "captions" not in spec]
    return grid(models, ["exact"]) + grid(["mini"], ["hnsw"], step_rows=0, depth=50)


def describe_ground(dataset: str) -> str:
    """Say above a table whether it is of photos like those that the model was taught on."""
    said = next((of for at, of in _GROUNDS.items() if dataset.startswith(at)), None)
    both = "[At home and abroad](../README.md#at-home-and-abroad) shows both."
    return "" if said is None else f"{said} {both}\n\n"


def main() -> None:
    """Evaluate, write the table."""
    parser = bench_parser(__doc__, dataset="demo", spreads=BENCHMARK)
    parser.add_argument("--data", type=Path, help="folder to work in, which is kept")
    parser.add_argument("--least", type=int, default=60, help="queries that a language must have")
    parser.add_argument("--most", type=int, help="queries of a language (60 of demo, else 1000)")
    options = parser.parse_args()
    options.most = options.most or (60 if options.dataset == "demo" else 1000)

    dataset = load_dataset(options.dataset)
    configs = list_configs(dataset)
    if options.smoke:
        dataset = dataset.sample(
            ["en" if "en" in dataset.languages else dataset.languages[0]], 20, 0
        )
        configs = [config for config in configs if config.model == "palette"]
    else:
        dataset = sample_languages(dataset, least=options.least, most=options.most)
    experiment = Experiment(
        dataset, configs, METRICS, cache=options.data, out=options.out, seed=options.seed
    )
    report = experiment.run(
        ConsoleProgress(Console(stderr=True)),
        force=options.force,
        runner=None if options.on is None else open_runner(options.on),
    )
    table = options.out / BENCHMARK / f"{dataset.name}.md"
    table.write_text(f"{describe_ground(dataset.name)}{report.markdown()}", encoding="utf-8")
    sys.stdout.write(report.text(languages=not options.smoke) + "\n")


if __name__ == "__main__":
    main()
