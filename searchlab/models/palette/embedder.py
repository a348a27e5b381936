"""Colours only: pictures as soft histograms of their colours, texts as the colours they name.

Both are distributions over cells that cover the sRGB gamut in OKLab, as square roots: the cosine of
two rows is then the Bhattacharyya coefficient of the two distributions, 1 where they agree and 0
where they share no colour. The chroma is stretched near grey, for the step from grey to a tint
means more to people than the same step between two strong colours.

It needs no weights, so it is also what tests and notebooks use where any embedder will do.

References:
    Bjoern Ottosson, A perceptual color space for image processing, 2020.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from functools import cached_property
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from searchlab.models.canaries import Canary, canary_image, check_canaries
from searchlab.models.palette.words import Lab, Vocabulary
from searchlab.models.protocol import (
    Embedder,
    Embeddings,
    readable_texts,
    rgb_images,
    short_hash,
    unit_rows,
)
from searchlab.photos.colors import srgb_to_oklab

MAX_TEXT: Final = 2_000
"""Code points of a text that are read."""

_VERSION = 1  # of the method; a change of it changes every vector
_SIDE = 48  # pictures are averaged down to this many pixels a side
_CELL = 0.075  # edge of a cell, in stretched OKLab
_LIGHTNESS = 0.55  # hue counts more than lightness
_REACH = 0.3  # chroma that the stretching leaves as it is
_SPREAD_IMAGE = 0.55 * _CELL
_SPREAD_TEXT = 0.75 * _CELL  # "red" is wider than the shades that have a name
_BACKGROUND = 0.15  # share of a cut-out's histogram that its white ground gets

_CANARIES_TEXT: Final = (
    Canary(
        "rot, dark blue and #ff8800",
        (
            0.0096,
            0.1216,
            0.0648,
            0.0336,
            0.0072,
            0.0083,
            0.0105,
            0.0184,
            0.0473,
            0.0272,
            0.1448,
            0.1058,
            0.0478,
            0.0192,
            0.0054,
            0.1565,
        ),
    ),
    Canary(
        "红色 हरा жёлтая negro",
        (
            0.1474,
            0.0739,
            0.0435,
            0.1451,
            0.1461,
            0.0386,
            0.0610,
            0.0455,
            0.0572,
            0.0622,
            0.0417,
            0.1112,
            0.1393,
            0.0901,
            0.0475,
            0.0091,
        ),
    ),
)
_CANARIES_IMAGE: Final = (
    Canary(
        1,
        (
            0.0024,
            0.0289,
            0.0293,
            0.0227,
            0.0135,
            0.0204,
            0.0200,
            0.0136,
            0.0103,
            0.0108,
            0.0441,
            0.0256,
            0.0144,
            0.0165,
            0.0182,
            0.0651,
        ),
    ),
    Canary(
        2,
        (
            0.0021,
            0.0158,
            0.0159,
            0.0070,
            0.0125,
            0.0077,
            0.0131,
            0.0191,
            0.0110,
            0.0130,
            0.0353,
            0.0222,
            0.0159,
            0.0184,
            0.0194,
            0.0772,
        ),
    ),
)


def _stretch(lab: Lab) -> NDArray[np.float64]:
    """Return coordinates in which the cells are cubes; (n, 3)."""
    wide = lab.astype(np.float64)
    chroma = np.maximum(np.hypot(wide[:, 1], wide[:, 2]), 1e-9)
    pull = np.sqrt(_REACH / chroma)
    return np.column_stack([_LIGHTNESS * wide[:, 0], pull * wide[:, 1], pull * wide[:, 2]])


def _cells() -> NDArray[np.float64]:
    """List the centres of the cells that hold colours of sRGB; (n_cells, 3), sorted."""
    steps = np.linspace(0, 255, 21).round().astype(np.uint8)
    cube = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1).reshape(-1, 3)
    places = np.rint(_stretch(srgb_to_oklab(cube)) / _CELL).astype(np.int64)
    cells, counts = np.unique(places, axis=0, return_counts=True)
    centres: NDArray[np.float64] = np.multiply(cells[counts >= 3], _CELL, dtype=np.float64)
    return centres


class PaletteEmbedder(Embedder):
    """Embeds a picture as its colours, and a text as the colours that it names.

    Reads colour names and hex codes; see `searchlab.models.palette.words` for the languages. A text
    without any gives a zero row, so that in a hybrid the other parts decide alone.
    """

    def __init__(self) -> None:
        self._cells = _cells()
        self._vocabulary = Vocabulary()
        self.name = "palette"
        self.dim = len(self._cells)
        self.reads: Literal["image", "text"] = "image"
        self.input_size = _SIDE
        self.model_id = f"palette-{self._digest()}"
        self._lock = threading.Lock()

    def _digest(self) -> str:
        settings = (_VERSION, _SIDE, _LIGHTNESS, _REACH, _SPREAD_IMAGE, _SPREAD_TEXT, _BACKGROUND)
        digest = hashlib.sha256(repr(settings).encode())
        digest.update(np.rint(self._cells / _CELL).astype("<i8").tobytes())
        digest.update(repr(sorted(self._vocabulary.names.items())).encode())
        digest.update(repr(sorted(self._vocabulary.words.items())).encode())
        return digest.hexdigest()[:12]

    def fingerprints(self) -> dict[str, str]:
        """Hash the cells, what is done to a picture, and the words that name colours."""
        cells = np.rint(self._cells / _CELL).astype(int).tolist()
        spreads = (_VERSION, _CELL, _LIGHTNESS, _REACH, _SPREAD_IMAGE, _SPREAD_TEXT)
        words = (sorted(self._vocabulary.names.items()), sorted(self._vocabulary.words.items()))
        return {
            "weights": short_hash(repr((spreads, cells))),
            "preprocessing": short_hash(repr((_SIDE, _BACKGROUND))),
            "tokenizer": short_hash(repr((MAX_TEXT, words))),
        }

    def encode_texts(self, texts: Sequence[str]) -> Embeddings:
        """Embed the colours that texts name; (n_texts, dim), zero rows where there are none."""
        self._check_text_tower()
        return self._text_rows(readable_texts(texts, max_length=MAX_TEXT))

    def encode_images(self, images: Sequence[Image.Image]) -> Embeddings:
        """Embed the colours of RGB pictures; (n_images, dim)."""
        self._check_image_tower()
        return self._image_rows(rgb_images(images))

    def _check_text_tower(self) -> None:
        with self._lock:
            _ = self._text_tower

    def _check_image_tower(self) -> None:
        with self._lock:
            _ = self._image_tower

    @cached_property
    def _text_tower(self) -> bool:
        rows = self._text_rows([str(canary.probe) for canary in _CANARIES_TEXT])
        check_canaries("palette's text tower", _CANARIES_TEXT, rows, tolerance=1e-3)
        return True

    @cached_property
    def _image_tower(self) -> bool:
        rows = self._image_rows([canary_image(int(canary.probe)) for canary in _CANARIES_IMAGE])
        check_canaries("palette's image tower", _CANARIES_IMAGE, rows, tolerance=1e-2)
        return True

    def _shares(self, lab: Lab, spread: float) -> NDArray[np.float64]:
        """Spread each shade over the cells, (n_shades, n_cells); rows sum to 1."""
        places = _stretch(lab)
        squared = np.zeros((len(places), len(self._cells)))
        for axis in range(3):
            squared += (places[:, axis, None] - self._cells[None, :, axis]) ** 2
        shares = np.exp((squared.min(axis=1, keepdims=True) - squared) / (2 * spread**2))
        total: NDArray[np.float64] = shares.sum(axis=1, keepdims=True)
        normalised: NDArray[np.float64] = shares / total
        return normalised

    def _text_rows(self, texts: Sequence[str]) -> Embeddings:
        histograms = np.zeros((len(texts), self.dim))
        for histogram, text in zip(histograms, texts, strict=True):
            for shades in self._vocabulary.shades(text):
                histogram += self._shares(shades, _SPREAD_TEXT).mean(axis=0)
        return unit_rows(np.sqrt(histograms))

    def _image_rows(self, images: Sequence[Image.Image]) -> Embeddings:
        histograms = np.zeros((len(images), self.dim))
        for histogram, image in zip(histograms, images, strict=True):
            small = image.resize((_SIDE, _SIDE), Image.Resampling.BOX)
            pixels = np.asarray(small).reshape(-1, 3)
            lab = srgb_to_oklab(pixels)
            weights = _weights(lab)
            packed = pixels @ np.array([65536, 256, 1])
            _, first, which = np.unique(packed, return_index=True, return_inverse=True)
            shares = self._shares(lab[first], _SPREAD_IMAGE)
            histogram += np.bincount(which, weights) @ shares
        return unit_rows(np.sqrt(histograms))


def _weights(lab: Lab) -> NDArray[np.float64]:
    """Weigh each pixel of a small picture, (_SIDE**2,); a cut-out's white ground weighs little.

    The ground is what is nearly white and reaches the border, if most of the border is that.
    A picture that is nothing but ground is a white picture.
    """
    whitish = (lab[:, 0] > 0.93) & (np.hypot(lab[:, 1], lab[:, 2]) < 0.03)
    whitish = whitish.reshape(_SIDE, _SIDE)
    border = np.zeros((_SIDE, _SIDE), dtype=bool)
    border[[0, -1], :] = border[:, [0, -1]] = True
    weights = np.ones((_SIDE, _SIDE))
    if whitish[border].mean() > 0.6:
        ground = _connect(whitish, whitish & border)
        n_ground, n_object = np.count_nonzero(ground), np.count_nonzero(~ground)
        if n_object > 0.01 * ground.size:
            weights[ground] = min(1.0, n_object / n_ground * _BACKGROUND / (1 - _BACKGROUND))
    return weights.reshape(-1)


def _connect(inside: NDArray[np.bool_], seeds: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Grow the seeds through `inside`, four neighbours a pixel."""
    reached = seeds
    while True:
        grown = reached.copy()
        grown[1:] |= reached[:-1]
        grown[:-1] |= reached[1:]
        grown[:, 1:] |= reached[:, :-1]
        grown[:, :-1] |= reached[:, 1:]
        grown &= inside
        if np.array_equal(grown, reached):
            return reached
        reached = grown
