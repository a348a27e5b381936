"""Where a scan of clusters would lose its way: filters against the query, rows that are alike."""

import numpy as np
import pytest

from searchlab.evaluation.metrics import recall_at_k
from searchlab.models.protocol import unit_rows
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.indexes import ExactIndex
from searchlab.search.indexes.ivf import index as ivf_index
from searchlab.search.indexes.ivf.index import IvfIndex
from searchlab.search.indexes.ivf.search import Candidates
from searchlab.search.words.matches import Gains
from tests.support import ivf_world
from tests.support.ivf_world import DIM, N

all_vectors, vectors, members = ivf_world.all_vectors, ivf_world.vectors, ivf_world.members
queries, index, exact = ivf_world.queries, ivf_world.index, ivf_world.exact


def test_a_filter_that_forbids_what_is_nearest_is_seen_through(index, exact, queries, vectors):
    for query in queries["image"][:10]:
        allowed = vectors @ query < np.quantile(vectors @ query, 0.6)
        neighbors = index.search(query[np.newaxis], 20, allowed=allowed)
        truth = exact.search(query[np.newaxis], 20, allowed=allowed)
        assert recall_at_k(neighbors, truth) >= 0.9


def test_where_far_more_is_left_than_a_share_may_miss_all_is_searched(
    index, exact, queries, vectors, monkeypatch
):
    calls, scan = [], ivf_index.scan_lists

    def lost(*arguments, **named):
        found = scan(*arguments, **named)
        calls.append(found.n_scored)
        return Candidates(found.rows[:0], found.n_scored, hold_best=False)

    monkeypatch.setattr(ivf_index, "scan_lists", lost)
    scanning, query = IvfIndex(vectors, lists=index._lists, gather_below=1), queries["image"][0]
    allowed = vectors @ query < np.quantile(vectors @ query, 0.6)
    found = scanning.search(query[np.newaxis], 20, allowed=allowed)
    truth = exact.search(query[np.newaxis], 20, allowed=allowed)
    assert found.rows.tolist() == truth.rows.tolist()
    assert found.scores.tobytes() == truth.scores.tobytes()
    assert found.rows_read[0] > calls[0] > 0
    # So many gain the same that no search for each of them would do.
    rows = np.flatnonzero(allowed)[::4].copy()
    gains = Gains(rows, np.arange(len(rows)) % 3 + 1, np.array([0, 0.1, 0.2, 0.4]))
    bits = Bitmap.of_mask(allowed)
    best = scanning.nearly_best(query, 20, gains, allowed=bits)
    assert best.rows.tolist() == exact.best(query, 20, gains, allowed=bits).rows.tolist()
    assert len(calls) == 2


@pytest.mark.parametrize("gather_below", [1, 6_000])
@pytest.mark.parametrize("n_copies", [90, 300, 1_500])
def test_rows_that_score_alike_are_found_however_many_they_are(vectors, n_copies, gather_below):
    """As many as are kept, some more, and more than are kept in a second try."""
    rng = np.random.default_rng(9)
    many = vectors.copy()
    nearly = many[0] + 1e-4 * rng.standard_normal((n_copies, DIM)).astype(np.float32)
    many[rng.permutation(N)[:n_copies]] = unit_rows(nearly)
    index, exact = IvfIndex(many, n_lists=30, gather_below=gather_below), ExactIndex(many)
    allowed = None if gather_below == 1 else np.arange(N) > 0
    for k in (1, 20):
        found, truth = (
            each.search(many[:1], k, allowed=allowed).rows.tolist() for each in (index, exact)
        )
        assert found == truth


@pytest.mark.slow
def test_a_scan_goes_on_over_lists_without_an_allowed_row():
    """After many such lists those to come are still taken to hold what is left of the allowed."""
    rng = np.random.default_rng(0)
    rows, queries = (
        unit_rows(rng.standard_normal((n, 24)).astype(np.float32)) for n in (20_000, 12)
    )
    index, exact = IvfIndex(rows, n_lists=140, gather_below=1), ExactIndex(rows)
    lists, recalls = index._lists, []
    for query in queries:
        order = np.argsort(-(lists.centres @ query))
        members = [lists.rows[lists.offsets[one] : lists.offsets[one + 1]] for one in order]
        farthest = np.argsort(rows[members[0]] @ query)[:15]
        allowed = np.zeros(len(rows), dtype=np.bool_)
        allowed[members[0][farthest]] = True  # as many as are asked for, and bad ones
        allowed[np.concatenate(members[30:])] = True
        bitmap = Bitmap.of_mask(allowed)
        found, true = (one.search(query[None], 10, allowed=bitmap).rows for one in (index, exact))
        recalls.append(np.isin(found, true).mean())
    assert np.mean(recalls) > 0.95
