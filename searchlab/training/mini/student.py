"""The text tower while it learns: a table of pieces and the mixer over them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from searchlab.models.mini.text import Mixer, pack
from searchlab.training.mini.heads import DIM, Floats
from searchlab.training.mini.text_examples import TextExamples

WIDTH = 160
"""Components of a piece's vector."""
HIDDEN = 256
RIDGE = 0.01
SHRINK = 0.6  # Factor of the ridge regression's predictions that gives the first rows.
LARGEST = 7  # Largest number of 4 bits that is used.
SHARES_OF_LARGEST = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9, 1.0)
"""Shares of a row's largest component that its scale is tried for; larger ones are cut."""
DECAY = (0.9, 0.98)  # Decay of Adam's two moments, for rows of the table.


class PackedTexts(NamedTuple):
    """Texts as pieces one after another, a gap (-1) after each text.

    Attributes:
        pieces: (n_places,) table rows of the pieces, -1 for a gap.
        lengths: (n_texts,) number of places of each text, its gap included.
    """

    pieces: NDArray[np.int64]
    lengths: NDArray[np.int64]


def pack_texts(texts: Sequence[Sequence[int]]) -> PackedTexts:
    """Put texts of at least one piece each into one sequence; gaps keep them apart."""
    pieces = np.array([piece for text in texts for piece in (*text, -1)], dtype=np.int64)
    return PackedTexts(pieces, np.array([len(text) + 1 for text in texts], dtype=np.int64))


class Student(torch.nn.Module):
    """Computes what `TextTower` does, in batches and with gradients.

    Args:
        direct: (WIDTH, DIM) first weights of a piece by itself.
        hidden: Hidden units of the window over neighbours; 0 for a plain sum.
        dropped: Share of pieces, 0 to 1, that are left out of a text in training.
    """

    def __init__(self, direct: Floats, *, hidden: int = HIDDEN, dropped: float = 0.15) -> None:
        super().__init__()
        self.direct = torch.nn.Parameter(torch.from_numpy(direct))
        self.window = torch.nn.Linear(3 * len(direct), max(1, hidden))
        self.outer = torch.nn.Parameter(torch.randn(max(1, hidden), direct.shape[1]) * 0.02)
        self.hidden = hidden
        self.dropped = dropped

    def forward(self, vectors: torch.Tensor, packed: PackedTexts) -> torch.Tensor:
        """Mix the vectors of packed pieces, (n_places, WIDTH), into (n_texts, DIM) unit rows."""
        is_piece = torch.from_numpy(packed.pieces >= 0)
        if self.training and self.dropped:
            is_piece &= torch.rand(len(is_piece)) > self.dropped
        vectors = vectors * is_piece[:, None]
        lengths = torch.from_numpy(packed.lengths)
        mixed = torch.segment_reduce(vectors, "sum", lengths=lengths) @ self.direct
        if self.hidden:
            here = vectors.bfloat16()
            before = functional.pad(here, (0, 0, 1, 0))[:-1]
            after = functional.pad(here, (0, 0, 0, 1))[1:]
            with torch.autocast("cpu", torch.bfloat16):
                hidden = functional.relu(self.window(torch.cat([before, here, after], dim=1)))
            hidden = hidden.float() * is_piece[:, None]
            mixed = mixed + torch.segment_reduce(hidden, "sum", lengths=lengths) @ self.outer
        return functional.normalize(mixed, dim=1)

    def mixer(self) -> Mixer:
        """Return the weights as the shipped tower reads them."""
        parts = (self.direct, self.window.weight.T, self.window.bias, self.outer)
        return Mixer(*(np.ascontiguousarray(part.detach().numpy()) for part in parts))


