"""Tune the end of the image tower on captioned photos: its last five blocks and its widest layer.

The early part stays as ImageNet made it and is read once; tuning then costs a quarter of a full
pass. What ships is in 8 bits, so the late part is tuned on the outputs of the early part in 8 bits,
and with its own weights rounded: it learns to make up for both. Photos are brought near the
teachers' vectors of their captions, while the class probabilities are held where those of 32 bits
were, for the named part of a row is made from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from searchlab.progress import Progress
from searchlab.training.mini.heads import Floats, PhotoHead, contrast, pace, train_pair
from searchlab.training.mini.photo_tower import TUNED, Conv, Readings, Tower
from searchlab.training.mini.photos import draw_batches
from searchlab.training.mini.views import Cells

WIDTH, HIDDEN = 256, 512  # Sizes of a head that is trained together with the tower, then dropped.
TOWER_RATE, HEAD_RATE = 2e-4, 5e-4
DRIFT_WEIGHT = 0.5  # Weight of the divergence from the class probabilities before tuning.
TEMPERATURE = 1.5  # Temperature of these probabilities.
AVERAGED = 0.98  # Share of the past in the averaged weights.
CAPTIONS_PER_PHOTO = 3  # Captions of a photo in a step.
WARMUP_EPOCHS = 15  # Epochs of the head before the tower is changed.


def tune(
    tower: Tower,
    cells: Sequence[Cells],
    views: Sequence[Readings],
    captions: Mapping[int, Sequence[int]],
    vectors: Floats,
    collections: NDArray[np.int8],
    *,
    epochs: int = 7,
    batch: int = 256,
    seed: int = 0,
    progress: Progress | None = None,
) -> None:
    """Tune the tower's late part in place; its weights end as averages over the last steps.

    Args:
        tower: The tower.
        cells: Outputs of its early part for the photos' views.
        views: Readings of the same views by the whole tower before tuning.
        captions: Photo row -> rows of its captions in `vectors`; no other photo takes part.
        vectors: (n_captions, dim) teacher vectors, centred and of about unit length.
        collections: (n_photos,) number of the collection of each photo; a batch is of one.
        epochs: How often each photo is seen.
        batch: Photos per step.
        seed: Seed of everything that is drawn at random.
        progress: Shows the steps.
    """
    photos = np.array(sorted(captions))
    features = views[0].features[photos]
    torch.manual_seed(seed)
    head = PhotoHead(
        np.zeros((1000, 1), dtype=np.float32),  # No named part.
        features.mean(axis=0),
        features.std(axis=0) + np.float32(1e-3),
        width=WIDTH,
        hidden=HIDDEN,
    )
    text = torch.nn.Linear(vectors.shape[1], WIDTH, bias=False)
    text_map = train_pair(
        head,
        views,
        captions,
        vectors,
        width=WIDTH,
        collections=collections,
        epochs=WARMUP_EPOCHS,
        batch=min(512, len(photos)),
        seed=seed,
    )
    text.weight.data.copy_(torch.from_numpy(text_map.T))

    late = [*tower.blocks()[-TUNED:], tower.wide]
    tuned = [weight for part in late for weight in part.parameters()]
    convolutions = [m for part in late for m in part.modules() if isinstance(m, Conv)]
    for convolution in convolutions:
        convolution.rounded = True
    scale = torch.nn.Parameter(torch.tensor(np.log(20.0), dtype=torch.float32))
    optimiser = torch.optim.AdamW(
        [
            {"params": tuned, "lr": TOWER_RATE, "weight_decay": 0.01},
            {
                "params": [*head.parameters(), *text.parameters()],
                "lr": HEAD_RATE,
                "weight_decay": 0.1,
            },
            {"params": [scale], "lr": HEAD_RATE, "weight_decay": 0.0},
        ]
    )
    rng = np.random.default_rng(seed)
    batches = [
        drawn for _ in range(epochs) for drawn in draw_batches(photos, collections, batch, rng)
    ]
    steps = len(batches)
    plan = torch.optim.lr_scheduler.LambdaLR(optimiser, partial(pace, steps=steps, warmup=20))
    averages = [weight.detach().clone() for weight in tuned]
    head.train()
    with (progress or Progress()).step("tuning the tower", steps, unit="steps") as progress_step:
        for step, batch_photos in enumerate(batches):
            view = int(rng.integers(len(views)))
            photo_rows, drift, positions = _read_batch(
                tower, head, cells[view], views[view], batch_photos
            )
            loss = DRIFT_WEIGHT * drift
            for _ in range(CAPTIONS_PER_PHOTO):
                numbers_of = [captions[photo] for photo in batch_photos[positions].tolist()]
                rows = [numbers[int(rng.integers(len(numbers)))] for numbers in numbers_of]
                texts = text(functional.dropout(torch.from_numpy(vectors[rows]), 0.1))
                texts = functional.normalize(texts, dim=1)
                loss = loss + contrast(texts, photo_rows, scale) / CAPTIONS_PER_PHOTO
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            plan.step()
            past = min(AVERAGED, step / (step + 10))
            with torch.no_grad():
                for average, weight in zip(averages, tuned, strict=True):
                    average.lerp_(weight, 1 - past)
            progress_step.advance(1)
            losses = f"loss {float(loss.detach()):.3f}, drift {float(drift.detach()):.3f}"
            progress_step.note(losses)
    with torch.no_grad():
        for average, weight in zip(averages, tuned, strict=True):
            weight.copy_(average)
    for convolution in convolutions:
        convolution.apply_rounding()


def _read_batch(
    tower: Tower, head: PhotoHead, cells: Cells, before: Readings, photos: NDArray[np.int64]
) -> tuple[torch.Tensor, torch.Tensor, NDArray[np.int64]]:
    """Compute rows of photos, their drift from the former class probabilities, and their order."""
    rows, drifts, order = [], [], []
    for members, part in cells.groups(photos):
        features, logits = tower.late(part)
        rows.append(head.parts(features, logits)[0])
        former = torch.from_numpy(before.logits[photos[members]]) / TEMPERATURE
        drifts.append(
            functional.kl_div(
                functional.log_softmax(logits / TEMPERATURE, dim=1),
                functional.softmax(former, dim=1),
                reduction="sum",
            )
        )
        order.append(members)
    drift = torch.stack(drifts).sum() / len(photos)
    return torch.cat(rows), drift, np.concatenate(order)
