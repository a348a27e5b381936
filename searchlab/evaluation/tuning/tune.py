"""Tuning: a library's own index, measured on this machine with queries of its own.

Images are photos of the library, which do not find themselves; texts are what is written about
photos, embedded by the model that embedded the photos.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from searchlab.config.operating_points import OperatingPoints
from searchlab.evaluation.tuning.index_costs import MAX_QUERIES, Ask, Measured, measure
from searchlab.library.library import Library
from searchlab.models.protocol import Embeddings
from searchlab.progress import Progress
from searchlab.search.engine import SearchEngine
from searchlab.search.queries import MAX_QUERY_LENGTH


def tune(
    library: Library,
    *,
    seconds: float = 45.0,
    seed: int = 0,
    progress: Progress | None = None,
) -> OperatingPoints:
    """Measure a library's index on this machine.

    Args:
        library: As `open_library` gives it.
        seconds: About how long it may take.
        seed: Of what is drawn.
        progress: Told about it.

    Returns:
        For `Config.tuning`; `dataclasses.replace(library.engine.config, tuning=...)` holds it, and
        `library.publish` puts that in force.

    Raises:
        NotFoundError: Nothing was indexed yet.
        InputError: `seconds` is no time.

    Example:
        >>> import searchlab
        >>> searchlab.tune(searchlab.open_library("photos"))  # doctest: +SKIP
    """
    return measure_library(library, seconds=seconds, seed=seed, progress=progress).tuning


def measure_library(
    library: Library, *, seconds: float = 45.0, seed: int = 0, progress: Progress | None = None
) -> Measured:
    """Measure as `tune` does, and return the whole measurement."""
    engine = library.engine
    order = np.random.default_rng(seed).permutation(len(engine.table))
    texts = _texts(engine, order)
    kinds = {"image": photos_asked(engine.index.vectors, order)}
    if texts is not None:
        kinds["text"] = texts
    return measure(
        engine.index, engine.config, kinds, seconds=seconds, seed=seed, progress=progress
    )


def photos_asked(vectors: Embeddings, order: NDArray[np.int64]) -> Ask:
    """Ask by photos of an index, in an order of (n_photos,) rows; none finds itself."""

    def ask(number: int) -> tuple[Embeddings, int | None]:
        row = int(order[number % len(order)])
        return np.array(vectors[row]), row

    return ask


def _texts(engine: SearchEngine, order: NDArray[np.int64]) -> Ask | None:
    """Ask by what is written about photos, each text once; None where nothing is."""
    distinct: dict[str, None] = {}
    for row in order[: 4 * MAX_QUERIES].tolist():
        photo = engine.table.photo(row)
        text = photo.source_description or photo.alt_description or photo.description
        if text.strip():
            distinct[text[:MAX_QUERY_LENGTH]] = None
    texts = list(distinct)[:MAX_QUERIES]
    if not texts:
        return None

    def ask(number: int) -> tuple[Embeddings, int | None]:
        return engine.model.encode_texts([texts[number % len(texts)]])[0], None

    return ask
