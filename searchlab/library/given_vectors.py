"""Vectors that were computed elsewhere become those of a library's photos.

They are kept in the cache by content, as if the model had just embedded the photos, so that
indexes, experiments and snapshots do not know the difference.
"""

from __future__ import annotations

from collections.abc import Sequence

from searchlab.errors import ImageError, InputError, NotFoundError
from searchlab.library.cache import ContentCache
from searchlab.models.protocol import Embedder, towers_of
from searchlab.models.vectors.embedder import VectorsEmbedder
from searchlab.models.vectors.names import NamedPhoto
from searchlab.photos.images.decode import WORKING_SIDE, for_model, open_rgb
from searchlab.photos.images.resize import plain_resize
from searchlab.progress import Progress

_BATCH = 2_048
_COMPARED = 4
"""Photos that the named model embeds, to see whether the vectors are its own."""
_SAME = 0.995


def holds_vectors(model: Embedder) -> bool:
    """Return whether a part of a model is a folder of vectors."""
    return any(isinstance(part, VectorsEmbedder) for part, _ in model.parts)


def take_given_vectors(
    model: Embedder, photos: Sequence[NamedPhoto], cache: ContentCache, progress: Progress
) -> dict[str, str]:
    """Put the vectors that a model's folders hold into the cache.

    Args:
        model: Any model; only parts of it that hold vectors matter.
        photos: The photos that need vectors.
        cache: Keeps them by content.
        progress: Told what was matched.

    Returns:
        SHA-256 of each photo that has no vector and cannot be embedded -> why.

    Raises:
        InputError: No photo has a vector, or one id names two photos.
        MismatchError: The named model did not make the vectors.
    """
    lacking: dict[str, str] = {}
    for part, _ in model.parts:
        if isinstance(part, VectorsEmbedder):
            rows = _take(part, photos, cache, progress)
            if "image" not in towers_of(part):
                reason = f"has no vector in {part.folder}"
                lacking |= {photo.sha256: reason for photo in photos if photo.sha256 not in rows}
    return lacking


def _take(
    part: VectorsEmbedder, photos: Sequence[NamedPhoto], cache: ContentCache, progress: Progress
) -> set[str]:
    digests = [photo.sha256 for photo in photos]
    known = cache.known_vectors(part.model_id, digests)
    new = [photo for photo in photos if photo.sha256 not in known]
    if not new:
        return known
    rows = part.rows_of(new)
    if not rows and not known:
        first = new[0].path
        msg = (
            f"ids of the vectors in {part.folder} must name photos by file, photo_id, source's own "
            f"id or SHA-256, got none of {len(new):,} photos among {part.n_photos:,} ids; a photo "
            f"is {first}"
        )
        raise InputError(msg)
    _compare(part, [photo for photo in new if photo.sha256 in rows], rows, progress)
    listed = list(rows)
    for start in range(0, len(listed), _BATCH):
        batch = listed[start : start + _BATCH]
        vectors = part.photo_rows([rows[digest] for digest in batch])
        cache.keep(vectors=[(part.model_id, batch, vectors)])
    unused = part.n_photos - len(set(rows.values()))
    spare = f"; {unused:,} of {part.n_photos:,} vectors name no photo here" if unused else ""
    progress.say(f"{len(rows):,} of {len(new):,} photos have a vector in {part.folder}{spare}")
    return known | rows.keys()


def _compare(
    part: VectorsEmbedder,
    photos: Sequence[NamedPhoto],
    rows: dict[str, int],
    progress: Progress,
) -> None:
    """See on a few photos whether the named model made the vectors."""
    if part.base is None or "image" not in towers_of(part.base):
        return
    side = part.base.input_size
    images, digests = [], []
    for photo in photos[:: max(1, len(photos) // _COMPARED)][:_COMPARED]:
        try:
            content = photo.path.read_bytes()
            decoded = open_rgb(content, min_side=max(WORKING_SIDE, side))
        except (OSError, ImageError):
            continue  # it is reported where photos are read
        images.append(for_model(decoded.image, side, resize=plain_resize))
        digests.append(photo.sha256)
    if not images:
        return
    given = part.photo_rows([rows[digest] for digest in digests])
    cosine = part.compare(given, part.base.encode_images(images))
    if cosine < _SAME:
        progress.say(
            f"{part.base.name} gives photos vectors at a cosine of {cosine:.3f} to those in "
            f"{part.folder}: they were prepared in another way, and scores differ a little"
        )


def refuse_lacking(lacking: dict[str, str], photos: Sequence[NamedPhoto], model: Embedder) -> None:
    """Refuse photos without a vector, where none may be left out.

    Raises:
        NotFoundError: There are such photos.
    """
    if lacking:
        first = next(photo for photo in photos if photo.sha256 in lacking)
        msg = (
            f"every photo must have a vector to be searched with {model.name}, got "
            f"{len(lacking):,} of {len(photos):,} without, such as {first.path}; add them, or name "
            "the model that made the vectors, vectors:FOLDER@SPEC"
        )
        raise NotFoundError(msg)
