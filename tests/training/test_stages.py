"""A stage that was trained is not trained again, and what it depends on is in its name."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from searchlab.training.mini.photo_tower import Readings  # noqa: E402
from searchlab.training.mini.stages import (  # noqa: E402
    digest_of,
    restore_or_make,
    restore_or_train,
)
from searchlab.training.mini.student import WIDTH, PieceTable, pack_texts  # noqa: E402


@pytest.fixture
def table():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(6, 4)).astype(np.float32)
    return PieceTable(features, rng.normal(size=(4, WIDTH)).astype(np.float32), rate=0.1)


def learn(table):
    table.take(pack_texts([[1, 2]])).sum().backward()
    table.step(1.0)
    with torch.no_grad():
        table.reader.weight.add_(0.5)


def never():
    raise AssertionError


@pytest.mark.slow
def test_what_was_learnt_comes_back_without_training(tmp_path, table):
    layer = torch.nn.Linear(3, 2)
    again = copy.deepcopy(layer), table.copy(rate=0.1)

    def train():
        learn(table)
        torch.nn.init.ones_(layer.weight)

    restore_or_train(tmp_path / "kept" / "one.pt", (layer, table), train)
    assert not np.allclose(again[1].vectors(), table.vectors())
    restore_or_train(tmp_path / "kept" / "one.pt", again, never)
    np.testing.assert_array_equal(again[1].vectors(), table.vectors())
    torch.testing.assert_close(again[0].weight, layer.weight)
    learn(again[1])  # A restored table goes on learning.


def test_tensors_are_made_once(tmp_path):
    path = tmp_path / "one.pt"
    made = restore_or_make(path, lambda: [torch.arange(3), torch.ones(2)])
    kept = restore_or_make(path, never)
    assert [tensor.tolist() for tensor in kept] == [tensor.tolist() for tensor in made]


def test_a_stage_that_fails_leaves_nothing(tmp_path, table):
    with pytest.raises(AssertionError):
        restore_or_train(tmp_path / "one.pt", (table,), never)
    assert list(tmp_path.iterdir()) == []


def readings(ids=("a", "b"), feature=1.0, logit=2.0):
    ones = np.ones((2, 3), dtype=np.float32)
    return Readings(list(ids), feature * ones, logit * ones)


def test_the_digest_tells_other_readings_and_inputs():
    first = digest_of([readings()], {"steps": 600}, ["a caption"])
    assert digest_of([readings()], {"steps": 600}, ["a caption"]) == first
    others = {
        digest_of([readings(ids="ba")], {"steps": 600}, ["a caption"]),
        digest_of([readings(feature=1.5)], {"steps": 600}, ["a caption"]),
        digest_of([readings(logit=1.5)], {"steps": 600}, ["a caption"]),
        digest_of([readings()] * 2, {"steps": 600}, ["a caption"]),
        digest_of([readings()], {"steps": 601}, ["a caption"]),
        digest_of([readings()], {"steps": 600}, ["another caption"]),
    }
    assert len(others | {first}) == 7
