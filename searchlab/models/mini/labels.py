"""The labels of `mini`: English words and phrases for what stands in a photo, and their kinds.

A photo's row is compared with the row of every label. Which of some alike labels fits, a golden
retriever or a Labrador, often stays open; that all of them are dogs does not. So the likelihood of
labels is shared out by a softmax over their cosines, and a kind has the shares of all its labels.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import DataError
from searchlab.models.protocol import Embeddings, unit_rows
from searchlab.photos.descriptions import Sight

LABELS_FILE = "labels.txt"
"""A line for each label: the label and its kinds, between tabs."""
LABEL_VECTORS_FILE = "label_vectors.npy"

LEAST_SHARE = 0.5
_SHARPNESS = 25.0  # What cosines are multiplied with in the softmax.


class Labels(NamedTuple):
    """Labels and kinds.

    Attributes:
        labels: The n_labels labels.
        vectors: (n_labels, dim) unit rows of the labels.
        kinds: The kinds, those of fewest labels first.
        members: (n_labels, n_kinds) ones where a label is of a kind, else zeros.
    """

    labels: list[str]
    vectors: Embeddings
    kinds: list[str]
    members: NDArray[np.float32]

    def name(self, rows: Embeddings, k: int) -> list[Sight]:
        """Name what stands in photos, given by (n_photos, dim) rows, with k labels a photo."""
        cosines = rows @ self.vectors.T  # (n_photos, n_labels)
        weights = np.exp(_SHARPNESS * (cosines - cosines.max(axis=1, keepdims=True)))
        shares = weights @ self.members / weights.sum(axis=1, keepdims=True)
        nearest = np.argsort(-cosines, axis=1, kind="stable")[:, :k]
        return [
            Sight(
                tuple((self.labels[label], float(own[label])) for label in order),
                tuple(
                    (kind, float(share))
                    for kind, share in zip(self.kinds, of_kinds, strict=True)
                    if share >= LEAST_SHARE
                ),
            )
            for own, of_kinds, order in zip(cosines, shares, nearest, strict=True)
        ]


def read_labels(folder: Path) -> Labels:
    """Read the labels of a model's folder.

    Raises:
        DataError: A file is missing or damaged.
    """
    try:
        lines = (folder / LABELS_FILE).read_text(encoding="utf-8").splitlines()
        vectors = unit_rows(np.load(folder / LABEL_VECTORS_FILE))
        if len(vectors) != len(lines):
            msg = f"{len(lines)} labels with {len(vectors)} rows"
            raise ValueError(msg)
    except (OSError, ValueError) as error:
        msg = f"the labels in {folder} must be readable, got {error}; reinstall searchlab"
        raise DataError(msg) from error
    kinds_of = {label: kinds for label, *kinds in (line.split("\t") for line in lines)}
    counts = Counter(kind for kinds in kinds_of.values() for kind in kinds)
    kinds = sorted(counts, key=lambda kind: (counts[kind], kind))
    members = [[kind in own for kind in kinds] for own in kinds_of.values()]
    return Labels(list(kinds_of), vectors, kinds, np.array(members, dtype=np.float32))
