"""Texts of like length together."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from searchlab.models.batching import group_by_length


@given(st.lists(st.integers(2, 77), max_size=80), st.integers(1, 32))
def test_every_text_is_in_one_group_and_no_group_pads_more_than_another_pass_costs(lengths, most):
    groups = group_by_length(lengths, most=most)
    assert sorted(np.concatenate([[], *groups]).astype(int).tolist()) == list(range(len(lengths)))
    for group in groups:
        group_lengths = [lengths[i] for i in group]
        assert 1 <= len(group_lengths) <= most
        assert group_lengths == sorted(group_lengths)
        assert sum(max(group_lengths) - length for length in group_lengths) <= 25
    assert [i for group in groups for i in group] == np.argsort(lengths, kind="stable").tolist()


def test_a_long_text_does_not_make_short_ones_long():
    assert [group.tolist() for group in group_by_length([77, 4, 5, 4], most=32)] == [
        [1, 3, 2],
        [0],
    ]


def test_one_at_a_time_is_one_at_a_time():
    assert [group.tolist() for group in group_by_length([5, 3, 4], most=1)] == [[1], [2], [0]]


def test_nothing_gives_no_group():
    assert group_by_length([], most=4) == []
