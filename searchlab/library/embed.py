"""The embedding pipeline: decode, analyse and embed pictures, each content once, in bounded memory.

Threads, or processes where there are many processors, decode and scale ahead while the models
embed, up to a limit; results are stored batch by batch, so that an interrupted run goes on where it
stopped.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from itertools import islice
from pathlib import Path
from typing import Protocol

from searchlab.library.cache import ContentCache
from searchlab.library.decoding import (
    CHANGED,
    TOO_LARGE,
    UNREADABLE,
    Decode,
    Decoded,
    Decoder,
    is_kept,
    thumbnail_path,
)
from searchlab.library.decoding_ahead import decode_ahead
from searchlab.library.decoding_processes import decoding_in_processes
from searchlab.models.protocol import Embedder
from searchlab.photos.images.decode import WORKING_SIDE
from searchlab.photos.images.resize import fast_resize, plain_resize
from searchlab.photos.sidecar import Skipped
from searchlab.progress import Progress

PASSING = ("cannot be read", "unreadable", "changed while it was indexed", "needs more memory")
"""How reasons begin that may no longer hold at the next run."""
BATCH = 16
"""Photos that are embedded together; a model may set more by its attribute `images_at_once`."""
AHEAD = 3
"""Most batches that are being decoded or wait to be embedded."""
_MANY = 200  # from this many photos on, loading the faster way to resize pays
# Estimated from the fifth of the work that holds the GIL, and from the seconds that processes take
# to start; not measured on that many processors yet (`bench_indexing`).
_PROCESSES_FROM = 1_000
_THREADS_AT_MOST = 4
_LOOKUP = 4_096
_NOT_KEPT = (UNREADABLE, CHANGED, TOO_LARGE)


def embed_pictures(
    files: Mapping[str, Path],
    models: Sequence[Embedder],
    cache: ContentCache,
    thumbnails: Path,
    progress: Progress,
    *,
    threads: int | None = None,
    in_processes: bool | None = None,
) -> list[Skipped]:
    """Analyse and embed every picture that is not known yet.

    Args:
        files: Content digest to a file that holds it.
        models: Models that read pictures.
        cache: Stores facts and vectors.
        thumbnails: Folder of the small pictures.
        progress: Told about every picture.
        threads: Pictures that are decoded at once; one a processor if left out.
        in_processes: Whether they are decoded in processes of their own; if left out, where
            threads would wait for each other: with more than four at once, and a thousand pictures
            or more.

    Raises:
        SearchlabError: Such a process died, perhaps out of memory.

    Returns:
        Pictures that are refused, each with its reason, those known to be refused included.
    """
    todo, problems = find_unknown(files, models, cache, thumbnails)
    if todo:
        at_once = threads or os.cpu_count() or 1
        if in_processes is None:
            in_processes = at_once > _THREADS_AT_MOST and len(todo) >= _PROCESSES_FROM
        decoder = Decoder(
            side=max([WORKING_SIDE, *(model.input_size for model in models)]),
            thumbnails=thumbnails,
            resize=fast_resize if len(todo) >= _MANY else plain_resize,
        )
        decoding = decoding_in_processes(decoder, at_once) if in_processes else nullcontext(decoder)
        with decoding as decode:
            problems += _embed_unknown(todo, files, models, cache, decode, progress, at_once)
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
            if missing or digest not in facts or not is_kept(small):
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
    decode: Decode,
    progress: Progress,
    threads: int,
) -> list[Skipped]:
    problems: list[Skipped] = []
    at_once = images_at_once(models)
    decoding_s = embedding_s = 0.0
    pictures = decode_ahead(
        decode,
        (
            (digest, files[digest], frozenset(model.input_size for model in missing))
            for digest, missing in todo.items()
        ),
        ahead=AHEAD * at_once,
        threads=threads,
    )
    with (
        progress.step("embedding photos", len(todo), unit="images") as step,
        closing(pictures) as decoded_pictures,
    ):
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
    batch: Sequence[Decoded],
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
