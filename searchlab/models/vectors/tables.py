"""Tables of named vectors, in the files that people keep them in.

    photos.npy + photos.txt         rows, and their ids one a line (or ids.txt, ids.npy, ids.json)
    photos.npz                      arrays `ids` and `vectors`; also `texts` and `text_vectors`
    photos.parquet                  columns `id` and `vector` (extra `tables`)
    photos.safetensors              a tensor `vectors`; ids in the metadata, or in photos.txt

The same with `texts` in place of `photos` for vectors of texts. Usual other names are known too.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import InputError, MissingExtraError, NotFoundError, quote

_BYTE_ORDER_MARK: Final = "\ufeff"
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
SUFFIXES: Final = (".npy", ".npz", ".parquet", ".safetensors")
IDS: Final = (
    *("id", "ids", "photo_id", "file", "file_name", "filename", "filepath", "path", "image_path"),
    *("image_id", "key", "keys", "names", "filenames", "files", "image_names"),
)
VECTORS: Final = (
    *("vector", "vectors", "embedding", "embeddings", "image_embeddings", "img_emb", "features"),
    *("image_features", "emb", "arr_0"),
)
TEXTS: Final = ("text", "texts", "caption", "captions", "query", "queries")
TEXT_VECTORS: Final = (
    *("text_vector", "text_vectors", "text_embedding", "text_embeddings", "text_emb"),
    "text_features",
)


@dataclass(frozen=True, eq=False)
class VectorTable:
    """Rows with a name each.

    Attributes:
        names: (n_rows,) ids of photos, or texts.
        rows: (n_rows, dim), of any float type, perhaps mapped from a file.
        file: Where they lie, for messages.
    """

    names: Sequence[str]
    rows: NDArray[Any]
    file: Path

    def __post_init__(self) -> None:
        if self.rows.ndim != 2 or not self.rows.shape[1] or self.rows.dtype.kind not in "fiu":
            what = f"{self.rows.dtype} of shape {self.rows.shape}"
            msg = f"{self.file} must hold a table of numbers, one row a vector, got {what}"
            raise InputError(msg)
        if len(self.names) != len(self.rows):
            msg = (
                f"{self.file} must have one name a vector, got {len(self.names):,} names for "
                f"{len(self.rows):,} vectors"
            )
            raise InputError(msg)


def join_tables(tables: Sequence[VectorTable]) -> VectorTable | None:
    """Join the parts of one table; None if there are none.

    Raises:
        InputError: They are of different dimensions.
    """
    if len(tables) < 2:
        return tables[0] if tables else None
    dims = sorted({table.rows.shape[1] for table in tables})
    if len(dims) > 1:
        where = tables[0].file.parent
        msg = f"the vectors in {where} must have one dimension, got {', '.join(map(str, dims))}"
        raise InputError(msg)
    names = [name for table in tables for name in table.names]
    return VectorTable(
        names, np.concatenate([table.rows for table in tables]), tables[0].file.parent
    )


def read_tables(folder: Path) -> tuple[VectorTable | None, VectorTable | None]:
    """Read the vectors of photos and of texts that a folder of our own layout holds.

    Raises:
        InputError: A file cannot be read, or it is not clear which files count.
        MissingExtraError: A file needs a package that is not installed.
    """
    photos: VectorTable | None = None
    texts: VectorTable | None = None
    files = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES)
    for path in files:
        if path.stem == "ids" or path.stem.endswith(".ids"):
            continue
        of_photos, of_texts = read_file(path)
        if (of_photos and photos) or (of_texts and texts):
            names = ", ".join(one.name for one in files)
            msg = f"{folder} must hold one file of vectors of photos and one of texts, got {names}"
            raise InputError(msg)
        photos, texts = photos or of_photos, texts or of_texts
    return photos, texts


def read_file(path: Path) -> tuple[VectorTable | None, VectorTable | None]:
    """Read the vectors of photos and of texts that one file holds.

    Raises:
        InputError: It cannot be read, or has no such columns.
        MissingExtraError: It needs a package that is not installed.
    """
    try:
        columns = _READERS[path.suffix](path)
    except (OSError, ValueError, KeyError, TypeError, EOFError, MemoryError) as error:
        if isinstance(error, InputError):
            raise
        msg = f"{path} must be a {path.suffix} file of vectors, got: {error}"
        raise InputError(msg) from error
    of_texts = "text" in path.stem or "caption" in path.stem
    texts = _table(path, columns, TEXTS, (*TEXT_VECTORS, *VECTORS) if of_texts else TEXT_VECTORS)
    photos = None if of_texts else _table(path, columns, IDS, VECTORS)
    if photos is None and texts is None and not of_texts:
        texts = _table(path, columns, TEXTS, VECTORS)  # a table of texts under another name
    if photos is None and texts is None:
        known = f"{'texts and text_vectors' if of_texts else 'ids and vectors'}"
        beside = f", or names one a line in {path.stem}.txt beside it"
        msg = f"{path} must hold {known}{beside}, got {', '.join(columns) or 'nothing'}"
        raise InputError(msg)
    return photos, texts


def _table(
    path: Path, columns: dict[str, Any], names: Sequence[str], vectors: Sequence[str]
) -> VectorTable | None:
    rows = next((columns[name] for name in vectors if name in columns), None)
    if rows is None:
        return None
    listed = next((columns[name] for name in names if name in columns), None)
    if listed is None:
        listed = _names_beside(path)
    return None if listed is None else VectorTable(_strings(listed, path), rows, path)


def _names_beside(path: Path) -> Sequence[Any] | None:
    own = path.with_suffix
    for beside in (own(".txt"), own(".ids.txt"), own(".json"), own(".ids.npy")):
        if beside.is_file():
            return read_names(beside)
    for name in ("ids.txt", "ids.json", "ids.npy"):
        beside = path.with_name(name)
        if beside.is_file() and "text" not in path.stem:
            return read_names(beside)
    return None


def read_names(path: Path) -> Sequence[Any]:
    """Read names: one a line in a text file, a list in JSON, an array in .npy.

    Raises:
        InputError: The file is no such list.
    """
    try:
        if path.suffix == ".npy":
            return np.load(path, allow_pickle=False).tolist()  # type: ignore[no-any-return]
        text = path.read_bytes().decode("utf-8-sig", "surrogateescape")
        if path.suffix == ".json":
            names = json.loads(text)
            if not isinstance(names, list):
                msg = f"a list, got {type(names).__name__}"
                raise ValueError(msg)
            return names
        lines = text.split("\n")
        lines = [line.removesuffix("\r") for line in lines]
        return lines[:-1] if lines[-1] == "" else lines
    except (OSError, ValueError, EOFError) as error:
        msg = f"{path} must list one name a vector, got: {error}"
        raise InputError(msg) from error


def _strings(names: Iterable[Any], path: Path) -> list[str]:
    strings = []
    for name in names:
        text = name.decode("utf-8", "replace") if isinstance(name, bytes) else name
        if isinstance(text, bool) or not isinstance(text, str | int | np.integer):
            msg = f"names of vectors in {path} must be text or whole numbers, got {quote(name)}"
            raise InputError(msg)
        strings.append(str(text))
    return strings


def _read_npy(path: Path) -> dict[str, Any]:
    return {"vectors": np.load(path, mmap_mode="r", allow_pickle=False)}


def _read_npz(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as arrays:
        return {
            name: arrays[name].tolist() if arrays[name].dtype.kind in "USO" else arrays[name]
            for name in arrays.files
        }


def _read_parquet(path: Path) -> dict[str, Any]:
    try:
        import pyarrow.parquet
        from pyarrow import ArrowInvalid
    except ImportError as error:
        raise MissingExtraError(_needs("pyarrow", path)) from error
    try:
        table = pyarrow.parquet.read_table(path)
    except (ArrowInvalid, OSError) as error:
        msg = f"{path} must be a Parquet file, got: {str(error).partition(chr(10))[0]}"
        raise InputError(msg) from error
    types = pyarrow.types
    lists = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    columns: dict[str, Any] = {}
    for name in table.column_names:
        column = table.column(name).combine_chunks()
        if any(is_kind(column.type) for is_kind in lists):
            columns[name] = _rows_of(column, path, name)
        elif name in (*IDS, *TEXTS):
            columns[name] = column.to_pylist()
    return columns


def _rows_of(column: Any, path: Path, name: str) -> NDArray[Any]:
    if column.null_count:
        msg = f"every row of {path} must have a vector in {name!r}, got {column.null_count} without"
        raise InputError(msg)
    flat = column.flatten().to_numpy(zero_copy_only=False)
    if len(column) == 0 or len(flat) % len(column):
        msg = f"{path} must have rows of one dimension in {name!r}, got {len(flat)} numbers"
        raise InputError(msg)
    lengths = np.diff(column.offsets.to_numpy()) if hasattr(column, "offsets") else np.zeros(0)
    if len(np.unique(lengths)) > 1:
        dims = ", ".join(str(length) for length in np.unique(lengths)[:4])
        msg = f"{path} must have rows of one dimension in {name!r}, got {dims}"
        raise InputError(msg)
    return np.asarray(flat.reshape(len(column), -1))


def _read_safetensors(path: Path) -> dict[str, Any]:
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError as error:
        raise MissingExtraError(_needs("safetensors", path)) from error
    columns: dict[str, Any] = {}
    try:
        with safe_open(path, framework="np") as tensors:
            for name in tensors.keys():  # noqa: SIM118 - it is no mapping
                columns[name] = tensors.get_tensor(name)
            metadata = tensors.metadata() or {}
    except (SafetensorError, TypeError) as error:
        msg = f"{path} must be a safetensors file of float32 or float16, got: {error}"
        raise InputError(msg) from error
    for name in (*IDS, *TEXTS):
        if name in metadata:
            columns[name] = json.loads(metadata[name])
    return columns


_READERS = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".parquet": _read_parquet,
    ".safetensors": _read_safetensors,
}


def write_table(
    folder: Path, stem: str, names: Sequence[str], rows: NDArray[np.float32], kind: str
) -> list[Path]:
    """Write one table as `stem.KIND`, in the layout that `read_tables` reads.

    Args:
        folder: A folder that is there.
        stem: `"photos"` or `"texts"`.
        names: (n_rows,) names.
        rows: (n_rows, dim) float32.
        kind: `"npy"`, `"npz"`, `"parquet"` or `"safetensors"`.

    Returns:
        The files that were written.

    Raises:
        InputError: There is no such kind, or it cannot keep a name: `npy` none with a line break,
            `npz` none that ends with NUL, `parquet` none that is no Unicode.
        MissingExtraError: The kind needs a package that is not installed.
    """
    ids, vectors = ("texts", "text_vectors") if stem == "texts" else ("ids", "vectors")
    path = folder / f"{stem}.{kind}"
    _refuse_names(names, kind)
    if kind == "npy":
        np.save(path, rows)
        beside = path.with_suffix(".txt")
        lines = "".join(f"{name}\n" for name in names)
        if lines.startswith(_BYTE_ORDER_MARK):  # a reader takes the first one for none of the name
            lines = _BYTE_ORDER_MARK + lines
        beside.write_bytes(lines.encode("utf-8", "surrogateescape"))
        return [path, beside]
    if kind == "npz":
        arrays: dict[str, Any] = {ids: np.array(names, dtype=np.str_), vectors: rows}
        np.savez(path, **arrays)
    elif kind == "parquet":
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError as error:
            raise MissingExtraError(_needs("pyarrow", path)) from error
        flat = pa.array(np.ascontiguousarray(rows).reshape(-1))
        column = pa.FixedSizeListArray.from_arrays(flat, rows.shape[1])
        head = ["text" if stem == "texts" else "id", "vector"]
        pq.write_table(pa.table([pa.array(list(names)), column], names=head), path)
    elif kind == "safetensors":
        try:
            from safetensors.numpy import save
        except ImportError as error:
            raise MissingExtraError(_needs("safetensors", path)) from error
        path.write_bytes(save({vectors: rows}, {ids: json.dumps(list(names))}))
    else:
        msg = f"vectors must be written as npy, npz, parquet or safetensors, got {quote(kind)}"
        raise InputError(msg)
    return [path]


def _refuse_names(names: Iterable[str], kind: str) -> None:
    """Refuse names that a kind of file would give back as others."""
    for name in names:
        if kind == "npy" and ("\n" in name or "\r" in name):
            msg = f"a name in a list of lines must be one line, got {quote(name)}; write npz"
        elif kind == "npz" and name.endswith("\0"):
            msg = f"a name in an npz file must not end with NUL, got {quote(name)}; write npy"
        elif kind == "parquet" and not name.isascii() and _SURROGATES.search(name):
            msg = f"a name in a parquet file must be Unicode, got {quote(name)}; write npy"
        else:
            continue
        raise InputError(msg)


def bytes_to_row(data: bytes) -> NDArray[Any]:
    """Read one array from the bytes of an .npy file."""
    return np.asarray(np.load(io.BytesIO(data), allow_pickle=False))


def _needs(package: str, path: Path) -> str:
    return f"{package} must be installed for {path.name}, got none; pip install 'searchlab[tables]'"


def nothing_there(folder: Path) -> NotFoundError:
    """Say that a folder holds no vectors, and what would be vectors."""
    there = sorted(path.name for path in folder.iterdir())[:6] if folder.is_dir() else []
    listed = ", ".join(there) or ("an empty one" if folder.is_dir() else "no such folder")
    msg = (
        f"{folder} must hold vectors, such as photos.npy with ids one a line in photos.txt, "
        f"got {listed}"
    )
    return NotFoundError(msg)
