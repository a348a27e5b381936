"""The graph: its recall, its growth, its files, and hnswlib's traps."""

import functools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from searchlab.config import Config
from searchlab.errors import InputError, MismatchError
from searchlab.evaluation.metrics import recall_at_k
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.indexes import ExactIndex, HnswIndex, build_index, open_index
from searchlab.search.indexes.hnsw import walk_length
from tests.support import index_kinds
from tests.support.index_kinds import N
from tests.support.neighbor_checks import check_answers, check_same, only

queries = index_kinds.queries
vectors = index_kinds.vectors


# -- recall -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many(unit_vectors):
    return unit_vectors(4_000, 32, clusters=50)


@pytest.fixture(scope="module")
def near_queries(unit_vectors):
    return unit_vectors(50, 32, clusters=50, seed=99)


@pytest.fixture(scope="module")
def graph(many):
    return HnswIndex(many)


@pytest.mark.parametrize("share", [1.0, 0.5, 0.1, 0.01, 0.001])
def test_the_graph_finds_19_of_20_neighbours_however_strict_the_filter(
    graph, many, near_queries, share
):
    allowed = np.random.default_rng(4).random(4_000) < share
    neighbors = graph.search(near_queries, 10, allowed=allowed)
    check_answers(neighbors, many, near_queries, 10, allowed)
    assert (
        recall_at_k(neighbors, ExactIndex(many).search(near_queries, 10, allowed=allowed)) >= 0.95
    )


@pytest.mark.parametrize("best", [True, False])
def test_the_graph_finds_neighbours_where_the_filter_goes_with_or_against_the_query(
    graph, many, near_queries, best
):
    for query in near_queries[:10]:
        similar = many @ query
        near = similar >= np.quantile(similar, 0.9)
        allowed = near if best else ~near
        neighbors = graph.search(query[np.newaxis], 10, allowed=allowed)
        exact = ExactIndex(many).search(query[np.newaxis], 10, allowed=allowed)
        assert recall_at_k(neighbors, exact) >= 0.9


def test_a_graph_that_reaches_too_few_rows_is_not_believed(unit_vectors, queries):
    # Copies that link only to copies are islands; hnswlib raises where a walk ends on one.
    islands = unit_vectors(20)[np.sort(np.random.default_rng(0).integers(20, size=N))]
    index = HnswIndex(islands, M=2, ef_construction=2, ef_search=1)
    for k in (10, 150, 290):
        check_answers(index.search(queries, k), islands, queries, k)


@pytest.mark.slow
def test_recall_rises_with_ef_search(unit_vectors):
    spread = unit_vectors(2_000, 32, clusters=2_000)
    spread_queries = unit_vectors(60, 32, clusters=2_000, seed=99)
    exact = ExactIndex(spread).search(spread_queries, 10)
    low, middle, high = (
        recall_at_k(HnswIndex(spread, M=6, ef_search=ef).search(spread_queries, 10), exact)
        for ef in (10, 40, 400)
    )
    assert low < middle < high
    assert high >= 0.99


# -- photos come and go -----------------------------------------------------------------


@pytest.mark.slow
def test_deleted_rows_never_come_back(many):
    stay = np.flatnonzero(np.arange(4_000) % 10 != 0)
    index = HnswIndex(many).update(many[stay], stay)
    gone = many[::10]
    neighbors = index.search(gone, 10)
    check_answers(neighbors, many[stay], gone, 10)
    assert recall_at_k(neighbors, ExactIndex(many[stay]).search(gone, 10)) >= 0.95
    assert index.labels.tolist() == stay.tolist()


def test_new_rows_between_old_ones_are_found_at_their_places(many):
    # The table is sorted by id, so a new photo moves all rows behind it; labels stay.
    labels = np.concatenate([[1_000], np.arange(500), [1_001], np.arange(500, 1_000), [1_002]])
    index = HnswIndex(many[:1_000]).update(many[labels], labels)
    neighbors = index.search(many[labels], 1)
    assert (neighbors.rows[:, 0] == np.arange(1_003)).mean() >= 0.99
    assert neighbors.rows[[0, 501, 1_002], 0].tolist() == [0, 501, 1_002]


@pytest.mark.slow
def test_a_graph_that_grew_and_shrank_again_and_again_stays_good(many, near_queries):
    rng = np.random.default_rng(8)
    labels = np.arange(1_000)
    index = HnswIndex(many[labels])
    for first in range(1_000, 4_000, 500):
        labels = np.concatenate([rng.permutation(labels)[:-150], np.arange(first, first + 500)])
        labels = rng.permutation(labels)
        index = index.update(many[labels], labels)
        neighbors = index.search(near_queries, 10)
        check_answers(neighbors, many[labels], near_queries, 10)
        assert recall_at_k(neighbors, ExactIndex(many[labels]).search(near_queries, 10)) >= 0.95


