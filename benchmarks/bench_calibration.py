"""Fit what turns cosines into `relevance_score`, and measure how far the scores can be trusted.

    python benchmarks/bench_calibration.py
    python benchmarks/bench_calibration.py --smoke --out "$(mktemp -d)"

Fits each model of the demo on one half of the bundled judgments and checks it on the other half.
Writes results/calibration/<dataset>/<config_id>.json with the reliability of the held-out half,
and, without --smoke, the curves to searchlab/calibration_data, where `default_calibration` finds
them. Skips models that are on record (--force fits again).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

from rich.console import Console

from searchlab.calibration import save_calibration
from searchlab.calibration_fit import fit_calibration
from searchlab.config import UNCALIBRATED
from searchlab.console import ConsoleProgress
from searchlab.datasets import load_dataset
from searchlab.demo import build_demo_library, demo_configs, demo_queries
from searchlab.results import environment

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Fit and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="demo", choices=["demo"])
    parser.add_argument("--force", action="store_true")
    parser.add_argument("--smoke", action="store_true", help="one model, few queries")
    parser.add_argument("--out", type=Path, default=ROOT / "results")
    options = parser.parse_args()

    everything = load_dataset(options.dataset)
    dataset = everything.sample(["en"], 80, seed=0) if options.smoke else demo_queries(everything)
    by_model = {config.model_id: config for config in reversed(demo_configs())}
    configs = [replace(config, calibration=UNCALIBRATED) for config in by_model.values()]
    progress = ConsoleProgress(Console(stderr=True))
    with tempfile.TemporaryDirectory() as scratch:
        library = build_demo_library(Path(scratch), progress=progress)
        for config in [c for c in configs if c.model == "mini"] if options.smoke else configs:
            path = options.out / "calibration" / dataset.name / f"{config.config_id}.json"
            if path.exists() and not options.force:
                sys.stdout.write(f"{config.model}: on record in {path}\n")
                continue
            engine = library.engine_for(
                config,
                withheld=dataset.withheld,
                photo_ids=dataset.photo_ids,
                progress=progress,
            )
            calibration, held_out = fit_calibration(engine, dataset, seed=0)
            result = {
                "schema": 1,
                "benchmark": "calibration",
                "dataset": dataset.name,
                "dataset_revision": dataset.revision,
                "config_id": config.config_id,
                "config": config.to_dict(),
                "metrics": {"calibration": asdict(calibration), "held_out": held_out},
                "environment": environment(),
            }
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
            if not options.smoke:
                save_calibration(
                    calibration, config.model_id, ROOT / "searchlab" / "calibration_data"
                )
            text = held_out["text"]["pairs"]
            sys.stdout.write(f"{config.model}: ECE {text['ece']:.4f}, Brier {text['brier']:.4f}\n")


if __name__ == "__main__":
    main()
