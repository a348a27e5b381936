"""The catalog: scanned pictures become rows of a photo table, and a table gets its vectors."""

from __future__ import annotations

import datetime
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import NotFoundError
from searchlab.library.cache import ContentCache
from searchlab.library.embed import PictureRunner, embed_pictures
from searchlab.library.given_vectors import holds_vectors, refuse_lacking, take_given_vectors
from searchlab.library.mapped_vectors import map_known_vectors
from searchlab.library.roots import Root
from searchlab.library.rows import row_of_picture
from searchlab.library.scan import Picture
from searchlab.models.hybrid import HybridEmbedder
from searchlab.models.protocol import Embedder, Embeddings
from searchlab.models.vectors.names import NamedPhoto
from searchlab.photos.colors import color_names
from searchlab.photos.descriptions import Sight
from searchlab.photos.metadata import merge_records
from searchlab.photos.photo import photo_id_of
from searchlab.photos.sidecar import Skipped
from searchlab.photos.table import PhotoTable
from searchlab.progress import Progress
from searchlab.sources.record import SourceRecord

DOCUMENT_FIELDS = ("source_description", "alt_description", "description")
_BATCH = 2_048


def identify(
    pictures: Iterable[Picture], roots: Sequence[Root]
) -> tuple[dict[str, Picture], list[Skipped], int]:
    """Give every picture its photo_id.

    A photo is identified by its library's id where a record gives it, else by its first content, so
    that a moved or renamed file stays the same photo.

    Args:
        pictures: The scanned pictures, sorted by path.
        roots: Folders that they lie in.

    Returns:
        Pictures by `photo_id`, pictures that claim another's id, and the number of plain copies.
    """
    by_id: dict[str, Picture] = {}
    problems: list[Skipped] = []
    copies = 0
    unnamed: defaultdict[str, list[Picture]] = defaultdict(list)
    pictures = list(pictures)
    identified = {picture.sha256 for picture in pictures if picture.record.source_photo_id}
    for picture in pictures:
        if picture.sha256 in identified and not picture.record.source_photo_id:
            unnamed[picture.sha256].append(picture)  # another file's record gives its id
            continue
        photo_id = id_of_picture(picture, roots)
        other = by_id.setdefault(photo_id, picture)
        if other is picture:
            continue
        if other.sha256 == picture.sha256:
            copies += 1
            by_id[photo_id] = _with_words_of(other, picture)
        else:
            reason = f"its source_photo_id is also that of {other.path.name}, which counts"
            problems.append(Skipped(str(picture.path), reason))
    for photo_id, picture in by_id.items():
        for copy in unnamed.get(picture.sha256, ()):
            by_id[photo_id] = _with_words_of(by_id[photo_id], copy)
    return by_id, problems, copies + sum(map(len, unnamed.values()))


def _with_words_of(picture: Picture, copy: Picture) -> Picture:
    """Fill a photo's missing texts from a copy's; records of dumps stay as they are."""
    if isinstance(picture.record, SourceRecord) or isinstance(copy.record, SourceRecord):
        return picture
    return replace(picture, beside=merge_records([picture.beside, copy.record, copy.beside]))


def id_of_picture(picture: Picture, roots: Sequence[Root]) -> str:
    """Return the id of a picture; see `identify`."""
    record = picture.record
    if isinstance(record, SourceRecord):
        return photo_id_of(*record.origin)
    source = record.source or source_of(picture.path, roots)
    return photo_id_of(source, picture.source_photo_id)


def source_of(path: Path, roots: Sequence[Root]) -> str:
    """Name the library of a picture whose record names none: that of the innermost root."""
    around = [root for root in roots if not root.is_dump and path.is_relative_to(root.folder)]
    return max(around, key=lambda root: len(root.folder.parts)).source


def folder_of(path: Path, roots: Sequence[Root]) -> str:
    """Name the folder of a picture, from the outermost root's own name on; empty in a dump.

    >>> folder_of(Path("/home/ann/Pictures/2019/Faro/1.jpg"), [Root(Path("/home/ann/Pictures"))])
    'Pictures/2019/Faro'
    """
    around = [root for root in roots if not root.is_dump and path.is_relative_to(root.folder)]
    if not around:
        return ""
    outermost = min(around, key=lambda root: len(root.folder.parts))
    return path.parent.relative_to(outermost.folder.parent).as_posix()


