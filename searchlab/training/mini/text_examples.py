"""What the text tower is taught: phrases in every language, each with the row that it should get.

A phrase of CLDR stands for an English name, so its target is the teachers' row of that name,
whatever the language of the phrase. A caption in another language gets the mean row of its photo's
English captions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from searchlab.models.mini.pieces import Pieces
from searchlab.training.mini.corpora import Annotations, Caption, list_phrases
from searchlab.training.mini.heads import Floats, TextSide, unit
from searchlab.training.mini.sentences import Name, Sentence
from searchlab.training.mini.teacher import Teacher

TEMPLATE = "a photo of a {}"
NOUN = {"captioned": 0.45, "named": 0.9}
"""Weights of the two parts for a noun: the teaching heads know little beyond their photos."""
CAPTION = {"captioned": 0.8, "named": 0.6}
"""Weights of the two parts for a caption."""
LONGEST = 40  # Most pieces of a text.
THING = 0.3  # Weight of a name of a thing.
COMMON_KEYWORD = 12  # A keyword of more symbols than this is left out, as it says too little.


@dataclass
class TextExamples:
    """Texts as rows of the table, with targets.

    Attributes:
        rows: Table rows of each text.
        targets: (dim,) unit row of each text, in 16 bits.
        weights: How often each text is drawn, relative to others.
        captions: Photo id -> language -> numbers of the texts that are its captions.
        translations: Numbers of an English sentence and of its translations.
    """

    rows: list[list[int]] = field(default_factory=list)
    targets: list[NDArray[np.float16]] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    captions: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    translations: list[tuple[int, list[int]]] = field(default_factory=list)

    def add(self, rows: list[int], target: Floats, weight: float) -> int | None:
        """Add one text; returns its number, or None if none of its pieces is known."""
        if not rows:
            return None
        self.rows.append(rows[:LONGEST])
        self.targets.append(target.astype(np.float16))
        self.weights.append(weight)
        return len(self.rows) - 1


def teach_names(
    lessons: TextExamples,
    pieces: Pieces,
    teacher: Teacher,
    side: TextSide,
    annotations: Annotations,
    class_names: Sequence[str],
) -> None:
    """Add names and keywords of CLDR in every locale, and the class names in English."""
    english = sorted(set(annotations.names["en"].values()))
    vectors = teacher.encode_english([TEMPLATE.format(name) for name in english])
    targets = dict(zip(english, side.target(vectors, side.class_mean, **NOUN), strict=True))
    for locale, phrase, names, kind in list_phrases(annotations):
        if kind == "name":
            lessons.add(pieces.encode(phrase), targets[names[0]], 1.5 if locale == "en" else 1.0)
        elif len(names) <= COMMON_KEYWORD:
            mean = unit(np.mean([targets[name] for name in names], axis=0))
            lessons.add(pieces.encode(phrase), mean, 0.3 / len(names) ** 0.5)
    for name in english:
        lessons.add(pieces.encode(TEMPLATE.format(name)), targets[name], 1.0)
    vectors = teacher.encode_english([TEMPLATE.format(name) for name in class_names])
    for name, target in zip(
        class_names, side.target(vectors, side.class_mean, **NOUN), strict=True
    ):
        lessons.add(pieces.encode(name), target, 3.0)
        lessons.add(pieces.encode(TEMPLATE.format(name)), target, 3.0)


def teach_things(
    lessons: TextExamples, pieces: Pieces, teacher: Teacher, side: TextSide, names: Sequence[Name]
) -> None:
    """Add names of things in many languages, each with the row of its English name."""
    english = sorted({name.english for name in names})
    vectors = teacher.encode_english([TEMPLATE.format(name) for name in english])
    targets = dict(zip(english, side.target(vectors, side.class_mean, **NOUN), strict=True))
    for name in names:
        lessons.add(pieces.encode(name.text), targets[name.english], THING)


def teach_sentences(
    lessons: TextExamples,
    pieces: Pieces,
    teacher: Teacher,
    side: TextSide,
    sentences: Sequence[Sentence],
) -> None:
    """Add sentences that have an English counterpart, with the teachers' row of that."""
    translations: dict[str, list[str]] = {}
    for sentence in sentences:
        if sentence.english:
            translations.setdefault(sentence.english, []).append(sentence.text)
    vectors = teacher.encode_english(list(translations))
    targets = side.target(vectors, side.caption_mean, **CAPTION)
    for (english, texts), target in zip(translations.items(), targets, strict=True):
        first, *others = [lessons.add(pieces.encode(t), target, 0.0) for t in (english, *texts)]
        known = [number for number in others if number is not None]
        if first is not None and known:
            lessons.translations.append((first, known))


def teach_captions(
    lessons: TextExamples,
    pieces: Pieces,
    teacher: Teacher,
    side: TextSide,
    captions: Sequence[Caption],
) -> None:
    """Add captions of all languages.

    The English ones get the teachers' row, the others the mean of their photo's English ones.
    """
    english = [c for c in captions if c.language == "en"]
    vectors = teacher.encode_english([c.text for c in english])
    rows = side.target(vectors, side.caption_mean, **CAPTION)
    row_of_text = dict(zip((c.text for c in english), rows, strict=True))
    rows_of_photo: dict[str, list[Floats]] = {}
    for caption in english:
        rows_of_photo.setdefault(caption.photo_id, []).append(row_of_text[caption.text])
    for caption in captions:
        target = row_of_text.get(caption.text)
        if target is None:
            target = unit(np.mean(rows_of_photo[caption.photo_id], axis=0))
        number = lessons.add(pieces.encode(caption.text), target, 0.6)
        if number is not None:
            numbers = lessons.captions.setdefault(caption.photo_id, {})
            numbers.setdefault(caption.language, []).append(number)
