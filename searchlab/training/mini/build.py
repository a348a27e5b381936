"""Build the artefacts of `mini` from pinned packages and training data.

Settings were chosen on held-out photos (`Recipe.held_out`). No test photo and no judgment is read.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
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
from searchlab.training.mini.photo_tower import EmbeddingNetwork, Readings, open_rgb
from searchlab.training.mini.photos import order_photos, training_photos
from searchlab.training.mini.phrases import PHRASES
from searchlab.training.mini.recipe import Ingredients, Recipe
from searchlab.training.mini.student import PieceTable, Student, make_first_weights
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

RATE = 2e-2  # Learning rate of the table.
TAUGHT = 192  # Width of one teaching head.


class Words(NamedTuple):
    """The texts that the towers are made from.

    Attributes:
        teacher: Embeds texts.
        annotations: CLDR's words.
        captions: Captions of the photos in use.
        class_names: Names of the image tower's classes, in the order of its logits.
        kinds: Names of the kinds above the classes.
        members: (1000, n_kinds) ones where a class is of a kind, else zeros.
    """

    teacher: Teacher
    annotations: Annotations
    captions: list[Caption]
    class_names: list[str]
    kinds: list[str]
    members: Floats

    def restrict(self, photos: Sequence[str]) -> Words:
        """Return the same words with the captions of some photos only."""
        ids = set(photos)
        return self._replace(captions=[c for c in self.captions if c.photo_id in ids])


class Space(NamedTuple):
    """What of the joint space is computed without any training.

    Attributes:
        class_mean: (768,) mean teacher vector of the class names.
        spread: (768,) factors that bring centred vectors to about unit length.
        basis: (768, NAMED) axes of the named part.
        classes: (1000, NAMED) vectors of which the named part of a photo is a weighted mean.
        caption_mean: (768,) mean teacher vector of English captions.
        vectors: (n_captions, 768) teacher vectors of English captions, centred and scaled.
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
        ingredients: Where the files lie that it is made from.
        recipe: How it is made.
        cache: Folder for the teachers' vectors, the tuned tower and its readings. What is there
            is not made again, so an interrupted build continues.
        out: Folder of the artefacts.
        progress: Shows every step, and the recall on held-out photos.

    Raises:
        InputError: A file that it is made from is missing.
        MissingExtraError: A package is missing.
        DataError: A package is not the pinned version.
    """
    ingredients.check()
    progress = progress or Progress()
    torch.manual_seed(recipe.seed)
    all_words, pictures, (tower, _, all_views) = read_inputs(ingredients, recipe, cache, progress)
    views = [view.rows(slice(recipe.held_out, None)) for view in all_views]
    words = all_words.restrict(views[0].ids)
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
    lessons = make_lessons(words, Pieces(scores), side)
    progress.say(f"{len(scores):,} pieces, {len(lessons.rows):,} texts to learn")
    piece_vectors = words.teacher.encode([piece.lstrip("▁") for piece in scores])
    first_rows, direct = make_first_weights(lessons, piece_vectors)
    start = Student(direct)
    runs = []
    for number in range(recipe.runs):
        run = copy.deepcopy(start), PieceTable(first_rows.copy(), rate=RATE), copy.deepcopy(head)
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
        held_out = all_views[0].rows(slice(recipe.held_out))
        captions = all_words.restrict(held_out.ids).captions
        for line in held_out_recall(student, table, damped, Pieces(scores), held_out, captions):
            progress.say(f"held out: {line}")
    artefacts.write(
        out,
        scores=scores,
        table=table.rows.numpy(),
        mixer=student.mixer(),
        network=EmbeddingNetwork(tower, damped),
        pictures=pictures,
        labels=label_rows(words, side),
    )


def read_inputs(
    ingredients: Ingredients, recipe: Recipe, cache: Path, progress: Progress
) -> tuple[Words, list[Image.Image], PhotoReadings]:
    """Read words and captions, tune the image tower, and let it read the photos.

    Returns:
        The words, the photos from which 8-bit ranges are taken, and the tower with its readings,
        in which the held-out photos come first.
    """
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
    return words, pictures, readings


def read_words(
    ingredients: Ingredients, cache: Path, photos: Sequence[str], progress: Progress
) -> Words:
    """Read words, and the captions of some photos, given by their ids."""
    import_torchvision()
    from open_clip import IMAGENET_CLASSNAMES

    wanted_ids = set(photos)
    kinds, members = labels.find_kinds(
        labels.read_nouns(ingredients.wordnet), labels.list_class_synsets()
    )
    return Words(
        teacher=Teacher(ingredients.packages, cache, progress),
        annotations=read_annotations(ingredients.cldr),
        captions=list(training_captions(ingredients.datasets, wanted_ids)),
        class_names=list(IMAGENET_CLASSNAMES),
        kinds=kinds,
        members=members,
    )


def lay_out(words: Words, photos: Sequence[str]) -> Space:
    """Compute the named part, and bring the captions' vectors to the scale of training."""
    teacher = words.teacher
    classes = teacher.encode_english(fill_template(words.class_names))
    kinds = teacher.encode_english(fill_template(words.kinds))
    things = teacher.encode_english(
        fill_template(sorted(set(words.annotations.names["en"].values())))
    )
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
    vectors = teacher.encode_english([caption.text for caption in english])
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
    collections: NDArray[np.int8],
    *,
    teachers: int,
    seed: int,
    progress: Progress,
) -> tuple[TextSide, PhotoHead, list[Floats]]:
    """Train the teaching heads.

    Returns:
        The map from texts to their targets, a photo head that is not trained yet, and for each view
        the targets of its photos, (n_photos, CAPTIONED).
    """
    features = views[0].features
    start = (space.classes, features.mean(axis=0), features.std(axis=0) + np.float32(1e-3))
    maps, texts = [], []
    photos: list[list[Floats]] = [[] for _ in views]
    with progress.step("training the teaching heads", teachers, unit="heads") as step:
        for number in range(teachers):
            torch.manual_seed(seed + number)
            head = PhotoHead(*start, width=TAUGHT, hidden=WIDE_HIDDEN)
            text_map = train_pair(
                head,
                views,
                space.own,
                space.vectors,
                width=TAUGHT,
                collections=collections,
                seed=seed + number,
            )
            maps.append(text_map)
            texts.append(unit(space.vectors @ maps[-1]))
            with torch.no_grad():
                for view, rows in zip(views, photos, strict=True):
                    inputs = torch.from_numpy(view.features), torch.from_numpy(view.logits)
                    rows.append(head.parts(*inputs)[0].numpy())
            step.advance(1)
    text_rows, photo_rows = np.hstack(texts), np.hstack(photos[0])
    both = np.concatenate([text_rows / len(text_rows) ** 0.5, photo_rows / len(photo_rows) ** 0.5])
    axes = principal_axes(both, CAPTIONED)
    side = TextSide(
        space.class_mean, space.caption_mean, space.spread, space.basis, np.stack(maps), axes
    )
    torch.manual_seed(seed)
    return side, PhotoHead(*start), [unit(np.hstack(rows) @ axes) for rows in photos]


def make_lessons(words: Words, pieces: Pieces, side: TextSide) -> TextExamples:
    """Collect all texts that the text tower learns from, with their targets."""
    lessons = TextExamples()
    teach_names(lessons, pieces, words.teacher, side, words.annotations, words.class_names)
    teach_captions(lessons, pieces, words.teacher, side, words.captions)
    return lessons


def fill_template(names: Sequence[str]) -> list[str]:
    """Put names into the template in which the teachers read them."""
    return [TEMPLATE.format(name) for name in names]


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
