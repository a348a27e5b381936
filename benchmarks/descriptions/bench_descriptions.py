"""How often generated descriptions are right, and whether they find their photos.

    SEARCHLAB_DATASETS=... python -m benchmarks.descriptions.bench_descriptions --dataset coco-judge
    python -m benchmarks.descriptions.bench_descriptions --smoke --out "$(mktemp -d)"

A label counts as right when its last word stands in one of the photo's English captions, for a
breed of dog also when they mention a dog. A phrase counts as right when two thirds of its words
stand there, words for persons left out, as captions have many of them. A kind is right when a word
of `SHOWN_BY`, or the last word of one of its labels, stands there. People do not write down all
that a photo shows, so these are lower bounds, and lower where a photo has one caption.

It also measures whether a description finds its photo: the photos of the data set are ranked for
the first English caption of each by the words of their generated descriptions alone.

From which values on something is stated was chosen on training photos (`flickr8k-train`,
`web-photos`, which flatter the model), never on the judges `flickr8k` and `coco-judge`. Writes
results/descriptions/<dataset>/mini.json: what is stated and the share of it that is right, `bins`
by the cosine of the first label, and skips what is on record (--force measures again). --smoke
takes 16 bundled photos.
"""

from __future__ import annotations

import itertools
import json
import random
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common.again import data_wanted
from benchmarks.common.recording import bench_parser, on_record, record
from benchmarks.mini.tasks import read_tsv
from searchlab.evaluation.datasets import bundled_root, external_root
from searchlab.evaluation.provenance.manifest import make_manifest, models_of
from searchlab.models.captions import CaptionsEmbedder
from searchlab.models.mini.embedder import MiniEmbedder
from searchlab.models.mini.labels import read_labels
from searchlab.photos.descriptions import SURE, SURE_KIND, Sight, describe, name_subject
from searchlab.photos.images.decode import as_rgb
from searchlab.photos.photo import orientation_of

DATASETS = ("demo", "flickr8k-train", "web-photos", "flickr8k", "coco-judge")
DOGS = (
    *("hound", "terrier", "retriever", "spaniel", "husky", "collie", "shepherd", "pointer"),
    *("setter", "poodle", "boxer", "pug", "corgi", "malamute", "vizsla", "ridgeback", "mastiff"),
    *("schnauzer", "whippet", "kelpie", "dog"),
)
PERSONS = ("person", "people", "man", "woman", "men", "women", "child", "children")
SMALL = ("a", "an", "the", "of", "in", "on", "at", "to", "with", "its", "and", "by", "from", "over")
SHOWN_BY = {
    "people": "person people man woman men women child kid boy girl baby player couple guy lad",
    "children": "child kid boy girl baby toddler",
    "people doing sport": "play jump ski surf bik rid run rac climb skat ball snowboard game trick",
    "an animal": "animal dog pupp cat kitten bird horse cow sheep goat deer duck",
    "a dog": "dog pupp",
    "a cat": "cat kitten",
    "a bird": "bird",
    "a hoofed animal": "horse cow sheep goat deer cattle",
    "food": "food plate meal dish fruit salad cook eat sandwich vegetable meat rice",
    "a building": "building house home",
    "a vehicle": "vehicle car truck bus train bike motorcycle bicycle van suv",
    "a car": "car suv sedan",
    "a boat or ship": "boat ship kayak",
    "a town": "city street town building road",
    "a landscape": "mountain field forest tree grass landscape hill park road path snow wood",
    "a shore": "beach sea ocean lake river water shore coast",
    "the sky": "sky sun cloud star",
    "a room": "room bedroom kitchen office bed couch sofa",
    "flowers": "flower rose",
    "furniture": "furniture chair table desk bed couch sofa shelf cabinet stool",
    "clothing": "shirt dress jacket jeans suit coat pants wear outfit clothes skirt sweater",
    "kitchenware": "pot pan kettle cup bowl",
}
"""Beginnings of words by which a caption shows that a photo is of a kind, with those of labels."""


class Captioned(NamedTuple):
    """A photo, with what people wrote about it."""

    file: Path
    captions: list[str]


def is_right(label: str, text: str) -> bool:
    """Say whether a label is right by what people wrote about the photo, in lower case."""
    words = label.lower()
    content_words = [word for word in words.split() if word not in PERSONS and word not in SMALL]
    if len(content_words) < len(words.split()) and content_words:
        # Only stems are compared, as a caption may say "runs" where the phrase says "running".
        return sum(word[:4] in text for word in content_words) >= 2 * len(content_words) / 3
    dog = any(dog in words for dog in DOGS) and ("dog" in text or "pupp" in text)
    return dog or words.split()[-1].rstrip("s") in text


def kind_patterns(model: MiniEmbedder) -> dict[str, re.Pattern[str]]:
    """Return for each kind a pattern of the words that show it."""
    labels = read_labels(model.folder)
    patterns = {}
    for kind, members in zip(labels.kinds, labels.members.T, strict=True):
        names = [name for name, is_in in zip(labels.labels, members, strict=True) if is_in]
        last = {name.lower().split()[-1].rstrip("s") for name in names if name[:2] != "a "}
        words = {*SHOWN_BY.get(kind, kind.split()[-1].rstrip("s")).split(), *last} - set(SMALL)
        patterns[kind] = re.compile(rf"\b({'|'.join(map(re.escape, sorted(words)))})")
    return patterns