def build_table(
    pictures: dict[str, Picture],
    *,
    roots: Sequence[Root],
    cache: ContentCache,
    model: Embedder,
    unreachable: Iterable[dict[str, Any]] = (),
    dates: dict[str, str],
    progress: Progress,
) -> PhotoTable:
    """Build the photo table of good pictures.

    Args:
        pictures: Pictures by `photo_id`; those whose facts name a problem are left out.
        roots: Folders that they lie in.
        cache: Holds their facts and vectors.
        model: Descriptions are made from what its parts name in a picture.
        unreachable: Rows of photos whose folder cannot be reached at the moment.
        dates: Upload dates of the previous snapshot, by `photo_id`.
        progress: Told about every photo.
    """
    old_rows = {str(row["photo_id"]): row for row in unreachable}
    order = iter(sorted({*pictures, *old_rows}))
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()

    def batches() -> Iterator[list[dict[str, Any]]]:
        with progress.step("describing photos", len(pictures), unit="photos") as step:
            while ids := list(islice(order, _BATCH)):
                here = {photo_id: pictures[photo_id] for photo_id in ids if photo_id in pictures}
                digests = [picture.sha256 for picture in here.values()]
                facts = cache.facts(digests)
                good = {
                    photo_id: picture
                    for photo_id, picture in here.items()
                    if picture.sha256 in facts and not facts[picture.sha256].problem
                }
                families_of = color_names(shade for each in facts.values() for shade in each.shades)
                sights = _sights(model, cache, [picture.sha256 for picture in good.values()])
                built = {
                    photo_id: row_of_picture(
                        photo_id,
                        picture,
                        facts[picture.sha256],
                        source=picture.record.source or source_of(picture.path, roots),
                        sight=sight,
                        day=dates.get(photo_id, today),
                        families_of=families_of,
                        folder=folder_of(picture.path, roots),
                    )
                    for (photo_id, picture), sight in zip(good.items(), sights, strict=True)
                }
                built |= {i: old_rows[i] for i in ids if i in old_rows and i not in built}
                yield [built[photo_id] for photo_id in ids if photo_id in built]
                step.advance(len(here))

    return PhotoTable.from_rows(batches())


def _sights(model: Embedder, cache: ContentCache, digests: Sequence[str]) -> list[Sight]:
    for part, _ in model.parts:
        name_things = getattr(part, "sights", None)
        if name_things is not None and digests:
            sights: list[Sight] = name_things(cache.vectors(part.model_id, digests, part.dim), 4)
            return sights
    return [Sight() for _ in digests]


