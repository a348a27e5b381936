"""How well and how fast `mini` finds photos by text, language by language.

    python -m benchmarks.mini.bench_mini --dataset flickr8k
    python -m benchmarks.mini.bench_mini --dataset stamps
    python -m benchmarks.mini.bench_mini --dataset coco-judge
    python -m benchmarks.mini.bench_mini --smoke --out "$(mktemp -d)"

Writes results/mini/<dataset>/shipped.json, and skips what is on record (--force measures again).
`metrics` has `recall@10.en` (`success@` where a query has several answers), `recall@10.mean` over
languages, `palette.recall@10.en` and the like, as fractions. The environment variable
`SEARCHLAB_DATASETS` names the folder of the datasets. `--teacher PACKAGES` also measures ConSE with
the real teachers, from the packages that `searchlab.training.mini.materials` names;
`--keep-teachers` keeps those figures of the record that it replaces. `--artefacts FOLDER` measures
another build of `mini` and writes rebuilt.json.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from benchmarks.common.recording import bench_parser, on_record, record
from benchmarks.mini.tasks import (
    LOADERS,
    Query,
    Rows,
    Task,
    folder_of,
    rank_answers,
    read_tsv,
    with_interval,
)
from benchmarks.mini.teachers import add_options, describe, read_kept
from searchlab.errors import NotFoundError
from searchlab.evaluation.datasets import external_root
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.models.mini.artefacts import RECORD_FILE
from searchlab.models.mini.embedder import MINI_DATA, MiniEmbedder

CUTOFFS = dict.fromkeys(LOADERS, (1, 5, 10)) | {"stamps": (1, 5)}


def score(task: Task, texts: Rows, photos: Rows, queries: list[Query]) -> dict[str, object]:
    """Measure success@k of each language, and the mean over languages."""
    ranks_of = rank_answers(texts, photos, queries)
    languages = np.array([query.language for query in queries])
    first = np.array([query.answers[0] for query in queries])
    table: dict[str, object] = {}
    for language in sorted(set(languages.tolist())):
        in_language = languages == language
        groups = np.unique(first[in_language], return_inverse=True)[1]
        table[language] = {"queries": int(in_language.sum())} | {
            f"success@{k}": with_interval(ranks_of[in_language] < k, groups)
            for k in CUTOFFS[task.name]
        }
    means: dict[str, object] = {"languages": len(table)}
    groups = np.unique(first, return_inverse=True)[1]
    for k in CUTOFFS[task.name]:
        shares = [float((ranks_of[languages == name] < k).mean()) for name in table]
        means[f"success@{k}"] = {
            "mean over languages": round(100 * float(np.mean(shares)), 2),
            "over all queries": with_interval(ranks_of < k, groups),
        }
    return {"mean": means, "by_language": table}


def measure_graded(folder: Path, model: MiniEmbedder, photos: Rows) -> dict[str, object]:
    """Measure nDCG@10 by language on the graded judgments of test photos; gain is the grade."""
    test = [row["photo_id"] for row in read_tsv(folder / "photos.tsv") if row["split"] == "test"]
    number = {photo: n for n, photo in enumerate(test)}
    grades: dict[str, NDArray[np.float64]] = defaultdict(lambda: np.zeros(len(test)))
    for row in read_tsv(folder / "graded_qrels.tsv"):
        if row["photo_id"] in number:
            grades[row["judged_as"]][number[row["photo_id"]]] = float(row["grade"])
    queries = list(read_tsv(folder / "graded_queries.tsv"))
    scores = model.encode_texts([query["text"] for query in queries]) @ photos.T
    discounts = 1 / np.log2(np.arange(2, 12))
    gains: dict[str, list[float]] = defaultdict(list)
    origins: dict[str, list[int]] = defaultdict(list)
    for query, row in zip(queries, scores, strict=True):
        grade = grades[query["judged_as"]]
        best = np.sort(grade)[::-1][:10] @ discounts
        if best:
            gain = grade[np.argsort(-row, kind="stable")[:10]] @ discounts
            gains[query["lang"]].append(float(gain / best))
            origins[query["lang"]].append(number[query["origin_photo_id"]])
    return {
        language: {"queries": len(values)}
        | with_interval(np.array(values), np.unique(origins[language], return_inverse=True)[1])
        for language, values in sorted(gains.items())
    }


def score_conse(task: Task, queries: list[Query], args: argparse.Namespace) -> dict[str, object]:
    """Score ConSE with the real teachers on these queries; MiniLM only reads English."""
    import torch

    from searchlab.training.mini.encoders import read_minilm
    from searchlab.training.mini.materials import ENGLISH_TEACHER, locate
    from searchlab.training.mini.photo_tower import load_tower, make_reader
    from searchlab.training.mini.teacher import Teacher
    from searchlab.training.mini.views import read_views

    tower = load_tower(args.teacher)
    from open_clip import IMAGENET_CLASSNAMES

    torch.set_num_threads(args.threads)
    photos = {path.stem: path for path in task.photos}
    (read,) = read_views(make_reader(tower), photos, args.cache / task.name, 0)
    minilm = read_minilm(locate(ENGLISH_TEACHER, args.teacher).parent)
    e5 = Teacher(args.teacher, args.cache)
    exponent = np.exp(read.logits - read.logits.max(axis=1, keepdims=True))
    weights = exponent / exponent.sum(axis=1, keepdims=True)
    english = [query for query in queries if query.language == "en"]
    scores = {}
    sides = [("ConSE e5", e5.encode, queries)]
    if english:
        sides.append(("ConSE MiniLM, English", minilm.encode, english))
    for name, encode, questions in sides:
        classes = encode([f"a photo of a {label}" for label in IMAGENET_CLASSNAMES])
        mean = classes.mean(axis=0)
        photo_rows = weights @ (classes - mean)
        photo_rows /= np.linalg.norm(photo_rows, axis=1, keepdims=True)
        texts = encode([query.text for query in questions]) - mean
        texts /= np.linalg.norm(texts, axis=1, keepdims=True)
        scores[name] = score(task, texts, photo_rows, questions)
    return scores


COLD = """
import sys, pathlib
from searchlab.models.mini.embedder import MiniEmbedder
MiniEmbedder(pathlib.Path(sys.argv[1])).encode_texts(["a dog"])
"""


def time_model(
    model: MiniEmbedder, texts: list[str], pictures: list[Image.Image]
) -> dict[str, float]:
    """Measure the median milliseconds of one query and of one photo, each alone and warmed up.

    `first_text_ms` is the time of a whole process that embeds one query.
    """
    model.encode_texts(texts[:1])
    model.encode_images(pictures[:1])

    def run_fresh_process() -> None:
        subprocess.run([sys.executable, "-c", COLD, model.folder], check=True)

    def time_ms(call: Callable[[], object]) -> float:
        started = time.perf_counter()
        call()
        return 1000 * (time.perf_counter() - started)

    return {
        "text_ms": round(
            float(np.median([time_ms(lambda t=t: model.encode_texts([t])) for t in texts])), 4
        ),
        "image_ms": round(
            float(np.median([time_ms(lambda p=p: model.encode_images([p])) for p in pictures])), 2
        ),
        "first_text_ms": round(float(np.median([time_ms(run_fresh_process) for _ in range(5)])), 1),
    }


def score_other_model(name: str, task: Task, pictures: list[Image.Image]) -> dict[str, object]:
    """Score another model of the registry on the same queries."""
    from searchlab.models import load_model

    model = load_model(name)
    texts = model.encode_texts([query.text for query in task.queries])
    return score(task, texts, model.encode_images(pictures), task.queries)


def keep_conse(kept: dict[str, Any], queries: list[Query]) -> dict[str, object]:
    """Take what `score_conse` measures from a record of the same queries."""
    sample = kept.get("same_sample", {})
    if sample.get("queries") != len(queries):
        sys.exit(f"--keep-teachers must find figures of {len(queries)} queries, got others")
    return {name: table for name, table in sample.items() if name not in ("queries", "mini")}


def measure(
    task: Task,
    model: MiniEmbedder,
    args: argparse.Namespace,
    kept: dict[str, Any] | None = None,
) -> dict[str, object]:
    """Measure everything that is recorded for one dataset.

    Args:
        task: Its photos and queries.
        model: What is measured.
        args: Options of the benchmark.
        kept: A record of the same data set whose teachers' figures are kept.
    """
    pictures = [Image.open(path).convert("RGB") for path in task.photos]
    photos = model.encode_images(pictures)
    texts = model.encode_texts([query.text for query in task.queries])
    measured: dict[str, object] = {
        "model_id": model.model_id,
        "photos": len(pictures),
        "queries": len(task.queries),
        "scores": score(task, texts, photos, task.queries),
        "speed": time_model(model, [q.text for q in task.queries[:200]], pictures[:30])
        | {"threads": args.threads},
        "bytes": {
            path.name: path.stat().st_size
            for path in sorted(model.folder.iterdir())
            if path.suffix in (".npy", ".npz", ".onnx", ".txt")
        },
    }
    if task.name == "flickr8k":
        measured["graded nDCG@10"] = measure_graded(task.photos[0].parents[1], model, photos)
    for name in args.beside:
        measured.setdefault("beside", {})[name] = score_other_model(name, task, pictures)
    if args.teacher or kept is not None:
        rng = np.random.default_rng(0)
        numbers = rng.permutation(len(task.queries))[: args.teacher_queries]
        sample = [task.queries[number] for number in numbers]
        measured["same_sample"] = {
            "queries": len(sample),
            "mini": score(task, texts[numbers], photos, sample),
            **(score_conse(task, sample, args) if kept is None else keep_conse(kept, sample)),
        }
    measured["compared"] = compare_scores(measured)
    return measured


def compare_scores(measured: dict[str, Any]) -> dict[str, dict[str, object]]:
    """Put the models of one measurement side by side, by language, at the largest cutoff."""
    sample = measured.get("same_sample") or {"mini": measured["scores"]}
    tables = {name: table for name, table in sample.items() if name != "queries"}
    if measured["queries"] == sample.get("queries", measured["queries"]):
        tables |= measured.get("beside", {})
    rows: dict[str, dict[str, object]] = {}
    for name, table in tables.items():
        for language, scores in table["by_language"].items():
            row = rows.setdefault(language, {"queries": scores["queries"]})
            row[name] = scores[list(scores)[-1]]
    return rows


def metrics_of(task: Task, measured: dict[str, object]) -> dict[str, float]:
    """Give names to the figures for prose, as fractions; see the docstring of this file."""
    kind = "recall" if all(len(query.answers) == 1 for query in task.queries) else "success"
    metrics: dict[str, float] = dict(measured["speed"])
    tables = {"": measured["scores"], **measured.get("beside", {})}
    sample = measured.get("same_sample", {})
    tables |= {f"same sample.{name}": table for name, table in sample.items() if name != "queries"}
    for name, table in tables.items():
        head = f"{name}." if name else ""
        for k in CUTOFFS[task.name]:
            figure = f"{head}{kind}@{k}"
            mean = table["mean"][f"success@{k}"]["mean over languages"]
            metrics[f"{figure}.mean"] = round(mean / 100, 4)
            for language, scores in table["by_language"].items():
                metrics[f"{figure}.{language}"] = round(scores[f"success@{k}"]["mean"] / 100, 4)
    for language, scores in measured.get("graded nDCG@10", {}).items():
        metrics[f"ndcg@10.{language}"] = round(scores["mean"] / 100, 4)
    return metrics


def recompute(measurement: dict[str, Any]) -> dict[str, Any]:
    """Score the model that ships, and the models beside it, again; without times.

    Raises:
        NotFoundError: It is of another build, or SEARCHLAB_DATASETS does not hold the photos.
    """
    dataset = str(measurement["dataset"])
    if measurement["name"] != "shipped":
        msg = f"only the model that ships is scored again, got {measurement['name']!r}"
        raise NotFoundError(msg)
    root = external_root()
    if root is None or not (root / folder_of(dataset)).is_dir():
        msg = f"SEARCHLAB_DATASETS must name a folder that holds {dataset}, got {root}"
        raise NotFoundError(msg)
    task, model = LOADERS[dataset](root), MiniEmbedder(MINI_DATA, threads=1)
    pictures = [Image.open(path).convert("RGB") for path in task.photos]
    photos = model.encode_images(pictures)
    texts = model.encode_texts([query.text for query in task.queries])
    again: dict[str, Any] = {
        "model_id": model.model_id,
        "photos": len(pictures),
        "queries": len(task.queries),
        "scores": score(task, texts, photos, task.queries),
        "beside": {
            name: score_other_model(name, task, pictures)
            for name in measurement["parameters"]["beside"]
        },
    }
    if dataset == "flickr8k":
        again["graded nDCG@10"] = measure_graded(task.photos[0].parents[1], model, photos)
    return again | {"metrics": metrics_of(task, again | {"speed": {}})}


def main() -> None:
    """Measure a dataset."""
    parser = bench_parser(__doc__, dataset="flickr8k", datasets=("drawn", *sorted(LOADERS)))
    add_options(parser)
    parser.add_argument("--teacher-queries", type=int, default=30_000, help="most queries of it")
    parser.add_argument("--beside", nargs="*", default=["palette"], help="other models to measure")
    parser.add_argument("--cache", type=Path, default=Path("cache"), help="folder of its vectors")
    parser.add_argument("--artefacts", type=Path, help="folder of another build of mini")
    args = parser.parse_args()
    if args.smoke:
        args.dataset = "drawn"
    if args.artefacts and not (args.artefacts / RECORD_FILE).is_file():
        sys.exit(f"--artefacts must be a folder with {RECORD_FILE}, got {args.artefacts}")
    name = "rebuilt" if args.artefacts else "shipped"
    if on_record(args, "mini", name) is not None:
        return
    model = MiniEmbedder(args.artefacts or MINI_DATA, threads=args.threads)
    parameters: dict[str, Any] = {"beside": args.beside}
    if args.dataset == "drawn":
        pictures = [Image.new("RGB", (320, 320), color) for color in ("red", "navy", "olive")]
        metrics, measured = time_model(model, ["a dog", "eine Katze"], pictures), {}
    else:
        root = Path(os.environ.get("SEARCHLAB_DATASETS", ""))
        if not (root / folder_of(args.dataset)).is_dir():
            sys.exit(f"SEARCHLAB_DATASETS must name a folder that holds {args.dataset}, got {root}")
        task = LOADERS[args.dataset](root)
        kept = read_kept(args, "mini", name) if args.keep_teachers else None
        if kept is not None:
            parameters["teachers"] = describe(kept)
        measured = measure(task, model, args, kept)
        metrics = metrics_of(task, measured)
    for figure, value in metrics.items():
        if figure.endswith((".mean", ".en", "_ms")):
            print(f"{figure:<40}{value:>10.4f}")
    spec = f"mini, {name}" if args.artefacts else "mini"
    measured_model = {"spec": spec, "model_id": model.model_id, **model.fingerprints()}
    manifest = make_manifest("mini", models=[measured_model], seed=args.seed, threads=args.threads)
    values = {"parameters": parameters, "metrics": metrics, **measured}
    record(args, "mini", name, values | {"manifest": manifest})


if __name__ == "__main__":
    main()
