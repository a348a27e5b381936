"""Home and abroad: how well photos are found on other ground than what `mini` was taught on.

    SEARCHLAB_DATASETS=... python -m benchmarks.abroad.bench_abroad --data FOLDER
    python -m benchmarks.abroad.bench_abroad --dataset demo --cldr FOLDER
    python -m benchmarks.abroad.bench_abroad --smoke --out "$(mktemp -d)"

Writes results/abroad/judges/grounds.json, a row for each ground of `searchlab.studies.abroad` and
each system. With `--dataset demo` it writes results/abroad/demo/groups.json instead: the scores on
record in results/search_quality/demo by groups of queries. `--cldr` is the folder of the unpacked
npm packages that the text tower learnt its words from; without it, that group is left out.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.common.again import measure_again, only
from benchmarks.common.recording import bench_parser, on_record, record
from searchlab.cli.console import ConsoleProgress
from searchlab.config import Config
from searchlab.evaluation.config_grids import grid
from searchlab.evaluation.datasets import Dataset, load_dataset
from searchlab.evaluation.provenance.manifest import data_hashes, make_manifest, models_of
from searchlab.evaluation.results import load_result
from searchlab.studies.abroad import GROUNDS, groups_of, measure_grounds, score_groups
from searchlab.training.mini.corpora import read_annotations

BENCHMARK = "abroad"
RESULTS = Path(__file__).resolve().parents[2] / "results"
MODELS = ("mini", "hybrid:mini=0.85,palette=0.15", "palette")


def measure_judges(options: argparse.Namespace) -> None:
    """Measure every ground, and record."""
    if on_record(options, BENCHMARK, "grounds") is not None:
        return
    grounds, most, models = GROUNDS, 1000, MODELS
    if options.smoke:
        grounds = tuple(one for one in GROUNDS if one.dataset == "demo" and not one.photographs)
        most, models = 5, ("palette",)
    configs: list[Config] = grid(list(models), ["exact"])
    progress = ConsoleProgress(Console(stderr=True))
    rows = measure_grounds(
        load_dataset,
        configs,
        grounds=grounds,
        most=most,
        cache=options.data,
        progress=progress,
        seed=options.seed,
    )
    values = {
        "parameters": {"most": most, "models": list(models)},
        "metrics": {f"{row['ground']}, {row['system']}": row["success@10"][0] for row in rows},
        "rows": rows,
        "manifest": make_manifest(
            BENCHMARK,
            models=models_of(*models),
            data={row["data"]: row["revision"] for row in rows},
            seed=options.seed,
        ),
    }
    record(options, BENCHMARK, "grounds", values)
    for row in rows:
        sys.stdout.write(f"{row['ground']:<40} {row['system']:<32} {row['success@10'][0]:.3f}\n")


def measure_groups(options: argparse.Namespace, results_folder: Path) -> None:
    """Read the recorded scores of the bundled queries, and record them by groups."""
    folder = results_folder / "search_quality" / "demo"
    results = [load_result(path) for path in sorted(folder.glob("*.json"))]
    dataset = load_dataset("demo")
    taught = {} if options.cldr is None else taught_queries(dataset, options.cldr)
    rows = score_groups(results, groups_of(dataset, taught), seed=options.seed)
    values = {
        "parameters": {"systems": [result.name for result in results]},
        "metrics": {f"{row['by']}: {row['group']}": row["n_queries"] for row in rows},
        "rows": rows,
        "manifest": make_manifest(BENCHMARK, data=data_hashes(dataset), seed=options.seed),
    }
    record(options, BENCHMARK, "groups", values)


def recompute(measurement: dict[str, Any]) -> dict[str, Any]:
    """Measure every ground again, or the groups of queries that need no packages of CLDR's."""
    if measurement["dataset"] == "judges":
        again = measure_again(measure_judges, measurement, data=None)
        return {"metrics": again["metrics"], "rows": again["rows"]}
    again = measure_again(lambda options: measure_groups(options, RESULTS), measurement, cldr=None)
    names = again["rows"][0].keys()
    return {
        "metrics": again["metrics"],
        "rows": only(again["rows"], *names, of=len(measurement["rows"])),
    }


def taught_queries(dataset: Dataset, cldr: Path) -> dict[str, str]:
    """Find queries that are a name or a keyword of CLDR, which the text tower was taught."""
    annotations = read_annotations(cldr)
    names = {
        (lang, _folded(text))
        for lang, by_symbol in annotations.names.items()
        for text in by_symbol.values()
    }
    keywords = {
        (lang, _folded(text))
        for lang, by_symbol in annotations.keywords.items()
        for texts in by_symbol.values()
        for text in texts
    }
    taught = {}
    for query in dataset.queries:
        text = _folded(query.text or "")
        langs = (query.lang, query.lang.split("-")[0])
        if any((lang, text) in names for lang in langs):
            taught[query.query_id] = "a name"
        elif any((lang, text) in keywords for lang in langs):
            taught[query.query_id] = "a keyword"
    return taught


def _folded(text: str) -> str:
    return text.casefold().strip(" .。।")


def main() -> None:
    """Measure the judges, or the groups of the bundled queries."""
    parser = bench_parser(__doc__, dataset="judges", datasets=("judges", "demo"))
    parser.add_argument("--data", type=Path, help="folder to work in, which is kept")
    parser.add_argument("--cldr", type=Path, help="folder of the packages of CLDR's annotations")
    options = parser.parse_args()
    if options.dataset == "demo":
        measure_groups(options, options.out)
    else:
        measure_judges(options)


if __name__ == "__main__":
    main()
