"""Recall on training photos that were held out, by which settings are chosen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from searchlab.models.mini.text import Pieces, add_common
from searchlab.training.mini.corpora import CAPTION_LANGUAGES, Caption
from searchlab.training.mini.photo_tower import Readings
from searchlab.training.mini.student import PieceTable, Student, pack_texts
from searchlab.training.mini.text_examples import LONGEST

CUTOFFS = (1, 5, 10)


@torch.no_grad()
def held_out_recall(
    student: Student,
    table: PieceTable,
    head: torch.nn.Module,
    pieces: Pieces,
    photos: Readings,
    captions: Sequence[Caption],
) -> Iterator[str]:
    """Measure for each language which share of the captions find their own photo.

    Args:
        student: The mixer.
        table: The pieces' vectors.
        head: The photo head that ranks hubs lower.
        pieces: Cuts texts into pieces.
        photos: The tower's readings of the photos; only these are searched.
        captions: Captions of these photos.

    Yields:
        A line for each language with recall@1 / recall@5 / recall@10 in percent.
    """
    student.eval()
    head.eval()
    photo_rows = head(torch.from_numpy(photos.features), torch.from_numpy(photos.logits))
    row_of = {photo: row for row, photo in enumerate(photos.ids)}
    for language in CAPTION_LANGUAGES:
        queries = [
            (row_of[caption.photo_id], rows[:LONGEST])
            for caption in captions
            if caption.language == language and (rows := pieces.encode(caption.text))
        ]
        packed = pack_texts([rows for _, rows in queries])
        own = torch.tensor([row for row, _ in queries])
        query_rows = add_common(student(table.take(packed), packed).numpy())
        scores = torch.from_numpy(query_rows) @ photo_rows.T
        ranks = (scores > scores.gather(1, own[:, None])).sum(dim=1).numpy()
        shares = " / ".join(f"{100 * np.mean(ranks < k):.1f}" for k in CUTOFFS)
        yield f"{language} {shares} of {len(queries)} captions"
