"""Candidates for the best rows of a query, by the three kernels that read lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchlab.models.protocol import Embeddings
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.indexes.ivf._kernels.gather import gather
from searchlab.search.indexes.ivf._kernels.scan import scan
from searchlab.search.indexes.ivf._kernels.sweep import sweep
from searchlab.search.indexes.ivf.lists import Lists
from searchlab.search.indexes.scoring import cosines
from searchlab.search.words.matches import NO_GAINS, Gains

# Times as many candidates that are kept where more rows score alike than is usual.
_MORE = 8
_NO_WORDS = np.zeros(0, dtype=np.uint64)


class Candidates(NamedTuple):
    """Rows to be scored again by their vectors.

    Attributes:
        rows: (n,) int64, ascending.
        n_scored: Rows that were scored to find them.
        hold_best: Whether the best rows are among them but for what a search may miss. They may not
            be where more score alike than are kept; nor where a filter leaves out just what is
            near, and then there are no rows.
    """

    rows: NDArray[np.int64]
    n_scored: int
    hold_best: bool = True


def count_candidates(n_wanted: int) -> int:
    """Return how many rows to score again by their vectors, so that the best are among them.

    Codes are too coarse to order rows that score nearly the same.
    """
    return 2 * n_wanted + 64


def scan_lists(
    lists: Lists,
    query: Embeddings,
    allowed: Bitmap | None,
    n_wanted: int,
    *,
    missed: float,
    usual: float,
    bands: tuple[NDArray[np.float64], NDArray[np.float64]],
    gains: Gains = NO_GAINS,
) -> Candidates:
    """Scan lists, the nearest first, until few of the best can be expected in those left.

    How few are found nevertheless depends on the stretch, whose effect on recall is measured.

    Args:
        lists: To scan.
        query: (dim,) contiguous float32.
        allowed: Rows that may be found; all if None.
        n_wanted: Rows wanted.
        missed: Share of them that may be expected in the lists left.
        usual: Variance of residuals as a share of a list's spread, before a row is scored.
        bands: For a query like the photos, and for one of another kind, (2, 4) float64 each: the
            cosine with its best centre from which on, or up to which, it is such a query; the
            stretch; the share of the allowed rows after which the scan ends; and how far tails may
            lie along the query's. In between, all three are interpolated. The first row is for
            filters that let as many rows of the nearest lists through as of others, the second one
            for the others.
        gains: What allowed rows gain over their cosine; the best are those by both.
    """
    words = _NO_WORDS if allowed is None else allowed.words
    n_allowed = len(lists.rows) if allowed is None else allowed.count

    def keep(n_kept: int) -> Candidates:
        rows, n_scored, hold_best = scan(
            lists.codes,
            lists.scales,
            lists.rows,
            lists.offsets,
            *lists.coded_centres,
            lists.spreads,
            *lists.heads,
            query,
            words,
            n_allowed,
            n_wanted,
            n_kept,
            lists.error,
            missed * n_wanted,
            usual,
            *bands,
            lists.positions,
            gains.rows,
            gains.steps,
            gains.values.astype(np.float32),
        )
        return Candidates(rows, n_scored, hold_best)

    return _keep_enough(keep, n_wanted)


def _keep_enough(keep: Callable[[int], Candidates], n_wanted: int) -> Candidates:
    found = keep(count_candidates(n_wanted))
    if not found.hold_best and len(found.rows):
        more = keep(_MORE * count_candidates(n_wanted))
        found = more._replace(n_scored=found.n_scored + more.n_scored)
    found.rows.sort()
    return found


def gather_rows(
    lists: Lists,
    query: Embeddings,
    allowed: Bitmap,
    n_wanted: int,
    gains: Gains = NO_GAINS,
) -> Candidates:
    """Score every allowed row by its code and gain, and return the best."""

    def keep(n_kept: int) -> Candidates:
        rows, hold_best = gather(
            lists.codes,
            lists.scales,
            lists.rows,
            lists.positions,
            query,
            allowed.words,
            allowed.count,
            n_wanted,
            n_kept,
            lists.error,
            gains.rows,
            gains.steps,
            gains.values.astype(np.float32),
        )
        return Candidates(rows, allowed.count, hold_best)

    return _keep_enough(keep, n_wanted)


def sweep_lists(
    lists: Lists, query: Embeddings, allowed: Bitmap | None, n_wanted: int, least: float
) -> tuple[NDArray[np.int64], int]:
    """Find every allowed row that may be among the best `n_wanted` with a cosine of `least`.

    Returns:
        (n,) int64 rows, ascending, with all rows of the exact answer among them; and how many rows
        were scored.
    """
    norm = float(np.linalg.norm(query.astype(np.float64)))
    # Most that float32 sums of products are off by, in this score and in the cosine it stands for.
    slack = 4 * len(query) * 2.0**-24 * norm * lists.longest
    # Not by BLAS, whose threads wait for each other longer than this takes.
    products = cosines(lists.centres, query)
    rows, n_scored = sweep(
        lists.codes,
        lists.scales,
        lists.rows,
        lists.errors,
        lists.positions,
        lists.offsets,
        *lists.heads,
        np.argsort(-products, kind="stable"),
        products,
        products + np.float32(norm * (1 + 1e-6)) * lists.radii + np.float32(2 * slack),
        query,
        _NO_WORDS if allowed is None else allowed.words,
        len(lists.rows) if allowed is None else allowed.count,
        n_wanted,
        least,
        lists.longest,
        slack,
    )
    rows.sort()
    return rows, n_scored
