"""The text tower while it learns: a table of pieces and the mixer over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from searchlab.models.mini.text import Mixer
from searchlab.training.mini.heads import DIM, Floats
from searchlab.training.mini.text_examples import TextExamples

WIDTH = 144
"""Components of a piece's vector."""
HIDDEN = 192
RIDGE = 0.01
SHRINK = 0.6  # Length of the first rows against the ridge's prediction.
DECAY = (0.9, 0.98)  # Of Adam's two moments, for rows of the table.


class PackedTexts(NamedTuple):
    """Texts as pieces one after another, a gap (-1) after each text.

    Attributes:
        pieces: (n_places,) table rows and gaps.
        owner: (n_places,) number of the text.
        texts: Number of texts.
    """

    pieces: NDArray[np.int64]
    owner: NDArray[np.int64]
    texts: int


def pack_texts(texts: Sequence[Sequence[int]]) -> PackedTexts:
    """String texts of at least one piece together, as no text sees its neighbour across a gap."""
    pieces = np.array([piece for text in texts for piece in (*text, -1)], dtype=np.int64)
    lengths = [len(text) + 1 for text in texts]
    return PackedTexts(pieces, np.repeat(np.arange(len(texts)), lengths), len(texts))


class Student(torch.nn.Module):
    """What `TextTower` computes, in batches and with gradients.

    Args:
        direct: (WIDTH, DIM) first value of what a piece adds by itself.
        hidden: Width of the look at neighbours; 0 for a plain sum.
        dropped: Share of pieces that are left out of a text while learning.
    """

    def __init__(self, direct: Floats, *, hidden: int = HIDDEN, dropped: float = 0.15) -> None:
        super().__init__()
        self.direct = torch.nn.Parameter(torch.from_numpy(direct))
        self.window = torch.nn.Linear(3 * len(direct), max(1, hidden))
        self.outer = torch.nn.Parameter(torch.randn(max(1, hidden), direct.shape[1]) * 0.02)
        self.hidden = hidden
        self.dropped = dropped

    def forward(self, vectors: torch.Tensor, packed: PackedTexts) -> torch.Tensor:
        """Mix the vectors of strung pieces, (n_places, WIDTH); (n_texts, DIM) unit rows."""
        there = torch.from_numpy(packed.pieces >= 0)
        if self.training and self.dropped:
            there &= torch.rand(len(there)) > self.dropped
        vectors = vectors * there[:, None]
        owner = torch.from_numpy(packed.owner)
        none = vectors.new_zeros(packed.texts, WIDTH)
        mixed = none.index_add(0, owner, vectors) @ self.direct
        if self.hidden:
            before = functional.pad(vectors, (0, 0, 1, 0))[:-1]
            after = functional.pad(vectors, (0, 0, 0, 1))[1:]
            with torch.autocast("cpu", torch.bfloat16):
                seen = functional.relu(self.window(torch.cat([before, vectors, after], dim=1)))
            seen = seen.float() * there[:, None]
            none = seen.new_zeros(packed.texts, self.hidden)
            mixed = mixed + none.index_add(0, owner, seen) @ self.outer
        return functional.normalize(mixed, dim=1)

    def mixer(self) -> Mixer:
        """The weights as the shipped tower reads them."""
        parts = (self.direct, self.window.weight.T, self.window.bias, self.outer)
        return Mixer(*(np.ascontiguousarray(part.detach().numpy()) for part in parts))


class Table:
    """The pieces' vectors with an Adam that touches only the rows in use."""

    def __init__(self, first: Floats, *, rate: float) -> None:
        self.rows = torch.from_numpy(first)
        self.rate = rate
        self._mean = torch.zeros_like(self.rows)
        self._square = torch.zeros_like(self.rows)
        self._seen = torch.zeros(len(first), 1)
        self._used: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._leaf = torch.empty(0)

    def take(self, texts: PackedTexts) -> torch.Tensor:
        """Vectors of strung pieces, (n_places, WIDTH); gradients go to the rows in use."""
        self._used = np.unique(texts.pieces[texts.pieces >= 0])
        self._leaf = self.rows[self._used].requires_grad_()
        places = np.searchsorted(self._used, np.maximum(texts.pieces, self._used[0]))
        return functional.embedding(torch.from_numpy(places), self._leaf)

    @torch.no_grad()
    def step(self, factor: float) -> None:
        """One step of Adam on the rows last taken, at `factor` of the rate."""
        gradient = self._leaf.grad
        assert gradient is not None
        used = torch.from_numpy(self._used)
        seen = self._seen[used] + 1
        mean = self._mean[used].lerp(gradient, 1 - DECAY[0])
        square = self._square[used].lerp(gradient * gradient, 1 - DECAY[1])
        self._seen[used], self._mean[used], self._square[used] = seen, mean, square
        upright = (square / (1 - DECAY[1] ** seen)).sqrt() + 1e-9
        self.rows[used] -= self.rate * factor * mean / (1 - DECAY[0] ** seen) / upright


def first_weights(lessons: TextExamples, vectors: Floats) -> tuple[Floats, Floats]:
    """A first vector for each piece, from the teacher's of the piece alone.

    A ridge regression from teacher vectors to targets is learnt on the texts that are one piece; it
    takes the language out of a vector, and predicts short rows for pieces that say little. Of what
    it predicts the principal axes are kept.

    Args:
        lessons: Texts and targets.
        vectors: (n_pieces, 384) teacher vectors of the pieces, in row order.

    Returns:
        (n_pieces, WIDTH) vectors and the (WIDTH, DIM) axes that lead to rows.
    """
    centred = vectors - vectors.mean(axis=0)
    single = [
        number
        for number, rows in enumerate(lessons.rows)
        if len(rows) == 1 and lessons.weights[number] >= 0.1
    ]
    known = centred[[lessons.rows[number][0] for number in single]]
    targets = np.stack([lessons.targets[number] for number in single]).astype(np.float32)
    penalty = RIDGE * len(known) * float(np.var(known)) * np.eye(known.shape[1])
    solution = np.linalg.solve(known.T @ known + penalty, known.T @ targets)
    rows = SHRINK * centred @ solution
    axes = np.linalg.eigh(rows.T @ rows)[1][:, ::-1][:, :WIDTH]
    return (
        np.ascontiguousarray(rows @ axes, dtype=np.float32),
        np.ascontiguousarray(axes.T, dtype=np.float32).reshape(WIDTH, DIM),
    )


def quantise(table: Floats) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
    """Eight bits a number and one scale a row.

    Returns:
        (n_pieces, width) int8 and (n_pieces,) float16; their product is the table again, nearly.
    """
    scales = np.maximum(np.abs(table).max(axis=1) / 127, 1e-6).astype(np.float16)
    wide = scales.astype(np.float32)[:, None]
    return np.clip(np.rint(table / wide), -127, 127).astype(np.int8), scales
