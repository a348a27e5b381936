"""The joint space: how photos and the teachers' sentences are brought to agree.

A row has two parts. The *named* part is ConSE (Norouzi et al., ICLR 2014): the mean of the class
names' text vectors, weighted by what the tower recognises. It needs no training and holds for any
noun. The *caption* part comes from heads trained on captioned photos (InfoNCE); it knows scenes,
actions and relations, as far as those photos show them. Several pairs of heads are trained and
their outputs concatenated; only the axes that carry their scores are kept: together they rank
better than any one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from searchlab.training.mini.photo_tower import Readings
from searchlab.training.mini.photos import draw_batches

NAMED, CAPTIONED = 96, 159
"""Numbers of components of the named and of the caption part."""
DIM = NAMED + CAPTIONED
"""Components that are learnt; `searchlab.training.mini.hubness` adds one more."""
TEACHER_WIDTH = 768

SHARE_NAMED = 0.4
"""Share of the named part in the squared length of a photo's row; chosen on held-out photos."""
KINDS = 0.3  # Weight of the kinds that a class is of, beside its own name.
HIDDEN = 240
WIDE_HIDDEN = 768  # Hidden units of the teaching heads, which are not shipped.
DROPOUT = 0.5

Floats = NDArray[np.float32]


def unit(rows: NDArray[np.floating]) -> Floats:
    """Scale rows to unit length; zero rows stay zero."""
    norms = np.linalg.norm(rows, axis=-1, keepdims=True)
    return np.asarray(rows / np.maximum(norms, 1e-9), dtype=np.float32)


@dataclass
class TextSide:
    """Maps the teachers' vectors of texts to targets in the joint space.

    Attributes:
        class_mean: (768,) mean teacher vector of the class names in their template.
        caption_mean: (768,) mean teacher vector of captions.
        spread: (768,) factors that bring both teachers' centred vectors to about unit length.
        basis: (768, NAMED) principal axes of class names and names of things.
        heads: (n_heads, 768, width) linear maps of the heads.
        axes: (n_heads * width, CAPTIONED) axes kept of the heads' outputs side by side.
    """

    class_mean: Floats
    caption_mean: Floats
    spread: Floats
    basis: Floats
    heads: Floats
    axes: Floats

    def named_part(self, vectors: Floats, mean: Floats) -> Floats:
        """Return the named parts of (n, 768) vectors, (n, NAMED) unit rows."""
        return unit((vectors - mean) * self.spread @ self.basis)

    def caption_part(self, vectors: Floats, mean: Floats) -> Floats:
        """Return the caption parts of (n, 768) vectors, (n, CAPTIONED) unit rows."""
        centred = (vectors - mean) * self.spread
        side_by_side = np.hstack([unit(centred @ head) for head in self.heads])
        return unit(side_by_side @ self.axes)

    def target(self, vectors: Floats, mean: Floats, *, captioned: float, named: float) -> Floats:
        """Return (n, DIM) unit rows, caption part first, with the given weights of the parts."""
        parts = [
            captioned * self.caption_part(vectors, mean),
            named * self.named_part(vectors, mean),
        ]
        return unit(np.hstack(parts))


