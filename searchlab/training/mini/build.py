"""Build the artefacts of `mini` from pinned packages and training data.

Settings were chosen on photos held out (`Recipe.held_out`). No test photo and no judgment is read.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image

from searchlab.models.mini.text import Pieces
from searchlab.models.openclip.torchvision_shim import import_torchvision
from searchlab.progress import Progress
from searchlab.training.mini import artefacts, labels
from searchlab.training.mini.corpora import (
    Annotations,
    Caption,
    read_annotations,
    training_captions,
    training_photos,
)
from searchlab.training.mini.features import CALIBRATED, PhotoReadings, read_photos
from searchlab.training.mini.heads import (
    CAPTIONED,
    NAMED,
    TEACHER_WIDTH,
    WIDE_HIDDEN,
    Floats,
    PhotoHead,
    TextSide,
    class_matrix,
    principal_axes,
    train_pair,
    unit,
)
from searchlab.training.mini.hubness import damp_hubs
from searchlab.training.mini.joint import blend, fit
from searchlab.training.mini.photo_tower import Joined, Readings, open_rgb
from searchlab.training.mini.phrases import PHRASES
from searchlab.training.mini.recipe import Ingredients, Recipe
from searchlab.training.mini.student import Student, Table, first_weights
from searchlab.training.mini.teacher import Teacher
from searchlab.training.mini.text_examples import (
    CAPTION,
    NOUN,
    TEMPLATE,
    TextExamples,
    teach_captions,
    teach_names,
)
from searchlab.training.mini.validation import held_out_recall
from searchlab.training.mini.vocabulary import choose_pieces

RATE = 2e-2  # Of the table.
TAUGHT = 192  # Components of one teaching head.


class Words(NamedTuple):
    """What the towers are made from, but for the photos.

    Attributes:
        teacher: Reads texts.
        annotations: CLDR's words.
        captions: Of the photos kept.
        class_names: Of the image tower, in the order of its logits.
        kinds: Names of the kinds above the classes.
        members: (1000, n_kinds) which class is of which kind.
    """

    teacher: Teacher
    annotations: Annotations
    captions: list[Caption]
    class_names: list[str]
    kinds: list[str]
    members: Floats

    def about(self, photos: Sequence[str]) -> Words:
        """The same with the captions of some photos alone."""
        known = set(photos)
        return self._replace(captions=[c for c in self.captions if c.photo_id in known])


class Space(NamedTuple):
    """What can be laid out of the joint space before any training.

    Attributes:
        class_mean: (768,) mean teacher vector of the class names.
        spread: (768,) factors that bring centred vectors to about unit length.
        basis: (768, NAMED) axes of the named part.
        classes: (1000, NAMED) what the named part of a photo is a mean of.
        caption_mean: (768,) mean teacher vector of English captions.
        vectors: (n_captions, 768) those of the English captions, centred and scaled.
        own: Photo row -> rows of its captions in `vectors`.
    """

    class_mean: Floats
    spread: Floats
    basis: Floats
    classes: Floats
    caption_mean: Floats
    vectors: Floats
    own: dict[int, list[int]]


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
        ingredients: What it is made from.
        recipe: How it is made.
        cache: Folder for the teachers' answers, the tuned tower and its readings. What is there
            is not made again, so an interrupted build goes on.
        out: Folder of the artefacts.
        progress: Told of everything, and of the recall on photos held out.

    Raises:
        InputError: Something that it is made from is not there.
        MissingExtraError: A package is not there.
        DataError: A package is not the pinned version.
    """
    ingredients.check()
    progress = progress or Progress()
    torch.manual_seed(recipe.seed)
    everyone, pictures, (tower, _, seen) = look(ingredients, recipe, cache, progress)
    views = [view.rows(slice(recipe.held_out, None)) for view in seen]
    words = everyone.about(views[0].ids)
    side, head, places = make_space(
        words,
        lay_out(words, views[0].ids),
        views,
        teachers=recipe.teachers,
        seed=recipe.seed,
        progress=progress,
    )
    scores = choose_pieces(
        words.teacher.pieces(),
        words.annotations,
        words.captions,
        [*words.class_names, *words.kinds, *PHRASES],
        fragments=recipe.fragments,
        words=recipe.words,
    )
    lessons = teach(words, Pieces(scores), side)
    progress.say(f"{len(scores):,} pieces, {len(lessons.rows):,} texts to learn")
    alone = words.teacher.encode([piece.lstrip("▁") for piece in scores])
    first, direct = first_weights(lessons, alone)
    start = Student(direct)
    runs = []
    for number in range(recipe.runs):
        run = copy.deepcopy(start), Table(first.copy(), rate=RATE), copy.deepcopy(head)
        title = f"joint training {number + 1} of {recipe.runs}"
        with progress.step(title, recipe.steps, unit="steps") as step:
            fit(
                *run,
                lessons,
                views,
                places,
                steps=recipe.steps,
                seed=recipe.seed + number,
                advance=step.advance,
            )
        runs.append(run)
    blend(runs)
    student, table, head = runs[0]
    damped = damp_hubs(head, student, table, lessons, views[0], seed=recipe.seed)
    if recipe.held_out:
        spared = seen[0].rows(slice(recipe.held_out))
        captions = everyone.about(spared.ids).captions
        for line in held_out_recall(student, table, damped, Pieces(scores), spared, captions):
            progress.say(f"held out: {line}")
    artefacts.write(
        out,
        scores=scores,
        table=table.rows.numpy(),
        mixer=student.mixer(),
        network=Joined(tower, damped),
        pictures=pictures,
        labels=label_rows(words, side),
    )


