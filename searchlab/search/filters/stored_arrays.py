"""Checks of arrays out of a file, so that kernels, which trust every number, may read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import DataError


def check_dtypes(arrays: Mapping[str, NDArray[Any]], dtypes: Mapping[str, Any]) -> None:
    """Check that arrays exist and have their dtypes.

    Raises:
        DataError: One is missing, or of another kind; names it.
    """
    for name, dtype in dtypes.items():
        if name not in arrays or arrays[name].dtype != dtype:
            kind = arrays[name].dtype if name in arrays else "none"
            msg = f"{name} must be {np.dtype(dtype)}, got {kind}"
            raise DataError(msg)


def check_rows(rows: NDArray[np.int32], n: int, *, each_once: bool = False) -> None:
    """Check that all are rows out of `n`.

    Raises:
        DataError: One is not, or, with `each_once`, a row is missing or repeated.
    """
    if len(rows) and not 0 <= rows.min() <= rows.max() < n:
        msg = f"rows must be from 0 to {n - 1}, got {rows.min()} to {rows.max()}"
        raise DataError(msg)
    if each_once and (len(rows) != n or (np.bincount(rows, minlength=n) != 1).any()):
        msg = f"each of {n} rows must stand there once, got another list"
        raise DataError(msg)


def check_starts(starts: NDArray[np.int64], end: int) -> None:
    """Check that lists, one after the other from 0 on, end where they must.

    Raises:
        DataError: They do not.
    """
    if not len(starts) or starts[0] != 0 or starts[-1] != end or (np.diff(starts) < 0).any():
        msg = f"lists must lie one after the other up to {end}, got others"
        raise DataError(msg)
