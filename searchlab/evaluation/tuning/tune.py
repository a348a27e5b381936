"""Tuning: measures a library's index on this machine, with queries made from the library.

Image queries are photos of the library, without the photo itself as an answer; text queries are
descriptions of photos, embedded by the library's model.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from searchlab.config.operating_points import OperatingPoints
from searchlab.errors import refuse_names
from searchlab.evaluation.tuning.index_costs import MAX_QUERIES, Ask, Measured, measure
from searchlab.library.library import Library
from searchlab.models.protocol import Embeddings, towers_of
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
        library: The library.
        seconds: Time to spend, about.
        seed: Seed of the random samples.
        progress: Shows each query.

    Returns:
        The value for `Config.tuning`: make a configuration that has it with
        `dataclasses.replace(library.engine.config, tuning=...)`, and use that with
        `library.publish`.

    Raises:
        NotFoundError: Nothing was indexed yet.
        InputError: `seconds` is not above 0.

    Example:
        >>> import searchlab
        >>> searchlab.tune(searchlab.open_library("photos"))  # doctest: +SKIP
    """
    return measure_library(library, seconds=seconds, seed=seed, progress=progress).tuning


def measure_library(
    library: Library, *, seconds: float = 45.0, seed: int = 0, progress: Progress | None = None
) -> Measured:
    """Measure as `tune` does, and return the whole measurement."""
    refuse_names("open_library(folder)", library=library)
    engine = library.engine
    order = np.random.default_rng(seed).permutation(len(engine.table))
    texts = _ask_by_texts(engine, order)
    kinds = {"image": ask_by_photos(engine.index.vectors, order)}
    if texts is not None:
        kinds["text"] = texts
    return measure(
        engine.index, engine.config, kinds, seconds=seconds, seed=seed, progress=progress
    )


def ask_by_photos(vectors: Embeddings, order: NDArray[np.int64]) -> Ask:
    """Make queries of the photos of an index, in the given order of (n_photos,) rows."""

    def ask(number: int) -> tuple[Embeddings, int | None]:
        row = int(order[number % len(order)])
        return np.array(vectors[row]), row

    return ask


def _ask_by_texts(engine: SearchEngine, order: NDArray[np.int64]) -> Ask | None:
    """Make queries of descriptions of photos, each text once; None if there can be none."""
    if "text" not in towers_of(engine.model):
        return None
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
