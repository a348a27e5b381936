"""Folders of vectors as other tools leave them, told by their files.

clip-retrieval   img_emb/*.npy, text_emb/*.npy and metadata/*.parquet (image_path, caption)
FiftyOne         samples.json, or samples/*.json: a field of vectors beside each filepath
MTEB             vectors.npy (bare float32), index.json (a hash -> its row) and dimension
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import InputError, quote
from searchlab.models.vectors.tables import VectorTable, bytes_to_row, join_tables, read_file

_HASH: Final = re.compile("[0-9a-f]{64}")


def read_foreign(
    folder: Path, field: str | None
) -> tuple[VectorTable | None, VectorTable | None] | None:
    """Read the vectors of photos and of texts in a folder of another tool; None if it is none.

    Args:
        folder: The folder.
        field: The field of a FiftyOne sample that holds its vector; found if there is one only.

    Raises:
        InputError: The folder is of such a tool, and cannot be read.
    """
    if (folder / "metadata").is_dir() and any(
        (folder / name).is_dir() for name in ("img_emb", "text_emb")
    ):
        return _read_clip_retrieval(folder)
    if (folder / "samples.json").is_file() or (folder / "samples").is_dir():
        return _read_fiftyone(folder, field), None
    if (folder / "dimension").is_file() and (folder / "index.json").is_file():
        table = _read_mteb(folder)
        return table, table
    return None


def _read_clip_retrieval(folder: Path) -> tuple[VectorTable | None, VectorTable | None]:
    metadata = sorted((folder / "metadata").glob("metadata_*.parquet"))
    tables: dict[str, list[VectorTable]] = {"img_emb": [], "text_emb": []}
    for described in metadata:
        part = described.stem.removeprefix("metadata_")
        columns = _metadata(described)
        for kind, column in (("img_emb", "image_path"), ("text_emb", "caption")):
            path = folder / kind / f"{kind}_{part}.npy"
            if not (folder / kind).is_dir():
                continue
            if column not in columns or not path.is_file():
                what = f"{column} in {described.name} and the file {path.name}"
                msg = (
                    f"{folder} must have {what}, got {', '.join(columns)}; run clip-retrieval again"
                )
                raise InputError(msg)
            rows = _load_npy(path)
            names = [str(name) for name in columns[column]]
            tables[kind].append(VectorTable(names, rows, path))
    photos, texts = join_tables(tables["img_emb"]), join_tables(tables["text_emb"])
    # Photos share captions; a caption has one vector, so the first one is as good as any.
    return photos, _first_of_each(texts)


def _metadata(path: Path) -> dict[str, list[Any]]:
    try:
        import pyarrow.parquet
    except ImportError:
        read_file(path)  # says what to install
        raise
    try:
        table = pyarrow.parquet.read_table(path, columns=None)
    except (OSError, ValueError) as error:
        msg = f"{path} must be a Parquet file, got: {error}"
        raise InputError(msg) from error
    return {
        name: table.column(name).to_pylist()
        for name in ("image_path", "caption")
        if name in table.column_names
    }


def _load_npy(path: Path) -> NDArray[Any]:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)  # type: ignore[no-any-return]
    except (OSError, ValueError, EOFError) as error:
        msg = f"{path} must be an .npy file of vectors, got: {error}"
        raise InputError(msg) from error


def _first_of_each(table: VectorTable | None) -> VectorTable | None:
    if table is None:
        return None
    places = {name: place for place, name in reversed(list(enumerate(table.names)))}
    if len(places) == len(table.names):
        return table
    order = sorted(places.values())
    return VectorTable([table.names[place] for place in order], table.rows[order], table.file)


def _read_fiftyone(folder: Path, field: str | None) -> VectorTable:
    samples = _samples(folder)
    fields = [field] if field else _vector_fields(samples)
    if len(fields) != 1:
        listed = ", ".join(map(repr, fields)) or "none"
        msg = (
            f"the samples of {folder} must have one field of vectors, got {listed}; name it as "
            '`{"field": ...}` in vectors.json'
        )
        raise InputError(msg)
    names, rows = [], []
    for sample in samples:
        value = sample.get(fields[0])
        if value is None:
            continue  # a sample that was not embedded
        names.append(str(sample.get("filepath", "")))
        rows.append(_fiftyone_row(value, folder, fields[0]))
    dims = {row.shape for row in rows}
    if len(dims) != 1:
        got = ", ".join(map(str, sorted(dims))) or "none"
        msg = f"{fields[0]!r} of the samples of {folder} must be vectors of one shape, got {got}"
        raise InputError(msg)
    return VectorTable(names, np.stack(rows), folder)


def _samples(folder: Path) -> list[dict[str, Any]]:
    whole = folder / "samples.json"
    files = [whole] if whole.is_file() else sorted((folder / "samples").glob("*.json"))
    samples: list[dict[str, Any]] = []
    for path in files:
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            samples += values["samples"] if path == whole else [values]
        except (OSError, ValueError, KeyError, TypeError) as error:
            msg = f"{path} must be samples as FiftyOne exports them, got: {error}"
            raise InputError(msg) from error
    if not all(isinstance(sample, dict) for sample in samples):
        msg = f"the samples of {folder} must be JSON objects, got something else"
        raise InputError(msg)
    return samples


def _vector_fields(samples: Sequence[dict[str, Any]]) -> list[str]:
    names = dict.fromkeys(name for sample in samples[:50] for name in sample)
    return [
        name
        for name in names
        if any(_is_vector(sample[name]) for sample in samples[:50] if name in sample)
    ]


def _is_vector(value: Any) -> bool:
    if isinstance(value, dict):
        return "$binary" in value
    if isinstance(value, list):
        return len(value) > 1 and all(type(one) in (int, float) for one in value)
    return False


def _fiftyone_row(value: Any, folder: Path, field: str) -> NDArray[Any]:
    try:
        if isinstance(value, dict):
            value = value["$binary"]
            value = value["base64"] if isinstance(value, dict) else value
        if isinstance(value, str):
            return bytes_to_row(zlib.decompress(base64.b64decode(value))).reshape(-1)
        return np.array(value, dtype=np.float64)
    except (KeyError, ValueError, TypeError, EOFError, zlib.error, binascii.Error) as error:
        msg = f"{field!r} of a sample of {folder} must be an array of FiftyOne, got: {error}"
        raise InputError(msg) from error


def _read_mteb(folder: Path) -> VectorTable:
    path = folder / "vectors.npy"
    try:
        dim = int((folder / "dimension").read_text(encoding="utf-8"))
        index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
        # Not the format that its name promises: bare numbers, and room for more at the end.
        rows = np.memmap(path, dtype=np.float32, mode="r").reshape(-1, dim)
        order = sorted(index, key=index.__getitem__)
        places = [int(index[name]) for name in order]
        if places and not 0 <= places[0] <= places[-1] < len(rows):
            msg = f"rows {places[0]} to {places[-1]} in the index of {len(rows)}"
            raise ValueError(msg)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        msg = f"{folder} must be a cache of MTEB (vectors.npy, index.json, dimension), got: {error}"
        raise InputError(msg) from error
    wrong = [name for name in order if not _HASH.fullmatch(name)]
    if wrong:
        msg = (
            f"{folder / 'index.json'} must name texts and pictures by the SHA-256 that MTEB 2 "
            f"writes, got {quote(wrong[0])}"
        )
        raise InputError(msg)
    return VectorTable(order, rows[places], path)
