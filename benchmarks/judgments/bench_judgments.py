"""How far judgments by WordNet's kinds agree with judgments by eye, on the bundled photos.

    python -m benchmarks.judgments.bench_judgments
    python -m benchmarks.judgments.bench_judgments --smoke --out "$(mktemp -d)"

Writes results/judgments/demo/kinds_and_eye.json: Cohen's kappa with its 95 % interval by bootstrap
over queries, and what each of the two calls relevant for each query.
"""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks.common.recording import bench_parser, on_record, record
from searchlab.evaluation.datasets import load_dataset
from searchlab.evaluation.provenance.manifest import data_hashes, make_manifest
from searchlab.studies.judgments import measure

BENCHMARK, NAME = "judgments", "kinds_and_eye"


def main() -> None:
    """Measure and write what is not on record, and print a line for each query."""
    options = bench_parser(__doc__, dataset="demo", datasets=["demo"]).parse_args()
    values = on_record(options, BENCHMARK, NAME) or measure_and_record(options)
    kappa = values["intervals"]["kappa"]
    print(
        f"kappa {kappa['mean']:.3f} [{kappa['low']:.3f}, {kappa['high']:.3f}] over "
        f"{values['metrics']['n_pairs']:,} pairs of {values['metrics']['n_queries']} queries"
    )
    for row in values["queries"]:
        print(
            f"  {row['query']:22} kinds {row['kinds']:3}  eye {row['eye']:3}  both {row['both']:3}"
        )


def measure_and_record(options: argparse.Namespace) -> dict[str, Any]:
    """Measure and write."""
    dataset = load_dataset("demo")
    values = measure(dataset, samples=100 if options.smoke else 2000, seed=options.seed)
    manifest = make_manifest(BENCHMARK, data=data_hashes(dataset), seed=options.seed)
    values = {**values, "manifest": manifest}
    record(options, BENCHMARK, NAME, values)
    return values


if __name__ == "__main__":
    main()
