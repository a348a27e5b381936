"""Photos and captions as rows of a model, split by photo into training, validation and test."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from searchlab.library.cache import ContentCache
from searchlab.library.catalog import text_key
from searchlab.library.embed import embed_pictures
from searchlab.library.library import Library
from searchlab.models.protocol import Embedder, Embeddings
from searchlab.photos.sidecar import Skipped
from searchlab.progress import Progress
from searchlab.training.adapt.captions import CaptionedPhoto

Part = Literal["train", "validation", "test"]
VALIDATION, TEST = 0.15, 0.15
"""Shares of the photos that are held out, 0 to 1."""
_BATCH = 256


def part_of(sha256: str) -> Part:
    """Return the part that a photo belongs to: by its content, so it is the same in every run.

    A photo that arrives later moves no other, and copies of a photo are never on both sides.
    """
    digest = hashlib.sha256(f"searchlab-adapt:{sha256}".encode()).digest()
    place = int.from_bytes(digest[:8]) / 2**64
    if place < TEST:
        return "test"
    return "validation" if place < TEST + VALIDATION else "train"


@dataclass(frozen=True)
class CaptionPairs:
    """Captioned photos as rows of a model.

    Attributes:
        sha256s: Hex digests of the photos' bytes.
        photos: (n_photos, dim) unit rows.
        texts: (n_captions, dim) unit rows; captions that say nothing to the model are not here.
        owners: (n_captions,) row in `photos` of the photo that each caption describes.
        text_ids: (n_captions,) a number for each different text.
        langs: (n_captions,) language of each caption.
    """

    sha256s: tuple[str, ...]
    photos: Embeddings
    texts: Embeddings
    owners: NDArray[np.int64]
    text_ids: NDArray[np.int64]
    langs: NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.sha256s)

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages of the captions, sorted."""
        return tuple(sorted(set(self.langs.tolist())))

    def part(self, name: Part) -> CaptionPairs:
        """Keep the photos of one part and their captions."""
        return self.keep(np.array([part_of(sha256) == name for sha256 in self.sha256s], dtype=bool))

    def keep(self, is_selected: NDArray[np.bool_]) -> CaptionPairs:
        """Keep some photos, (n_photos,) bool, and their captions."""
        rows = np.cumsum(is_selected) - 1
        of_selected = is_selected[self.owners]
        return CaptionPairs(
            tuple(s for s, selected in zip(self.sha256s, is_selected, strict=True) if selected),
            self.photos[is_selected],
            self.texts[of_selected],
            rows[self.owners[of_selected]].astype(np.int64),
            self.text_ids[of_selected],
            self.langs[of_selected],
        )

    @cached_property
    def fingerprint(self) -> str:
        """12 hex digits over photos, captions and their rows: what training depends on."""
        digest = hashlib.sha256(repr((self.sha256s, self.langs.tolist())).encode())
        for array in (self.photos, self.texts, self.owners, self.text_ids):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()[:12]


def embed_pairs(
    photos: Sequence[CaptionedPhoto],
    model: Embedder,
    library: Library,
    cache: ContentCache,
    progress: Progress,
) -> tuple[CaptionPairs, list[Skipped]]:
    """Embed captioned photos; what the cache knows is not embedded again.

    Args:
        photos: In any order; no two with the same bytes.
        model: A model that reads pixels.
        library: Its thumbnails are used and added to.
        cache: The library's open cache.
        progress: Shows how many photos and captions were embedded.

    Returns:
        The rows, in the order of the photos' digests, and the photos that cannot be read.
    """
    order = sorted(photos, key=lambda photo: photo.sha256)
    files = {photo.sha256: photo.file for photo in order}
    unknown = files.keys() - cache.known_vectors(model.model_id, list(files))
    todo = {sha256: files[sha256] for sha256 in sorted(unknown)}
    problems = embed_pictures(todo, [model], cache, library.thumbnails, progress)
    embedded = cache.known_vectors(model.model_id, list(files))
    order = [photo for photo in order if photo.sha256 in embedded]
    rows = cache.vectors(model.model_id, [photo.sha256 for photo in order], model.dim)
    owners = [owner for owner, photo in enumerate(order) for _ in photo.captions]
    captions = [caption for photo in order for caption in photo.captions]
    texts = embed_texts([caption.text for caption in captions], model, cache, progress)
    text_ids = {text: n for n, text in enumerate(dict.fromkeys(c.text for c in captions))}
    pairs = CaptionPairs(
        tuple(photo.sha256 for photo in order),
        rows,
        texts,
        np.array(owners, dtype=np.int64),
        np.array([text_ids[caption.text] for caption in captions], dtype=np.int64),
        np.array([caption.lang for caption in captions], dtype=np.str_),
    )
    return _drop_zero_rows(pairs), problems


def _drop_zero_rows(pairs: CaptionPairs) -> CaptionPairs:
    """Drop captions that say nothing to the model, and photos that are left without any."""
    has_meaning = np.linalg.norm(pairs.texts, axis=1) > 0
    remaining = CaptionPairs(
        pairs.sha256s,
        pairs.photos,
        pairs.texts[has_meaning],
        pairs.owners[has_meaning],
        pairs.text_ids[has_meaning],
        pairs.langs[has_meaning],
    )
    return remaining.keep(np.isin(np.arange(len(remaining)), remaining.owners))


def embed_texts(
    texts: Sequence[str], model: Embedder, cache: ContentCache, progress: Progress
) -> Embeddings:
    """Embed texts, (n_texts, dim); a text that the cache knows is not embedded again."""
    keys = [text_key(text) for text in texts]
    known = cache.known_vectors(model.model_id, list(dict.fromkeys(keys)))
    todo = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
    missing_keys = list(todo)
    if missing_keys:
        with progress.step("embedding captions", len(missing_keys), unit="captions") as step:
            for start in range(0, len(missing_keys), _BATCH):
                batch = missing_keys[start : start + _BATCH]
                rows = model.encode_texts([todo[key] for key in batch])
                cache.keep(vectors=[(model.model_id, batch, rows)])
                step.advance(len(batch))
    return cache.vectors(model.model_id, keys, model.dim)
