"""Every index of the registry keeps one contract; the graph's own traps come after it."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.config import INDEX_KINDS, Config
from searchlab.errors import DataError, InputError, MismatchError
from searchlab.indexes import INDEXES, ExactIndex, HnswIndex, VectorIndex, open_index
from searchlab.indexes.exact import cosines
from searchlab.indexes.hnsw import walk_length
from searchlab.metrics import recall_at_k

N = 1_200


@pytest.fixture(scope="module", params=sorted(INDEXES))
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def build(kind):
    """Build an index of this kind over some vectors."""

    def _build(vectors, labels=None, **settings):
        labels = np.arange(len(vectors)) if labels is None else labels
        return INDEXES[kind](vectors, Config(index=kind, **settings), labels)

    return _build


@pytest.fixture(scope="module")
def vectors(unit_vectors):
    return unit_vectors(N)


@pytest.fixture(scope="module")
def queries(unit_vectors):
    return unit_vectors(40, seed=99)


@pytest.fixture(scope="module")
def index(build, vectors):
    return build(vectors)


def only(n, *rows):
    allowed = np.zeros(n, dtype=bool)
    allowed[list(rows)] = True
    return allowed


def by_sorting(vectors, query, k, allowed=None):
    """Find the k best as a child would: score all, sort by score and row, cut."""
    rows = range(len(vectors)) if allowed is None else np.flatnonzero(allowed)
    scored = sorted((-float(vectors[row] @ query), int(row)) for row in rows)
    return [row for _, row in scored[:k]]


def check_answers(found, vectors, queries, k, allowed=None):
    """Assert everything that holds for exact and approximate answers alike."""
    n_allowed = len(vectors) if allowed is None else np.count_nonzero(allowed)
    filled = min(k, n_allowed)
    assert found.rows.shape == found.scores.shape == (len(queries), k)
    assert (found.rows.dtype, found.scores.dtype) == (np.int64, np.float32)
    assert (found.rows[:, filled:] == -1).all()
    assert (found.scores[:, filled:] == -np.inf).all()
    for rows, scores, query in zip(found.rows, found.scores, queries, strict=True):
        rows, scores = rows[:filled], scores[:filled]
        assert rows.min(initial=0) >= 0
        assert len(set(rows.tolist())) == filled
        assert allowed is None or allowed[rows].all()
        assert scores.tobytes() == cosines(vectors[rows], query).tobytes()
        pairs = list(zip((-scores).tolist(), rows.tolist(), strict=True))
        assert pairs == sorted(pairs)


def test_the_registry_is_what_a_config_may_name():
    assert sorted(INDEXES) == sorted(INDEX_KINDS)


def test_an_index_offers_the_protocol(index, vectors):
    assert isinstance(index, VectorIndex)
    assert len(index) == N
    assert index.vectors is vectors
    assert isinstance(index.approximate, bool)


# -- what is filled ---------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 7, 299, 300, 301, N - 1, N, N + 1, 3 * N])
def test_min_of_k_and_n_slots_are_filled(index, vectors, queries, k):
    check_answers(index.search(queries[:5], k), vectors, queries[:5], k)


def test_pads_with_minus_one_where_fewer_than_k_are_allowed(index, vectors, queries):
    found = index.search(queries[:3], 4, allowed=only(N, 3, 8))
    check_answers(found, vectors, queries[:3], 4, only(N, 3, 8))
    assert sorted(found.rows[0].tolist()) == [-1, -1, 3, 8]


def test_nothing_is_found_where_nothing_is_allowed(index, queries):
    found = index.search(queries[:2], 3, allowed=np.zeros(N, dtype=bool))
    assert found.rows.tolist() == [[-1, -1, -1]] * 2
    assert found.scores.tolist() == [[-np.inf] * 3] * 2


@pytest.mark.parametrize("share", [0.9, 0.5, 0.1, 0.01])
def test_only_allowed_rows_are_found_and_never_too_few(index, vectors, queries, share):
    allowed = np.random.default_rng(3).random(N) < share
    check_answers(index.search(queries, 10, allowed=allowed), vectors, queries, 10, allowed)


def test_a_filter_against_the_query_still_fills_every_slot(index, vectors, queries):
    query = queries[:1]
    allowed = vectors @ query[0] < np.median(vectors @ query[0])
    found = index.search(query, 10, allowed=allowed)
    check_answers(found, vectors, query, 10, allowed)
    assert recall_at_k(found, ExactIndex(vectors).search(query, 10, allowed=allowed)) >= 0.9


def test_all_allowed_is_the_same_as_no_filter(index, queries):
    every = index.search(queries, 9, allowed=np.ones(N, dtype=bool))
    check_same(every, index.search(queries, 9), equal=not index.approximate)


def check_same(one, other, *, equal=True):
    if equal:
        assert one.rows.tolist() == other.rows.tolist()
        assert one.scores.tobytes() == other.scores.tobytes()
    else:
        assert recall_at_k(one, other) >= 0.95


def test_the_mask_given_is_not_changed(index, queries):
    allowed = only(N, 1, 2, 3)
    index.search(queries[:1], 2, allowed=allowed)
    assert np.flatnonzero(allowed).tolist() == [1, 2, 3]


def test_no_queries_have_no_answers(index, vectors):
    found = index.search(vectors[:0], 3)
    assert found.rows.shape == found.scores.shape == (0, 3)


def test_one_row_is_found_by_everything(build, queries):
    index = build(queries[:1].copy())
    check_answers(index.search(queries, 2), queries[:1], queries, 2)
    assert index.search(queries[:1], 1).scores[0, 0] == pytest.approx(1)


def test_an_empty_index_answers_with_padding(build, queries):
    index = build(queries[:0])
    assert len(index) == 0
    assert index.search(queries[:2], 3).rows.tolist() == [[-1, -1, -1]] * 2
    allowed = np.zeros(0, dtype=bool)
    assert index.search(queries[:1], 1, allowed=allowed).rows.tolist() == [[-1]]


# -- order and scores -------------------------------------------------------------------------


def test_duplicates_come_in_the_order_of_rows(build, vectors):
    twice = np.concatenate([vectors[:100]] * 3)
    found = build(twice).search(vectors[40:41], 300)
    assert found.rows[0, :3].tolist() == [40, 140, 240]
    check_answers(found, twice, vectors[40:41], 300)


def test_many_copies_of_few_photos_hide_none_of_them(build, unit_vectors, queries):
    copies = unit_vectors(60)[np.random.default_rng(0).integers(60, size=N)]
    found = build(copies).search(queries, 10)
    check_answers(found, copies, queries, 10)
    assert recall_at_k(found, ExactIndex(copies).search(queries, 10)) >= 0.95


def test_zero_vectors_score_zero_and_stand_in_the_way_of_nothing(build, vectors, queries):
    with_zeros = vectors.copy()
    with_zeros[::2] = 0
    found = build(with_zeros).search(queries, 10)
    check_answers(found, with_zeros, queries, 10)
    assert recall_at_k(found, ExactIndex(with_zeros).search(queries, 10)) >= 0.95
    last = build(with_zeros).search(queries[:1], N)
    assert np.count_nonzero(last.scores == 0) == N // 2


def test_a_zero_query_scores_every_row_zero(index, vectors):
    zero = np.zeros((1, 16), dtype=np.float32)
    found = index.search(zero, 20)
    check_answers(found, vectors, zero, 20)
    assert found.scores.tolist() == [[0.0] * 20]


def test_a_row_scores_the_same_to_the_last_bit_whatever_else_is_looked_at(index, vectors, queries):
    rng = np.random.default_rng(5)
    row = int(index.search(queries[:1], 1).rows[0, 0])
    scores = {index.search(queries[:1], 1).scores[0, 0].tobytes()}
    for share, k in ((0.9, 3), (0.5, 50), (0.1, 7), (0.01, 1000), (0.0, 1)):
        allowed = rng.random(N) < share
        allowed[row] = True
        found = index.search(queries[:7], k, allowed=allowed)
        assert found.rows[0, 0] == row
        scores.add(found.scores[0, 0].tobytes())
    scores.add(cosines(vectors, queries[0])[row].tobytes())
    assert len(scores) == 1


def test_a_batch_is_answered_as_its_queries_one_by_one(index, queries):
    allowed = np.random.default_rng(6).random(N) < 0.7
    batch = index.search(queries, 8, allowed=allowed)
    singles = [index.search(query[np.newaxis], 8, allowed=allowed) for query in queries]
    assert batch.rows.tolist() == [single.rows[0].tolist() for single in singles]
    assert batch.scores.tolist() == [single.scores[0].tolist() for single in singles]
    backwards = index.search(queries[::-1], 8, allowed=allowed)
    assert backwards.rows[::-1].tolist() == batch.rows.tolist()


def test_asking_again_or_building_again_gives_the_same_answers(build, index, vectors, queries):
    first = index.search(queries, 10)
    check_same(index.search(queries, 10), first)
    check_same(build(vectors.copy()).search(queries, 10), first)


def test_vectors_in_a_memory_map_give_the_same_answers(tmp_path, build, index, vectors, queries):
    np.save(tmp_path / "v.npy", vectors)
    mapped = np.load(tmp_path / "v.npy", mmap_mode="r")
    check_same(build(mapped).search(queries, 10), index.search(queries, 10))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_small_indexes_keep_the_contract(build, data):
    # Whole numbers have exact products, so ties are real and the oracle rounds like the index.
    n, dim = data.draw(st.integers(0, 60)), data.draw(st.integers(1, 6))
    seed, k = data.draw(st.integers(0, 2**32 - 1)), data.draw(st.integers(1, 70))
    rng = np.random.default_rng(seed)
    rows = rng.integers(-2, 3, size=(n, dim)).astype(np.float32)
    asked = rng.integers(-2, 3, size=(2, dim)).astype(np.float32)
    allowed = data.draw(st.none() | st.floats(0, 1).map(lambda share: rng.random(n) < share))
    index = build(rows, M=4, ef_construction=20, ef_search=10)
    found = index.search(asked, k, allowed=allowed)
    check_answers(found, rows, asked, k, allowed)
    if not index.approximate:
        for given_rows, query in zip(found.rows.tolist(), asked, strict=True):
            expected = by_sorting(rows, query, k, allowed)
            assert given_rows == expected + [-1] * (k - len(expected))


# -- refused arguments ------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_query_that_is_not_finite_is_refused(index, queries, bad):
    broken = queries[:3].copy()
    broken[2, 5] = bad
    with pytest.raises(InputError, match="queries must be finite"):
        index.search(broken, 3)


@pytest.mark.parametrize("shape", [(16,), (1, 15), (1, 17), (1, 0), (1, 1, 16), ()])
def test_queries_of_another_shape_are_refused(index, shape):
    with pytest.raises(InputError, match=r"shape \(n_queries, 16\), got"):
        index.search(np.zeros(shape, dtype=np.float32), 3)


@pytest.mark.parametrize("k", [0, -1, -(10**30)])
def test_k_below_1_is_refused(index, queries, k):
    with pytest.raises(InputError, match="k must be at least 1"):
        index.search(queries[:1], k)


@pytest.mark.parametrize(
    "allowed",
    [
        np.ones(N - 1, dtype=bool),
        np.ones(N + 1, dtype=bool),
        np.ones((1, N), dtype=bool),
        np.ones(N, dtype=np.int64),
        np.ones(N, dtype=np.uint8),
        np.arange(5),
    ],
)
def test_a_mask_of_another_shape_or_type_is_refused(index, queries, allowed):
    with pytest.raises(InputError, match=rf"allowed must be bool of shape \({N},\), got"):
        index.search(queries[:1], 3, allowed=allowed)


def test_a_wrong_query_is_refused_by_an_empty_index_too(build, queries):
    with pytest.raises(InputError, match="shape"):
        build(queries[:0]).search(queries[:1, :5], 1)


# -- persistence and threads ------------------------------------------------------------------


@pytest.mark.parametrize("ef_search", [10, 100])
def test_a_saved_index_gives_the_same_answers(kind, tmp_path, unit_vectors, ef_search):
    # Few links and a short walk, so that another `ef` would be seen in the answers.
    spread = unit_vectors(N, 32, clusters=N)
    asked = unit_vectors(40, 32, clusters=N, seed=99)
    config = Config(index=kind, M=4, ef_construction=10, ef_search=ef_search)
    labels = np.random.default_rng(0).permutation(N)
    index = INDEXES[kind](spread, config, labels)
    index.save(tmp_path)
    opened = open_index(tmp_path, spread, config, labels=labels)
    assert len(opened) == N
    assert opened.approximate == index.approximate
    check_same(opened.search(asked, 5), index.search(asked, 5))
    allowed = np.random.default_rng(1).random(N) < 0.6
    check_same(opened.search(asked, 5, allowed=allowed), index.search(asked, 5, allowed=allowed))


def test_an_empty_index_can_be_saved_and_opened(kind, build, tmp_path, queries):
    build(queries[:0]).save(tmp_path)
    labels = np.zeros(0, dtype=np.int64)
    opened = open_index(tmp_path, queries[:0], Config(index=kind), labels=labels)
    assert opened.search(queries[:1], 2).rows.tolist() == [[-1, -1]]


def test_eight_threads_get_the_same_answers(index, queries):
    allowed = np.random.default_rng(2).random(N) < 0.8
    expected = index.search(queries, 10, allowed=allowed)

    def ask(number):
        query = queries[number % 40][np.newaxis]
        return index.search(query, 10, allowed=allowed)

    with ThreadPoolExecutor(8) as pool:
        for number, found in enumerate(pool.map(ask, range(400))):
            assert found.rows[0].tolist() == expected.rows[number % 40].tolist()
            assert found.scores[0].tobytes() == expected.scores[number % 40].tobytes()


# -- exact: the oracle of the others ----------------------------------------------------------


@pytest.mark.parametrize("k", [1, 10, 500])
def test_exact_finds_what_a_plain_sort_finds(vectors, queries, k):
    found = ExactIndex(vectors).search(queries, k)
    similar = vectors.astype(np.float64) @ queries.T.astype(np.float64)
    expected = np.argsort(-similar, axis=0, kind="stable")[:k].T
    assert (found.rows == expected).mean() > 0.999  # float32 may swap two that are almost equal
    best = np.take_along_axis(similar.T, expected, axis=1)
    np.testing.assert_allclose(found.scores, best, atol=1e-6)


def test_exact_is_exact_across_its_blocks():
    rng = np.random.default_rng(0)
    many = rng.integers(-1, 2, size=(150_000, 3)).astype(np.float32)
    query = np.array([[1, 2, 4]], dtype=np.float32)
    found = ExactIndex(many).search(query, 9_000)
    assert (
        found.rows[0].tolist()
        == np.lexsort((np.arange(150_000), -(many @ query[0])))[:9_000].tolist()
    )


def test_exact_saves_nothing_and_needs_nothing(tmp_path, vectors, queries):
    ExactIndex(vectors).save(tmp_path)
    assert list(tmp_path.iterdir()) == []


# -- hnsw: recall -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many(unit_vectors):
    return unit_vectors(4_000, 32, clusters=50)


@pytest.fixture(scope="module")
def asked(unit_vectors):
    return unit_vectors(50, 32, clusters=50, seed=99)


@pytest.fixture(scope="module")
def graph(many):
    return HnswIndex(many)


@pytest.mark.parametrize("share", [1.0, 0.5, 0.1, 0.01, 0.001])
def test_the_graph_finds_19_of_20_neighbours_however_strict_the_filter(graph, many, asked, share):
    allowed = np.random.default_rng(4).random(4_000) < share
    found = graph.search(asked, 10, allowed=allowed)
    check_answers(found, many, asked, 10, allowed)
    assert recall_at_k(found, ExactIndex(many).search(asked, 10, allowed=allowed)) >= 0.95


@pytest.mark.parametrize("best", [True, False])
def test_the_graph_finds_neighbours_where_the_filter_goes_with_or_against_the_query(
    graph, many, asked, best
):
    for query in asked[:10]:
        similar = many @ query
        near = similar >= np.quantile(similar, 0.9)
        allowed = near if best else ~near
        found = graph.search(query[np.newaxis], 10, allowed=allowed)
        exact = ExactIndex(many).search(query[np.newaxis], 10, allowed=allowed)
        assert recall_at_k(found, exact) >= 0.9


def test_a_graph_that_reaches_too_few_rows_is_not_believed(unit_vectors, queries):
    # Copies that link only to copies are islands; hnswlib raises where a walk ends on one.
    islands = unit_vectors(20)[np.sort(np.random.default_rng(0).integers(20, size=N))]
    index = HnswIndex(islands, M=2, ef_construction=2, ef_search=1)
    for k in (10, 150, 290):
        check_answers(index.search(queries, k), islands, queries, k)


def test_recall_rises_with_ef_search(unit_vectors):
    spread = unit_vectors(2_000, 32, clusters=2_000)
    asked = unit_vectors(60, 32, clusters=2_000, seed=99)
    exact = ExactIndex(spread).search(asked, 10)
    low, middle, high = (
        recall_at_k(HnswIndex(spread, M=6, ef_search=ef).search(asked, 10), exact)
        for ef in (10, 40, 400)
    )
    assert low < middle < high
    assert high >= 0.99


# -- hnsw: photos come and go -----------------------------------------------------------------


def test_deleted_rows_never_come_back(many):
    stay = np.flatnonzero(np.arange(4_000) % 10 != 0)
    index = HnswIndex(many).updated(many[stay], stay)
    gone = many[::10]
    found = index.search(gone, 10)
    check_answers(found, many[stay], gone, 10)
    assert recall_at_k(found, ExactIndex(many[stay]).search(gone, 10)) >= 0.95
    assert index.labels.tolist() == stay.tolist()


def test_new_rows_between_old_ones_are_found_at_their_places(many):
    # The table is sorted by id, so a new photo moves all rows behind it; labels stay.
    labels = np.concatenate([[1_000], np.arange(500), [1_001], np.arange(500, 1_000), [1_002]])
    index = HnswIndex(many[:1_000]).updated(many[labels], labels)
    found = index.search(many[labels], 1)
    assert (found.rows[:, 0] == np.arange(1_003)).mean() >= 0.99
    assert found.rows[[0, 501, 1_002], 0].tolist() == [0, 501, 1_002]


def test_a_graph_that_grew_and_shrank_again_and_again_stays_good(many, asked):
    rng = np.random.default_rng(8)
    labels = np.arange(1_000)
    index = HnswIndex(many[labels])
    for first in range(1_000, 4_000, 500):
        labels = np.concatenate([rng.permutation(labels)[:-150], np.arange(first, first + 500)])
        labels = rng.permutation(labels)
        index = index.updated(many[labels], labels)
        found = index.search(asked, 10)
        check_answers(found, many[labels], asked, 10)
        assert recall_at_k(found, ExactIndex(many[labels]).search(asked, 10)) >= 0.95


def test_an_updated_graph_survives_the_disk(tmp_path, many, asked):
    stay = np.setdiff1d(np.arange(1_100), np.arange(0, 1_000, 7))
    index = HnswIndex(many[:1_000]).updated(many[stay], stay)
    index.save(tmp_path)
    opened = HnswIndex.open(tmp_path, many[stay], labels=stay)
    check_same(opened.search(asked, 10), index.search(asked, 10))
    check_answers(opened.search(many[:1_000:7], 5), many[stay], many[:1_000:7], 5)
    again = opened.updated(many[stay[5:]], stay[5:])
    check_answers(again.search(asked, 10), many[stay[5:]], asked, 10)


def test_a_graph_can_lose_everything_and_start_again(many):
    empty = HnswIndex(many[:50]).updated(many[:0], np.zeros(0, dtype=np.int64))
    assert empty.search(many[:1], 2).rows.tolist() == [[-1, -1]]
    index = empty.updated(many[50:60], np.arange(50, 60))
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
    index = HnswIndex(many[:100]).updated(many[n_gone:100], np.arange(n_gone, 100))
    left = graph_bytes(index, tmp_path / "left")
    assert (left < whole) is rebuilt
    assert index.search(many[99:100], 1).rows.tolist() == [[99 - n_gone]]


def test_dead_nodes_of_several_updates_add_up(tmp_path, many):
    index = HnswIndex(many[:100])
    for n_gone in (15, 30, 45, 60):
        index = index.updated(many[n_gone:100], np.arange(n_gone, 100))
        check_answers(index.search(many[:20], 5), many[n_gone:100], many[:20], 5)
    whole = graph_bytes(HnswIndex(many[:100]), tmp_path / "whole")
    assert graph_bytes(index, tmp_path / "left") < whole


def test_settings_survive_an_update(many):
    index = HnswIndex(many[:100], ef_search=17)
    assert index.updated(many[1:100], np.arange(1, 100)).ef_search == 17
    assert index.updated(many[90:100], np.arange(90, 100)).ef_search == 17


def test_labels_must_be_as_many_as_rows(many):
    with pytest.raises(MismatchError, match="labels must be as many as rows, got 4 for 5"):
        HnswIndex(many[:5], labels=np.arange(4))


# -- hnsw: damaged and foreign graphs ---------------------------------------------------------


@pytest.fixture(scope="module")
def graph_file(tmp_path_factory, many):
    folder = tmp_path_factory.mktemp("graph")
    HnswIndex(many[:500]).save(folder)
    (path,) = folder.iterdir()
    return path


def open_bytes(folder, graph_file, content, vectors, labels=None):
    path = folder / graph_file.name
    path.write_bytes(content)
    labels = np.arange(len(vectors)) if labels is None else labels
    return HnswIndex.open(folder, vectors, labels=labels)


@pytest.mark.parametrize("share", [0.0, 0.0001, 0.001, 0.5, 0.999])
def test_a_graph_cut_short_is_named_and_the_remedy_told(tmp_path, graph_file, many, share):
    whole = graph_file.read_bytes()
    with pytest.raises(DataError, match=rf"{graph_file.name} .*(index .*again|--rebuild)"):
        open_bytes(tmp_path, graph_file, whole[: int(share * len(whole))], many[:500])


@pytest.mark.parametrize("content", [b"{}", b"\0" * 5_000, b"\xff" * 5_000, b"hnsw" * 999])
def test_garbage_is_no_graph(tmp_path, graph_file, many, content):
    with pytest.raises(DataError, match=graph_file.name):
        open_bytes(tmp_path, graph_file, content, many[:500])


def test_a_longer_file_is_no_graph(tmp_path, graph_file, many):
    with pytest.raises(DataError, match=graph_file.name):
        open_bytes(tmp_path, graph_file, graph_file.read_bytes() + b"\0", many[:500])


def test_a_missing_graph_is_named(tmp_path, graph_file, many):
    with pytest.raises(DataError, match=graph_file.name):
        HnswIndex.open(tmp_path, many[:500], labels=np.arange(500))


@pytest.mark.parametrize(
    "labels",
    [
        np.arange(1, 501),
        np.arange(501),
        np.arange(499),
        np.arange(100),
        np.append(np.arange(498), 499),
        np.arange(500)[::-1],
        np.arange(0),
    ],
    ids=["shifted", "one more", "one fewer", "many fewer", "one left out", "turned round", "none"],
)
def test_a_graph_of_other_photos_is_refused(graph_file, many, labels):
    with pytest.raises(DataError, match=graph_file.name):
        HnswIndex.open(graph_file.parent, many[: len(labels)], labels=labels)


def test_a_graph_of_other_vectors_is_refused(graph_file, many, unit_vectors):
    for others in (many[500:1_000], unit_vectors(500, 16), unit_vectors(500, 48)):
        with pytest.raises(DataError, match=graph_file.name):
            HnswIndex.open(graph_file.parent, others, labels=np.arange(500))


# -- the engine alone plans -------------------------------------------------------------------


@pytest.mark.parametrize(("k", "every"), [(1, 2), (10, 2), (40, 3), (100, 2), (10, 20)])
def test_the_graph_is_walked_wherever_it_holds_more_rows_than_are_fetched(
    monkeypatch, vectors, queries, k, every
):
    walked = []
    walk = HnswIndex._walk
    monkeypatch.setattr(
        HnswIndex, "_walk", lambda self, *rest: walked.append(rest[1]) or walk(self, *rest)
    )
    index = HnswIndex(vectors, ef_search=N)
    allowed = only(N, *range(0, N, every))
    found = index.search(queries[:3], k, allowed=allowed)
    assert walked == [walk_length(k, np.count_nonzero(allowed) / N)] * 3
    assert max(walked) < N
    check_answers(found, vectors, queries[:3], k, allowed)


def test_a_graph_that_is_taken_over_may_be_searched_with_another_ef(vectors, queries):
    before = HnswIndex(vectors, ef_search=10)
    after = before.updated(vectors, np.arange(N), ef_search=300)
    assert (after.ef_search, before.ef_search) == (300, 10)
    again = HnswIndex(vectors, ef_search=300)
    found, wanted = after.search(queries, 10), again.search(queries, 10)
    assert found.rows.tolist() == wanted.rows.tolist()
    assert recall_at_k(found, ExactIndex(vectors).search(queries, 10)) > 0.95
