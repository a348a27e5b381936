"""The embedding pipeline: decode, analyse and embed pictures, each content once, in bounded memory.

Threads decode ahead while the models embed; what is finished is kept batch by batch, so that an
interrupted run goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from PIL import Image

from searchlab.cache import ContentCache, Facts
from searchlab.errors import ImageError
from searchlab.images import (
    MAX_BYTES,
    WORKING_SIDE,
    analyse,
    for_model,
    open_rgb,
    shrink,
    thumbnail,
)
from searchlab.models.protocol import Embedder
from searchlab.progress import Progress
from searchlab.records import Problem

THUMBNAIL_SIDE = 400
PASSING = ("cannot be read", "unreadable", "changed while it was indexed", "needs more memory")
"""How reasons begin that may be gone the next time."""
_MAX_DECODERS = 4
BATCH = 16
"""Photos that are embedded together."""
_AHEAD = 3 * BATCH
_LOOKUP = 4_096
_UNREADABLE = "unreadable"
_CHANGED = "changed while it was indexed"
_TOO_LARGE = "needs more memory than there is"
_NOT_KEPT = (_UNREADABLE, _CHANGED, _TOO_LARGE)


@dataclass(frozen=True)
class _Decoded:
    digest: str
    facts: Facts
    image: Image.Image | None


def thumbnail_path(folder: Path, digest: str) -> Path:
    """Return where the small picture of a content lies."""
    return folder / digest[:2] / f"{digest[:32]}.webp"


def embed_pictures(
    files: Mapping[str, Path],
    models: Sequence[Embedder],
    cache: ContentCache,
    thumbnails: Path,
    progress: Progress,
) -> list[Problem]:
    """Analyse and embed every picture that is not known yet.

    Args:
        files: Content digest to a file that holds it.
        models: Models that read pictures.
        cache: Where facts and vectors are kept.
        thumbnails: Folder of the small pictures.
        progress: Told about every picture.

    Returns:
        Pictures that are refused, each with its reason; known refusals come again.
    """
    problems: list[Problem] = []
    todo: dict[str, list[Embedder]] = {}
    for chunk in _chunks(files, _LOOKUP):
        facts = cache.facts(chunk)
        known = [cache.known_vectors(model.model_id, chunk) for model in models]
        for digest in chunk:
            if digest in facts and facts[digest].problem:
                problems.append(Problem(str(files[digest]), facts[digest].problem))
                continue
            missing = [model for model, has in zip(models, known, strict=True) if digest not in has]
            small = thumbnail_path(thumbnails, digest)
            if missing or digest not in facts or not small.exists():
                todo[digest] = missing
    if not todo:
        return problems
    side = max([WORKING_SIDE, *(model.input_size for model in models)])
    decoding = modelling = 0.0
    with progress.step("embedding photos", len(todo), unit="images") as step:
        ahead = _decoded(((digest, files[digest]) for digest in todo), side, thumbnails)
        while True:
            began = time.perf_counter()
            batch = list(islice(ahead, BATCH))
            decoding += time.perf_counter() - began
            if not batch:
                break
            began = time.perf_counter()
            _keep_batch(batch, todo, models, cache)
            modelling += time.perf_counter() - began
            for one in batch:
                if one.facts.problem == _CHANGED:
                    cache.forget_file(str(files[one.digest]))
            problems += [
                Problem(str(files[one.digest]), one.facts.problem)
                for one in batch
                if one.facts.problem
            ]
            step.note("waiting for decoding" if decoding > modelling else "waiting for the model")
            step.advance(len(batch))
    return problems


def _chunks(items: Iterable[str], size: int) -> Iterator[list[str]]:
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk


def _keep_batch(
    batch: Sequence[_Decoded],
    todo: Mapping[str, Sequence[Embedder]],
    models: Sequence[Embedder],
    cache: ContentCache,
) -> None:
    vectors = []
    for model in models:
        images = {
            one.digest: for_model(one.image, model.input_size)
            for one in batch
            if one.image is not None and model in todo[one.digest]
        }
        if images:
            rows = model.encode_images(list(images.values()))
            vectors.append((model.model_id, list(images), rows))
    # A file that could not be read may be readable next time; what its content says stays true.
    kept = {one.digest: one.facts for one in batch if one.facts.problem not in _NOT_KEPT}
    cache.keep(kept, vectors)


def _decoded(items: Iterable[tuple[str, Path]], side: int, thumbnails: Path) -> Iterator[_Decoded]:
    # Each decoder may hold the largest picture there is.
    decoders = min(_MAX_DECODERS, os.cpu_count() or 1)
    with ThreadPoolExecutor(decoders, thread_name_prefix="decode") as pool:
        rest = iter(items)
        running: deque[Future[_Decoded]] = deque(
            pool.submit(_decode, *item, side, thumbnails) for item in islice(rest, _AHEAD)
        )
        try:
            while running:
                finished = running.popleft().result()
                running.extend(
                    pool.submit(_decode, *item, side, thumbnails) for item in islice(rest, 1)
                )
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
    # What is kept under a digest must come from bytes with that digest.
    if hashlib.sha256(content).hexdigest() != digest:
        msg = f"a picture must stay as it is while it is indexed, got {path}, which changed"
        raise ImageError(msg, reason=_CHANGED)
    return content


def _decode(digest: str, path: Path, side: int, thumbnails: Path) -> _Decoded:
    try:
        decoded = open_rgb(_content(digest, path), min_side=side)
        seen = analyse(decoded)
    except ImageError as error:
        return _Decoded(digest, Facts(problem=error.reason), None)
    except MemoryError:
        return _Decoded(digest, Facts(problem=_TOO_LARGE), None)
    facts = Facts(
        width=decoded.width,
        height=decoded.height,
        shade=int(seen.color_hex[1:], 16),
        palette=seen.palette,
        blur_hash=seen.blur_hash,
    )
    small = thumbnail_path(thumbnails, digest)
    if not small.exists():
        small.parent.mkdir(parents=True, exist_ok=True)
        unfinished = small.with_suffix(".part")
        unfinished.write_bytes(thumbnail(decoded.image, THUMBNAIL_SIDE))
        unfinished.replace(small)
    return _Decoded(digest, facts, shrink(decoded.image, side))
