"""Build the artefacts of `mini` from pinned packages and training data.

Settings were chosen on held-out photos (`Recipe.held_out`). No test photo and no judgment is read.
"""

from __future__ import annotations

import copy
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image

from searchlab.models.mini.pieces import Pieces
from searchlab.progress import Progress
from searchlab.training.mini import artefacts
from searchlab.training.mini.features import CALIBRATED, PhotoReadings, read_photos
from searchlab.training.mini.heads import Floats, PhotoHead, TextSide
from searchlab.training.mini.hubness import damp_hubs
from searchlab.training.mini.joint import blend, fit
from searchlab.training.mini.materials import list_absent, list_materials
from searchlab.training.mini.photo_tower import EmbeddingNetwork, open_rgb
from searchlab.training.mini.photos import TrainingPhotos, order_photos, training_photos
from searchlab.training.mini.phrases import PHRASES
from searchlab.training.mini.reading import learn_to_read
from searchlab.training.mini.recipe import Ingredients, Recipe
from searchlab.training.mini.sentences import is_held_out
from searchlab.training.mini.space import Words, fill_template, lay_out, make_space, read_words
from searchlab.training.mini.stages import digest_of, restore_or_train
from searchlab.training.mini.student import (
    PieceTable,
    Student,
    make_first_weights,
    spread_evenly,
)
from searchlab.training.mini.text_examples import (
    CAPTION,
    NOUN,
    TextExamples,
    teach_captions,
    teach_names,
    teach_sentences,
    teach_things,
)
from searchlab.training.mini.validation import held_out_reading, held_out_recall
from searchlab.training.mini.vocabulary import choose_pieces

JOINT_RATE = 1e-2  # Learning rate of the table while photos are learnt from.
RATE = 2e-2  # Learning rate of the table.


class Inputs(NamedTuple):
    """What the joint training starts from.

    Attributes:
        words: Words, captions and sentences.
        photos: The training photos.
        pictures: Those of them from which 8-bit ranges are taken.
        readings: The tuned image tower with its readings of the photos.
    """

    words: Words
    photos: TrainingPhotos
    pictures: list[Image.Image]
    readings: PhotoReadings