class PieceTable:
    """The pieces' vectors: what a linear map makes of the teacher's, and what is learnt of each.

    The map is learnt from all texts, so a piece that few of them have, or none, still gets a
    vector that the mixer can use. Adam touches only the rows in use.

    Attributes:
        reader: Maps the teacher's vectors of pieces, (n, 384), to (n, WIDTH).
        rows: (n_pieces, WIDTH) what is added to that for each piece.
        rate: Learning rate of `rows`.
    """

    def __init__(self, features: Floats, reader: Floats, *, rate: float) -> None:
        self.reader = torch.nn.Linear(reader.shape[0], reader.shape[1], bias=False)
        self.reader.weight.data.copy_(torch.from_numpy(reader.T))
        self._features = torch.from_numpy(features)
        self.rows = torch.zeros(len(features), reader.shape[1])
        self.rate = rate
        self._forget()
        self._used: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._leaf = torch.empty(0)

    def take(self, texts: PackedTexts) -> torch.Tensor:
        """Return vectors of packed pieces, (n_places, WIDTH); gradients go to the rows in use."""
        self._used = np.unique(texts.pieces[texts.pieces >= 0])
        self._leaf = self.rows[self._used].requires_grad_()
        places = np.searchsorted(self._used, np.maximum(texts.pieces, self._used[0]))
        vectors = self._leaf + self.reader(self._features[self._used])
        return functional.embedding(torch.from_numpy(places), vectors)

    def copy(self, *, rate: float) -> PieceTable:
        """Return a table that starts with the same vectors and learns on its own."""
        other = copy.copy(self)
        other.reader = copy.deepcopy(self.reader)
        other.rows = self.rows.clone()
        other.rate = rate
        other._forget()
        return other

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Return what was learnt."""
        return {"rows": self.rows, **self.reader.state_dict()}

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """Take what was learnt before; the steps so far are forgotten."""
        self.rows = state["rows"]
        self.reader.load_state_dict({"weight": state["weight"]})
        self._forget()

    def _forget(self) -> None:
        self._mean = torch.zeros_like(self.rows)
        self._square = torch.zeros_like(self.rows)
        self._updates = torch.zeros(len(self.rows), 1)

    @torch.no_grad()
    def vectors(self) -> Floats:
        """Return the vectors of all pieces, (n_pieces, WIDTH)."""
        vectors: Floats = (self.rows + self.reader(self._features)).numpy()
        return vectors

    @torch.no_grad()
    def step(self, factor: float) -> None:
        """Take a step of Adam on the rows last taken, at `factor` times the rate."""
        gradient = self._leaf.grad
        assert gradient is not None
        used = torch.from_numpy(self._used)
        updates = self._updates[used] + 1
        mean = self._mean[used].lerp(gradient, 1 - DECAY[0])
        square = self._square[used].lerp(gradient * gradient, 1 - DECAY[1])
        self._updates[used], self._mean[used], self._square[used] = updates, mean, square
        scale = (square / (1 - DECAY[1] ** updates)).sqrt() + 1e-9
        self.rows[used] -= self.rate * factor * mean / (1 - DECAY[0] ** updates) / scale


def make_first_weights(lessons: TextExamples, vectors: Floats) -> tuple[Floats, Floats, Floats]:
    """Make a first vector for each piece from the teacher's vector of the piece alone.

    A ridge regression from teacher vectors to targets is learnt on the texts that are one piece. It
    takes the language out of a vector, and predicts short rows for pieces that say little. Only the
    principal axes of its predictions are kept.

    Args:
        lessons: Texts and targets.
        vectors: (n_pieces, 384) teacher vectors of the pieces, in row order.

    Returns:
        The teacher's vectors centred and scaled, (n_pieces, 384), the map from them to first
        vectors, (384, WIDTH), and the axes that map these to rows, (WIDTH, DIM).
    """
    centred = vectors - vectors.mean(axis=0)
    centred /= centred.std()
    single = [
        number
        for number, rows in enumerate(lessons.rows)
        if len(rows) == 1 and lessons.weights[number] >= 0.1
    ]
    inputs = centred[[lessons.rows[number][0] for number in single]]
    targets = np.stack([lessons.targets[number] for number in single]).astype(np.float32)
    penalty = RIDGE * len(inputs) * float(np.var(inputs)) * np.eye(inputs.shape[1])
    solution = np.linalg.solve(inputs.T @ inputs + penalty, inputs.T @ targets)
    rows = SHRINK * centred @ solution
    axes = np.linalg.eigh(rows.T @ rows)[1][:, ::-1][:, :WIDTH]
    return (
        centred,
        np.ascontiguousarray(SHRINK * solution @ axes, dtype=np.float32),
        np.ascontiguousarray(axes.T, dtype=np.float32).reshape(WIDTH, DIM),
    )


def spread_evenly(table: Floats, mixer: Mixer, *, seed: int = 0) -> tuple[Floats, Mixer]:
    """Turn the space of the pieces' vectors at random, and the mixer with it; no row changes.

    Learnt vectors have a few large components. Turned, all are about as large, so that one scale
    per row loses less when they are rounded.

    Returns:
        The table and the mixer that make the same rows of the same texts.
    """
    width = table.shape[1]
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(width, width)))[0]
    window = mixer.window.reshape(3, width, -1)
    turned = mixer._replace(
        direct=(turn.T @ mixer.direct).astype(np.float32),
        window=(turn.T @ window).reshape(mixer.window.shape).astype(np.float32),
    )
    return (table @ turn).astype(np.float32), turned


def quantise(table: Floats) -> tuple[NDArray[np.uint8], NDArray[np.float16]]:
    """Round a table to 4 bits per number, with one scale per row, that which loses least.

    Returns:
        (n_pieces, width / 2) packed numbers and (n_pieces,) scales, of which
        `searchlab.models.mini.text.unpack` makes nearly the table again.
    """
    largest = np.maximum(np.abs(table).max(axis=1), 1e-5)
    best = np.full(len(table), np.inf, dtype=np.float32)
    scales, numbers = np.zeros(len(table), dtype=np.float16), np.zeros(table.shape, dtype=np.int8)
    for share in SHARES_OF_LARGEST:
        tried = (share * largest / LARGEST).astype(np.float16)
        wide = tried.astype(np.float32)[:, np.newaxis]
        rounded = np.clip(np.rint(table / wide), -LARGEST, LARGEST)
        lost = ((rounded * wide - table) ** 2).sum(axis=1)
        better = lost < best
        best[better], scales[better], numbers[better] = lost[better], tried[better], rounded[better]
    return pack(numbers), scales
