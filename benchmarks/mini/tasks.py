"""The queries that `mini` gets: captions of test photos and labels of stamps, in many languages."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

LANGUAGES = ("en", "zh", "ar", "de", "fr", "cs")
BEST_COVERED = 60
RESAMPLES = 1000
FEWEST = 100  # A language with fewer captions in a judge is left out.

Rows = NDArray[np.float32]


class Query(NamedTuple):
    """One text with the photos that answer it."""

    language: str
    text: str
    answers: tuple[int, ...]


class Task(NamedTuple):
    """Photos and queries of one dataset."""

    name: str
    photos: list[Path]
    queries: list[Query]


def read_tsv(path: Path) -> Iterator[dict[str, str]]:
    """Read the rows of a tab-separated file with a header and no quoting."""
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)


def load_flickr8k(root: Path) -> Task:
    """Load the 1,000 test photos; every caption is a query, answered by its own photo."""
    folder = root / "flickr8k"
    photos = [row for row in read_tsv(folder / "photos.tsv") if row["split"] == "test"]
    number = {row["photo_id"]: n for n, row in enumerate(photos)}
    queries = [
        Query(row["lang"], row["text"], (number[row["photo_id"]],))
        for row in read_tsv(folder / "captions.tsv")
        if row["photo_id"] in number and row["lang"] in LANGUAGES
    ]
    return Task("flickr8k", [folder / row["file"] for row in photos], queries)


def load_stamps(root: Path, *, best: int | None = BEST_COVERED) -> Task:
    """Load 296 cut-outs; each different label of a locale is a query for all that have it.

    Args:
        root: Folder of the datasets.
        best: How many locales, those whose labels cover most photos; None for all.
    """
    folder = root / "stamps"
    photos = list(read_tsv(folder / "photos.tsv"))
    number = {row["photo_id"]: n for n, row in enumerate(photos)}
    answers: dict[str, list[int]] = defaultdict(list)
    for row in read_tsv(folder / "qrels.tsv"):
        answers[row["query_id"]].append(number[row["photo_id"]])
    queries = [
        Query(row["lang"], row["text"], tuple(answers[row["query_id"]]))
        for row in read_tsv(folder / "queries.tsv")
    ]
    covered: dict[str, set[int]] = defaultdict(set)
    for query in queries:
        covered[query.language].update(query.answers)
    by_cover = sorted(covered, key=lambda language: (-len(covered[language]), language))
    chosen = by_cover[:best]
    in_best = [query for query in queries if query.language in chosen]
    return Task("stamps", [folder / row["file"] for row in photos], in_best)


def folder_of(dataset: str) -> str:
    """Return the name of the folder that holds the photos of a dataset."""
    return dataset.removesuffix("-more")


def load_more_languages(root: Path) -> Task:
    """Load the test photos of Flickr8k with the captions in languages that came later."""
    folder = root / "flickr8k"
    task = load_flickr8k(root)
    number = {path.stem: n for n, path in enumerate(task.photos)}
    queries = [
        Query(row["lang"], row["text"], (number[row["photo_id"]],))
        for row in read_tsv(folder / "captions_more.tsv")
        if row["photo_id"] in number
    ]
    return Task("flickr8k-more", task.photos, queries)


def load_judge(name: str, root: Path) -> Task:
    """Load a judge's photos; every caption is a query, in languages that have at least FEWEST."""
    photos = list(read_tsv(root / name / "photos.tsv"))
    number = {row["photo_id"]: n for n, row in enumerate(photos)}
    queries = [
        Query(row["lang"], row["text"], (number[row["photo_id"]],))
        for row in read_tsv(root / name / "captions.tsv")
        if row["photo_id"] in number
    ]
    counts = Counter(query.language for query in queries)
    kept = [query for query in queries if counts[query.language] >= FEWEST]
    return Task(name, [root / name / row["file"] for row in photos], kept)


def open_rgb(paths: Sequence[Path]) -> list[Image.Image]:
    """Open photos as RGB pictures."""
    pictures = []
    for path in paths:
        with Image.open(path) as picture:
            pictures.append(picture.convert("RGB"))
    return pictures


LOADERS: dict[str, Callable[[Path], Task]] = {
    "flickr8k": load_flickr8k,
    "flickr8k-more": load_more_languages,
    "coco-judge": partial(load_judge, "coco-judge"),
    "web-judge": partial(load_judge, "web-judge"),
    "stamps": load_stamps,
}


def rank_answers(texts: Rows, photos: Rows, queries: list[Query]) -> NDArray[np.int64]:
    """Rank each query's best answer, (n_queries,) from 0; it comes last among equal scores."""
    best_ranks = np.empty(len(queries), dtype=np.int64)
    for start in range(0, len(queries), 1024):
        scores = texts[start : start + 1024] @ photos.T
        for offset, row in enumerate(scores):
            answers = list(queries[start + offset].answers)
            others = np.ones(len(row), dtype=bool)
            others[answers] = False
            best_ranks[start + offset] = int((row[others] >= row[answers].max()).sum())
    return best_ranks


def with_interval(
    hits: NDArray[np.bool_] | NDArray[np.float64], groups: NDArray[np.int64]
) -> dict[str, float | list[float]]:
    """Return the mean in percent with a 95 % bootstrap interval over groups of queries."""
    rng = np.random.default_rng(0)
    sums, sizes = np.bincount(groups, weights=hits), np.bincount(groups)
    drawn = rng.integers(len(sums), size=(RESAMPLES, len(sums)))
    means = 100 * sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return {
        "mean": round(100 * float(hits.mean()), 2),
        "interval": [round(float(low), 2), round(float(high), 2)],
    }