def build(
    ingredients: Ingredients,
    recipe: Recipe,
    *,
    cache: Path,
    out: Path,
    progress: Progress | None = None,
) -> None:
    """Build every artefact into a folder.

    Args:
        ingredients: Where the files lie that it is made from.
        recipe: How it is made.
        cache: Folder for the teachers' vectors, the tuned tower and its readings, and what each
            stage of training learnt. What is there is not made again, so an interrupted build
            continues.
        out: Folder of the artefacts.
        progress: Shows every step, and the recall on held-out photos.

    Raises:
        InputError: A file that it is made from is missing.
        MissingExtraError: A package is missing.
        DataError: A package is not the pinned version.
    """
    ingredients.check()
    progress = progress or Progress()
    for line in list_absent(ingredients.datasets):
        progress.say(line)
    torch.manual_seed(recipe.seed)
    inputs = read_inputs(ingredients, recipe, cache, progress)
    tower, _, all_views = inputs.readings
    apart = inputs.photos.rows(recipe.held_out)
    views = [view.rows(slice(apart, None)) for view in all_views]
    collections = inputs.photos.collections[apart:]
    words = inputs.words.restrict(views[0].ids)
    if recipe.held_out:
        words = words._replace(sentences=[s for s in words.sentences if not is_held_out(s.english)])
    read_texts = words.captions, words.sentences, words.names, words.annotations
    kept = cache / f"training-{digest_of(views, recipe, *read_texts)}"
    side, head, places = make_space(
        words,
        lay_out(words, views[0].ids),
        views,
        collections,
        teachers=recipe.teachers,
        seed=recipe.seed,
        kept=kept,
        progress=progress,
    )
    scores = choose_pieces(
        words.teacher.pieces(),
        words.annotations,
        words.captions,
        words.sentences,
        words.names,
        [*words.class_names, *words.kinds, *PHRASES],
        fragments=recipe.fragments,
        words=recipe.words,
    )
    lessons = make_lessons(words, Pieces(scores), side)
    progress.say(f"{len(scores):,} pieces, {len(lessons.rows):,} texts to learn")
    piece_vectors = words.teacher.encode([piece.lstrip("▁") for piece in scores])
    features, reader, direct = make_first_weights(lessons, piece_vectors)
    start = Student(direct), PieceTable(features, reader, rate=RATE)

    def learn() -> None:
        with progress.step("learning to read", recipe.reading, unit="steps") as step:
            steps, seed = recipe.reading, recipe.seed
            learn_to_read(*start, lessons, steps=steps, seed=seed, advance=step.advance)

    def train(run: tuple[Student, PieceTable, PhotoHead], number: int) -> None:
        title = f"joint training {number + 1} of {recipe.runs}"
        with progress.step(title, recipe.steps, unit="steps") as step:
            fit(
                *run,
                lessons,
                views,
                places,
                collections,
                steps=recipe.steps,
                seed=recipe.seed + number,
                advance=step.advance,
            )

    restore_or_train(kept / "reading.pt", start, learn)
    runs = []
    for number in range(recipe.runs):
        run = copy.deepcopy(start[0]), start[1].copy(rate=JOINT_RATE), copy.deepcopy(head)
        restore_or_train(kept / f"run-{number}.pt", run, partial(train, run, number))
        runs.append(run)
    blend(runs)
    student, table, head = runs[0]
    damped = damp_hubs(head, student, table, lessons, views[0], collections, seed=recipe.seed)
    if recipe.held_out:
        tower_lines = held_out_recall(
            student,
            table,
            damped,
            Pieces(scores),
            all_views[0].rows(slice(apart)),
            inputs.photos.collections[:apart],
            inputs.words.captions,
        )
        for line in (
            *tower_lines,
            *held_out_reading(student, table, Pieces(scores), inputs.words.sentences),
        ):
            progress.say(f"held out: {line}")
    rows, mixer = spread_evenly(table.vectors(), student.mixer(), seed=recipe.seed)
    artefacts.write(
        out,
        scores=scores,
        table=rows,
        mixer=mixer,
        network=EmbeddingNetwork(tower, damped),
        pictures=inputs.pictures,
        labels=label_rows(words, side),
        kinds=words.plain_kinds,
        sources=list_materials(ingredients.datasets),
    )
    *_, varied = training_photos(ingredients.datasets)  # Photos of the web, where there are any.
    with progress.step("embedding photos at large", artefacts.AT_LARGE, unit="photos") as step:
        artefacts.write_at_large(out, list(varied.values()), seed=recipe.seed, advance=step.advance)


def read_inputs(
    ingredients: Ingredients, recipe: Recipe, cache: Path, progress: Progress
) -> Inputs:
    """Read words and captions, tune the image tower, and let it read the photos."""
    photos = order_photos(training_photos(ingredients.datasets))
    ids = list(photos.files)
    words = read_words(ingredients, cache, ids, progress)
    calibrated = ids[photos.n_spared : photos.n_spared + CALIBRATED]
    pictures = open_rgb([photos.files[photo] for photo in calibrated])
    space = lay_out(words, ids)
    readings = read_photos(
        ingredients.packages,
        cache,
        photos,
        pictures,
        space.own,
        space.vectors,
        crops=recipe.crops,
        seed=recipe.seed,
        progress=progress,
    )
    return Inputs(words, photos, pictures, readings)


def make_lessons(words: Words, pieces: Pieces, side: TextSide) -> TextExamples:
    """Collect all texts that the text tower learns from, with their targets."""
    lessons = TextExamples()
    teach_names(lessons, pieces, words.teacher, side, words.annotations, words.class_names)
    teach_things(lessons, pieces, words.teacher, side, words.names)
    teach_captions(lessons, pieces, words.teacher, side, words.captions)
    teach_sentences(lessons, pieces, words.teacher, side, words.sentences)
    return lessons


def label_rows(words: Words, side: TextSide) -> dict[str, Floats]:
    """Embed the names and phrases that describe photos; returns a (dim,) unit row for each."""
    named = side.target(
        words.teacher.encode_english(fill_template(words.class_names)), side.class_mean, **NOUN
    )
    phrased = side.target(words.teacher.encode_english(PHRASES), side.caption_mean, **CAPTION)
    rows = dict(zip(PHRASES, phrased, strict=True))
    labels = dict(zip(words.class_names, named, strict=True)) | rows
    # The last component, how near a photo lies to all captions, does not matter for a label.
    return {label: np.append(row, np.float32(0)) for label, row in labels.items()}
