"""Exporting the vectors of a library, for other tools and for `vectors:FOLDER`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from searchlab.errors import InputError
from searchlab.library.library import Library
from searchlab.models.vectors.embedder import VectorsEmbedder, plain
from searchlab.models.vectors.writing import write_vectors

NAMED_BY: Final = ("photo_id", "file", "source_photo_id", "sha256")
"""Columns of a library that may name the rows of an export."""


@dataclass(frozen=True)
class VectorExport:
    """What was exported.

    Attributes:
        model: The folder as a model.
        n_photos: Photos in it.
        n_texts: Texts in it.
        n_empty: Photos of which the library's model has nothing to say; they are left out.
    """

    model: VectorsEmbedder
    n_photos: int
    n_texts: int
    n_empty: int


def export_vectors(
    library: Library,
    folder: Path | str,
    *,
    texts: Sequence[str] = (),
    ids: str = "photo_id",
    kind: str = "npy",
    force: bool = False,
) -> VectorExport:
    """Write the vectors of a library's photos, with the model that made them on record.

    Args:
        library: The library.
        folder: A new or empty folder.
        texts: Texts to embed and write too, such as the queries of a dataset.
        ids: What names a row, one of `NAMED_BY`.
        kind: `"npy"`, `"npz"`, `"parquet"` or `"safetensors"`.
        force: Whether to replace an export.

    Raises:
        ConflictError: The folder is not empty.
        InputError: There is no such column or kind, or the library's ids are not all different.
        NotFoundError: Nothing was indexed yet.
    """
    if ids not in NAMED_BY:
        msg = f"ids must be one of {', '.join(NAMED_BY)}, got {ids!r}"
        raise InputError(msg)
    engine = library.engine
    model = engine.model
    vectors = np.asarray(engine.index.vectors)
    says_something = np.asarray(vectors.any(axis=1))
    names = list(engine.table.texts(ids))
    listed = [name for name, keep in zip(names, says_something, strict=True) if keep]
    distinct = list({plain(text): text for text in texts if text.strip()}.values())
    text_rows = model.encode_texts(distinct) if distinct else np.zeros((0, model.dim))
    readable = [text for text, row in zip(distinct, text_rows, strict=True) if row.any()]
    base = model.base if isinstance(model, VectorsEmbedder) else model
    written = write_vectors(
        folder,
        listed,
        vectors[says_something],
        texts=readable,
        text_vectors=text_rows[text_rows.any(axis=1)],
        model=None if base is None else base.name,
        model_id=None if base is None else base.model_id,
        preprocessing=None if base is None else base.fingerprints()["preprocessing"],
        kind=kind,
        force=force,
    )
    return VectorExport(written, len(listed), len(readable), int(np.count_nonzero(~says_something)))
