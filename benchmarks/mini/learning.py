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
from searchlab.training.mini.build import read_inputs
from searchlab.training.mini.heads import WIDE_HIDDEN, PhotoHead, train_pair, unit
from searchlab.training.mini.hubness import SHARE, SHARPNESS
from searchlab.training.mini.photo_tower import Readings
from searchlab.training.mini.recipe import Ingredients, Recipe
from searchlab.training.mini.space import TAUGHT
from searchlab.training.mini.views import read_views

STEPS = 275  # Least number of steps: few photos get as many as 3,000 do.
BATCH = 256
HUB_CAPTIONS = 1500  # Training captions by which hubs are ranked lower.


class CaptionVectors(NamedTuple):
    """Captions in one language.

    Attributes:
        photos: (n,) row of each caption's photo.
        vectors: (n, dim) teacher vectors of the captions.
    """

    photos: NDArray[np.int64]
    vectors: Rows


class Material(NamedTuple):
    """What heads learn from, and what they are tested on.

    Attributes:
        views: The tower's readings of the training photos: whole, then in crops.
        collections: (n_photos,) number of the collection of each training photo.
        test: Its readings of the test photos.
        captions: Captions of the training photos, by language.
        queries: Captions of the test photos, by language.
    """

    views: Sequence[Readings]
    collections: NDArray[np.int8]
    test: Readings
    captions: dict[str, CaptionVectors]
    queries: dict[str, CaptionVectors]


def read_material(root: Path, args: Namespace, progress: Progress) -> Material:
    """Read the tower's readings and the teachers' vectors from a build's cache, or make them."""
    ingredients = Ingredients(args.packages, args.cldr, root, args.wordnet)
    ingredients.check()
    words, photos, _, (_, read, views) = read_inputs(ingredients, Recipe(), args.cache, progress)
    task = load_flickr8k(root)
    tower = hashlib.sha256(views[0].features.tobytes()).hexdigest()[:12]
    test_photos = {path.stem: path for path in task.photos}
    (test,) = read_views(read, test_photos, args.cache / f"test-{tower}", 0, progress)
    row = {photo: number for number, photo in enumerate(views[0].ids)}
    captions, queries = {}, {}
    for language in LANGUAGES:
        encode = words.teacher.encode_english if language == "en" else words.teacher.encode
        own = [c for c in words.captions if c.language == language]
        captions[language] = CaptionVectors(
            np.array([row[c.photo_id] for c in own]), encode([c.text for c in own])
        )
        of_test = [query for query in task.queries if query.language == language]
        queries[language] = CaptionVectors(
            np.array([query.answers[0] for query in of_test]),
            encode([query.text for query in of_test]),
        )
    return Material(views, photos.collections, test, captions, queries)


def make_material(seed: int) -> Material:
    """Make random photos and captions that agree in a few directions of many."""
    rng = np.random.default_rng(seed)
    text_map = rng.normal(size=(16, 48))

    def draw_photos(count: int) -> tuple[Readings, CaptionVectors]:
        features = rng.normal(size=(count, 16)).astype(np.float32)
        logits = rng.normal(size=(count, 8)).astype(np.float32)
        texts = (features @ text_map + 8 * rng.normal(size=(count, 48))).astype(np.float32)
        readings = Readings([str(n) for n in range(count)], features, logits)
        return readings, CaptionVectors(np.arange(count), texts)

    (view, captions), (test, queries) = draw_photos(400), draw_photos(60)
    both = {"en": captions, "zh": captions}, {"en": queries, "zh": queries}
    return Material([view], np.zeros(400, dtype=np.int8), test, *both)


def measure_learning(
    material: Material, language: str, size: int, *, heads: int, seed: int, steps: int = STEPS
) -> dict[str, Any]:
    """Train heads on so many captioned photos, and measure R@1 and R@10 on the test photos.

    The tower under them was tuned on nearly all photos, whatever the size.

    Args:
        material: Photos and captions.
        language: Language of the captions, both to learn from and to search by.
        size: Photos to learn from; all that have such captions if they are fewer.
        heads: Pairs of heads whose scores are added up.
        seed: Seed of the first pair.
        steps: Least number of steps of a pair.
    """
    captions, queries = material.captions[language], material.queries[language]
    photos = np.unique(captions.photos)[:size]
    is_used = np.isin(captions.photos, photos)
    mean = captions.vectors[is_used].mean(axis=0)
    scale = 1 / np.linalg.norm(captions.vectors[is_used] - mean, axis=1).mean()
    vectors = (captions.vectors[is_used] - mean) * scale
    own: dict[int, list[int]] = defaultdict(list)
    for number, photo in enumerate(np.searchsorted(photos, captions.photos[is_used]).tolist()):
        own[photo].append(number)
    views = [
        Readings([view.ids[n] for n in photos], view.features[photos], view.logits[photos])
        for view in material.views
    ]
    sample = np.random.default_rng(seed).permutation(len(vectors))[:HUB_CAPTIONS]
    scores = np.zeros((len(queries.photos), len(material.test.ids)), dtype=np.float32)
    for number in range(seed, seed + heads):
        torch.manual_seed(number)
        head, batch = make_head(views[0]), min(BATCH, len(photos) // 2)
        epochs = max(25, -(-steps // (len(photos) // batch)))
        text_map = train_pair(
            head,
            views,
            own,
            vectors,
            width=TAUGHT,
            collections=material.collections[photos],
            epochs=epochs,
            batch=batch,
            seed=number,
        )
        test = torch.from_numpy(material.test.features), torch.from_numpy(material.test.logits)
        with torch.no_grad():
            photo_rows, _ = head.parts(*test)
        logits = SHARPNESS * photo_rows @ torch.from_numpy(unit(vectors[sample] @ text_map)).T
        nearness = (torch.logsumexp(logits, dim=1) - np.log(len(sample))).numpy() / SHARPNESS
        text_rows = unit((queries.vectors - mean) * scale @ text_map)
        scores += text_rows @ photo_rows.numpy().T - SHARE * nearness
    own_scores = scores[np.arange(len(scores)), queries.photos][:, np.newaxis]
    ranks = (scores >= own_scores).sum(axis=1) - 1
    return {
        "photos": len(photos),
        "queries": len(ranks),
        **{f"recall@{k}": with_interval(ranks < k, queries.photos) for k in (1, 10)},
    }


def make_head(view: Readings) -> PhotoHead:
    """Make a wide head without a named part."""
    unnamed = np.zeros((view.logits.shape[1], 1), dtype=np.float32)
    spread = view.features.std(axis=0) + np.float32(1e-3)
    return PhotoHead(unnamed, view.features.mean(axis=0), spread, width=TAUGHT, hidden=WIDE_HIDDEN)


def count_doublings(curve: Sequence[dict[str, Any]], aim: float) -> float | None:
    """Compute how often the photos must double to reach an aim, percent of R@10, at the last slope.

    None where the last doubling gained nothing.
    """
    before, last = curve[-2:]
    gain = last["recall@10"]["mean"] - before["recall@10"]["mean"]
    slope = gain / np.log2(last["photos"] / before["photos"])
    gap = aim - last["recall@10"]["mean"]
    return None if slope <= 0 else round(max(0.0, gap / slope), 2)
