"""Train both shipped towers together, so that texts and photos lie in one space."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from searchlab.training.mini.heads import Floats, PhotoHead, contrast
from searchlab.training.mini.photo_tower import Readings
from searchlab.training.mini.student import PieceTable, Student, pack_texts
from searchlab.training.mini.text_examples import TextExamples

HEAD_RATE = 1e-3
MIXER_RATE = 2e-3
TEXTS, PHOTOS = 6144, 512
NAMES, CAPTIONS, PLACES, CONTRAST, TOGETHER = 0.5, 0.75, 1.0, 0.3, 0.1
"""Weights of the parts of the loss: the distances of names, of captions and of photos from their
targets, the contrast of photos with captions, and that of a photo's captions with other photos'."""
SHARES = (0.5, 0.25, 0.25)  # Weights of English captions and of the two in other languages.
AVERAGED = 0.99  # Share of the past in the averaged weights.


def fit(
    student: Student,
    table: PieceTable,
    head: PhotoHead,
    lessons: TextExamples,
    views: Sequence[Readings],
    places: Sequence[Floats],
    *,
    steps: int,
    texts: int = TEXTS,
    photos: int = PHOTOS,
    seed: int = 0,
    advance: Callable[[int], None] = lambda _steps: None,
) -> None:
    """Fit text tower and photo head in place; mixer and head end as averages over the last steps.

    Args:
        student: The mixer.
        table: The pieces' vectors.
        head: The photo head.
        lessons: Texts, targets and captions.
        views: The tower's readings of the training photos, and of crops of them, in equal order.
        places: (n_photos, CAPTIONED) caption parts of each view by the teaching heads.
        steps: Number of steps of Adam.
        texts: Names per step.
        photos: Captioned photos per step, each with an English caption and two in other languages.
        seed: Seed of everything that is drawn at random.
        advance: Called with the number of steps done since the last call.
    """
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    scales = [torch.nn.Parameter(torch.tensor(np.log(20.0), dtype=torch.float32)) for _ in range(3)]
    optimiser = torch.optim.AdamW(
        [
            {"params": head.parameters(), "lr": HEAD_RATE, "weight_decay": 0.1},
            {"params": student.parameters(), "lr": MIXER_RATE, "weight_decay": 0.01},
            {"params": scales, "lr": HEAD_RATE, "weight_decay": 0.0},
        ]
    )

    def pace(step: int) -> float:
        return min(1, (step + 1) / 30) * (0.5 + 0.5 * float(np.cos(np.pi * step / steps)))

    plan = torch.optim.lr_scheduler.LambdaLR(optimiser, pace)
    mean_student, mean_head = copy.deepcopy(student), copy.deepcopy(head)
    targets = np.stack(lessons.targets)
    sampler = _LessonSampler(lessons, views[0].ids, rng)
    student.train()
    head.train()
    for step in range(steps):
        names = sampler.draw_names(texts)
        photo_numbers, captions = sampler.draw_photos(photos)
        number = int(rng.integers(len(views)))
        view, place = views[number], torch.from_numpy(places[number][photo_numbers])
        packed = pack_texts([lessons.rows[text] for text in (*names, *captions)])
        name_rows, caption_rows = student(table.take(packed), packed).split([texts, len(captions)])
        name_targets, caption_targets = (
            torch.from_numpy(targets[numbers].astype(np.float32)) for numbers in (names, captions)
        )
        caption_part, named_part = head.parts(
            torch.from_numpy(view.features[photo_numbers]),
            torch.from_numpy(view.logits[photo_numbers]),
        )
        photo_rows = head.join(caption_part, named_part)
        english, *others = by_language = caption_rows.chunk(len(SHARES))
        name_distance = _distance(name_rows, name_targets)
        caption_distance = _weigh_languages(
            [
                _distance(*pair)
                for pair in zip(by_language, caption_targets.chunk(len(SHARES)), strict=True)
            ]
        )
        place_distance = _distance(caption_part, place)
        caption_contrast = _weigh_languages(
            [contrast(rows, photo_rows, scales[0]) for rows in by_language]
        )
        target_contrast = contrast(caption_targets[:photos], photo_rows, scales[1])
        languages = torch.stack([contrast(english, rows, scales[2]) for rows in others]).mean()
        loss = NAMES * name_distance + CAPTIONS * caption_distance + PLACES * place_distance
        loss = loss + CONTRAST * (caption_contrast + target_contrast) + TOGETHER * languages
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        table.step(pace(step))
        plan.step()
        past = min(AVERAGED, step / (step + 10))
        _average(mean_student, student, past)
        _average(mean_head, head, past)
        advance(1)
    _average(student, mean_student, 0.0)
    _average(head, mean_head, 0.0)
    student.eval()
    head.eval()


def _distance(rows: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return 1 less the mean cosine of unit rows with their targets."""
    return (1 - (rows * targets).sum(dim=1)).mean()


