"""Train both shipped towers together, so that texts and photos lie in one space."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from searchlab.training.mini.heads import Floats, PhotoHead, contrast, pace
from searchlab.training.mini.photo_tower import Readings
from searchlab.training.mini.reading import MIXER_RATE, READER_RATE, Reading, average, distance
from searchlab.training.mini.student import PieceTable, Student, pack_texts
from searchlab.training.mini.text_examples import TextExamples

HEAD_RATE = 1e-3
NAMES, SENTENCES, PHOTOS = 2048, 768, 512
CAPTIONS, PLACES, CONTRAST, TOGETHER = 0.75, 1.0, 0.3, 0.1
"""Weights of the parts of the loss beside that of reading: the distances of captions and of photos
from their targets, the contrast of photos with captions, and that of a photo's captions with other
photos'."""
SHARES = (0.5, 0.25, 0.25)  # Weights of English captions and of the two in other languages.
AVERAGED = 0.99  # Share of the past in the averaged weights.


def fit(
    student: Student,
    table: PieceTable,
    head: PhotoHead,
    lessons: TextExamples,
    views: Sequence[Readings],
    places: Sequence[Floats],
    collections: NDArray[np.int8],
    *,
    steps: int,
    names: int = NAMES,
    sentences: int = SENTENCES,
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
        collections: (n_photos,) number of the collection of each photo; a step has photos of one.
        steps: Number of steps of Adam.
        names: Names per step.
        sentences: English sentences per step, each with a translation.
        photos: Captioned photos per step, each with an English caption and two in other languages.
        seed: Seed of everything that is drawn at random.
        advance: Called with the number of steps done since the last call.
    """
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    scales = [torch.nn.Parameter(torch.tensor(np.log(20.0), dtype=torch.float32)) for _ in range(4)]
    optimiser = torch.optim.AdamW(
        [
            {"params": head.parameters(), "lr": HEAD_RATE, "weight_decay": 0.1},
            {"params": student.parameters(), "lr": MIXER_RATE, "weight_decay": 0.01},
            {"params": table.reader.parameters(), "lr": READER_RATE, "weight_decay": 0.01},
            {"params": scales, "lr": HEAD_RATE, "weight_decay": 0.0},
        ]
    )
    plan = torch.optim.lr_scheduler.LambdaLR(optimiser, partial(pace, steps=steps))
    mean_student, mean_head = copy.deepcopy(student), copy.deepcopy(head)
    targets = np.stack(lessons.targets)
    reading = Reading(lessons, rng, names=names, sentences=sentences)
    sampler = _CaptionSampler(lessons, views[0].ids, collections, rng)
    mean_reader = copy.deepcopy(table.reader)
    student.train()
    head.train()
    for step in range(steps):
        texts = reading.draw()
        photo_numbers, captions = sampler.draw(photos)
        number = int(rng.integers(len(views)))
        view, place = views[number], torch.from_numpy(places[number][photo_numbers])
        packed = pack_texts([lessons.rows[text] for text in (*texts, *captions)])
        rows = student(table.take(packed), packed)
        text_rows, caption_rows = rows.split([len(texts), len(captions)])
        text_targets, caption_targets = (
            torch.from_numpy(targets[numbers].astype(np.float32)) for numbers in (texts, captions)
        )
        caption_part, named_part = head.parts(
            torch.from_numpy(view.features[photo_numbers]),
            torch.from_numpy(view.logits[photo_numbers]),
        )
        photo_rows = head.join(caption_part, named_part)
        english, *others = by_language = caption_rows.chunk(len(SHARES))
        caption_distance = _weigh_languages(
            [
                distance(*pair)
                for pair in zip(by_language, caption_targets.chunk(len(SHARES)), strict=True)
            ]
        )
        place_distance = distance(caption_part, place)
        caption_contrast = _weigh_languages(
            [contrast(rows, photo_rows, scales[0]) for rows in by_language]
        )
        target_contrast = contrast(caption_targets[:photos], photo_rows, scales[1])
        languages = torch.stack([contrast(english, rows, scales[2]) for rows in others]).mean()
        loss = reading.loss(text_rows, text_targets, scales[3])
        loss = loss + CAPTIONS * caption_distance + PLACES * place_distance
        loss = loss + CONTRAST * (caption_contrast + target_contrast) + TOGETHER * languages
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        table.step(pace(step, steps=steps))
        plan.step()
        past = min(AVERAGED, step / (step + 10))
        average(mean_student, student, past)
        average(mean_head, head, past)
        average(mean_reader, table.reader, past)
        advance(1)
    average(student, mean_student, 0.0)
    average(head, mean_head, 0.0)
    average(table.reader, mean_reader, 0.0)
    student.eval()
    head.eval()


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
        average(student, other_student, past)
        average(head, other_head, past)
        average(table.reader, other_table.reader, past)
        table.rows.lerp_(other_table.rows, 1 - past)


class _CaptionSampler:
    """Draws photos of one collection, each collection in turn, with captions."""

    def __init__(
        self,
        lessons: TextExamples,
        photos: Sequence[str],
        collections: NDArray[np.int8],
        rng: np.random.Generator,
    ) -> None:
        self._rng = rng
        counts = Counter(
            lang for own in lessons.captions.values() for lang, ns in own.items() for _ in ns
        )
        self._captioned = [
            (row, lessons.captions[photo]["en"], *_others(lessons.captions[photo], counts))
            for row, photo in enumerate(photos)
            if photo in lessons.captions
        ]
        rows = np.array([row for row, *_ in self._captioned])
        numbers = np.unique(collections[rows]).tolist()
        self._pools = [np.flatnonzero(collections[rows] == number) for number in numbers]
        self._orders = [np.empty(0, dtype=np.int64) for _ in self._pools]
        self._drawn = 0

    def draw(self, count: int) -> tuple[list[int], list[int]]:
        """Draw rows of photos, all of a collection once before any comes again, and captions.

        The captions are an English one of each photo, then one in another language, then one in
        yet another. A language is drawn by how many captions there are in it, so that a caption of
        a language with many is read as often as one of a language with few.
        """
        pool = self._drawn % len(self._pools)
        self._drawn += 1
        if len(self._orders[pool]) < count:
            self._orders[pool] = self._rng.permutation(self._pools[pool])
        batch, self._orders[pool] = self._orders[pool][:count], self._orders[pool][count:]
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
