"""How the text tower learns to read before it sees a photo: names, captions, and sentences."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from searchlab.training.mini.heads import contrast, pace
from searchlab.training.mini.student import PieceTable, Student, pack_texts
from searchlab.training.mini.text_examples import TextExamples

MIXER_RATE, READER_RATE = 2e-3, 1e-3
NAMES, SENTENCES = 2048, 1536  # Texts of a step; of sentences each with a translation.
CAPTIONS = 768  # Photos of a step, of which a caption is read in English and in another language.
NAME_WEIGHT, DISTANCE_WEIGHT, CONTRAST_WEIGHT = 0.5, 1.0, 0.1
"""Weights of the distances of names and of sentences from their targets, and of the contrast of
sentences with others' counterparts."""
SPREAD = 0.7  # A sentence is drawn by the number of its translations to this power.
AVERAGED = 0.995  # Share of the past in the averaged weights.


class Reading:
    """Draws texts that belong to no photo, and says how far their rows are from what they mean."""

    def __init__(
        self, lessons: TextExamples, rng: np.random.Generator, *, names: int, sentences: int
    ) -> None:
        self._rng = rng
        weights = np.array(lessons.weights)
        weights[[n for own in lessons.captions.values() for ns in own.values() for n in ns]] = 0
        self._cumulative = np.cumsum(weights) / weights.sum()
        self._translations = lessons.translations
        counts = np.array([len(texts) for _, texts in lessons.translations], dtype=np.float64)
        self._rarity = 1 / counts**SPREAD
        self._sizes = names, min(sentences, len(counts))

    def draw(self) -> NDArray[np.int64]:
        """Draw numbers of names, of English sentences, all different, and of a translation each."""
        names, sentences = self._sizes
        drawn_names = np.searchsorted(self._cumulative, self._rng.random(names))
        # The least of exponential waits: drawn by weight, none twice.
        waits = self._rng.exponential(size=len(self._rarity)) * self._rarity
        chosen = np.argsort(waits)[:sentences]
        pairs = [self._translations[number] for number in chosen]
        english = [first for first, _ in pairs]
        others = [texts[self._rng.integers(len(texts))] for _, texts in pairs]
        return np.concatenate([drawn_names, english, others]).astype(np.int64)

    def loss(self, rows: torch.Tensor, targets: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        """Return the loss of the rows of drawn texts, given their targets."""
        names, sentences = self._sizes
        name_rows, name_targets = rows[:names], targets[:names]
        english, others = rows[names:].chunk(2)
        meant = targets[names:].chunk(2)[0]
        loss = NAME_WEIGHT * distance(name_rows, name_targets)
        if sentences:
            apart = distance(others, meant) + distance(english, meant)
            mixed = contrast(others, english, scale) + contrast(others, meant, scale)
            loss = loss + DISTANCE_WEIGHT * apart / 2 + CONTRAST_WEIGHT * mixed
        return loss


def distance(rows: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return 1 less the mean cosine of unit rows with their targets."""
    return (1 - (rows * targets).sum(dim=1)).mean()


def learn_to_read(
    student: Student,
    table: PieceTable,
    lessons: TextExamples,
    *,
    steps: int,
    seed: int = 0,
    advance: Callable[[int], None] = lambda _steps: None,
) -> None:
    """Teach the text tower in place what texts mean; mixer and reader end as averages.

    Args:
        student: The mixer.
        table: The pieces' vectors.
        lessons: Texts, targets, captions and translations.
        steps: Number of steps of Adam.
        seed: Seed of everything that is drawn at random.
        advance: Called with the number of steps done since the last call.
    """
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    reading = Reading(lessons, rng, names=NAMES, sentences=SENTENCES)
    scales = [torch.nn.Parameter(torch.tensor(np.log(20.0), dtype=torch.float32)) for _ in range(2)]
    optimiser = torch.optim.AdamW(
        [
            {"params": student.parameters(), "lr": MIXER_RATE, "weight_decay": 0.01},
            {"params": table.reader.parameters(), "lr": READER_RATE, "weight_decay": 0.01},
            {"params": scales, "lr": MIXER_RATE, "weight_decay": 0.0},
        ]
    )
    plan = torch.optim.lr_scheduler.LambdaLR(optimiser, partial(pace, steps=steps))
    targets = np.stack(lessons.targets)
    captioned = [
        (own["en"], [ns for language, ns in own.items() if language != "en"])
        for own in lessons.captions.values()
    ]
    learning = torch.nn.ModuleList([student, table.reader])
    means = copy.deepcopy(learning)
    learning.train()
    for step in range(steps):
        numbers = reading.draw()
        photos = rng.choice(len(captioned), min(CAPTIONS, len(captioned)), replace=False)
        english, others = [], []
        for own, other_languages in (captioned[photo] for photo in photos):
            first, *rest = rng.permutation(own)
            english.append(first)
            if other_languages:
                rest = other_languages[rng.integers(len(other_languages))]
            others.append(rest[rng.integers(len(rest))] if len(rest) else first)
        drawn = np.concatenate([numbers, english, others])
        packed = pack_texts([lessons.rows[text] for text in drawn])
        rows = student(table.take(packed), packed)
        meant = torch.from_numpy(targets[drawn].astype(np.float32))
        caption_rows, caption_meant = rows[len(numbers) :], meant[len(numbers) :]
        loss = reading.loss(rows[: len(numbers)], meant[: len(numbers)], scales[0])
        loss = loss + DISTANCE_WEIGHT * distance(caption_rows, caption_meant)
        first, second = caption_rows.chunk(2)
        loss = loss + CONTRAST_WEIGHT * contrast(first, second, scales[1])
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        table.step(pace(step, steps=steps))
        plan.step()
        average(means, learning, min(AVERAGED, step / (step + 10)))
        advance(1)
    average(learning, means, 0.0)
    learning.eval()


@torch.no_grad()
def average(mean: torch.nn.Module, now: torch.nn.Module, past: float) -> None:
    """Move the weights of one module towards those of another, keeping a share of the past."""
    for old, new in zip(mean.parameters(), now.parameters(), strict=True):
        old.lerp_(new, 1 - past)