def test_an_updated_graph_survives_the_disk(tmp_path, many, near_queries):
    stay = np.setdiff1d(np.arange(1_100), np.arange(0, 1_000, 7))
    index = HnswIndex(many[:1_000]).update(many[stay], stay)
    index.save(tmp_path)
    opened = HnswIndex.open(tmp_path, many[stay], Config(), labels=stay)
    check_same(opened.search(near_queries, 10), index.search(near_queries, 10))
    check_answers(opened.search(many[:1_000:7], 5), many[stay], many[:1_000:7], 5)
    again = opened.update(many[stay[5:]], stay[5:])
    check_answers(again.search(near_queries, 10), many[stay[5:]], near_queries, 10)


def test_a_graph_can_lose_everything_and_start_again(many):
    empty = HnswIndex(many[:50]).update(many[:0], np.zeros(0, dtype=np.int64))
    assert empty.search(many[:1], 2).rows.tolist() == [[-1, -1]]
    index = empty.update(many[50:60], np.arange(50, 60))
    assert index.search(many[55:56], 1).rows.tolist() == [[5]]


def graph_bytes(index, folder):
    folder.mkdir(exist_ok=True)
    index.save(folder)
    return sum(path.stat().st_size for path in folder.iterdir())


@pytest.mark.parametrize(
    ("n_gone", "rebuilt"), [(0, False), (10, False), (24, False), (26, True), (90, True)]
)
def test_the_graph_is_rebuilt_when_a_quarter_of_its_nodes_is_dead(tmp_path, many, n_gone, rebuilt):
    whole = graph_bytes(HnswIndex(many[:100]), tmp_path / "whole")
    index = HnswIndex(many[:100]).update(many[n_gone:100], np.arange(n_gone, 100))
    left = graph_bytes(index, tmp_path / "left")
    assert (left < whole) is rebuilt
    assert index.search(many[99:100], 1).rows.tolist() == [[99 - n_gone]]


def test_dead_nodes_of_several_updates_add_up(tmp_path, many):
    index = HnswIndex(many[:100])
    for n_gone in (15, 30, 45, 60):
        index = index.update(many[n_gone:100], np.arange(n_gone, 100))
        check_answers(index.search(many[:20], 5), many[n_gone:100], many[:20], 5)
    whole = graph_bytes(HnswIndex(many[:100]), tmp_path / "whole")
    assert graph_bytes(index, tmp_path / "left") < whole


def test_settings_survive_an_update(many):
    index = HnswIndex(many[:100], ef_search=17)
    assert index.update(many[1:100], np.arange(1, 100)).ef_search == 17
    assert index.update(many[90:100], np.arange(90, 100)).ef_search == 17


def test_labels_must_be_as_many_as_rows(many):
    with pytest.raises(MismatchError, match="labels must be as many as rows, got 4 for 5"):
        HnswIndex(many[:5], labels=np.arange(4))


# -- how far it is walked ---------------------------------------------------------------------


@pytest.fixture
def walked(monkeypatch):
    """List how many rows each walk was asked for."""
    lengths = []
    walk = HnswIndex._walk
    monkeypatch.setattr(
        HnswIndex, "_walk", lambda self, *rest: lengths.append(rest[1]) or walk(self, *rest)
    )
    return lengths


@pytest.mark.parametrize(("k", "every"), [(1, 2), (10, 2), (40, 3), (100, 2), (10, 20)])
def test_the_graph_is_walked_wherever_it_holds_more_rows_than_are_fetched(
    walked, vectors, queries, k, every
):
    index = HnswIndex(vectors, ef_search=30)
    allowed = only(N, *range(0, N, every))
    neighbors = index.search(queries[:3], k, allowed=allowed)
    assert walked == [max(30, walk_length(k, np.count_nonzero(allowed) / N))] * 3
    assert max(walked) < N
    check_answers(neighbors, vectors, queries[:3], k, allowed)


def test_a_walk_as_long_as_the_graph_is_none(walked, vectors, queries):
    index = HnswIndex(vectors, ef_search=N)
    check_same(index.search(queries, 5), ExactIndex(vectors).search(queries, 5))
    assert walked == []


def test_a_recall_of_1_and_nearest_walk_nowhere(walked, vectors, queries):
    index = HnswIndex(vectors, ef_search=1)
    check_same(index.search(queries, 9, recall=1), ExactIndex(vectors).search(queries, 9))
    index.nearest(queries[0], 9)
    assert walked == []
    index.search(queries[:1], 9, recall=0.99)
    assert walked == [9]


@pytest.mark.parametrize("k", [1, 20, 130, 131])
def test_a_filter_unlike_the_query_is_met_by_one_walk(walked, many, near_queries, graph, k):
    # Half the rows at random: the walk is so long that k of them are on it almost always.
    allowed = np.random.default_rng(4).random(4_000) < 0.5
    for query in near_queries:
        neighbors = graph.search(query[np.newaxis], k, allowed=Bitmap.of_mask(allowed))
        check_answers(neighbors, many, query[np.newaxis], k, allowed)
    assert walked == [max(100, walk_length(k, np.count_nonzero(allowed) / 4_000))] * len(
        near_queries
    )