class PhotoHead(torch.nn.Module):
    """Maps the tower's features and logits to rows of the joint space.

    Args:
        classes: (1000, NAMED) named parts of the classes, not normalised.
        mean: (n_features,) mean of the features of the training photos.
        spread: (n_features,) their standard deviations.
        width: Components of the caption part.
        hidden: Width of its hidden layer.
    """

    classes: torch.Tensor
    mean: torch.Tensor
    spread: torch.Tensor

    def __init__(
        self,
        classes: Floats,
        mean: Floats,
        spread: Floats,
        *,
        width: int = CAPTIONED,
        hidden: int = HIDDEN,
    ) -> None:
        super().__init__()
        features = len(mean)
        self.direct = torch.nn.Linear(features, width)
        self.inner = torch.nn.Linear(features, hidden)
        self.outer = torch.nn.Linear(hidden, width)
        self.recognised = torch.nn.Linear(classes.shape[1], width)
        self.dropout = torch.nn.Dropout(DROPOUT)
        self.register_buffer("classes", torch.from_numpy(classes))
        self.register_buffer("mean", torch.from_numpy(mean))
        self.register_buffer("spread", torch.from_numpy(spread))

    def parts(
        self, features: torch.Tensor, logits: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the caption parts, (n, width), and named parts, (n, NAMED), as unit rows."""
        centred = logits - logits.mean(dim=1, keepdim=True)
        # This ranks classes as a softmax does, but the best one does not drown the next.
        stands_out = functional.relu(centred / (centred * centred).mean(dim=1, keepdim=True).sqrt())
        named = (stands_out * stands_out * stands_out) @ self.classes
        named = functional.normalize(named, dim=1)
        scaled = self.dropout((features - self.mean) / self.spread)
        nonlinear = self.outer(self.dropout(functional.gelu(self.inner(scaled))))
        captioned = self.direct(scaled) + nonlinear + self.recognised(named)
        return functional.normalize(captioned, dim=1), named

    def forward(self, features: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        """Return (n, DIM) unit rows."""
        return self.join(*self.parts(features, logits))

    def join(self, captioned: torch.Tensor, named: torch.Tensor) -> torch.Tensor:
        """Join the two parts of rows; (n, DIM) unit rows."""
        return torch.cat([captioned * (1 - SHARE_NAMED) ** 0.5, named * SHARE_NAMED**0.5], dim=1)


def principal_axes(rows: Floats, dim: int) -> Floats:
    """Compute the axes, (components, dim), on which rows differ most, largest first."""
    axes = np.linalg.eigh(rows.T @ rows)[1][:, ::-1][:, :dim]
    # The sign of an axis is arbitrary; it is fixed here, so that a rebuild gives the same axes.
    return np.asarray(axes * np.sign(axes[np.abs(axes).argmax(0), range(dim)]), dtype=np.float32)


def class_matrix(classes: Floats, kinds: Floats, members: Floats) -> Floats:
    """Compute the vectors of which the named part of a photo is a weighted mean.

    Args:
        classes: (1000, dim) vectors of the class names.
        kinds: (n_kinds, dim) vectors of the kinds above them.
        members: (1000, n_kinds) ones where a class is of a kind, else zeros.

    Returns:
        (1000, dim): each class is moved towards its kinds, and more towards rarer ones.
    """
    weights = members / np.sqrt(np.maximum(members.sum(axis=0), 1))
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-9)
    return np.asarray(classes + KINDS * weights @ kinds, dtype=np.float32)


def contrast(texts: torch.Tensor, photos: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Compute InfoNCE in both directions over pairs of unit rows, (n, dim) on both sides."""
    logits = texts @ photos.T * scale.exp().clamp(max=60)
    partners = torch.arange(len(texts))
    text_to_photo = functional.cross_entropy(logits, partners, label_smoothing=0.05)
    photo_to_text = functional.cross_entropy(logits.T, partners, label_smoothing=0.05)
    return (text_to_photo + photo_to_text) / 2


def pace(step: int, *, steps: int, warmup: int = 30) -> float:
    """Return the share of the learning rate at a step: a rise, then half a cosine down to zero."""
    return min(1, (step + 1) / warmup) * (0.5 + 0.5 * float(np.cos(np.pi * step / steps)))


def train_pair(
    head: PhotoHead,
    views: Sequence[Readings],
    captions: Mapping[int, Sequence[int]],
    vectors: Floats,
    *,
    width: int,
    collections: NDArray[np.int8] | None = None,
    epochs: int = 25,
    batch: int = 512,
    seed: int = 0,
) -> Floats:
    """Train a photo head in place, and the linear map of the captions that goes with it.

    Args:
        head: The photo head.
        views: The tower's readings of the training photos, and of crops of them.
        captions: Photo row -> rows of its captions in `vectors`.
        vectors: (n_captions, 768) teacher vectors, centred and scaled.
        width: Components of the caption part.
        collections: (n_photos,) number of the collection of each photo, of which a batch has one;
            None if all are of the same.
        epochs: Times each photo is seen, with one caption drawn each time.
        batch: Photos per step.
        seed: Seed of the order and of what is drawn.

    Returns:
        The linear map of captions, (768, width).
    """
    rng = np.random.default_rng(seed)
    photos = np.array(sorted(captions))
    rows = torch.from_numpy(vectors)
    inputs = [(torch.from_numpy(v.features), torch.from_numpy(v.logits)) for v in views]
    text = torch.nn.Linear(vectors.shape[1], width, bias=False)
    scale = torch.nn.Parameter(torch.tensor(np.log(15.0), dtype=torch.float32))
    weights = [*head.parameters(), *text.parameters(), scale]
    optimiser = torch.optim.AdamW(weights, lr=1e-3, weight_decay=0.1)
    if collections is None:
        collections = np.zeros(photos.max() + 1, dtype=np.int8)
    batches = [
        drawn for _ in range(epochs) for drawn in draw_batches(photos, collections, batch, rng)
    ]
    steps = len(batches)
    plan = torch.optim.lr_scheduler.LambdaLR(optimiser, partial(pace, steps=steps))
    head.train()
    for batch_photos in batches:
        caption_numbers = [
            captions[photo][int(rng.integers(len(captions[photo])))]
            for photo in batch_photos.tolist()
        ]
        features, logits = inputs[rng.integers(len(inputs))]
        photo_rows, _ = head.parts(features[batch_photos], logits[batch_photos])
        with_dropout = functional.dropout(rows[caption_numbers], 0.1)
        loss = contrast(functional.normalize(text(with_dropout), dim=1), photo_rows, scale)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        plan.step()
    head.eval()
    return text.weight.detach().numpy().T.copy()
