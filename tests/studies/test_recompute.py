"""What benchmarks of indexes and filters recorded of our own systems is computed again."""

import numpy as np
import pytest

from searchlab.config import Config
from searchlab.errors import InputError, NotFoundError
from searchlab.search.indexes import ExactIndex, HnswIndex, Neighbors
from searchlab.studies.filters import study as filters
from searchlab.studies.filters.atlas import Atlas, Cell, measure_cell
from searchlab.studies.filters.atlas_engine import Served
from searchlab.studies.index import study as index
from searchlab.studies.index.recall import measure_search, one_by_one
from searchlab.studies.vectors.made import made_vectors

GRAPH = {"M": 4, "ef_construction": 40, "index": "hnsw", "step_rows": 4}


def recorded(**values):
    return {
        "name": "searchlab-hnsw",
        "dataset": "clustered-2k-16",
        "parameters": {"system": GRAPH, "n_queries": 6, "k": 10, "n_photos": 2_000},
        "manifest": {"seed": 5},
    } | values


def test_recall_of_an_index_comes_out_as_it_was_measured():
    made = made_vectors("clustered-2k-16", n_queries=6, seed=5)
    graph = HnswIndex(made.photos, M=4, ef_construction=40, ef_search=12, seed=5)
    exact = ExactIndex(made.photos).search(made.queries["text"], 20)
    points = []
    for k in (5, 20):
        true = Neighbors(exact.rows[:, :k], exact.scores[:, :k])
        measured = measure_search(
            one_by_one(graph), made.photos, made.queries["text"], true, runs=1
        )
        points.append(
            {"queries": "text", "k": k, "effort": 12, "recall": round(measured["recall"], 4)}
        )
    assert min(point["recall"] for point in points) < 1
    assert index.recompute(recorded(points=points)) == {"points": points}


def test_cells_of_the_atlas_come_out_as_they_were_measured():
    vectors = made_vectors("clustered-2k-16", n_queries=1, seed=5).photos
    atlas = Atlas(vectors, n_queries=6, seed=5)
    graph = HnswIndex(vectors, M=4, ef_construction=40, seed=5)
    served = Served(atlas.columns, graph, Config(model="given", index="hnsw", M=4))
    rows = []
    for cell in (Cell(1.0, "aligned", 0), Cell(0.05, "opposed", 2)):
        row = measure_cell(served, atlas, cell, budget_s=0, least=4)
        rows.append({k: round(v, 5) if isinstance(v, float) else v for k, v in row.items()})
        rows[-1]["plan"] = served.plan
    again = filters.recompute(recorded(cells=rows))["cells"]
    assert [row["plan"] for row in again] == ["graph", "exact"]
    assert again == [
        {name: row[name] for name in one} for row, one in zip(rows, again, strict=True)
    ]


@pytest.mark.parametrize("lab", [filters, index])
def test_what_is_not_ours_or_not_made_is_not_asked_again(lab):
    with pytest.raises(NotFoundError, match="searchlab's own to be asked again, got 'faiss-hnsw'"):
        lab.recompute(recorded(name="faiss-hnsw", parameters={"system": {"M": 16}}))
    with pytest.raises(NotFoundError, match="got 'summary'"):
        lab.recompute(recorded(name="summary", parameters={"k": 10}))
    with pytest.raises(InputError, match="made vectors must be named"):
        lab.recompute(recorded(dataset="unknown-mini", points=[], cells=[]))


def test_effort_is_set_anew_for_every_point():
    points = [
        {"queries": "image", "k": 5, "effort": effort, "recall": 0.0} for effort in (200, 5, 200)
    ]
    again = [point["recall"] for point in index.recompute(recorded(points=points))["points"]]
    assert again[0] == again[2] >= again[1]
    assert np.all(np.array(again) > 0)


@pytest.mark.slow
def test_the_effort_of_the_clustered_index_is_the_recall_that_is_asked_for():
    system = {"M": 16, "ef_construction": 200, "index": "clustered", "step_rows": 4}
    about = {"system": system, "n_queries": 6, "k": 10, "n_photos": 2_000}
    points = [
        {"queries": "text", "k": 10, "effort": effort, "recall": 0.0} for effort in (300, 1000)
    ]
    again = index.recompute(recorded(parameters=about, points=points))["points"]
    assert [point["effort"] for point in again] == [300, 1000]
    assert again[1]["recall"] == 1
    exact = {**about, "system": {**system, "recall": 1.0}}
    alone = [{"queries": "text", "k": 10, "effort": None, "recall": 0.0}]
    assert index.recompute(recorded(parameters=exact, points=alone))["points"][0]["recall"] == 1


@pytest.mark.parametrize("study", [index, filters])
def test_what_was_measured_on_other_photos_cannot_be_computed_again(study):
    parameters = {**recorded()["parameters"], "n_photos": 1_999}
    with pytest.raises(NotFoundError, match=r"must be the 1,999 photos .* got 2,000; measure it"):
        study.recompute(recorded(parameters=parameters, points=[], cells=[]))