def look(
    ingredients: Ingredients, recipe: Recipe, cache: Path, progress: Progress
) -> tuple[Words, list[Image.Image], PhotoReadings]:
    """Gather words and captions, and let the image tower be tuned and see the photos.

    Returns:
        The words, the photos by which numbers are scaled to 8 bits, and what was seen, the photos
        that are held out first.
    """
    photos = training_photos(ingredients.datasets)
    names = list(photos)
    ids = [names[number] for number in np.random.default_rng(0).permutation(len(photos))]
    words = gather(ingredients, cache, ids, progress)
    pictures = open_rgb([photos[photo] for photo in ids[CALIBRATED]])
    laid = lay_out(words, ids)
    seen = read_photos(
        ingredients.packages,
        cache,
        {photo: photos[photo] for photo in ids},
        pictures,
        laid.own,
        laid.vectors,
        crops=recipe.crops,
        seed=recipe.seed,
        progress=progress,
    )
    return words, pictures, seen


def gather(
    ingredients: Ingredients, cache: Path, photos: Sequence[str], progress: Progress
) -> Words:
    """Read words, and the captions of some photos."""
    import_torchvision()
    from open_clip import IMAGENET_CLASSNAMES

    known = set(photos)
    kinds, members = labels.kinds_of(labels.read_nouns(ingredients.wordnet), labels.class_synsets())
    return Words(
        teacher=Teacher(ingredients.packages, cache, progress),
        annotations=read_annotations(ingredients.cldr),
        captions=[c for c in training_captions(ingredients.datasets) if c.photo_id in known],
        class_names=list(IMAGENET_CLASSNAMES),
        kinds=kinds,
        members=members,
    )


