"""Fit the table of the text tower to the lessons, and to the photos themselves."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from searchlab.training.heads import DIM, Floats, PhotoHead, contrast
from searchlab.training.lessons import Lessons
from searchlab.training.photo_tower import Readings

LOG = logging.getLogger(__name__)

RATE = 2e-2
HEAD_RATE = 0.02  # Of the photo head's rate to the table's.
TEXTS, PHOTOS = 6144, 768
"""Texts and captioned photos a step."""
RIDGE = 0.01
SHRINK = 0.6  # Length of the first rows against the ridge's prediction.


def first_table(lessons: Lessons, pieces: Sequence[str], vectors: Floats) -> Floats:
    """A first row for each piece, from the teacher's vector of the piece alone.

    A ridge regression from teacher vectors to targets is learnt on the texts that are one piece; it
    takes the language out of a vector, and predicts short rows for pieces that say little.

    Args:
        lessons: Texts and targets.
        pieces: The pieces in row order.
        vectors: (n_pieces, 384) teacher vectors.

    Returns:
        (n_pieces, DIM) float32.
    """
    centred = vectors - vectors.mean(axis=0)
    single = [
        number
        for number, rows in enumerate(lessons.rows)
        if len(rows) == 1 and lessons.weights[number] >= 0.1
    ]
    known = centred[[lessons.rows[number][0] for number in single]]
    wanted = np.stack([lessons.targets[number] for number in single])
    penalty = RIDGE * len(known) * float(np.var(known)) * np.eye(known.shape[1])
    solution = np.linalg.solve(known.T @ known + penalty, known.T @ wanted)
    LOG.info("first rows of %d pieces from %d single-piece texts", len(pieces), len(single))
    return np.asarray(SHRINK * centred @ solution, dtype=np.float32)


def fit_table(
    first: Floats,
    lessons: Lessons,
    head: PhotoHead,
    readings: Readings,
    *,
    steps: int,
    contrast_weight: float,
    seed: int = 0,
) -> Floats:
    """Fit the table, and the photo head a little.

    Args:
        first: (n_pieces, DIM) first table.
        lessons: Texts, targets and captions.
        head: The photo head; trained further in place.
        readings: What the tower says of the training photos.
        steps: Steps of Adam.
        contrast_weight: Weight of the photos against that of the targets.
        seed: Of what is drawn.

    Returns:
        (n_pieces, DIM) float32.
    """
    table = torch.nn.EmbeddingBag(len(first), DIM, mode="sum")
    table.weight.data.copy_(torch.from_numpy(first))
    scale = torch.nn.Parameter(torch.tensor(np.log(20.0), dtype=torch.float32))
    optimiser = torch.optim.Adam(
        [
            {"params": table.parameters(), "lr": RATE},
            {"params": head.parameters(), "lr": RATE * HEAD_RATE},
            {"params": [scale], "lr": RATE * 0.05},
        ]
    )
    plan = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min(1, (step + 1) / 20) * (1 - step / steps)
    )
    rng = np.random.default_rng(seed)
    texts = lessons.padded()
    targets = torch.from_numpy(np.stack(lessons.targets))
    weights = torch.tensor(lessons.weights)
    features, logits = torch.from_numpy(readings.features), torch.from_numpy(readings.logits)
    captioned = [
        (row, photo) for row, photo in enumerate(readings.ids) if photo in lessons.captions
    ]
    order = rng.permutation(len(texts))
    head.train()
    for step in range(steps):
        if len(order) < TEXTS:
            order = rng.permutation(len(texts))
        drawn, order = order[:TEXTS], order[TEXTS:]
        cosines = (_rows(table, texts[drawn]) * targets[drawn]).sum(dim=1)
        distance = ((1 - cosines) * weights[drawn]).mean()
        chosen = [captioned[i] for i in rng.choice(len(captioned), PHOTOS, replace=False)]
        told = [_draw_caption(lessons.captions[photo], rng) for _, photo in chosen]
        seen = [row for row, _ in chosen]
        apart = contrast(_rows(table, texts[told]), head(features[seen], logits[seen]), scale)
        optimiser.zero_grad()
        (distance + contrast_weight * apart).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        plan.step()
        if step % 50 == 0:
            LOG.info(
                "step %d of %d: distance %.4f, contrast %.3f",
                *(step, steps, distance.item(), apart.item()),
            )
    head.eval()
    return table.weight.detach().numpy()


def _rows(table: torch.nn.EmbeddingBag, padded: NDArray[np.int32]) -> torch.Tensor:
    known = padded >= 0
    starts = np.concatenate([[0], np.cumsum(known.sum(axis=1))[:-1]])
    flat = torch.from_numpy(padded[known].astype(np.int64))
    return functional.normalize(table(flat, torch.from_numpy(starts)), dim=1)


def _draw_caption(captions: dict[str, list[int]], rng: np.random.Generator) -> int:
    """One caption of a photo, every language equally likely."""
    languages = list(captions.values())
    drawn = languages[rng.integers(len(languages))]
    return drawn[rng.integers(len(drawn))]


def quantise(table: Floats) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
    """Eight bits a number and one scale a row.

    Returns:
        (n_pieces, dim) int8 and (n_pieces,) float16; their product is the table again, nearly.
    """
    scales = np.maximum(np.abs(table).max(axis=1) / 127, 1e-6).astype(np.float16)
    wide = scales.astype(np.float32)[:, None]
    return np.clip(np.rint(table / wide), -127, 127).astype(np.int8), scales
