"""The embedding pipeline: decode, analyse and embed pictures, each content once, in bounded memory.

Threads decode and scale ahead while the models embed, up to a limit; results are stored batch by
batch, so that an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Protocol

from PIL import Image

from searchlab.errors import ImageError
from searchlab.library.cache import ContentCache, Facts
from searchlab.models.protocol import Embedder
from searchlab.photos.images.decode import (
    MAX_BYTES,
    WORKING_SIDE,
    analyse,
    for_model,
    open_rgb,
    shrink,
    thumbnail,
)
from searchlab.photos.images.headers import sniff
from searchlab.photos.images.memory import MAX_DECODING_BYTES, decoding_bytes, give_memory_back
from searchlab.photos.images.resize import Resize, fast_resize, plain_resize
from searchlab.photos.sidecar import Skipped
from searchlab.progress import Progress

THUMBNAIL_SIDE = 400
PASSING = ("cannot be read", "unreadable", "changed while it was indexed", "needs more memory")
"""How reasons begin that may no longer hold at the next run."""
BATCH = 16
"""Photos that are embedded together; a model may set more by its attribute `images_at_once`."""
AHEAD = 3
"""Most batches that are being decoded or wait to be embedded."""
_MANY = 200  # from this many photos on, loading the faster way to resize pays
_LARGE_BYTES = 200_000_000  # what so large a picture took is not kept for the next one
_LOOKUP = 4_096
_UNREADABLE = "unreadable"
CHANGED = "changed while it was indexed"
"""Why a picture is refused whose file must be looked at anew."""
_TOO_LARGE = "needs more memory than there is"
_NOT_KEPT = (_UNREADABLE, CHANGED, _TOO_LARGE)


@dataclass(frozen=True)
class _Decoded:
    """The facts of a picture, and the picture scaled for each input size that models have."""

    digest: str
    facts: Facts
    images: Mapping[int, Image.Image]


class _Room:
    """Memory that pictures share while they are decoded: few large ones, or many small ones."""

    def __init__(self, n_bytes: int) -> None:
        self._free = self._most = n_bytes
        self._changed = threading.Condition()

    @contextmanager
    def holding(self, n_bytes: int) -> Iterator[None]:
        """Wait for some memory, or for all of it if it is too little, and hold it."""
        n_bytes = min(n_bytes, self._most)
        with self._changed:
            self._changed.wait_for(lambda: self._free >= n_bytes)
            self._free -= n_bytes
        try:
            yield
        finally:
            with self._changed:
                self._free += n_bytes
                self._changed.notify_all()


@dataclass(frozen=True)
class _Decoder:
    """How pictures are decoded; for several threads at once.

    Attributes:
        side: Short side in pixels that the models and the analysis need.
        thumbnails: Folder of the small pictures.
        resize: How pictures are scaled.
        room: Memory for the pictures that are being decoded, all together.
    """

    side: int
    thumbnails: Path
    resize: Resize
    room: _Room = field(default_factory=lambda: _Room(MAX_DECODING_BYTES))

    def __call__(self, digest: str, path: Path, sizes: frozenset[int]) -> _Decoded:
        try:
            content = _content(digest, path)
        except ImageError as error:
            return _Decoded(digest, Facts(problem=error.reason), {})
        needed = decoding_bytes(content, sniff(content) or "", self.side)
        with self.room.holding(needed):
            decoded = self._decode(digest, content, sizes)
            if needed > _LARGE_BYTES:
                give_memory_back()
        return decoded

    def _decode(self, digest: str, content: bytes, sizes: frozenset[int]) -> _Decoded:
        try:
            decoded = open_rgb(content, min_side=self.side)
            analysis = analyse(decoded)
        except ImageError as error:
            return _Decoded(digest, Facts(problem=error.reason), {})
        except MemoryError:
            return _Decoded(digest, Facts(problem=_TOO_LARGE), {})
        facts = Facts(
            width=decoded.width,
            height=decoded.height,
            shade=int(analysis.color_hex[1:], 16),
            palette=analysis.palette,
            blur_hash=analysis.blur_hash,
            record=decoded.metadata.record(),
        )
        scaled = shrink(decoded.image, self.side, resize=self.resize)
        self._keep_thumbnail(digest, scaled)
        images = {size: for_model(scaled, size, resize=self.resize) for size in sizes}
        return _Decoded(digest, facts, images)

    def _keep_thumbnail(self, digest: str, image: Image.Image) -> None:
        small = thumbnail_path(self.thumbnails, digest)
        if small.exists():
            return
        small.parent.mkdir(parents=True, exist_ok=True)
        unfinished = small.with_suffix(".part")
        unfinished.write_bytes(thumbnail(image, THUMBNAIL_SIDE, resize=self.resize))
        unfinished.replace(small)


def thumbnail_path(folder: Path, digest: str) -> Path:
    """Return the path of the small picture of a content.

    Args:
        folder: Folder of the small pictures.
        digest: SHA-256 of the content, in hexadecimal.
    """
    return folder / digest[:2] / f"{digest[:32]}.webp"


def embed_pictures(
    files: Mapping[str, Path],
    models: Sequence[Embedder],
    cache: ContentCache,
    thumbnails: Path,
    progress: Progress,
    *,
    threads: int | None = None,
) -> list[Skipped]:
    """Analyse and embed every picture that is not known yet.

    Args:
        files: Content digest to a file that holds it.
        models: Models that read pictures.
        cache: Stores facts and vectors.
        thumbnails: Folder of the small pictures.
        progress: Told about every picture.
        threads: Pictures that are decoded at once; one a processor if left out.

    Returns:
        Pictures that are refused, each with its reason, those known to be refused included.
    """
    todo, problems = find_unknown(files, models, cache, thumbnails)
    if todo:
        problems += _embed_unknown(todo, files, models, cache, thumbnails, progress, threads)
    return problems


class PictureRunner(Protocol):
    """Who embeds the pictures of a library: this process if left out, or workers elsewhere."""

    def embed(
        self,
        files: Mapping[str, Path],
        models: Sequence[Embedder],
        cache: ContentCache,
        thumbnails: Path,
        progress: Progress,
    ) -> list[Skipped]:
        """Do what `embed_pictures` does, with the same result to the last bit."""
        ...


def find_unknown(
    files: Mapping[str, Path],
    models: Sequence[Embedder],
    cache: ContentCache,
    thumbnails: Path,
) -> tuple[dict[str, list[Embedder]], list[Skipped]]:
    """Find what `embed_pictures` has to do.

    Returns:
        Digest -> the models whose vectors are missing, of every picture that must be read; and the
        pictures that are known to be refused.
    """
    problems: list[Skipped] = []
    todo: dict[str, list[Embedder]] = {}
    for chunk in _chunks(files, _LOOKUP):
        facts = cache.facts(chunk)
        known = [cache.known_vectors(model.model_id, chunk) for model in models]
        for digest in chunk:
            if digest in facts and facts[digest].problem:
                problems.append(Skipped(str(files[digest]), facts[digest].problem))
                continue
            missing = [model for model, has in zip(models, known, strict=True) if digest not in has]
            small = thumbnail_path(thumbnails, digest)
            if missing or digest not in facts or not small.exists():
                todo[digest] = missing
    return todo, problems


def images_at_once(models: Sequence[Embedder]) -> int:
    """Return how many pictures are embedded together."""
    return max([BATCH, *(getattr(model, "images_at_once", BATCH) for model in models)])


def _embed_unknown(
    todo: Mapping[str, Sequence[Embedder]],
    files: Mapping[str, Path],
    models: Sequence[Embedder],
    cache: ContentCache,
    thumbnails: Path,
    progress: Progress,
    threads: int | None,
) -> list[Skipped]:
    problems: list[Skipped] = []
    decode = _Decoder(
        side=max([WORKING_SIDE, *(model.input_size for model in models)]),
        thumbnails=thumbnails,
        resize=fast_resize if len(todo) >= _MANY else plain_resize,
    )
    at_once = images_at_once(models)
    decoding_s = embedding_s = 0.0
    with progress.step("embedding photos", len(todo), unit="images") as step:
        decoded_pictures = _decode_all(
            decode,
            (
                (digest, files[digest], frozenset(model.input_size for model in missing))
                for digest, missing in todo.items()
            ),
            ahead=AHEAD * at_once,
            threads=threads or os.cpu_count() or 1,
        )
        while True:
            began = time.perf_counter()
            batch = list(islice(decoded_pictures, at_once))
            decoding_s += time.perf_counter() - began
            if not batch:
                break
            began = time.perf_counter()
            _embed_batch(batch, todo, models, cache)
            embedding_s += time.perf_counter() - began
            for decoded in batch:
                if decoded.facts.problem == CHANGED:
                    cache.forget_file(str(files[decoded.digest]))
            problems += [
                Skipped(str(files[decoded.digest]), decoded.facts.problem)
                for decoded in batch
                if decoded.facts.problem
            ]
            is_decoding_slower = decoding_s > embedding_s
            step.note(f"waiting for {'decoding' if is_decoding_slower else 'the model'}")
            step.advance(len(batch))
    return problems


def _chunks(items: Iterable[str], size: int) -> Iterator[list[str]]:
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk


def _embed_batch(
    batch: Sequence[_Decoded],
    todo: Mapping[str, Sequence[Embedder]],
    models: Sequence[Embedder],
    cache: ContentCache,
) -> None:
    vectors = []
    for model in models:
        images = {
            decoded.digest: decoded.images[model.input_size]
            for decoded in batch
            if decoded.images and model in todo[decoded.digest]
        }
        if images:
            rows = model.encode_images(list(images.values()))
            vectors.append((model.model_id, list(images), rows))
    # A file that could not be read may be readable next time; what its content says stays true.
    facts = {
        decoded.digest: decoded.facts for decoded in batch if decoded.facts.problem not in _NOT_KEPT
    }
    cache.keep(facts, vectors)


def _decode_all(
    decode: _Decoder,
    items: Iterable[tuple[str, Path, frozenset[int]]],
    *,
    ahead: int,
    threads: int,
) -> Iterator[_Decoded]:
    """Decode in several threads, in order, at most `ahead` pictures before they are needed."""
    with ThreadPoolExecutor(threads, thread_name_prefix="decode") as pool:
        rest = iter(items)
        running: deque[Future[_Decoded]] = deque(
            pool.submit(decode, *item) for item in islice(rest, ahead)
        )
        try:
            while running:
                finished = running.popleft().result()
                running.extend(pool.submit(decode, *item) for item in islice(rest, 1))
                yield finished
        finally:
            for future in running:
                future.cancel()


def _content(digest: str, path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        msg = f"a picture must be readable, got {path} ({error.strerror})"
        raise ImageError(msg, reason=_UNREADABLE) from error
    # What is cached under a digest must come from bytes with that digest.
    if hashlib.sha256(content).hexdigest() != digest:
        msg = f"a picture must stay as it is while it is indexed, got {path}, which changed"
        raise ImageError(msg, reason=CHANGED)
    return content