def build_vectors(
    table: PhotoTable,
    *,
    model: Embedder,
    cache: ContentCache,
    thumbnails: Path,
    progress: Progress,
    withheld: frozenset[str] = frozenset(),
    runner: PictureRunner | None = None,
) -> Embeddings:
    """Put together the vectors of a table, embedding only what was never embedded.

    Args:
        table: The photos.
        model: The model that embeds them; vectors of a hybrid's parts are cached separately.
        cache: Holds vectors by model and content.
        thumbnails: Folder of the small pictures.
        progress: Told about what must be embedded.
        withheld: Photo fields that models of descriptions must not read.
        runner: Who embeds pictures; this process if left out.

    Returns:
        (n_photos, dim) unit rows in the table's order.

    Raises:
        NotFoundError: A picture that must be embedded is gone or refused.
    """
    keys: dict[str, list[str]] = {}
    digests = list(table.texts("sha256"))
    image_models = [part for part, _ in model.parts if part.reads == "image"]
    needed: set[str] = set()
    if image_models:
        files = dict(zip(digests, map(Path, table.texts("file")), strict=True))
        photos = _named_photos(table) if holds_vectors(model) else []
        refuse_lacking(take_given_vectors(model, photos, cache, progress), photos, model)
        map_known_vectors(digests, image_models, cache, progress)
        for part in image_models:
            known = cache.known_vectors(part.model_id, digests)
            needed |= {digest for digest in digests if digest not in known}
        files = {digest: path for digest, path in files.items() if digest in needed}
        embed = embed_pictures if runner is None else runner.embed
        problems = embed(files, image_models, cache, thumbnails, progress)
        if problems:
            msg = (
                f"every photo must be readable to be embedded by {model.name}, got "
                f"{len(problems)} that are not, such as {problems[0].where}: {problems[0].reason}; "
                "bring them back, or index again (`--forget FOLDER` drops a folder)"
            )
            raise NotFoundError(msg)
        keys |= {part.model_id: digests for part in image_models}
    text_models = [part for part, _ in model.parts if part.reads == "text"]
    if text_models:
        texts = documents(table, withheld)
        digests = [text_key(text) for text in texts]
        for part in text_models:
            _embed_texts(part, dict(zip(digests, texts, strict=True)), cache)
            keys[part.model_id] = digests
    vectors = np.empty((len(table), model.dim), dtype=np.float32)
    for start in range(0, len(table), _BATCH):
        block = slice(start, start + _BATCH)
        rows = [
            cache.vectors(part.model_id, keys[part.model_id][block], part.dim)
            for part, _ in model.parts
        ]
        vectors[block] = model.join(rows) if isinstance(model, HybridEmbedder) else rows[0]
    return vectors


def _named_photos(table: PhotoTable) -> list[NamedPhoto]:
    columns = ("photo_id", "source_photo_id", "sha256", "file")
    return [
        NamedPhoto(photo_id, source_photo_id, sha256, Path(file))
        for photo_id, source_photo_id, sha256, file in zip(*map(table.texts, columns), strict=True)
    ]


def documents(table: PhotoTable, withheld: frozenset[str]) -> list[str]:
    """Return what is written about each photo, one text a photo."""
    rows: list[list[str]] = [[] for _ in range(len(table))]
    for name in DOCUMENT_FIELDS:
        if name not in withheld:
            for texts, text in zip(rows, table.texts(name), strict=True):
                texts.append(text)
    return [". ".join(filter(None, texts)) for texts in rows]


def text_key(text: str) -> str:
    """Return the key under which the vector of a text is cached."""
    return hashlib.sha256(text.encode()).hexdigest()


def _embed_texts(part: Embedder, texts: dict[str, str], cache: ContentCache) -> None:
    known = cache.known_vectors(part.model_id, list(texts))
    todo = [key for key in texts if key not in known]
    for start in range(0, len(todo), _BATCH):
        batch = todo[start : start + _BATCH]
        rows = part.encode_texts([texts[key] for key in batch])
        cache.keep(vectors=[(part.model_id, batch, rows)])


def assign_labels(
    table: PhotoTable,
    vectors: Embeddings,
    before: tuple[PhotoTable, Embeddings] | None,
    *,
    first: int = 0,
) -> NDArray[np.int64]:
    """Number the photos so that one with the same vector as before keeps its label.

    Args:
        table: The new state.
        vectors: (n_photos, dim) of the new state.
        before: Table and vectors of the state before; None where labels start anew.
        first: The first label for new photos; all below were used before, also for photos that
            have left.

    Returns:
        (n_photos,) int64 labels, all different.
    """
    if before is None or before[1].shape[1] != vectors.shape[1] or not len(before[0]):
        return np.arange(len(table))
    old, old_vectors = before
    ids = np.array(list(table.texts("photo_id")), dtype="S36")
    old_ids = np.array(list(old.texts("photo_id")), dtype="S36")
    places = np.minimum(np.searchsorted(old_ids, ids), len(old_ids) - 1)
    same = old_ids[places] == ids
    same[same] = [
        np.array_equal(vectors[row], old_vectors[place])
        for row, place in zip(np.flatnonzero(same), places[same], strict=True)
    ]
    fresh = first + np.cumsum(~same) - 1
    return np.where(same, old.labels[places], fresh).astype(np.int64)
