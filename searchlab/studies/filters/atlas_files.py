"""The filter atlas as files for VectorDBBench and ann-benchmarks, and answers checked against it.

    atlas.json                     what is in it; the first id that passes each filter
    RELATION/train.parquet         id, emb; the id says when a photo was uploaded
    RELATION/test.parquet          id, emb: the queries
    RELATION/neighbors.parquet     id, neighbors_id: the truth without a filter
    RELATION/neighbors_int_99p.parquet   the same where the lowest 99 % of the ids are out
    RELATION.hdf5                  rows as in train, and test, neighbors, distances; `day` is the
                                   id of each row, neighbors_int_99p the truth for day >= first

RELATION is how what passes lies to the queries: `aligned`, `opposed` or `uncorrelated`. A filter
`id >= first` is what VectorDBBench calls a filter of integers. In the last one fewer photos pass
than are asked for: the truth in Parquet is shorter then, and padded with -1 and infinity in HDF5,
whose tables are rectangular. A system may pad too, and must not be paid for it: ann-benchmarks
counts each answer that is not farther than the last of the truth, which padding always is.
`check_answers` counts what was really found.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import ConflictError, DataError, InputError, MissingExtraError
from searchlab.files import write_atomically, write_parquet
from searchlab.search.indexes import Neighbors
from searchlab.studies.filters.atlas import RELATIONS, Atlas, PlainFilter
from searchlab.studies.index.recall import true_neighbors

DESCRIPTION: Final = "atlas.json"
RATES: Final = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
"""Shares of photos that a filter shuts out."""
FEW: Final = 3
STRICTEST: Final = "int_100.0p"
"""The filter that shuts out all but `FEW` photos, fewer than anybody asks for."""


def filter_name(rate: float) -> str:
    """Name a filter as VectorDBBench does by the share that it shuts out.

    >>> filter_name(0.99), filter_name(0.999)
    ('int_99p', 'int_99.9p')
    """
    percent = round(rate * 100, 6)
    return f"int_{int(percent)}p" if 1 <= percent <= 99 else f"int_{percent:.1f}p"


def first_ids(n_photos: int) -> dict[str, int]:
    """Return the first id that passes each filter, by its name; the strictest one lets `FEW` pass.

    Raises:
        InputError: There are too few photos for such filters.
    """
    if n_photos < 1000 * FEW:
        msg = f"an atlas must be of {1000 * FEW:,} photos or more, got {n_photos:,}"
        raise InputError(msg)
    first = {filter_name(rate): int(n_photos * rate) for rate in RATES}
    return {**first, STRICTEST: n_photos - FEW}


def write_atlas(atlas: Atlas, folder: Path, *, k: int = 100) -> dict[str, int]:
    """Write an atlas for other benchmarks, with the truth of each query under each filter.

    Args:
        atlas: Vectors, attributes and queries.
        folder: A folder that has no atlas yet.
        k: Neighbours in the truth.

    Returns:
        Name of each filter -> first id that passes it.

    Raises:
        ConflictError: The folder has one.
        InputError: There are too few photos, or `k` is below 1.
        MissingExtraError: pyarrow or h5py is not installed.
    """
    h5py = _require_h5py()
    filters = first_ids(len(atlas.vectors))
    if k < 1:
        msg = f"k must be 1 or more, got {k}"
        raise InputError(msg)
    if (folder / DESCRIPTION).exists():
        msg = f"{folder} must have no atlas yet, got one; give another folder"
        raise ConflictError(msg)
    for relation in RELATIONS:
        day = PlainFilter("chance" if relation == "uncorrelated" else "trend", 0).day
        ids, queries = atlas.columns[day], atlas.queries[relation]
        masks = {name: ids >= first for name, first in filters.items()}
        truth = true_neighbors(atlas.vectors, queries, k, masks={"": None, **masks})
        (folder / relation).mkdir(parents=True, exist_ok=True)
        write_parquet(folder / relation / "train.parquet", _vector_rows(ids, atlas.vectors))
        places = np.arange(len(queries))
        write_parquet(folder / relation / "test.parquet", _vector_rows(places, queries))
        with h5py.File(folder / f"{relation}.hdf5", "w") as file:
            file.attrs.update(
                type="dense",
                distance="angular",
                dimension=atlas.vectors.shape[1],
                point_type="float",
            )
            file["train"], file["test"], file["day"] = atlas.vectors, queries, ids
            for name, neighbors in truth.items():
                ending = f"_{name}" if name else ""
                write_parquet(
                    folder / relation / f"neighbors{ending}.parquet", _truth_rows(neighbors, ids)
                )
                file[f"neighbors{ending}"] = neighbors.rows
                file[f"distances{ending}"] = 1 - neighbors.scores
                file[f"neighbors{ending}"].attrs["first"] = filters.get(name, 0)
    # Last: an atlas that has a description is whole.
    described = {"n_photos": len(atlas.vectors), "k": k, "filters": filters}
    write_atomically(folder / DESCRIPTION, json.dumps(described, indent=1).encode())
    return filters


def check_answers(
    folder: Path, relation: str, name: str, answers: Sequence[Iterable[int]], *, k: int = 10
) -> dict[str, float]:
    """Say what a system found of the truth, and what it filled its answers with.

    Args:
        folder: The atlas.
        relation: One of its relations.
        name: Name of a filter; empty for none.
        answers: For each query in order the ids that the system gave, best first.
        k: How many were asked for, at most as many as the truth holds.

    Returns:
        `recall`: share of min(k, photos that pass) true neighbours among the first `k` answers,
        each counted once. The shares of queries with an answer that is `short` (fewer photos that
        pass than there are), `wrong` (a photo that does not pass), `repeated`, or `padded` (an id
        of no photo).

    Raises:
        DataError: The folder has no such atlas, relation or filter.
        InputError: There is not one answer for each query, or `k` is above what the truth holds.
    """
    described = read_description(folder)
    ending = f"_{name}" if name else ""
    path = folder / relation / f"neighbors{ending}.parquet"
    if (name and name not in described["filters"]) or not path.is_file():
        msg = f"{folder} must hold {path.name} of {relation!r}, got none; its filters are "
        raise DataError(msg + ", ".join(described["filters"]))
    from pyarrow import parquet

    truth = parquet.read_table(path).column("neighbors_id").to_pylist()
    if len(answers) != len(truth) or not 1 <= k <= described["k"]:
        msg = (
            f"answers must be one for each of {len(truth)} queries, to a k from 1 to "
            f"{described['k']}, got {len(answers)} and {k}"
        )
        raise InputError(msg)
    first, n_photos = described["filters"].get(name, 0), described["n_photos"]
    n_expected = min(k, n_photos - first)
    found = []
    for given, true in zip(answers, truth, strict=True):
        ids = [int(one) for one in given][:k]
        photos = [one for one in ids if 0 <= one < n_photos]
        passing = {one for one in photos if one >= first}
        found.append(
            {
                "recall": len(passing & set(true[:n_expected])) / n_expected,
                "short": len(passing) < n_expected,
                "wrong": any(one < first for one in photos),
                "repeated": len(set(photos)) < len(photos),
                "padded": len(photos) < len(ids),
            }
        )
    return {what: float(np.mean([one[what] for one in found])) for what in found[0]}


def read_description(folder: Path) -> dict[str, Any]:
    """Read what an atlas holds: `n_photos`, `k`, and `filters` with the first id of each.

    Raises:
        DataError: The folder has no whole atlas.
    """
    try:
        described = json.loads((folder / DESCRIPTION).read_bytes())
        return {name: described[name] for name in ("n_photos", "k", "filters")}
    except (OSError, ValueError, KeyError, TypeError) as error:
        msg = f"{folder} must hold an atlas, got: {error}; write one by `searchlab export atlas`"
        raise DataError(msg) from error


def _vector_rows(ids: NDArray[Any], rows: NDArray[Any]) -> list[dict[str, Any]]:
    return [{"id": int(i), "emb": row} for i, row in zip(ids, rows, strict=True)]


def _truth_rows(neighbors: Neighbors, ids: NDArray[Any]) -> list[dict[str, Any]]:
    return [
        {"id": place, "neighbors_id": ids[rows[rows >= 0]].tolist()}
        for place, rows in enumerate(neighbors.rows)
    ]


def _require_h5py() -> Any:
    try:
        import h5py
    except ImportError as error:
        msg = "HDF5 must be written by h5py, got none; pip install 'searchlab[tables]'"
        raise MissingExtraError(msg) from error
    return h5py
