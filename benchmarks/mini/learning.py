"""Heads trained on more and more captioned photos, with the teachers themselves as text side."""

from __future__ import annotations

import hashlib
from argparse import Namespace
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.mini.tasks import LANGUAGES, Rows, load_flickr8k, with_interval
from searchlab.progress import Progress
from searchlab.training.mini.build import TAUGHT, read_inputs
from searchlab.training.mini.heads import WIDE_HIDDEN, PhotoHead, train_pair, unit
from searchlab.training.mini.hubness import SHARE, SHARPNESS
from searchlab.training.mini.photo_tower import Readings
from searchlab.training.mini.recipe import Ingredients, Recipe
from searchlab.training.mini.views import read_views

STEPS = 275  # At least, so that few photos are not learnt from in fewer steps than 3,000 are.
BATCH = 256
LEANT_ON = 1500  # Training captions by which hubs are held back.


class Told(NamedTuple):
    """Captions in one language.

    Attributes:
        photos: (n,) row of each caption's photo.
        vectors: (n, dim) what the teachers say of it.
    """

    photos: NDArray[np.int64]
    vectors: Rows


class Material(NamedTuple):
    """What heads learn from and are asked.

    Attributes:
        views: What the tower says of the training photos: whole, then in crops.
        test: What it says of the test photos.
        captions: Those of the training photos, by language.
        asked: Those of the test photos.
    """

    views: Sequence[Readings]
    test: Readings
    captions: dict[str, Told]
    asked: dict[str, Told]


def read_material(root: Path, args: Namespace, progress: Progress) -> Material:
    """Take what tower and teachers say from the cache of a build, or make it."""
    ingredients = Ingredients(args.packages, args.cldr, root, args.wordnet)
    ingredients.check()
    words, _, (_, read, views) = read_inputs(ingredients, Recipe(), args.cache, progress)
    task = load_flickr8k(root)
    tower = hashlib.sha256(views[0].features.tobytes()).hexdigest()[:12]
    shown = {path.stem: path for path in task.photos}
    (test,) = read_views(read, shown, args.cache / f"test-{tower}", 0, progress)
    row = {photo: number for number, photo in enumerate(views[0].ids)}
    captions, asked = {}, {}
    for language in LANGUAGES:
        encode = words.teacher.encode_english if language == "en" else words.teacher.encode
        own = [c for c in words.captions if c.language == language]
        captions[language] = Told(
            np.array([row[c.photo_id] for c in own]), encode([c.text for c in own])
        )
        queries = [query for query in task.queries if query.language == language]
        asked[language] = Told(
            np.array([query.answers[0] for query in queries]),
            encode([query.text for query in queries]),
        )
    return Material(views, test, captions, asked)


def made_up(seed: int) -> Material:
    """Photos and captions that agree in a few directions of many."""
    rng = np.random.default_rng(seed)
    towards = rng.normal(size=(16, 48))

    def photos(count: int) -> tuple[Readings, Told]:
        features = rng.normal(size=(count, 16)).astype(np.float32)
        logits = rng.normal(size=(count, 8)).astype(np.float32)
        texts = (features @ towards + 8 * rng.normal(size=(count, 48))).astype(np.float32)
        readings = Readings([str(n) for n in range(count)], features, logits)
        return readings, Told(np.arange(count), texts)

    (view, captions), (test, asked) = photos(400), photos(60)
    return Material([view], test, {"en": captions, "zh": captions}, {"en": asked, "zh": asked})


def learn(material: Material, language: str, size: int, *, heads: int, seed: int) -> dict[str, Any]:
    """R@1 and R@10 on the test photos, of heads that learnt from so many captioned photos.

    The tower under them was tuned on all photos but those spared, whatever the size.

    Args:
        material: Photos and captions.
        language: Of the captions that are learnt from and asked.
        size: Photos to learn from; all that have such captions if they are fewer.
        heads: Pairs of heads whose scores are added up.
        seed: Of the first of them.
    """
    told, asked = material.captions[language], material.asked[language]
    photos = np.unique(told.photos)[:size]
    kept = np.isin(told.photos, photos)
    mean = told.vectors[kept].mean(axis=0)
    scale = 1 / np.linalg.norm(told.vectors[kept] - mean, axis=1).mean()
    vectors = (told.vectors[kept] - mean) * scale
    own: dict[int, list[int]] = defaultdict(list)
    for number, photo in enumerate(np.searchsorted(photos, told.photos[kept]).tolist()):
        own[photo].append(number)
    views = [
        Readings([view.ids[n] for n in photos], view.features[photos], view.logits[photos])
        for view in material.views
    ]
    some = np.random.default_rng(seed).permutation(len(vectors))[:LEANT_ON]
    scores = np.zeros((len(asked.photos), len(material.test.ids)), dtype=np.float32)
    for number in range(seed, seed + heads):
        torch.manual_seed(number)
        head, batch = fresh_head(views[0]), min(BATCH, len(photos) // 2)
        epochs = max(25, -(-STEPS // (len(photos) // batch)))
        mapped = train_pair(
            head, views, own, vectors, width=TAUGHT, epochs=epochs, batch=batch, seed=number
        )
        test = torch.from_numpy(material.test.features), torch.from_numpy(material.test.logits)
        with torch.no_grad():
            seen, _ = head.parts(*test)
        near = SHARPNESS * seen @ torch.from_numpy(unit(vectors[some] @ mapped)).T
        lean = (torch.logsumexp(near, dim=1) - np.log(len(some))).numpy() / SHARPNESS
        scores += unit((asked.vectors - mean) * scale @ mapped) @ seen.numpy().T - SHARE * lean
    own_scores = scores[np.arange(len(scores)), asked.photos][:, np.newaxis]
    found = (scores >= own_scores).sum(axis=1) - 1
    return {
        "photos": len(photos),
        "queries": len(found),
        **{f"recall@{k}": with_interval(found < k, asked.photos) for k in (1, 10)},
    }


def fresh_head(view: Readings) -> PhotoHead:
    """A wide head without a named part."""
    unnamed = np.zeros((view.logits.shape[1], 1), dtype=np.float32)
    spread = view.features.std(axis=0) + np.float32(1e-3)
    return PhotoHead(unnamed, view.features.mean(axis=0), spread, width=TAUGHT, hidden=WIDE_HIDDEN)


def doublings(curve: Sequence[dict[str, Any]], aim: float) -> float | None:
    """How often the photos would have to double for an aim (percent of R@10) at the last slope.

    None where the last doubling gained nothing.
    """
    before, last = curve[-2:]
    gain = last["recall@10"]["mean"] - before["recall@10"]["mean"]
    slope = gain / np.log2(last["photos"] / before["photos"])
    short = aim - last["recall@10"]["mean"]
    return None if slope <= 0 else round(max(0.0, short / slope), 2)
