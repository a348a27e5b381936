"""Heads of rows: what they say is never farther off than it may be, however it is multiplied."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.models.protocol import unit_rows
from searchlab.search.indexes.ivf._kernels.heads import (
    BYTES,
    COMPONENTS,
    MIDDLE,
    multiply_head,
    project,
    read_lengths,
    round_head,
)
from searchlab.search.indexes.ivf.heads import learn_axes, make_heads
from tests.support.examples import examples
from tests.support.heads import HALF, check_heads, decode

SCRIPT = Path(__file__).parents[1] / "support" / "head_products.py"


@numba.njit
def products(heads, query):
    return np.array([multiply_head(heads, row, query) for row in range(heads.shape[0])])


@numba.njit
def lengths(heads):
    return [read_lengths(heads, row) for row in range(heads.shape[0])]


@numba.njit
def rounded(head):
    return round_head(head)[:3]


@numba.njit
def projected(axes, query):
    return project(axes, query)


def rows_of(n, dim, seed):
    return unit_rows(np.random.default_rng(seed).standard_normal((n, dim))).astype(np.float32)


# -- what is stored ---------------------------------------------------------------------------


@given(
    n=st.integers(1, 40),
    dim=st.integers(1, 130),
    n_lists=st.integers(1, 5),
    size=st.sampled_from([1.0, 1e-3, 1e-12]),
    seed=st.integers(0, 9),
)
@settings(max_examples=examples(80), deadline=None)
def test_components_are_within_half_a_step_and_tails_never_less(n, dim, n_lists, size, seed):
    rng = np.random.default_rng(seed)
    vectors = np.float32(size) * rows_of(n, dim, seed)
    vectors[rng.random(n) < 0.1] = 0
    vectors[rng.random(n) < 0.2] = vectors[0]
    members, places = rng.integers(0, n_lists, n), rng.permutation(n)
    centres = np.float32(size / 2) * rows_of(n_lists, dim, seed + 20)
    centres[0] = vectors[0]  # nothing is left of some rows
    # Of others, or so few rows would have no tails.
    axes = learn_axes(
        rows_of(300, dim, 40), np.zeros(300, dtype=np.int64), 0 * centres[:1], seed=seed
    )
    heads = make_heads(vectors, members, places, centres, axes)
    check_heads(heads, vectors, members, places, centres)
    assert not heads.codes[n:].any()


@pytest.mark.parametrize("dim", [1, 55, 56, 57, 200])
def test_axes_are_those_along_which_rows_differ_most_from_their_centres(dim):
    rng = np.random.default_rng(dim)
    turned, _ = np.linalg.qr(rng.standard_normal((dim, dim)))
    rest = rng.standard_normal((2_000, dim)) * 0.97 ** np.arange(dim) @ turned
    members = rng.integers(0, 3, 2_000)
    centres = 5 * rows_of(3, dim, dim)
    axes = learn_axes((rest + centres[members]).astype(np.float32), members, centres, seed=0)
    n_axes = min(dim, COMPONENTS)
    assert axes.shape == (dim, COMPONENTS)
    assert axes[:, :n_axes].T @ axes[:, :n_axes] == pytest.approx(np.eye(n_axes), abs=1e-5)
    assert not axes[:, n_axes:].any()
    most = np.linalg.eigvalsh(rest.T @ rest)[::-1][:n_axes]
    assert ((rest @ axes[:, :n_axes]) ** 2).sum(axis=0) == pytest.approx(most, rel=1e-3)


# -- products ---------------------------------------------------------------------------------


@pytest.mark.slow
@given(st.lists(st.floats(-1, 1, width=32), min_size=COMPONENTS, max_size=COMPONENTS))
@settings(max_examples=examples(60), deadline=None)
def test_components_of_a_query_are_rounded_to_the_nearest_step(values):
    head = np.array(values, dtype=np.float32)
    codes, step, zero = rounded(head)[:3]
    low, high = codes.reshape(2, BYTES)
    whole = np.concatenate([low[:HALF], high[:HALF]]).astype(np.float64)
    assert np.abs(whole * np.float64(step) - head).max() <= step * 0.51 + 2e-28
    assert not low[HALF:].any()
    assert not high[HALF:].any()
    assert zero == MIDDLE * whole.sum()


@pytest.mark.slow
def test_a_query_is_projected_onto_the_axes():
    axes = np.linalg.qr(np.random.default_rng(0).standard_normal((90, 90)))[0][:, :COMPONENTS]
    axes = np.ascontiguousarray(axes, dtype=np.float32)
    query = rows_of(1, 90, 1)[0]
    assert projected(axes, query) == pytest.approx(query @ axes, abs=1e-6)


@pytest.mark.parametrize("extreme", [127, -127, None])
def test_the_product_of_a_head_is_that_of_its_integers(extreme):
    """Steps and tails lie in the same half line, and are no components."""
    rng = np.random.default_rng(5)
    heads = rng.integers(0, 256, (200, BYTES), dtype=np.uint8)
    heads[0], heads[1] = 255, 0
    whole = rng.integers(-127, 128, COMPONENTS)
    if extreme is not None:
        whole[: COMPONENTS // 3] = extreme
        whole[-COMPONENTS // 3 :] = extreme
    query = np.zeros((2, BYTES), dtype=np.int8)
    query[:, :HALF] = whole.reshape(2, HALF)
    exact = decode(heads).whole @ whole
    assert products(heads, query.reshape(-1)).tolist() == exact.tolist()


def test_step_and_tail_are_read_as_they_are_stored():
    vectors, centres = rows_of(30, 70, 2), np.zeros((1, 70), dtype=np.float32)
    members = np.zeros(30, dtype=np.int64)
    axes = learn_axes(vectors, members, centres, seed=0)
    codes = make_heads(vectors, members, np.arange(30), centres, axes).codes
    decoded = decode(codes)
    assert lengths(codes) == list(zip(decoded.steps, decoded.tails, strict=True))


def on_processor(name, features, cache):
    """Multiply on a processor of a kind; which way was taken, and all that came out."""
    forced = {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": features} if name else {}
    ran = subprocess.run(
        [sys.executable, str(SCRIPT)],
        env={**os.environ, **forced, "NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the ways are those of x86")
def test_all_ways_to_multiply_give_the_same_integers_and_rows(tmp_path):
    host = llvm.get_host_cpu_features()
    kinds = {"_multiply_plain": ("nehalem", "+sse4.2,+ssse3,+sse3,+popcnt,+cx16")}
    if host.get("avx2"):
        kinds["_multiply_avx2"] = ("haswell", "+avx2,+avx,+sse4.2,+ssse3,+sse3,+popcnt,+cx16")
    if host.get("avx512vnni") and host.get("avx512vl"):
        kinds["_multiply_vnni"] = ("", "")
    ways = {way: on_processor(*kind, tmp_path / way) for way, kind in kinds.items()}
    for way, (taken, *results) in ways.items():
        assert taken == way
        assert results.count("True") == 3
    assert len({tuple(results) for _, *results in ways.values()}) == 1
