"""Made vectors of known structure to measure indexes on, with queries of two kinds.

Vectors of photos form clusters, one for each kind of scene, which are harder for a graph than
points without structure. Queries of kind `image` are drawn as the photos are. Queries of kind
`text` lie in another direction, far from all photos, as captions do in every joint space of images
and texts (the modality gap).

References:
    Liang et al., Mind the gap: understanding the modality gap in multi-modal contrastive
    representation learning, NeurIPS 2022.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from searchlab.errors import InputError, quote
from searchlab.models.protocol import Embeddings, unit_rows
from searchlab.studies.vectors.scenes import N_SCENES, Scenes

# Weights of the photo's vector, of the direction that all texts share, and of chance: a text then
# has a cosine of about 0.3 with the photos that it describes, as with CLIP.
_TEXT = (0.35, 0.7, 0.6)
_NAME = re.compile(r"(clustered|smooth|scenes)-([1-9]\d*)(k?)-([1-9]\d*)")
_LATENT = 16


@dataclass(frozen=True)
class VectorSet:
    """Vectors of photos, and of queries that are not among them.

    Attributes:
        name: Name, such as `clustered-100k-256`.
        photos: (n_photos, dim) unit rows.
        queries: Kind, `image` and `text` -> (n_queries, dim) unit rows.
        about: Description of the vectors in words.
    """

    name: str
    photos: Embeddings = field(repr=False)
    queries: Mapping[str, Embeddings] = field(repr=False)
    about: str

    @property
    def digest(self) -> str:
        """12 hex digits of the SHA-256 over all vectors, for a manifest."""
        digest = hashlib.sha256(np.ascontiguousarray(self.photos).data)
        for kind in sorted(self.queries):
            digest.update(self.queries[kind].tobytes())
        return digest.hexdigest()[:12]


def made_vectors(name: str, *, n_queries: int = 200, seed: int = 0) -> VectorSet:
    """Make vectors of a known structure.

    Args:
        name: `clustered-N-DIM`, `smooth-N-DIM` or `scenes-N-DIM`; N may end in k for thousands.
        n_queries: Number of queries of each kind.
        seed: Seed of all random choices.

    Raises:
        InputError: The name has another form.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        msg = (
            "made vectors must be named clustered-N-DIM, smooth-N-DIM or scenes-N-DIM, such as "
            f"clustered-100k-256, got {quote(name)}"
        )
        raise InputError(msg)
    shape, dim = match[1], int(match[4])
    n = int(match[2]) * (1000 if match[3] else 1)
    if shape == "clustered":
        rows, _ = clustered(n + n_queries, dim, clusters=max(n // 500, 4), seed=seed)
        about = f"{n:,} unit rows about {max(n // 500, 4)} centres, {dim} components"
    elif shape == "scenes":
        made = Scenes(dim, seed=seed)
        rows = np.concatenate([made.rows(0, n)[0], made.queries(n_queries)])
        about = f"{n:,} unit rows in {N_SCENES:,} scenes of unlike size and shape, {dim} components"
    else:
        rows = smooth(n + n_queries, dim, seed=seed)
        about = f"{n:,} unit rows on a curved surface of {_LATENT} dimensions, {dim} components"
    images = rows[n:].copy()
    queries = {"image": images, "text": text_like(images, seed=seed + 1)}
    return VectorSet(name, rows[:n].copy(), queries, about)


def clustered(
    n: int, dim: int, *, clusters: int, seed: int
) -> tuple[Embeddings, NDArray[np.int64]]:
    """Draw unit rows around cluster centres.

    Returns:
        (n, dim) unit rows, and (n,) the cluster of each row.
    """
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((clusters, dim))
    member = rng.integers(0, clusters, n)
    rows = centres[member] + 0.8 * rng.standard_normal((n, dim))
    return unit_rows(rows), member


def smooth(n: int, dim: int, *, seed: int) -> Embeddings:
    """Draw (n, dim) unit rows without clusters, on a curved surface of few dimensions."""
    rng = np.random.default_rng(seed)
    bend = rng.standard_normal((_LATENT, 2 * dim), dtype=np.float32) / np.sqrt(np.float32(_LATENT))
    flatten = rng.standard_normal((2 * dim, dim), dtype=np.float32)
    latent = rng.standard_normal((n, _LATENT), dtype=np.float32)
    return unit_rows(np.tanh(2 * latent @ bend) @ flatten)


def text_like(images: Embeddings, *, seed: int) -> Embeddings:
    """Move vectors of pictures to the place of texts about such pictures.

    Args:
        images: (n, dim) unit rows.
        seed: Seed of the direction that all texts share, and of chance.

    Returns:
        (n, dim) unit rows.
    """
    rng = np.random.default_rng(seed)
    gap, chance = (unit_rows(rng.standard_normal((n, images.shape[1]))) for n in (1, len(images)))
    shows, shared, random = _TEXT
    return unit_rows(shows * images + shared * gap + random * chance)


def near(rows: Embeddings, *, seed: int, noise: float = 0.05) -> Embeddings:
    """Move rows a little, to make queries near photos; `noise` is the deviation per component."""
    rng = np.random.default_rng(seed)
    return unit_rows(rows + noise * rng.standard_normal(rows.shape))


class GivenVectors:
    """A model that knows the vectors of some texts, and nothing else.

    With it a `SearchEngine` can search vectors of any origin, without a neural network.
    """

    name = "given"
    reads: Literal["image", "text"] = "image"
    input_size = 1

    def __init__(self, texts: Mapping[str, Embeddings], dim: int) -> None:
        """Store the vectors.

        Args:
            texts: Text -> (dim,) unit row.
            dim: Number of components of a row.
        """
        self.dim = dim
        self._texts = dict(texts)
        digest = hashlib.sha256()
        for text, row in self._texts.items():
            digest.update(text.encode() + b"\0" + row.tobytes())
        self.model_id = f"given-{digest.hexdigest()[:12]}"

    @property
    def parts(self) -> tuple[tuple[GivenVectors, float], ...]:
        """This model, with weight 1; see `Embedder.parts`."""
        return ((self, 1.0),)

    def fingerprints(self) -> dict[str, str]:
        """Hash the given vectors; see `Embedder.fingerprints`."""
        return {"weights": self.model_id.rpartition("-")[2], "preprocessing": "", "tokenizer": ""}

    def encode_texts(self, texts: Sequence[str]) -> Embeddings:
        """Look texts up.

        Raises:
            InputError: One of them was not given.
        """
        unknown = [text for text in texts if text not in self._texts]
        if unknown:
            msg = f"texts must be among the {len(self._texts)} given, got {quote(unknown[0])}"
            raise InputError(msg)
        return np.array([self._texts[text] for text in texts], dtype=np.float32)

    def encode_images(self, images: Sequence[Image.Image]) -> Embeddings:
        """Refuse pictures.

        Raises:
            InputError: Always.
        """
        msg = f"given vectors must be asked for by text, got {len(images)} pictures"
        raise InputError(msg)
