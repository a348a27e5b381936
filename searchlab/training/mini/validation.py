"""Recall on training photos that were held out, by which settings are chosen."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from searchlab.models.mini.pieces import Pieces
from searchlab.models.mini.text import add_common
from searchlab.training.mini.corpora import CAPTION_LANGUAGES, Caption
from searchlab.training.mini.photo_tower import Readings
from searchlab.training.mini.sentences import Sentence, is_held_out
from searchlab.training.mini.student import PieceTable, Student, pack_texts
from searchlab.training.mini.text_examples import LONGEST

CUTOFFS = (1, 5, 10)
SEARCHED, FEWEST = 300, 30  # Most and fewest held-out sentences of a language.


@torch.no_grad()
def held_out_recall(
    student: Student,
    table: PieceTable,
    head: torch.nn.Module,
    pieces: Pieces,
    photos: Readings,
    collections: NDArray[np.int8],
    captions: Sequence[Caption],
) -> Iterator[str]:
    """Measure by collection and language which share of the captions find their own photo.

    Args:
        student: The mixer.
        table: The pieces' vectors.
        head: The photo head that ranks hubs lower.
        pieces: Cuts texts into pieces.
        photos: The tower's readings of the photos; those of one collection are searched.
        collections: (n_photos,) number of the collection of each photo.
        captions: Captions, of these photos and of others.

    Yields:
        Lines with recall@1 / recall@5 / recall@10 in percent.
    """
    student.eval()
    head.eval()
    photo_rows = head(torch.from_numpy(photos.features), torch.from_numpy(photos.logits))
    searched = [np.flatnonzero(collections == number) for number in np.unique(collections)]
    for (number, own_photos), language in itertools.product(enumerate(searched), CAPTION_LANGUAGES):
        row_of = {photos.ids[photo]: row for row, photo in enumerate(own_photos)}
        queries = [
            (row_of[caption.photo_id], rows[:LONGEST])
            for caption in captions
            if caption.photo_id in row_of
            and caption.language == language
            and (rows := pieces.encode(caption.text))
        ]
        if not queries:
            continue
        packed = pack_texts([rows for _, rows in queries])
        own = torch.tensor([row for row, _ in queries])
        query_rows = add_common(student(table.take(packed), packed).numpy())
        scores = torch.from_numpy(query_rows) @ photo_rows[own_photos].T
        ranks = (scores > scores.gather(1, own[:, None])).sum(dim=1).numpy()
        shares = " / ".join(f"{100 * np.mean(ranks < k):.1f}" for k in CUTOFFS)
        yield f"collection {number}, {language} {shares} of {len(queries)} captions"


@torch.no_grad()
def held_out_reading(
    student: Student, table: PieceTable, pieces: Pieces, sentences: Sequence[Sentence]
) -> Iterator[str]:
    """Measure for each language which share of the sentences find their English counterpart.

    Searched are the English counterparts of the held-out sentences of that language, at most
    `SEARCHED`.

    Yields:
        A line for each language with recall@1 in percent.
    """
    student.eval()
    pairs: dict[str, dict[str, str]] = defaultdict(dict)
    for sentence in sentences:
        own = pairs[sentence.language.split("-")[0]]
        if is_held_out(sentence.english) and len(own) < SEARCHED:
            own.setdefault(sentence.english, sentence.text)
    for language, texts in sorted(pairs.items()):
        rows = [
            (first, second)
            for english, text in texts.items()
            if (first := pieces.encode(text)) and (second := pieces.encode(english))
        ]
        if len(rows) < FEWEST:
            continue
        queries, counterparts = (
            student(table.take(packed), packed).numpy()
            for packed in (
                pack_texts([row[:LONGEST] for row in side]) for side in zip(*rows, strict=True)
            )
        )
        similarities = queries @ counterparts.T
        found = (similarities.argmax(axis=1) == np.arange(len(rows))).mean()
        yield f"{language} {100 * found:.1f} of {len(rows)} sentences find their English one"
