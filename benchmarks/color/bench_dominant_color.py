"""How often the dominant colour is the one that a person names, before and after, and its cost.

    SEARCHLAB_DATASETS=... python -m benchmarks.color.bench_dominant_color
    python -m benchmarks.color.bench_dominant_color --smoke --out "$(mktemp -d)"
    SEARCHLAB_DATASETS=... python -m benchmarks.color.bench_dominant_color --fit

Writes results/dominant_color/<dataset>/methods.json and skips what is on record (--force measures
again). Datasets: `report`, 200 photos that nothing was learnt from; `vivid`, 72 of sunsets, flowers
and fruit, from which nothing was learnt either; `demo`, those of the 200 that ship with searchlab.
The time of searchlab's own method is that of the palette too. --fit learns the weights of the votes
on the other photos, and prints them. What is measured stands in `searchlab.studies.color.dominant`.
"""

from __future__ import annotations

import argparse
import json
import time
from functools import partial
from typing import Any

from benchmarks.common.recording import bench_parser, median_ms, on_record, record
from searchlab.evaluation.datasets import bundled_root
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.files import sha256_of
from searchlab.photos.images.dominant_colors import VOTE_WEIGHTS
from searchlab.studies.color.dominant import (
    METHODS,
    JudgedPhoto,
    Method,
    cross_validate,
    learn_weights,
    measure,
    read_judged_photos,
)

BENCHMARK, NAME = "dominant_color", "methods"
DATASETS = ("report", "vivid", "demo")


def main() -> None:
    """Measure and write what is not on record, and print a line for each method."""
    parser = bench_parser(__doc__, dataset="report", datasets=DATASETS)
    parser.add_argument("--fit", action="store_true", help="learn the weights of the votes")
    options = parser.parse_args()
    if options.fit:
        photos = read_judged_photos("tune")
        print(json.dumps(learn_weights(photos), indent=4))
        print("on photos left out:", cross_validate(photos))
        return
    if options.smoke:
        options.dataset = "demo"
    values = on_record(options, BENCHMARK, NAME) or measure_and_record(options)
    for name, shares in values["methods"].items():
        right, passing = shares["right"], shares["passing"]
        print(
            f"right {right['mean']:.3f} [{right['low']:.3f}, {right['high']:.3f}]  "
            f"passing {passing['mean']:.3f} [{passing['low']:.3f}, {passing['high']:.3f}]  "
            f"{values['speed'][name]:6.2f} ms  {name}"
        )


def measure_and_record(options: argparse.Namespace) -> dict[str, Any]:
    """Measure one dataset and write it."""
    photos = read_photos(options.dataset)
    if options.smoke:
        photos = photos[:8]
    values = {
        "config": {"vote_weights": VOTE_WEIGHTS},
        **measure(photos, samples=100 if options.smoke else 10_000, seed=options.seed),
        "speed": time_methods(photos, options.runs),
    }
    table = sha256_of(bundled_root() / "color-judgments" / "judgments.tsv")[:12]
    values |= {"manifest": make_manifest(BENCHMARK, data={"judgments": table}, seed=options.seed)}
    record(options, BENCHMARK, NAME, values)
    return values


def recompute(measurement: dict[str, Any]) -> dict[str, Any]:
    """Let every method name the photos again; without times."""
    parameters = measurement["parameters"]
    photos = read_photos(str(measurement["dataset"]))
    return measure(photos, samples=int(parameters["samples"]), seed=int(parameters["seed"]))


def read_photos(dataset: str) -> tuple[JudgedPhoto, ...]:
    """Read the judged photos of a dataset."""
    if dataset == "demo":
        return read_judged_photos("report", ["demo"])
    return read_judged_photos(dataset)


def time_methods(photos: tuple[JudgedPhoto, ...], runs: int) -> dict[str, float]:
    """Milliseconds of processor time a decoded photo, each method as a whole."""
    pictures = [photo.read() for photo in photos[:40]]

    def name_all(method: Method) -> list[str]:
        return [method(picture.image, picture.alpha) for picture in pictures]

    return {
        name: round(
            median_ms(partial(name_all, method), runs, time.process_time) / len(pictures), 3
        )
        for name, method in METHODS.items()
    }


if __name__ == "__main__":
    main()
