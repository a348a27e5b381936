"""How often the first label of a generated description is right: the figures behind its wording.

    SEARCHLAB_DATASETS=... python -m benchmarks.descriptions.bench_descriptions
    python -m benchmarks.descriptions.bench_descriptions --smoke --out "$(mktemp -d)"

It uses training photos of Flickr8k, never its test photos. A label counts as right when its last
word stands in one of the photo's English captions, for a breed of dog also when they mention a dog.
A phrase counts as right when two thirds of its words stand there, words for persons left out, as
captions have many of them. Writes results/descriptions/<dataset>/mini.json with the share that is
right by the cosine of label and photo, and skips what is on record (--force measures again).
--smoke takes 16 bundled photos.

It also measures whether a description finds its photo: the test photos of Flickr8k are ranked for
an English caption of each by the words of their generated descriptions alone.
"""

from __future__ import annotations

import csv
import itertools
import json
import random
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from benchmarks.common.recording import bench_parser, on_record, record
from searchlab.evaluation.datasets import bundled_root, external_root
from searchlab.evaluation.provenance.manifest import make_manifest, models_of
from searchlab.models.captions import CaptionsEmbedder
from searchlab.models.mini.embedder import MiniEmbedder
from searchlab.photos.descriptions import SURE, UNSURE, describe
from searchlab.photos.images.decode import as_rgb
from searchlab.photos.photo import orientation_of

DOGS = (
    *("hound", "terrier", "retriever", "spaniel", "husky", "collie", "shepherd", "pointer"),
    *("setter", "poodle", "boxer", "pug", "corgi", "malamute", "vizsla", "ridgeback", "mastiff"),
    *("schnauzer", "whippet", "kelpie", "dog"),
)


PERSONS = ("person", "people", "man", "woman", "men", "women", "child", "children")
SMALL = ("a", "an", "the", "of", "in", "on", "at", "to", "with", "its", "and", "by", "from", "over")


def is_right(label: str, text: str) -> bool:
    """Say whether a label is right by what people wrote about the photo, in lower case."""
    words = label.lower()
    content_words = [word for word in words.split() if word not in PERSONS and word not in SMALL]
    if len(content_words) < len(words.split()) and content_words:
        # Only stems are compared, as a caption may say "runs" where the phrase says "running".
        return sum(word[:4] in text for word in content_words) >= 2 * len(content_words) / 3
    dog = any(dog in words for dog in DOGS) and ("dog" in text or "pupp" in text)
    return dog or words.split()[-1].rstrip("s") in text


def read_captioned(dataset: str, count: int, seed: int) -> list[tuple[Path, str]]:
    """Read photos with what people wrote about them, in lower case."""
    if dataset == "demo":
        lines = (bundled_root() / "demo" / "photos.jsonl").read_text(encoding="utf-8").splitlines()
        records = [json.loads(line) for line in lines[:count]]
        folder = bundled_root() / "demo"
        return [(folder / r["file"], r["source_description"].lower()) for r in records]
    root = external_root()
    if root is None:
        sys.exit("set SEARCHLAB_DATASETS to a folder that holds flickr8k-train")
    folder = root / "flickr8k-train"
    texts: dict[str, str] = defaultdict(str)
    with (folder / "captions.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            if row["lang"] == "en":
                texts[row["photo_id"]] += f" {row['text'].lower()}"
    with (folder / "photos.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    sample = random.Random(seed).sample(rows, count)
    return [(folder / row["file"], texts[row["photo_id"]]) for row in sample]


def measure_retrieval(model: MiniEmbedder) -> dict[str, float]:
    """Measure the share of test captions that find their photo by generated descriptions alone."""
    root = external_root()
    if root is None:
        sys.exit("set SEARCHLAB_DATASETS to a folder that holds flickr8k")
    folder = root / "flickr8k"
    with (folder / "photos.tsv").open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        photos = {row["photo_id"]: folder / row["file"] for row in rows if row["split"] == "test"}
    with (folder / "captions.tsv").open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        caption_of = {
            row["photo_id"]: row["text"]
            for row in rows
            if row["photo_id"] in photos and row["lang"] == "en"
        }
    descriptions = []
    files = list(photos.values())
    for start in range(0, len(files), 16):
        pictures = [as_rgb(file) for file in files[start : start + 16]]
        for tags, picture in zip(
            model.tags(model.encode_images(pictures), 4), pictures, strict=True
        ):
            shape = orientation_of(*picture.size)
            descriptions.append(describe(tags, colors=[], orientation=shape)[0])
    embedder = CaptionsEmbedder()
    captions = embedder.encode_texts([caption_of[photo] for photo in photos])
    scores = captions @ embedder.encode_texts(descriptions).T
    better = (scores > np.diag(scores)[:, np.newaxis]).sum(axis=1)
    same = (scores == np.diag(scores)[:, np.newaxis]).sum(axis=1) - 1
    ranks = better + same / 2  # Photos with the same description share the mean of their ranks.
    return {f"success@{k}": float((ranks < k).mean()) for k in (1, 10, 100)}


def main() -> None:
    """Measure and write."""
    parser = bench_parser(__doc__, dataset="flickr8k-train", datasets=("demo", "flickr8k-train"))
    parser.add_argument("--photos", type=int, default=1000, help="photos that are described")
    options = parser.parse_args()
    if options.smoke:
        options.dataset, options.photos = "demo", 16
    model = MiniEmbedder()
    if on_record(options, "descriptions", model.name) is not None:
        return
    photos = read_captioned(options.dataset, options.photos, options.seed)
    judged = []
    for start in range(0, len(photos), 16):
        batch = photos[start : start + 16]
        tags = model.tags(model.encode_images([as_rgb(file) for file, _ in batch]), 1)
        judged += [
            (t[0][1], is_right(t[0][0], text)) for t, (_, text) in zip(tags, batch, strict=True)
        ]
    cosines, hits = np.array([c for c, _ in judged]), np.array([hit for _, hit in judged])
    edges = [*np.arange(0.2, 0.9, 0.05).round(2).tolist(), 1.0]
    bins = []
    for low, high in itertools.pairwise(edges):
        in_bin = (cosines >= low) & (cosines < high)
        if in_bin.any():
            bins.append({"from": low, "n": int(in_bin.sum()), "right": float(hits[in_bin].mean())})
    stated, hedged = cosines >= SURE, (cosines >= UNSURE) & (cosines < SURE)
    metrics = {
        "stated from": SURE,
        "stated": int(stated.sum()),
        "stated.right": float(hits[stated].mean()) if stated.any() else 0.0,
        "hedged from": UNSURE,
        "hedged": int(hedged.sum()),
        "hedged.right": float(hits[hedged].mean()) if hedged.any() else 0.0,
    }
    if options.dataset != "demo":
        retrieval = measure_retrieval(model)
        metrics |= {f"finds its photo.{name}": value for name, value in retrieval.items()}
    for name, value in metrics.items():
        print(f"{name:<28}{value:>10.3f}")
    values = {
        "parameters": {"photos": options.photos},
        "metrics": metrics,
        "bins": bins,
        "manifest": make_manifest(
            "descriptions", models=models_of("mini", "captions"), seed=options.seed
        ),
    }
    record(options, "descriptions", model.name, values)


if __name__ == "__main__":
    main()
