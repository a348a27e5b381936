"""Which weights of words rank judged photos best: a grid over coverage, precision and sharpness.

    SEARCHLAB_DATASETS=... python -m benchmarks.words.bench_word_weights --data FOLDER
    SEARCHLAB_DATASETS=... python -m benchmarks.words.bench_word_weights --smoke \
        --out "$(mktemp -d)"

Writes results/word_weights/flickr8k-train/weights.json: ndcg@10 of each task for the chosen
weights, for the best of each task, and without words. No judge's photos are used, nor those of the
tasks that `bench_word_tasks` measures.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.again import measure_again
from benchmarks.common.recording import bench_parser, on_record, record
from searchlab.config import Config
from searchlab.errors import NotFoundError
from searchlab.evaluation.datasets import ENVIRONMENT, LabelledQuery, external_root, load_dataset
from searchlab.evaluation.datasets.dataset import Dataset
from searchlab.evaluation.datasets.dataset_library import dataset_library
from searchlab.evaluation.datasets.rows import make_dataset, read_rows
from searchlab.evaluation.datasets.written import has_words
from searchlab.evaluation.provenance.manifest import make_manifest, models_of
from searchlab.models import load_model
from searchlab.models.shipped_calibration import calibrate
from searchlab.photos.photo import photo_id_of
from searchlab.photos.table import PhotoTable
from searchlab.search.words.index import WordIndex
from searchlab.studies.words.weights import choose, grid, ndcg_by_weights, plain, texts_and_queries

BENCHMARK, NAME = "word_weights", "weights"
_TEXTS = ("title", "source_description", "alt_description", "file", "folder", "source")
_TASKS = (("caption", "long"), ("short", "long"), ("short", "short"), ("name", "long"))


def main() -> None:
    """Measure what is not on record, and print a line for each task."""
    parser = bench_parser(__doc__, dataset="flickr8k-train", datasets=["flickr8k-train"])
    parser.add_argument("--data", type=Path, help="folder to work in, which is kept")
    parser.add_argument("--queries", type=int, default=300, help="queries of each task")
    options = parser.parse_args()
    values = on_record(options, BENCHMARK, NAME) or measure_and_record(options)
    sys.stdout.write(f"chosen: {values['chosen']}\n")
    for row in values["tasks"]:
        sys.stdout.write(
            f"{row['task']:28} without {row['without']:.3f}  chosen {row['chosen']:.3f}  "
            f"best {row['best']:.3f} {row['weights']}\n"
        )


def recompute(measurement: dict[str, Any]) -> dict[str, Any]:
    """Measure all weights again, on as many queries.

    Raises:
        NotFoundError: SEARCHLAB_DATASETS does not hold the photos.
    """
    n_queries = max(int(task["n_queries"]) for task in measurement["tasks"])
    again = measure_again(measure_and_record, measurement, data=None, queries=n_queries)
    return {name: again[name] for name in ("chosen", "tasks", "grid", "metrics")}


def measure_and_record(options: argparse.Namespace) -> dict[str, Any]:
    """Embed the photos if they are new, try all weights and write what was found."""
    dataset, captions = train_photos(60 if options.smoke else None)
    n_queries = 5 if options.smoke else options.queries
    with tempfile.TemporaryDirectory() as nowhere:
        folder = options.data or Path(nowhere)
        engine = dataset_library(dataset, folder, config=calibrate(Config())).engine
        table, vectors = engine.table, np.asarray(engine.index.vectors)
        ids = list(table.texts("photo_id"))
        names = sorted(
            {
                word
                for record in load_dataset("demo").records
                for word in (record["photographer_full_name"] or "").split()
                if word.istitle() and word.isalpha() and len(word) > 3
            }
        )
        written = texts_and_queries(ids, captions, names, n_queries=n_queries, seed=options.seed)
    queries, weights = written[-1], grid()
    curve = calibrate(Config()).calibration.curve("text")
    embedded = load_model("mini").encode_texts([query.text for query in queries])
    indexes = {
        (length, share): word_index(table, texts, [share == "all" or has_words(i) for i in ids])
        for length, texts in zip(("long", "short"), written[:2], strict=True)
        for share in ("all", "half")
    }
    rows = defaultdict(list)
    for query, vector in zip(queries, embedded, strict=True):
        for (length, share), index in indexes.items():
            if (query.task.split(" ")[-1], length) in _TASKS:
                values = ndcg_by_weights(index, vectors @ vector, query, weights, curve)
                rows[f"{query.task}, {length} texts on {share}"].append(values)
    figures = {task: np.array(values) for task, values in rows.items()}
    place, means = choose(figures, weights)
    values = describe(figures, weights, place, means)
    values["slope"] = curve.slope
    values["manifest"] = make_manifest(
        BENCHMARK, models=models_of("mini"), data={"revision": dataset.revision}, seed=options.seed
    )
    record(options, BENCHMARK, NAME, values)
    return values


def describe(
    figures: dict[str, np.ndarray[Any, Any]], weights: list[Any], place: int, means: Any
) -> dict[str, Any]:
    """Return the figures of a measurement."""
    chosen = weights[place]
    without, mine = plain(figures, -1), plain(figures, place)
    best = {task: int(values.mean(axis=0)[:-1].argmax()) for task, values in figures.items()}
    tasks = [
        {
            "task": task,
            "n_queries": len(values),
            "without": without[task],
            "chosen": mine[task],
            "best": plain({task: values}, best[task])[task],
            "weights": vars(weights[best[task]]),
        }
        for task, values in figures.items()
    ]
    curve = [
        {**vars(some), "mean": round(float(mean), 4)}
        for some, mean in zip(weights, means, strict=False)
    ]
    return {
        "chosen": vars(chosen),
        "tasks": tasks,
        "grid": curve,
        "metrics": {
            "mean": round(float(means[place]), 4),
            "best_mean": round(float(means[:-1].max()), 4),
            "without": round(float(means[-1]), 4),
        },
    }


def train_photos(most: int | None = None) -> tuple[Dataset, dict[str, list[str]]]:
    """Return the training photos of Flickr8k, and the five English captions of each.

    Raises:
        NotFoundError: They are not here.
    """
    root = external_root()
    if root is None or not (root / "flickr8k-train").is_dir():
        msg = f"set {ENVIRONMENT} to a folder that holds flickr8k-train/"
        raise NotFoundError(msg)
    folder = root / "flickr8k-train"
    records = [
        {
            "file": str(folder / row["file"]),
            "source": "flickr",
            "source_photo_id": row["photo_id"],
            "license_type": "research-only",
        }
        for row in read_rows(folder / "photos.tsv")[:most]
    ]
    numbered: dict[str, dict[int, str]] = defaultdict(dict)
    for row in read_rows(folder / "captions.tsv"):
        if row["lang"] == "en" and row["kind"] == "written":
            numbered[photo_id_of("flickr", row["photo_id"])][int(row["idx"])] = row["text"]
    captions = {
        photo: [text for _, text in sorted(some.items())] for photo, some in numbered.items()
    }
    first = photo_id_of("flickr", str(records[0]["source_photo_id"]))
    query = LabelledQuery("first", "en", "caption", captions[first][0])
    dataset = make_dataset("flickr8k-train", folder, [query], {"first": {first: 1}}, records)
    return dataset, captions


def word_index(table: PhotoTable, texts: list[dict[str, str]], keeps: list[bool]) -> WordIndex:
    """Index texts of our own for some photos of a table."""
    rows = [
        table.row(row) | dict.fromkeys(_TEXTS, "") | (some if keep else {})
        for row, (some, keep) in enumerate(zip(texts, keeps, strict=True))
    ]
    return WordIndex.build(PhotoTable.from_rows([rows]))


if __name__ == "__main__":
    main()
