"""How far a model in fewer bits agrees with the one it was made from, by vectors and in rank.

Cosines alone do not tell whether results change. A model whose pictures all lie close together may
keep every cosine above 0.99 and yet rank them anew; so the order in which texts put pictures is
compared as well.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final

import numpy as np

from searchlab.errors import MismatchError
from searchlab.models.protocol import Embeddings

LEAST_COSINE: Final = {"fp32": 0.9999, "int8": 0.98}
"""Least cosine of a vector with the one that it replaces."""

LEAST_SAME_ORDER: Final = {"fp32": 0.99, "int8": 0.9}
"""Least share of pairs of pictures that texts still rank in the same order."""

_TOP: Final = 5


@dataclass(frozen=True)
class Parity:
    """What a comparison found.

    Attributes:
        text_cosine: Least cosine of a text's vector with the one that it replaces.
        image_cosine: The same for pictures.
        same_order: Share of pairs of pictures, over all texts, that are ranked in the same order;
            0.5 is chance.
        same_top: Share of each text's first five pictures that are among its first five again.
    """

    text_cosine: float
    image_cosine: float
    same_order: float
    same_top: float

    def __str__(self) -> str:
        return (
            f"cosine at worst {self.text_cosine:.4f} of texts and {self.image_cosine:.4f} of "
            f"pictures, {self.same_order:.1%} of pairs in the same order, "
            f"{self.same_top:.1%} of the first {_TOP} the same"
        )

    def is_enough(self, precision: str) -> bool:
        """Whether a model in this precision may replace the one it was made from."""
        return bool(
            min(self.text_cosine, self.image_cosine) >= LEAST_COSINE[precision]
            and self.same_order >= LEAST_SAME_ORDER[precision]
        )

    def to_dict(self) -> dict[str, float]:
        """Plain values, fit for JSON."""
        return asdict(self)


def measure_parity(
    texts: Embeddings, images: Embeddings, new_texts: Embeddings, new_images: Embeddings
) -> Parity:
    """Compare the vectors of two models for the same inputs.

    Args:
        texts: (n_texts, dim) unit rows of the original model.
        images: (n_images, dim) unit rows of the same, at least two.
        new_texts: (n_texts, dim) unit rows of the model that would replace it.
        new_images: (n_images, dim) unit rows of the same.

    Raises:
        MismatchError: The shapes differ, or there is nothing to rank.
    """
    shapes = [np.shape(rows) for rows in (texts, images, new_texts, new_images)]
    if shapes[:2] != shapes[2:] or len(texts) < 1 or len(images) < 2:
        msg = f"both models must embed the same texts and two pictures or more, got {shapes}"
        raise MismatchError(msg)
    scores, new_scores = texts @ images.T, new_texts @ new_images.T  # (n_texts, n_images)
    first, second = np.triu_indices(len(images), 1)
    order = np.sign(scores[:, first] - scores[:, second])
    new_order = np.sign(new_scores[:, first] - new_scores[:, second])
    top, new_top = (
        np.argsort(-matrix, axis=1, kind="stable")[:, :_TOP] for matrix in (scores, new_scores)
    )
    overlaps = [len(np.intersect1d(a, b)) / len(a) for a, b in zip(top, new_top, strict=True)]
    return Parity(
        text_cosine=_worst(texts, new_texts),
        image_cosine=_worst(images, new_images),
        same_order=round(float(np.mean(order == new_order)), 4),
        same_top=round(float(np.mean(overlaps)), 4),
    )


def _worst(rows: Embeddings, new_rows: Embeddings) -> float:
    cosines = np.sum(rows.astype(np.float64) * new_rows, axis=1)
    # A vector with a NaN agrees with nothing.
    return round(float(np.nan_to_num(cosines, nan=-1.0).min()), 6)
