"""Exact search of many queries by torch, here on the processor: it answers as `exact` does."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch")

from searchlab.errors import InputError, MissingExtraError  # noqa: E402
from searchlab.models.protocol import unit_rows  # noqa: E402
from searchlab.search.indexes import ExactIndex, on_device  # noqa: E402
from searchlab.search.indexes.on_device import DeviceIndex  # noqa: E402


def rows_of(n, *, dim=8, seed=0, distinct=None):
    rng = np.random.default_rng(seed)
    rows = unit_rows(rng.normal(size=(distinct or n, dim)).astype(np.float32))
    return rows[rng.integers(len(rows), size=n)] if distinct else rows


def check_equal(vectors, queries, k, allowed=None, device="cpu"):
    ours = DeviceIndex(vectors, device).search(queries, k, allowed=allowed)
    exact = ExactIndex(vectors).search(queries, k, allowed=allowed)
    np.testing.assert_array_equal(ours.rows, exact.rows)
    np.testing.assert_array_equal(ours.scores, exact.scores)


@given(
    n=st.integers(1, 300),
    distinct=st.sampled_from([None, 1, 3]),
    k=st.integers(1, 320),
    share=st.sampled_from([None, 0.0, 0.02, 0.5, 1.0]),
    seed=st.integers(0, 99),
)
def test_answers_are_those_of_exact_to_the_last_bit(n, distinct, k, share, seed):
    """With ties of all rows, more wanted than there are, and filters down to nothing."""
    queries = rows_of(on_device._FEW + 1, seed=seed + 1)
    queries[0] = 0
    allowed = None if share is None else np.random.default_rng(seed).random(n) < share
    check_equal(rows_of(n, seed=seed, distinct=distinct), queries, k, allowed)


def test_rows_that_nearly_tie_are_told_apart_as_by_exact():
    """More of them than the device gives: what it cannot tell apart the processor scores."""
    rng = np.random.default_rng(0)
    vectors = (
        np.ones((500, 8), dtype=np.float32) + rng.normal(size=(500, 8)).astype(np.float32) / 1e7
    )
    check_equal(unit_rows(vectors), unit_rows(np.ones((20, 8), dtype=np.float32)), 5)


def test_queries_come_in_as_many_batches_as_fit(monkeypatch):
    monkeypatch.setattr(on_device, "_PRODUCTS", 3_000)
    check_equal(rows_of(1_000), rows_of(50, seed=1), 10)


def test_products_are_whole_floats_whatever_is_set():
    torch.set_float32_matmul_precision("medium")
    try:
        check_equal(rows_of(400), rows_of(40, seed=1), 10)
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")


def test_few_queries_take_the_processor(monkeypatch):
    monkeypatch.setattr(DeviceIndex, "_candidates", None)
    check_equal(rows_of(100), rows_of(on_device._FEW - 1, seed=1), 10)


def test_vectors_that_do_not_fit_are_refused_by_name(monkeypatch):
    def full(*_args, **_options):
        raise torch.OutOfMemoryError

    index = DeviceIndex(rows_of(100), "cpu")
    monkeypatch.setattr(torch, "from_numpy", full)
    with pytest.raises(InputError, match=r"must fit into the memory of cpu, got 0\.0 GB; use"):
        index.search(rows_of(20, seed=1), 3)


def test_the_device_is_named_by_argument_or_environment(monkeypatch):
    monkeypatch.setenv("SEARCHLAB_DEVICE", "cpu")
    assert DeviceIndex(rows_of(3)).device == torch.device("cpu")
    monkeypatch.setenv("SEARCHLAB_DEVICE", "abacus")
    with pytest.raises(InputError, match="device must be one that torch has here"):
        DeviceIndex(rows_of(3))


def test_without_torch_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'searchlab\[clip\]'"):
        DeviceIndex(rows_of(3))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no accelerator of this kind")
def test_an_accelerator_gives_the_same():
    vectors, queries = rows_of(20_000, dim=256), rows_of(200, dim=256, seed=1)
    check_equal(vectors, queries, 20, device="cuda")
    check_equal(vectors, queries, 20, np.random.default_rng(0).random(20_000) < 0.1, "cuda")
