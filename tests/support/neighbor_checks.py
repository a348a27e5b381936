"""What must hold of the answers of every index, and answers as a child would find them."""

import numpy as np

from searchlab.evaluation.metrics import recall_at_k
from searchlab.search.indexes.scoring import cosines


def only(n, *rows):
    """Return the mask of some rows."""
    allowed = np.zeros(n, dtype=bool)
    allowed[list(rows)] = True
    return allowed


def by_sorting(vectors, query, k, allowed=None, at_least=-np.inf):
    """Find the k best rows: score all, drop what is too far, sort by score and row, cut."""
    scores = cosines(vectors, query).tolist()
    rows = range(len(vectors)) if allowed is None else np.flatnonzero(allowed).tolist()
    return sorted(
        (row for row in rows if scores[row] >= at_least), key=lambda row: (-scores[row], row)
    )[:k]


def check_nearest(neighbors, vectors, query, k, allowed=None, at_least=-np.inf):
    """Assert that an exact answer is right to the last bit."""
    expected = by_sorting(vectors, query, k, allowed, at_least)
    assert (neighbors.rows.dtype, neighbors.scores.dtype) == (np.int64, np.float32)
    assert neighbors.rows.tolist() == expected
    assert neighbors.scores.tobytes() == cosines(vectors, query)[expected].tobytes()


def check_answers(neighbors, vectors, queries, k, allowed=None):
    """Assert everything that holds for exact and approximate answers alike."""
    n_allowed = len(vectors) if allowed is None else np.count_nonzero(allowed)
    filled = min(k, n_allowed)
    assert neighbors.rows.shape == neighbors.scores.shape == (len(queries), k)
    assert (neighbors.rows.dtype, neighbors.scores.dtype) == (np.int64, np.float32)
    assert (neighbors.rows[:, filled:] == -1).all()
    assert (neighbors.scores[:, filled:] == -np.inf).all()
    for rows, scores, query in zip(neighbors.rows, neighbors.scores, queries, strict=True):
        rows, scores = rows[:filled], scores[:filled]
        assert rows.min(initial=0) >= 0
        assert len(set(rows.tolist())) == filled
        assert allowed is None or allowed[rows].all()
        assert scores.tobytes() == cosines(vectors[rows], query).tobytes()
        pairs = list(zip((-scores).tolist(), rows.tolist(), strict=True))
        assert pairs == sorted(pairs)


def check_same(one, other, *, equal=True):
    """Assert that answers are the same, or for other walks of a graph almost so."""
    if equal:
        assert one.rows.tolist() == other.rows.tolist()
        assert one.scores.tobytes() == other.scores.tobytes()
    else:
        assert recall_at_k(one, other) >= 0.95
