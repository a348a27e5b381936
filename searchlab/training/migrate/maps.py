"""Learning a linear map from the rows of one model to those of another, on photos with both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from searchlab.models.migrated import LinearMap
from searchlab.models.protocol import Embeddings

PENALTIES = (0.03, 0.3, 3.0, 30.0, 300.0)
"""Penalties of the fit_ridge regression that are tried, in units of one photo."""
_CHUNK = 1_024


@dataclass(frozen=True)
class ChosenMap:
    """The map that loses the fewest neighbours on held-out photos.

    Attributes:
        linear_map: The map.
        kind: `"ridge 0.3"` with its penalty, or `"procrustes"`.
        recall: Mean `neighbour_recall` of the held-out photos.
    """

    linear_map: LinearMap
    kind: str
    recall: float


def fit_ridge(old: Embeddings, new: Embeddings, penalty: float) -> LinearMap:
    """Fit the map with the least squared error and small weights, around the means.

    Args:
        old: (n_photos, old_dim) rows.
        new: (n_photos, new_dim) rows of the same photos.
        penalty: Factor of the squared weights in the loss.

    References:
        Hoerl and Kennard, Ridge regression, Technometrics 12, 1970.
    """
    x, y, x_mean, y_mean = _centre(old, new)
    gram = x.T @ x + penalty * np.eye(x.shape[1])
    weights = np.asarray(np.linalg.solve(gram, x.T @ y), dtype=np.float64)
    return _map(weights, x_mean, y_mean)


def fit_procrustes(old: Embeddings, new: Embeddings) -> LinearMap:
    """Fit the rotation with the least squared error, around the means.

    Where the dimensions differ, it rotates as many as both have.

    References:
        Schoenemann, A generalized solution of the orthogonal Procrustes problem, Psychometrika 31,
        1966.
    """
    x, y, x_mean, y_mean = _centre(old, new)
    left, strengths, right = np.linalg.svd(x.T @ y, full_matrices=False)
    # One factor for all rows: with fewer dimensions on one side they would be too long.
    length = float(strengths.sum()) / max(float(((x @ left) ** 2).sum()), 1e-12)
    rotation = np.asarray(left @ right, dtype=np.float64)
    return _map(length * rotation, x_mean, y_mean)


def learn_map(
    old: Embeddings, new: Embeddings, held_old: Embeddings, held_new: Embeddings
) -> ChosenMap:
    """Learn several maps and choose the one that loses the fewest neighbours of held-out photos.

    The squared error, which the maps minimise, is not the criterion: a rotation has a larger error
    and yet often keeps more neighbours.

    Args:
        old: (n_photos, old_dim) rows to learn from.
        new: (n_photos, new_dim) rows of the same photos.
        held_old: (n_held, old_dim) rows to choose by.
        held_new: (n_held, new_dim) rows of the same photos.
    """
    candidates = [(f"ridge {penalty:g}", fit_ridge(old, new, penalty)) for penalty in PENALTIES]
    candidates.append(("procrustes", fit_procrustes(old, new)))
    recalls = [
        float(neighbour_recall(held_new, linear_map(held_old), held_new).mean())
        for _, linear_map in candidates
    ]
    best = int(np.argmax(recalls))
    return ChosenMap(candidates[best][1], candidates[best][0], recalls[best])


def neighbour_recall(
    queries: Embeddings,
    mapped: Embeddings,
    true: Embeddings,
    *,
    own: bool = True,
    k: int = 10,
) -> NDArray[np.float64]:
    """Return the share of the true k nearest photos that are among the k nearest by mapped rows.

    Args:
        queries: (n_queries, dim) rows of the new model.
        mapped: (n_photos, dim) mapped rows.
        true: (n_photos, dim) rows of the new model.
        own: Whether query i is photo i, which is then not counted as its own neighbour.
        k: Number of neighbours, at most a fifth of the photos.

    Returns:
        (n_queries,) shares, 0 to 1.
    """
    k = max(1, min(k, len(true) // 5))
    shares = np.empty(len(queries))
    for start in range(0, len(queries), _CHUNK):
        block = queries[start : start + _CHUNK]
        scores, exact = block @ mapped.T, block @ true.T
        if own:
            rows = np.arange(len(block))
            scores[rows, start + rows] = exact[rows, start + rows] = -np.inf
        nearest = [np.argpartition(-cosines, k - 1, axis=1)[:, :k] for cosines in (scores, exact)]
        hits = (nearest[0][:, :, None] == nearest[1][:, None, :]).any(axis=2)
        shares[start : start + len(block)] = hits.mean(axis=1)
    return shares


def refit(kind: str, old: Embeddings, new: Embeddings) -> LinearMap:
    """Learn the chosen kind of map again, from more photos."""
    name, _, penalty = kind.partition(" ")
    if name == "procrustes":
        return fit_procrustes(old, new)
    return fit_ridge(old, new, float(penalty))


def _centre(
    old: Embeddings, new: Embeddings
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    x, y = old.astype(np.float64), new.astype(np.float64)
    x_mean, y_mean = x.mean(axis=0), y.mean(axis=0)
    return x - x_mean, y - y_mean, x_mean, y_mean


def _map(
    linear: NDArray[np.float64], x_mean: NDArray[np.float64], y_mean: NDArray[np.float64]
) -> LinearMap:
    bias = y_mean - x_mean @ linear
    return LinearMap(linear.astype(np.float32), bias.astype(np.float32))