def read_captioned(dataset: str, count: int, seed: int) -> list[Captioned]:
    """Read photos with their English captions: so many of training photos, all of a judge's."""
    if dataset == "demo":
        folder = bundled_root() / "demo"
        lines = (folder / "photos.jsonl").read_text(encoding="utf-8").splitlines()
        records = [json.loads(line) for line in lines[:count]]
        return [Captioned(folder / one["file"], [one["source_description"]]) for one in records]
    root = external_root()
    if root is None or not (root / dataset).is_dir():
        sys.exit(f"SEARCHLAB_DATASETS must name a folder that holds {dataset}, got {root}")
    folder = root / dataset
    captions: dict[str, list[str]] = defaultdict(list)
    for row in read_tsv(folder / "captions.tsv"):
        if row["lang"] == "en":
            captions[row["photo_id"]].append(row["text"])
    rows = [row for row in read_tsv(folder / "photos.tsv") if captions[row["photo_id"]]]
    if dataset == "flickr8k":
        rows = [row for row in rows if row["split"] == "test"]
    if dataset in ("flickr8k-train", "web-photos"):
        rows = random.Random(seed).sample(rows, count)
    return [Captioned(folder / row["file"], captions[row["photo_id"]]) for row in rows]


def look(model: MiniEmbedder, photos: list[Captioned]) -> tuple[list[Sight], list[str]]:
    """Let a model see photos, and describe them."""
    sights, descriptions = [], []
    for start in range(0, len(photos), 16):
        pictures = [as_rgb(photo.file) for photo in photos[start : start + 16]]
        for sight, picture in zip(
            model.sights(model.encode_images(pictures), 4), pictures, strict=True
        ):
            shape = orientation_of(*picture.size)
            sights.append(sight)
            descriptions.append(describe(sight, colors=[], orientation=shape)[0])
    return sights, descriptions


def rank_by_descriptions(photos: list[Captioned], descriptions: list[str]) -> dict[str, float]:
    """Measure how many first captions find their photo by generated descriptions alone."""
    embedder = CaptionsEmbedder()
    captions = embedder.encode_texts([photo.captions[0] for photo in photos])
    scores = captions @ embedder.encode_texts(descriptions).T
    better = (scores > np.diag(scores)[:, np.newaxis]).sum(axis=1)
    same = (scores == np.diag(scores)[:, np.newaxis]).sum(axis=1) - 1
    ranks = better + same / 2  # Photos with the same description share the mean of their ranks.
    return {f"finds its photo.success@{k}": float((ranks < k).mean()) for k in (1, 10, 100)}


def judge(model: MiniEmbedder, photos: list[Captioned], sights: list[Sight]) -> dict[str, float]:
    """Count what is stated, and which share of it is right."""
    patterns = kind_patterns(model)
    right: dict[str, list[bool]] = {"labels": [], "kinds": []}
    for photo, sight in zip(photos, sights, strict=True):
        text = " ".join(photo.captions).lower()
        if sight.labels[0][1] >= SURE:
            right["labels"].append(is_right(sight.labels[0][0], text))
        elif kind := name_subject(sight):
            right["kinds"].append(bool(patterns[kind].search(text)))
    metrics: dict[str, float] = {"labels stated from": SURE, "kinds stated from": SURE_KIND}
    for name, hits in right.items():
        metrics |= {name: len(hits), f"{name}.right": float(np.mean(hits)) if hits else 0.0}
    return metrics | {"nothing": len(photos) - sum(map(len, right.values()))}


def measure(model: MiniEmbedder, photos: list[Captioned]) -> dict[str, Any]:
    """Describe photos; returns what is stated, and which share of it is right."""
    sights, descriptions = look(model, photos)
    cosines = np.array([sight.labels[0][1] for sight in sights])
    hits = np.array(
        [
            is_right(sight.labels[0][0], " ".join(photo.captions).lower())
            for photo, sight in zip(photos, sights, strict=True)
        ]
    )
    edges = [*np.arange(0.2, 0.9, 0.05).round(2).tolist(), 1.0]
    bins = []
    for low, high in itertools.pairwise(edges):
        in_bin = (cosines >= low) & (cosines < high)
        if in_bin.any():
            bins.append({"from": low, "n": int(in_bin.sum()), "right": float(hits[in_bin].mean())})
    metrics = judge(model, photos, sights) | rank_by_descriptions(photos, descriptions)
    return {"metrics": metrics, "bins": bins}


def recompute(measurement: dict[str, Any]) -> dict[str, Any]:
    """Describe the photos of a record again.

    Raises:
        NotFoundError: SEARCHLAB_DATASETS does not hold them.
    """
    count, seed = int(measurement["parameters"]["photos"]), int(measurement["manifest"]["seed"])
    with data_wanted():
        photos = read_captioned(str(measurement["dataset"]), count, seed)
    return measure(MiniEmbedder(), photos)


def main() -> None:
    """Measure and write."""
    parser = bench_parser(__doc__, dataset="flickr8k-train", datasets=DATASETS)
    parser.add_argument("--photos", type=int, default=1000, help="training photos to describe")
    options = parser.parse_args()
    if options.smoke:
        options.dataset, options.photos = "demo", 16
    model = MiniEmbedder()
    if on_record(options, "descriptions", model.name) is not None:
        return
    photos = read_captioned(options.dataset, options.photos, options.seed)
    measured = measure(model, photos)
    for name, value in measured["metrics"].items():
        print(f"{name:<28}{value:>10.3f}")
    values = {
        "parameters": {"photos": len(photos)},
        **measured,
        "manifest": make_manifest(
            "descriptions", models=models_of("mini", "captions"), seed=options.seed
        ),
    }
    record(options, "descriptions", model.name, values)


if __name__ == "__main__":
    main()