def lay_out(words: Words, photos: Sequence[str]) -> Space:
    """Lay out the named part, and bring the captions' vectors to the scale of training."""
    teacher = words.teacher
    classes = teacher.english(fill_template(words.class_names))
    kinds = teacher.english(fill_template(words.kinds))
    things = teacher.english(fill_template(sorted(set(words.annotations.names["en"].values()))))
    class_mean = classes.mean(axis=0)
    halves = np.split(classes - class_mean, 2, axis=1)
    lengths = [float(np.linalg.norm(half, axis=1).mean()) for half in halves]
    spread = np.repeat(1 / np.array(lengths), TEACHER_WIDTH // 2).astype(np.float32)
    classes, kinds, things = ((rows - class_mean) * spread for rows in (classes, kinds, things))
    basis = principal_axes(np.concatenate([unit(classes), unit(kinds), unit(things)]), NAMED)

    row = {photo: number for number, photo in enumerate(photos)}
    english = [c for c in words.captions if c.language == "en"]
    own: dict[int, list[int]] = defaultdict(list)
    for number, caption in enumerate(english):
        own[row[caption.photo_id]].append(number)
    vectors = teacher.english([caption.text for caption in english])
    caption_mean = vectors.mean(axis=0)
    return Space(
        class_mean,
        spread,
        basis,
        class_matrix(classes, kinds, words.members) @ basis,
        caption_mean,
        (vectors - caption_mean) * spread,
        own,
    )


def make_space(
    words: Words,
    space: Space,
    views: Sequence[Readings],
    *,
    teachers: int,
    seed: int,
    progress: Progress,
) -> tuple[TextSide, PhotoHead, list[Floats]]:
    """Train the heads that teach.

    Returns:
        Where texts belong, a fresh head, and (n_photos, CAPTIONED) where each view's photos belong.
    """
    features = views[0].features
    start = (space.classes, features.mean(axis=0), features.std(axis=0) + np.float32(1e-3))
    maps, texts = [], []
    photos: list[list[Floats]] = [[] for _ in views]
    with progress.step("training the heads that teach", teachers, unit="heads") as step:
        for number in range(teachers):
            torch.manual_seed(seed + number)
            head = PhotoHead(*start, width=TAUGHT, hidden=WIDE_HIDDEN)
            maps.append(
                train_pair(head, views, space.own, space.vectors, width=TAUGHT, seed=seed + number)
            )
            texts.append(unit(space.vectors @ maps[-1]))
            with torch.no_grad():
                for view, rows in zip(views, photos, strict=True):
                    read = torch.from_numpy(view.features), torch.from_numpy(view.logits)
                    rows.append(head.parts(*read)[0].numpy())
            step.advance(1)
    beside, seen = np.hstack(texts), np.hstack(photos[0])
    both = np.concatenate([beside / len(beside) ** 0.5, seen / len(seen) ** 0.5])
    axes = principal_axes(both, CAPTIONED)
    side = TextSide(
        space.class_mean, space.caption_mean, space.spread, space.basis, np.stack(maps), axes
    )
    torch.manual_seed(seed)
    return side, PhotoHead(*start), [unit(np.hstack(rows) @ axes) for rows in photos]


def teach(words: Words, pieces: Pieces, side: TextSide) -> TextExamples:
    """Everything that the text tower learns from."""
    lessons = TextExamples()
    teach_names(lessons, pieces, words.teacher, side, words.annotations, words.class_names)
    teach_captions(lessons, pieces, words.teacher, side, words.captions)
    return lessons


def fill_template(names: Sequence[str]) -> list[str]:
    """Names as the teachers read them."""
    return [TEMPLATE.format(name) for name in names]


def label_rows(words: Words, side: TextSide) -> dict[str, Floats]:
    """Rows of the names and phrases that describe photos."""
    named = side.target(
        words.teacher.english(fill_template(words.class_names)), side.class_mean, **NOUN
    )
    phrased = side.target(words.teacher.english(PHRASES), side.caption_mean, **CAPTION)
    rows = dict(zip(PHRASES, phrased, strict=True))
    labels = dict(zip(words.class_names, named, strict=True)) | rows
    # How near a photo lies to captions in general says nothing of whether a label is right.
    return {label: np.append(row, np.float32(0)) for label, row in labels.items()}
