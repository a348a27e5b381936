"""The joint space: how photos and the teacher's sentences are brought to agree.

A row has two parts. The *named* part is ConSE (Norouzi et al., ICLR 2014): the mean of the class
names' text vectors, weighted by what the tower recognises. It needs no training and holds for any
noun. The *told* part comes of two small heads trained on captioned photos (InfoNCE); it knows
scenes, actions and relations, as far as those photos show them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from searchlab.training.photo_tower import Readings

NAMED, TOLD = 96, 64
"""Components of the two parts."""
DIM = NAMED + TOLD

TEMPERATURE = 1.5  # Softens the class probabilities; chosen on held-out training photos.
SHARPNESS = 5.0  # Brings centred teacher vectors to about unit length.
HIDDEN = 512

Floats = NDArray[np.float32]


def unit(rows: NDArray[np.floating]) -> Floats:
    """Rows of unit length; zero rows stay."""
    norms = np.linalg.norm(rows, axis=-1, keepdims=True)
    return np.asarray(rows / np.maximum(norms, 1e-9), dtype=np.float32)


@dataclass
class TextSide:
    """From the teacher's vectors to targets in the joint space.

    Attributes:
        class_mean: (384,) mean teacher vector of the class names in their template.
        caption_mean: (384,) mean teacher vector of captions.
        basis: (384, NAMED) principal axes of class names and names of things.
        told: Linear map of the told part.
    """

    class_mean: Floats
    caption_mean: Floats
    basis: Floats
    told: torch.nn.Linear

    def named(self, vectors: Floats, mean: Floats) -> Floats:
        """(n, NAMED) named parts."""
        return unit((vectors - mean) @ self.basis)

    def target(self, vectors: Floats, mean: Floats, *, told: float, named: float) -> Floats:
        """(n, DIM) unit rows, told part first, with the given weights of the two parts."""
        with torch.no_grad():
            centred = torch.from_numpy((vectors - mean) * np.float32(SHARPNESS))
            heads = unit(self.told(centred).numpy())
        return unit(np.hstack([told * heads, named * self.named(vectors, mean)]))


class PhotoHead(torch.nn.Module):
    """From the tower's features and logits to rows of the joint space.

    Args:
        classes: (1000, NAMED) named parts of the classes, not normalised.
        mean: (1280,) mean of the features of the training photos.
        spread: (1280,) their standard deviations.
    """

    classes: torch.Tensor
    mean: torch.Tensor
    spread: torch.Tensor

    def __init__(self, classes: Floats, mean: Floats, spread: Floats) -> None:
        super().__init__()
        features = len(mean)
        self.direct = torch.nn.Linear(features, TOLD)
        self.inner = torch.nn.Linear(features, HIDDEN)
        self.outer = torch.nn.Linear(HIDDEN, TOLD)
        self.recognised = torch.nn.Linear(classes.shape[1], TOLD)
        self.dropout = torch.nn.Dropout(0.3)
        self.register_buffer("classes", torch.from_numpy(classes))
        self.register_buffer("mean", torch.from_numpy(mean))
        self.register_buffer("spread", torch.from_numpy(spread))

    def parts(
        self, features: torch.Tensor, logits: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Told (n, TOLD) and named (n, NAMED) parts, unit rows each."""
        named = torch.softmax(logits / TEMPERATURE, dim=1) @ self.classes
        named = functional.normalize(named, dim=1)
        scaled = self.dropout((features - self.mean) / self.spread)
        bent = self.outer(self.dropout(functional.gelu(self.inner(scaled))))
        told = self.direct(scaled) + bent + self.recognised(named)
        return functional.normalize(told, dim=1), named

    def forward(self, features: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        """(n, DIM) unit rows, both parts of equal weight."""
        rows = torch.cat(self.parts(features, logits), dim=1)
        weighted: torch.Tensor = rows * 0.5**0.5
        return weighted


def principal_axes(rows: Floats, dim: int) -> Floats:
    """(components, dim) axes on which rows differ most, largest first."""
    axes = np.linalg.eigh(rows.T @ rows)[1][:, ::-1][:, :dim]
    # The sign of an axis is arbitrary; fixed here, so that a rebuild gives the same.
    return np.asarray(axes * np.sign(axes[np.abs(axes).argmax(0), range(dim)]), dtype=np.float32)


def contrast(texts: torch.Tensor, photos: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """InfoNCE in both directions over a batch of pairs, both of unit rows."""
    logits = texts @ photos.T * scale.exp().clamp(max=60)
    own = torch.arange(len(texts))
    forth = functional.cross_entropy(logits, own, label_smoothing=0.05)
    back = functional.cross_entropy(logits.T, own, label_smoothing=0.05)
    return (forth + back) / 2


def train_heads(
    side: TextSide,
    head: PhotoHead,
    readings: Readings,
    captions: Sequence[tuple[int, int]],
    vectors: Floats,
    *,
    epochs: int = 15,
    batch: int = 512,
    seed: int = 0,
) -> None:
    """Train the told parts of both sides in place.

    Args:
        side: Its `told` map is trained.
        head: The photo head.
        readings: What the tower says of the training photos.
        captions: (photo row, caption row) pairs.
        vectors: (n_captions, 384) teacher vectors.
        epochs: Times each photo is seen, with one caption drawn each time.
        batch: Photos a step.
        seed: Of the order and of the captions drawn.
    """
    rng = np.random.default_rng(seed)
    own: dict[int, list[int]] = {}
    for photo, caption in captions:
        own.setdefault(photo, []).append(caption)
    photos = np.array(sorted(own))
    centred = torch.from_numpy((vectors - side.caption_mean) * np.float32(SHARPNESS))
    features, logits = torch.from_numpy(readings.features), torch.from_numpy(readings.logits)
    scale = torch.nn.Parameter(torch.tensor(np.log(15.0), dtype=torch.float32))
    weights = [*head.parameters(), *side.told.parameters(), scale]
    optimiser = torch.optim.AdamW(weights, lr=1e-3, weight_decay=0.1)
    steps = epochs * (len(photos) // batch)
    plan = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min(1, (step + 1) / 30) * (0.5 + 0.5 * np.cos(np.pi * step / steps))
    )
    head.train()
    for step in range(steps):
        if step % (len(photos) // batch) == 0:
            order = rng.permutation(photos)
        drawn, order = order[:batch], order[batch:]
        told = [own[photo][rng.integers(len(own[photo]))] for photo in drawn.tolist()]
        seen, _ = head.parts(features[drawn], logits[drawn])
        dropped = functional.dropout(centred[told], 0.1)
        loss = contrast(functional.normalize(side.told(dropped), dim=1), seen, scale)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        plan.step()
    head.eval()