def _weigh_languages(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    total: torch.Tensor = sum(
        (share * part for share, part in zip(SHARES, parts, strict=True)), torch.zeros(())
    )
    return total


@torch.no_grad()
def blend(runs: Sequence[tuple[Student, PieceTable, PhotoHead]]) -> None:
    """Give the first of several runs the mean weights of all (Wortsman et al., ICML 2022).

    Runs that start with the same weights and draw differently end near to each other. Their mean
    then ranks nearly as well as the sum of their scores, at the cost of one run.
    """
    (student, table, head), *others = runs
    for number, (other_student, other_table, other_head) in enumerate(others, start=1):
        past = number / (number + 1)
        _average(student, other_student, past)
        _average(head, other_head, past)
        table.rows.lerp_(other_table.rows, 1 - past)


@torch.no_grad()
def _average(mean: torch.nn.Module, now: torch.nn.Module, past: float) -> None:
    for old, new in zip(mean.parameters(), now.parameters(), strict=True):
        old.lerp_(new, 1 - past)


class _LessonSampler:
    """Draws names, and photos with captions."""

    def __init__(
        self, lessons: TextExamples, photos: Sequence[str], rng: np.random.Generator
    ) -> None:
        self._rng = rng
        captions = {n for own in lessons.captions.values() for ns in own.values() for n in ns}
        self._names = np.array([n for n in range(len(lessons.rows)) if n not in captions])
        weights = np.array(lessons.weights)[self._names]
        self._cumulative = np.cumsum(weights) / weights.sum()
        counts = Counter(
            lang for own in lessons.captions.values() for lang, ns in own.items() for _ in ns
        )
        self._captioned = [
            (row, lessons.captions[photo]["en"], *_others(lessons.captions[photo], counts))
            for row, photo in enumerate(photos)
            if photo in lessons.captions
        ]
        self._order = np.empty(0, dtype=np.int64)

    def draw_names(self, count: int) -> NDArray[np.int64]:
        """Draw numbers of texts that are no captions, by their weights."""
        places = np.searchsorted(self._cumulative, self._rng.random(count))
        numbers: NDArray[np.int64] = self._names[places]
        return numbers

    def draw_photos(self, count: int) -> tuple[list[int], list[int]]:
        """Draw rows of photos, all once before any comes again, and numbers of captions.

        The captions are an English one of each photo, then one in another language, then one in
        yet another. A language is drawn by how many captions there are in it, so that a caption of
        a language with many is read as often as one of a language with few.
        """
        if len(self._order) < count:
            self._order = self._rng.permutation(len(self._captioned))
        batch, self._order = self._order[:count], self._order[count:]
        rows: list[int] = []
        numbers: tuple[list[int], ...] = tuple([] for _ in SHARES)
        for place in batch:
            row, english, others, chances = self._captioned[place]
            rows.append(row)
            order = self._rng.choice(len(others), len(SHARES) - 1, p=chances, replace=False)
            languages = (english, *(others[n] for n in order))
            for listed, own in zip(numbers, languages, strict=True):
                listed.append(own[self._rng.integers(len(own))])
        return rows, [number for listed in numbers for number in listed]


def _others(
    own: Mapping[str, list[int]], counts: Mapping[str, int]
) -> tuple[list[list[int]], NDArray[np.float64]]:
    """List a photo's captions in other languages, English if too few, and their chances."""
    languages = [lang for lang in own if lang != "en"]
    languages += ["en"] * max(0, len(SHARES) - 1 - len(languages))
    chances = np.array([counts[lang] for lang in languages], dtype=np.float64)
    return [own[lang] for lang in languages], chances / chances.sum()