# -- ef by query, and threads -----------------------------------------------------------------


@pytest.fixture(scope="module")
def spread(unit_vectors):
    return unit_vectors(2_000, 32, clusters=2_000)


@pytest.fixture(scope="module")
def spread_asked(unit_vectors):
    return unit_vectors(60, 32, clusters=2_000, seed=99)


@pytest.fixture(scope="module")
def spread_graph(spread):
    """Builds a graph over `spread`, each only once."""
    return functools.cache(lambda ef_search: HnswIndex(spread, M=6, ef_search=ef_search))


@pytest.mark.parametrize("k", [1, 10, 60])
@pytest.mark.parametrize("ef_search", [1, 15, 40, 300])
def test_ef_search_of_a_query_does_what_that_of_the_index_does(
    spread_graph, spread_asked, k, ef_search
):
    built_so = spread_graph(ef_search)
    neighbors = spread_graph(77).search(spread_asked, k, effort=ef_search)
    check_same(neighbors, built_so.search(spread_asked, k))


def test_it_is_what_hnswlib_finds_with_that_ef(spread, spread_asked):
    index = HnswIndex(spread, M=6)
    for ef_search in (10, 25, 200):
        index._graph.set_ef(ef_search)
        labels, _ = index._graph.knn_query(spread_asked, k=10, num_threads=1)
        index._graph.set_ef(1)
        neighbors = index.search(spread_asked, 10, effort=ef_search)
        assert [set(row) for row in neighbors.rows.tolist()] == [
            set(row) for row in labels.tolist()
        ]


@pytest.mark.slow
def test_threads_with_unlike_ef_do_not_disturb_each_other(spread, spread_asked):
    index = HnswIndex(spread, M=6)
    efforts = (1, 12, 50, 400)
    alone = {ef: index.search(spread_asked, 10, effort=ef) for ef in efforts}
    assert len({neighbors.rows.tobytes() for neighbors in alone.values()}) == len(efforts)

    def ask(number):
        ef, place = efforts[number % 4], number % len(spread_asked)
        neighbors = index.search(spread_asked[place : place + 1], 10, effort=ef)
        return neighbors.rows[0].tolist() == alone[ef].rows[place].tolist()

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(600)))


@pytest.mark.parametrize("ef_search", [0, -5])
def test_an_ef_below_1_is_refused(spread, spread_asked, ef_search):
    with pytest.raises(InputError, match=f"an ef_search of at least 1, got {ef_search}"):
        HnswIndex(spread[:50]).search(spread_asked, 3, effort=ef_search)


# -- threads that build -----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("threads", [0, 2, 5])
def test_several_threads_build_as_good_a_graph(many, near_queries, threads):
    index = HnswIndex(many, threads=threads)
    neighbors = index.search(near_queries, 10)
    check_answers(neighbors, many, near_queries, 10)
    assert recall_at_k(neighbors, ExactIndex(many).search(near_queries, 10)) >= 0.95
    stay = np.arange(500, 4_000)
    index = HnswIndex(many[:3_500], threads=threads).update(many[stay], stay)
    assert index.threads == threads
    neighbors = index.search(near_queries, 10)
    check_answers(neighbors, many[stay], near_queries, 10)
    assert recall_at_k(neighbors, ExactIndex(many[stay]).search(near_queries, 10)) >= 0.95


@pytest.mark.slow
def test_a_config_says_how_many_threads_build(tmp_path, many):
    config = Config(model="given", index="hnsw", build_threads=2)
    labels = np.arange(len(many))
    built = build_index(many, config, labels)
    built.save(tmp_path)
    opened = open_index(tmp_path, many, config, labels=labels)
    for index in (built, opened):
        assert isinstance(index, HnswIndex)
        assert index.threads == 2


def test_one_thread_builds_the_same_graph_every_time(tmp_path, many):
    files = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        HnswIndex(many[:1_500]).save(tmp_path / name)
        (path,) = (tmp_path / name).iterdir()
        files.append(path.read_bytes())
    assert files[0] == files[1]


def test_threads_below_0_are_refused(many):
    with pytest.raises(InputError, match="threads must be at least 0, got -1"):
        HnswIndex(many[:5], threads=-1)


# -- the graph of a library -------------------------------------------------------------------


def test_a_graph_that_is_taken_over_may_be_searched_with_another_ef(vectors, queries):
    before = HnswIndex(vectors, ef_search=10)
    after = before.update(vectors, np.arange(N), Config(index="hnsw", ef_search=300))
    assert (after.ef_search, before.ef_search) == (300, 10)
    again = HnswIndex(vectors, ef_search=300)
    neighbors, expected = after.search(queries, 10), again.search(queries, 10)
    assert neighbors.rows.tolist() == expected.rows.tolist()
    assert recall_at_k(neighbors, ExactIndex(vectors).search(queries, 10)) > 0.95
