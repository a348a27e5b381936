"""How often searchlab's colour families, and colour metrics, agree with people's colour names.

    python -m benchmarks.color.bench_color_names
    python -m benchmarks.color.bench_color_names --smoke --out "$(mktemp -d)"

Writes results/color_names/<dataset>/families.json for the surveys xkcd and css4, and skips what is
on record (--force measures again). `searchlab.studies.color.names` says how names are read.
"""

from __future__ import annotations

import argparse
import hashlib
import json

from benchmarks.common.recording import bench_parser, on_record, record
from searchlab.config import COLOR_METRIC
from searchlab.evaluation.datasets import bundled_root
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.files import sha256_of
from searchlab.photos.colors.families import PROTOTYPES
from searchlab.studies.color.names import SURVEYS, measure

BENCHMARK, NAME = "color_names", "families"


def main() -> None:
    """Measure and write what is not on record, and print a line for each survey."""
    options = bench_parser(__doc__, dataset="all", datasets=["all", *SURVEYS]).parse_args()
    for survey in SURVEYS if options.dataset == "all" else [options.dataset]:
        of_survey = argparse.Namespace(**vars(options) | {"dataset": survey})
        values = on_record(of_survey, BENCHMARK, NAME) or measure_and_record(of_survey)
        agreement = values["agreement"]
        print(
            f"{survey}: families agree with {agreement['mean']:.3f} [{agreement['low']:.3f}, "
            f"{agreement['high']:.3f}] of {values['metrics']['n_names']} names"
        )
        for metric, alike in values["alike"].items():
            print(f"  {alike['mean']:6.3f} [{alike['low']:.3f}, {alike['high']:.3f}]  {metric}")


def measure_and_record(options: argparse.Namespace) -> dict[str, object]:
    """Measure one survey and write it."""
    survey = options.dataset
    values = measure(survey, samples=100 if options.smoke else 10_000, seed=options.seed)
    table = json.dumps(PROTOTYPES, sort_keys=True).encode()
    config = {
        "color_metric": COLOR_METRIC,
        "n_prototypes": sum(map(len, PROTOTYPES.values())),
        "prototypes_sha256": hashlib.sha256(table).hexdigest()[:12],
    }
    names = sha256_of(bundled_root() / "colour-names" / SURVEYS[survey])[:12]
    manifest = make_manifest(BENCHMARK, data={"names": names}, seed=options.seed, dtype="float64")
    values = {"config": config, **values, "manifest": manifest}
    record(options, BENCHMARK, NAME, values)
    return values


if __name__ == "__main__":
    main()
