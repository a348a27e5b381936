"""Lookup by hash: every entry is found under its hash, and damage is told."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.errors import DataError
from searchlab.search.words.hashed import Hashed
from tests.support.examples import examples

hashes = st.lists(
    st.integers(0, 2**64 - 1) | st.sampled_from([0, 1, 2**32, 2**63, 2**64 - 1]), max_size=200
)


@settings(max_examples=examples(100), deadline=None)
@given(some=hashes, other=st.integers(0, 2**64 - 1))
def test_places_are_those_of_the_hash(some, other):
    ordered = np.sort(np.array(some, dtype=np.uint64))
    laid_down = Hashed.of(ordered)
    assert len(laid_down) == len(some)
    again = Hashed(laid_down.firsts, laid_down.rests)
    for hashed in {*some, other}:
        found = ordered[again.places(hashed)].tolist()
        assert found.count(hashed) == some.count(hashed)
        assert {one >> 32 for one in found} <= {hashed >> 32}


def test_a_large_table_has_buckets_of_some_sixteen():
    ordered = np.sort(np.random.default_rng(0).integers(0, 2**64, 10_000, dtype=np.uint64))
    laid_down = Hashed.of(ordered)
    assert len(laid_down.firsts) == 2**10 + 1
    assert laid_down.rests.nbytes + laid_down.firsts.nbytes < 4.5 * len(ordered)
    places = [laid_down.places(hashed) for hashed in ordered[::97].tolist()]
    assert places == [slice(place, place + 1) for place in range(0, 10_000, 97)]


@pytest.mark.parametrize(
    "firsts", [[], [0], [0, 1, 2, 3], [1, 3], [0, 2], [0, 3, 2, 3, 3], [0, 2**32 - 1, 3]]
)
def test_buckets_that_do_not_fit_are_refused(firsts):
    with pytest.raises(DataError, match="buckets"):
        Hashed(np.array(firsts, dtype=np.uint32), np.zeros(3, dtype=np.uint32))
