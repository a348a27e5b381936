"""Writing a folder of vectors that `vectors:FOLDER` reads."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from searchlab.errors import ConflictError, InputError, MismatchError
from searchlab.models.vectors.embedder import DESCRIPTION, FORMAT, VectorsEmbedder, check_rows
from searchlab.models.vectors.tables import VectorTable, write_table


def write_vectors(
    folder: Path | str,
    ids: Sequence[str],
    vectors: ArrayLike,
    *,
    texts: Sequence[str] = (),
    text_vectors: ArrayLike = (),
    model: str | None = None,
    model_id: str | None = None,
    preprocessing: str | None = None,
    normalised: bool = True,
    kind: str = "npy",
    force: bool = False,
) -> VectorsEmbedder:
    """Write vectors of your own, so that `vectors:FOLDER` is a model wherever one is named.

    Args:
        folder: A new or empty folder.
        ids: (n_photos,) what the photos are called: their file, or its path from any folder on,
            their `photo_id`, their source's own id, or the SHA-256 of their file.
        vectors: (n_photos, dim) rows.
        texts: (n_texts,) texts whose vectors are known, such as the queries of a dataset.
        text_vectors: (n_texts, dim) rows.
        model: Spec of the model that made the rows, to embed other texts and pictures with.
        model_id: Its `model_id` when it made them, which is then checked.
        preprocessing: Its fingerprint of preprocessing then, which is then checked.
        normalised: Whether the rows have length 1; if not, they are scaled when they are read.
        kind: `"npy"`, `"npz"`, `"parquet"` or `"safetensors"`.
        force: Whether to replace a folder of vectors.

    Returns:
        The vectors as a model, read back and checked.

    Raises:
        ConflictError: The folder is not empty.
        InputError: Names and rows do not fit, or a row is no direction; nothing is written then.
        MismatchError: The model did not make the rows.
        MissingExtraError: The kind needs a package that is not installed.
    """
    place = Path(folder).expanduser().resolve()
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        replaceable = force and (place / DESCRIPTION).is_file()
        if not replaceable:
            msg = f"vectors must go into a new or empty folder, got {place}; name another"
            raise ConflictError(msg)
    unfinished = place.with_name(f".{place.name}.part")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    try:
        for stem, names, table in (("photos", ids, vectors), ("texts", texts, text_vectors)):
            rows = np.asarray(table, dtype=np.float32)
            if rows.ndim != 2 and not (stem == "texts" and not rows.size):
                msg = f"vectors of {stem} must be a table of one row each, got {rows.shape}"
                raise InputError(msg)
            if len(names) != len(rows):
                msg = f"{stem} must have one vector each, got {len(names)} and {len(rows)} vectors"
                raise InputError(msg)
            if len(names):
                named = [str(name) for name in names]
                of = Path("vectors" if stem == "photos" else "text_vectors")  # as the arguments are
                check_rows(
                    VectorTable(named, rows, of),
                    rows.shape[1],
                    scaled=not normalised,
                    to_scale="give normalised=False",
                )
                write_table(unfinished, stem, named, rows, kind)
        said = {"model": model, "model_id": model_id, "preprocessing": preprocessing}
        description = {name: value for name, value in said.items() if value is not None}
        text = json.dumps({"format": FORMAT, "normalised": normalised, **description}, indent=2)
        (unfinished / DESCRIPTION).write_text(f"{text}\n", encoding="utf-8")
        _read_back(unfinished, place)
        if place.exists():
            shutil.rmtree(place)
        unfinished.replace(place)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return VectorsEmbedder(place)


def _read_back(unfinished: Path, place: Path) -> None:
    """Check what was written; errors name the folder that was asked for, not one that goes."""
    try:
        VectorsEmbedder(unfinished)
    except (InputError, MismatchError) as error:
        error.args = (str(error).replace(str(unfinished), str(place)),)
        raise
