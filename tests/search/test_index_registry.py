"""An index is one class and one line: a toy one is built, searched, planned, changed, reopened."""

import numpy as np
import pytest

from searchlab.config import Config
from searchlab.errors import InputError, MismatchError
from searchlab.evaluation.config_grids import grid
from searchlab.evaluation.results import system_name
from searchlab.evaluation.tuning.index_costs import measure
from searchlab.library.library import open_library
from searchlab.search.indexes import INDEXES, build_index
from searchlab.search.indexes.exact import ExactIndex, empty_neighbors
from searchlab.search.indexes.protocol import VectorIndex
from searchlab.search.queries import Query
from tests.support import library_world

library = library_world.library
photos = library_world.photos
put = library_world.put
index = library_world.index


class ToyIndex(VectorIndex):
    """Looks at every row of one half, which a seed chooses, and at as many more as its effort."""

    approximate = True
    mode = "toy"

    def __init__(self, vectors, seed):
        self.vectors = vectors
        self.half = np.random.default_rng(seed).permutation(len(vectors))[: len(vectors) // 2]

    @staticmethod
    def built_from(config):
        return ("seed",)

    @classmethod
    def build(cls, vectors, config, *, labels):
        return cls(vectors, config.seed)

    def search(self, queries, k, *, allowed=None, recall=None, effort=None):
        half = np.isin(np.arange(len(self)), self.half)
        if allowed is not None:
            half &= allowed.mask()
        if effort or half.sum() < k:
            return ExactIndex(self.vectors).search(queries, k, allowed=allowed)
        return ExactIndex(self.vectors).search(queries, k, allowed=half)

    def nearest(self, query, k, *, allowed=None, at_least=-np.inf):
        return ExactIndex(self.vectors).nearest(query, k, allowed=allowed, at_least=at_least)

    def estimate(self, config, n_allowed):
        return n_allowed > 8, "half of all is read"

    @staticmethod
    def efforts(config, n_photos):
        return (1.0,)


@pytest.fixture
def toy(monkeypatch):
    """The one line, and a config that names the index."""
    monkeypatch.setitem(INDEXES, "toy", ToyIndex)
    return Config(model="palette", index="toy", depth=4)


def test_a_library_is_built_with_a_new_index_searched_changed_and_opened_again(
    toy, library, photos, put, index
):
    for number in range(12):
        put(f"{number}.png", number)
    index(config=toy)
    assert isinstance(library.engine.index, ToyIndex)
    page = library.search("red", per_page=5)
    assert len(page) == 5
    assert page.plan.explain().startswith("toy: half of all is read\n")
    assert "expected recall: not measured" in page.plan.explain()
    (photos / "3.png").unlink()
    put("12.png", 12)
    index(config=toy)
    again = open_library(library.folder)
    assert isinstance(again.engine.index, ToyIndex)
    assert len(again.engine.index) == 12
    assert again.search(Query(text="red", min_recall=1.0)).plan.mode == "exact"
    assert len(again.search("red", per_page=100)) == 12


def test_a_new_index_is_tuned_and_planned_by_what_was_measured(toy, unit_vectors):
    vectors = unit_vectors(60)
    half = ToyIndex(vectors, seed=0)
    kinds = {kind: lambda number: (vectors[number % 60], None) for kind in ("image", "text")}
    measured = measure(half, toy, kinds, seconds=0.2)
    assert measured.tuning.index_id == toy.index_id
    assert {row["effort"] for row in measured.rows} == {1.0}
    assert half.describe_effort(1.0) == "effort 1"


def test_a_new_index_has_a_name_an_id_and_a_place_in_grids(toy):
    assert system_name(toy) == "palette × toy"
    assert toy.index_id != Config(model="palette", index="toy", seed=1).index_id
    assert toy.index_id == Config(model="palette", index="toy", M=8).index_id
    assert [config.index for config in grid(["palette"], ["exact", "toy"])] == ["exact", "toy"]


def test_an_index_that_is_in_no_line_is_refused(toy):
    with pytest.raises(
        InputError,
        match="index must be one of exact, hnsw, clustered, exact-on-device, toy, pgvector:ADDRESS",
    ):
        Config(index="other")


def test_what_was_read_is_counted_for_each_query(unit_vectors):
    vectors, queries = unit_vectors(60), unit_vectors(3, seed=9)
    assert ExactIndex(vectors).search(queries, 5).rows_read.tolist() == [60, 60, 60]
    few = np.arange(60) < 7
    assert ExactIndex(vectors).search(queries, 5, allowed=few).rows_read.tolist() == [7, 7, 7]
    assert empty_neighbors(2, 3).rows_read.tolist() == [0, 0]


def test_an_installed_package_adds_an_index_by_an_entry_point(tmp_path, monkeypatch):
    line = "from searchlab.search.indexes.exact import ExactIndex as Plugged\n"
    (tmp_path / "plugged_index.py").write_text(line)
    described = tmp_path / "plugged-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text(
        "[searchlab.indexes]\nplugged = plugged_index:Plugged\ngone = plugged_index:Gone\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    vectors = np.eye(4, dtype=np.float32)
    plugged = build_index(vectors, Config(index="plugged"))
    assert plugged.search(vectors[:1], 1).rows[0, 0] == 0
    with pytest.raises(MismatchError, match=r"'gone' .* upgrade or uninstall plugged"):
        build_index(vectors, Config(index="gone"))
    with pytest.raises(InputError, match=r"exact-on-device, gone, plugged, .*, got 'tree'"):
        Config(index="tree")
