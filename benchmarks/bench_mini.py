"""How well and how fast `mini` finds photos by text, language by language.

    python benchmarks/bench_mini.py --dataset flickr8k stamps
    python benchmarks/bench_mini.py --smoke --out "$(mktemp -d)"

Writes `results/mini/<dataset>.json` (`--out` for another folder), or nothing where the file is
there already and `--force` is not given. The datasets are looked for in the folder that the
environment variable `SEARCHLAB_DATASETS` names. `--teacher PACKAGES` measures ConSE with the real
teacher beside it, on a sample of the queries, from the packages that `searchlab.training.sources`
names.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from searchlab.models.mini import MiniEmbedder

RESULTS = Path(__file__).resolve().parents[1] / "results" / "mini"
CUTOFFS = {"flickr8k": (1, 5, 10), "stamps": (1, 5)}
LANGUAGES = ("en", "zh", "ar", "de", "fr", "cs")
BEST_COVERED = 60
RESAMPLES = 1000
TEACHER_QUERIES = 1200

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
    """Rows of a tab-separated file without quoting."""
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)


def load_flickr8k(root: Path) -> Task:
    """The 1,000 test photos; every caption is a query, answered by its own photo."""
    folder = root / "flickr8k"
    photos = [row for row in read_tsv(folder / "photos.tsv") if row["split"] == "test"]
    number = {row["photo_id"]: n for n, row in enumerate(photos)}
    queries = [
        Query(row["lang"], row["text"], (number[row["photo_id"]],))
        for row in read_tsv(folder / "captions.tsv")
        if row["photo_id"] in number and row["lang"] in LANGUAGES
    ]
    return Task("flickr8k", [folder / row["file"] for row in photos], queries)


def load_stamps(root: Path) -> Task:
    """296 cut-outs; every distinct label of a locale is a query, answered by all that bear it."""
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
    best = sorted(covered, key=lambda language: (-len(covered[language]), language))[:BEST_COVERED]
    kept = [query for query in queries if query.language in best]
    return Task("stamps", [folder / row["file"] for row in photos], kept)


LOADERS: dict[str, Callable[[Path], Task]] = {"flickr8k": load_flickr8k, "stamps": load_stamps}


def ranks(texts: Rows, photos: Rows, queries: list[Query]) -> NDArray[np.int64]:
    """Rank from 0 of each query's best answer; the answer comes last among equal scores."""
    found = np.empty(len(queries), dtype=np.int64)
    for start in range(0, len(queries), 1024):
        scores = texts[start : start + 1024] @ photos.T
        for offset, row in enumerate(scores):
            answers = list(queries[start + offset].answers)
            others = np.ones(len(row), dtype=bool)
            others[answers] = False
            found[start + offset] = int((row[others] >= row[answers].max()).sum())
    return found


def with_interval(
    hits: NDArray[np.bool_], groups: NDArray[np.int64]
) -> dict[str, float | list[float]]:
    """Mean in percent with a 95 % bootstrap interval; the queries of one photo are one group."""
    rng = np.random.default_rng(0)
    sums, sizes = np.bincount(groups, weights=hits), np.bincount(groups)
    drawn = rng.integers(len(sums), size=(RESAMPLES, len(sums)))
    means = 100 * sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return {
        "mean": round(100 * float(hits.mean()), 2),
        "interval": [round(float(low), 2), round(float(high), 2)],
    }


def score(task: Task, texts: Rows, photos: Rows, queries: list[Query]) -> dict[str, object]:
    """Success@k of each language, and the mean over languages."""
    found = ranks(texts, photos, queries)
    languages = np.array([query.language for query in queries])
    first = np.array([query.answers[0] for query in queries])
    table: dict[str, object] = {}
    for language in sorted(set(languages.tolist())):
        of = languages == language
        groups = np.unique(first[of], return_inverse=True)[1]
        table[language] = {"queries": int(of.sum())} | {
            f"success@{k}": with_interval(found[of] < k, groups) for k in CUTOFFS[task.name]
        }
    means: dict[str, object] = {"languages": len(table)}
    groups = np.unique(first, return_inverse=True)[1]
    for k in CUTOFFS[task.name]:
        per = [float((found[languages == name] < k).mean()) for name in table]
        means[f"success@{k}"] = {
            "mean over languages": round(100 * float(np.mean(per)), 2),
            "over all queries": with_interval(found < k, groups),
        }
    return {"mean": means, "by_language": table}


