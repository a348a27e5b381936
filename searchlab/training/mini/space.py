"""What `mini` is made from: the teachers' vectors of texts, and the space that photos share.

The named part of the space is computed from names alone. Its other part is what a few pairs of
heads agree on, which are trained on captioned photos and do not ship.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from searchlab.models.openclip.torchvision_shim import import_torchvision
from searchlab.progress import Progress
from searchlab.training.mini import labels
from searchlab.training.mini.corpora import (
    Annotations,
    Caption,
    read_annotations,
    training_captions,
)
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
from searchlab.training.mini.photo_tower import Readings
from searchlab.training.mini.phrases import PHRASES
from searchlab.training.mini.plain_kinds import find_plain_kinds
from searchlab.training.mini.recipe import Ingredients
from searchlab.training.mini.sentences import Name, Sentence, read_names, read_sentences
from searchlab.training.mini.stages import restore_or_make
from searchlab.training.mini.teacher import Teacher
from searchlab.training.mini.text_examples import TEMPLATE

TAUGHT = 192  # Width of one teaching head.


class Words(NamedTuple):
    """The texts that the towers are made from.

    Attributes:
        teacher: Embeds texts.
        annotations: CLDR's words.
        captions: Captions of the photos in use.
        sentences: Sentences in many languages.
        names: Names of things in many languages.
        class_names: Names of the image tower's classes, in the order of its logits.
        kinds: Names of the kinds above the classes.
        members: (1000, n_kinds) ones where a class is of a kind, else zeros.
        plain_kinds: The plain kinds of each label of photos.
    """

    teacher: Teacher
    annotations: Annotations
    captions: list[Caption]
    sentences: list[Sentence]
    names: list[Name]
    class_names: list[str]
    kinds: list[str]
    members: Floats
    plain_kinds: dict[str, list[str]]

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


def read_words(
    ingredients: Ingredients, cache: Path, photos: Sequence[str], progress: Progress
) -> Words:
    """Read words, and the captions of some photos, given by their ids."""
    import_torchvision()
    from open_clip import IMAGENET_CLASSNAMES

    wanted_ids = set(photos)
    nouns, synsets = labels.read_nouns(ingredients.wordnet), labels.list_class_synsets()
    kinds, members = labels.find_kinds(nouns, synsets)
    classes = dict(zip(IMAGENET_CLASSNAMES, synsets, strict=True))
    return Words(
        teacher=Teacher(ingredients.packages, cache, progress),
        annotations=read_annotations(ingredients.cldr),
        captions=list(training_captions(ingredients.datasets, wanted_ids)),
        sentences=read_sentences(ingredients.datasets),
        names=read_names(ingredients.datasets),
        class_names=list(IMAGENET_CLASSNAMES),
        kinds=kinds,
        members=members,
        plain_kinds=find_plain_kinds(nouns, classes, PHRASES),
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
    kept: Path,
    progress: Progress,
) -> tuple[TextSide, PhotoHead, list[Floats]]:
    """Train the teaching heads, or take those that the folder `kept` has.

    Returns:
        The map from texts to their targets, a photo head that is not trained yet, and for each view
        the targets of its photos, (n_photos, CAPTIONED).
    """
    features = views[0].features
    start = (space.classes, features.mean(axis=0), features.std(axis=0) + np.float32(1e-3))

    def train(number: int) -> list[torch.Tensor]:
        """Train a pair of heads; its map of texts, and its rows of each view's photos."""
        torch.manual_seed(number)
        head = PhotoHead(*start, width=TAUGHT, hidden=WIDE_HIDDEN)
        text_map = train_pair(
            head,
            views,
            space.own,
            space.vectors,
            width=TAUGHT,
            collections=collections,
            seed=number,
        )
        inputs = [(torch.from_numpy(v.features), torch.from_numpy(v.logits)) for v in views]
        with torch.no_grad():
            return [torch.from_numpy(text_map), *(head.parts(*both)[0] for both in inputs)]

    maps: list[Floats] = []
    photos: list[list[Floats]] = [[] for _ in views]
    with progress.step("training the teaching heads", teachers, unit="heads") as step:
        for number in range(seed, seed + teachers):
            trained = restore_or_make(kept / f"teacher-{number}.pt", partial(train, number))
            text_map, *rows = (tensor.numpy() for tensor in trained)
            maps.append(text_map)
            for own, listed in zip(rows, photos, strict=True):
                listed.append(own)
            step.advance(1)
    text_rows = np.hstack([unit(space.vectors @ text_map) for text_map in maps])
    photo_rows = np.hstack(photos[0])
    both = np.concatenate([text_rows / len(text_rows) ** 0.5, photo_rows / len(photo_rows) ** 0.5])
    axes = principal_axes(both, CAPTIONED)
    side = TextSide(
        space.class_mean, space.caption_mean, space.spread, space.basis, np.stack(maps), axes
    )
    torch.manual_seed(seed)
    return side, PhotoHead(*start), [unit(np.hstack(rows) @ axes) for rows in photos]


def fill_template(names: Sequence[str]) -> list[str]:
    """Put names into the template in which the teachers read them."""
    return [TEMPLATE.format(name) for name in names]