def conse(task: Task, queries: list[Query], packages: Path, cache: Path) -> dict[str, object]:
    """ConSE with the real teacher, on these queries."""
    import torch

    from searchlab.training.photo_tower import load_tower, mend_torchvision, read_photos
    from searchlab.training.teacher import Teacher

    mend_torchvision()
    from open_clip import IMAGENET_CLASSNAMES

    torch.set_num_threads(2)
    cache.mkdir(parents=True, exist_ok=True)
    photos = {path.stem: path for path in task.photos}
    read = read_photos(load_tower(packages), photos, cache / f"{task.name}.npz")
    teacher = Teacher(packages, cache / "teacher")
    classes = teacher.encode([f"a photo of a {name}" for name in IMAGENET_CLASSNAMES])
    mean = classes.mean(axis=0)
    exponent = np.exp(read.logits - read.logits.max(axis=1, keepdims=True))
    seen = exponent / exponent.sum(axis=1, keepdims=True) @ (classes - mean)
    seen /= np.linalg.norm(seen, axis=1, keepdims=True)
    texts = teacher.encode([query.text for query in queries]) - mean
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)
    return score(task, texts, seen, queries)


def timings(model: MiniEmbedder, texts: list[str], pictures: list[Image.Image]) -> dict[str, float]:
    """Median milliseconds of one query and of one photo, each alone, after a first one."""
    model.encode_texts(texts[:1])
    model.encode_images(pictures[:1])

    def clock(call: Callable[[], object]) -> float:
        started = time.perf_counter()
        call()
        return 1000 * (time.perf_counter() - started)

    return {
        "text_ms": round(
            float(np.median([clock(lambda t=t: model.encode_texts([t])) for t in texts])), 4
        ),
        "image_ms": round(
            float(np.median([clock(lambda p=p: model.encode_images([p])) for p in pictures])), 2
        ),
    }


def measure(task: Task, args: argparse.Namespace) -> dict[str, object]:
    """Everything that is written for one dataset."""
    model = MiniEmbedder(threads=args.threads)
    pictures = [Image.open(path).convert("RGB") for path in task.photos]
    photos = model.encode_images(pictures)
    texts = model.encode_texts([query.text for query in task.queries])
    record: dict[str, object] = {
        "schema": 1,
        "benchmark": "mini",
        "dataset": task.name,
        "model_id": model.model_id,
        "photos": len(pictures),
        "queries": len(task.queries),
        "metrics": score(task, texts, photos, task.queries),
        "speed": timings(model, [q.text for q in task.queries[:200]], pictures[:30])
        | {"threads": args.threads},
        "bytes": {
            path.name: path.stat().st_size
            for path in sorted(model.folder.iterdir())
            if path.suffix in (".npy", ".onnx", ".txt")
        },
        "environment": {
            "date": datetime.now(UTC).date().isoformat(),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores",
            "python": platform.python_version(),
            "numpy": np.__version__,
        },
    }
    if args.teacher:
        rng = np.random.default_rng(0)
        chosen = rng.permutation(len(task.queries))[:TEACHER_QUERIES]
        sample = [task.queries[number] for number in chosen]
        record["same_sample"] = {
            "queries": len(sample),
            "mini": score(task, texts[chosen], photos, sample)["mean"],
            "ConSE with the teacher": conse(task, sample, args.teacher, args.cache)["mean"],
        }
    return record


def main() -> None:
    """Measure the datasets asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--dataset", nargs="+", choices=sorted(LOADERS), default=sorted(LOADERS))
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--force", action="store_true", help="measure again what is there")
    parser.add_argument("--smoke", action="store_true", help="timings on drawn pictures only")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--teacher", type=Path, help="folder with the teacher's packages")
    parser.add_argument("--cache", type=Path, default=Path("cache"), help="the teacher's answers")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    if args.smoke:
        model = MiniEmbedder(threads=args.threads)
        pictures = [Image.new("RGB", (320, 320), color) for color in ("red", "navy", "olive")]
        speed = timings(model, ["a dog", "eine Katze"], pictures)
        (args.out / "smoke.json").write_text(json.dumps({"speed": speed}))
        print(speed)
        return
    root = os.environ.get("SEARCHLAB_DATASETS")
    for name in args.dataset:
        path = args.out / f"{name}.json"
        if path.exists() and not args.force:
            print(f"{path} is there; --force measures again")
            continue
        if not root or not (Path(root) / name).is_dir():
            print(f"{name} needs SEARCHLAB_DATASETS, a folder that holds {name}; left out")
            continue
        record = measure(LOADERS[name](Path(root)), args)
        path.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        print(name, json.dumps(record["metrics"]["mean"]))


if __name__ == "__main__":
    main()
