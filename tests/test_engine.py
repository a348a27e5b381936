from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from searchlab.config import Calibration, Config, Curve
from searchlab.cursors import CursorError
from searchlab.engine import SearchEngine
from searchlab.errors import ImageError, InputError, MismatchError, NotFoundError
from searchlab.filters import PhotoFilter
from searchlab.indexes import INDEXES, HnswIndex
from searchlab.indexes.exact import cosines
from searchlab.models.protocol import unit_rows
from searchlab.queries import Query
from searchlab.tuning import Reach, Tuning

N = 300
ENGINES = {
    "exact": {"index": "exact"},
    # A shallow, careless graph: what it misses must not be lost, and every page crosses its depth.
    "graph": {"index": "hnsw", "step_rows": 0, "depth": 7, "ef_search": 8, "M": 4},
    "planned": {"index": "hnsw", "step_rows": 2, "depth": 20},
    # Clusters that are left early, and two depths of the head.
    "clustered": {"index": "clustered", "n_lists": 20, "depth": 40, "effort": 0.1},
}


def photo_id(number):
    return f"00000000-0000-4000-8000-{number:012d}"


# -- an engine over 300 photos, some of them with the same vector, many of the same day --------


@pytest.fixture(scope="module")
def table(make_table):
    rng = np.random.default_rng(11)
    return make_table(
        *(
            {
                "source": str(rng.choice(["unsplash", "pexels", "nasa"], p=[0.7, 0.25, 0.05])),
                "license_type": str(rng.choice(["cc0", "by"])),
                "photographer_username": str(rng.choice(["ann", "bob"])),
                "uploaded_on": f"2024-01-{rng.integers(1, 10):02d}",
                "color_hex": str(rng.choice(["#e50000", "#15b01a", "#0343df", "#000000"])),
                "width": int(rng.choice([10, 20, 30])),
            }
            for _ in range(N)
        )
    )


@pytest.fixture(scope="module")
def vectors(unit_vectors):
    return unit_vectors(220)[np.random.default_rng(12).integers(220, size=N)]


@pytest.fixture(scope="module")
def build(table, vectors, toy_model):
    """Put an engine together over the photos above, or over other ones."""

    def _build(
        *, table=table, vectors=vectors, model=toy_model, parts=None, effort=None, **choices
    ):
        config = Config(model="toy", model_id=toy_model.model_id, **choices)
        if effort is not None:
            config = replace(config, tuning=always(config, effort))
        index = INDEXES[config.index](vectors, config, np.arange(len(vectors)))
        return SearchEngine(
            table, index, model, config, **{"key": b"a key of tests"} | (parts or {})
        )

    return _build


def always(config, effort, recall=1.0):
    """A tuning by which no search is ever dearer than scoring all photos."""
    measured = {"effort": effort, "recalls": (recall, recall), "exact_below": 0}
    reaches = tuple(Reach(kind=kind, **measured) for kind in ("image", "text"))
    shares = (1.0, 1e-9)
    parts = {"n_photos": N, "k": 20, "n_queries": 8, "shares": shares, "reaches": reaches}
    return Tuning(index_id=config.index_id, **parts)


@pytest.fixture(scope="module", params=ENGINES)
def engine(build, request):
    return build(**ENGINES[request.param])


@pytest.fixture(scope="module")
def exact(build):
    return build(index="exact")


def all_pages(engine, query, per_page):
    pages = [engine.search(query, per_page=per_page)]
    while pages[-1].next_cursor is not None:
        assert len(pages) <= N
        pages.append(engine.search(cursor=pages[-1].next_cursor))
    return pages


def ids(pages):
    return [hit.photo.photo_id for page in pages for hit in page]


# -- queries ----------------------------------------------------------------------------------

conditions = st.fixed_dictionaries(
    {},
    optional={
        "source": st.sampled_from(["unsplash", "nasa", ("nasa", "pexels")]),
        "license_type": st.sampled_from(["cc0", "free", ("by", "free")]),
        "orientation": st.sampled_from(["landscape", ("square", "portrait")]),
        "photographer": st.sampled_from(["ann", "nobody"]),
        "after_date": st.sampled_from(["2024-01-01", "2024-01-05", "2024-01-09", "2025-01-01"]),
        "color_name": st.sampled_from(["red", "black"]),
    },
)


@st.composite
def references(draw):
    kind = draw(st.sampled_from(["none", "photo", "picture"]))
    if kind == "photo":
        return {"photo_id": photo_id(draw(st.integers(0, N - 1)))}
    if kind == "picture":
        color = draw(st.tuples(*[st.integers(0, 255)] * 3))
        return {"image": Image.new("RGB", (5, 4), color)}
    return {}


@st.composite
def queries(draw, **fixed):
    parts = draw(references())
    parts["text"] = draw(st.none() | st.sampled_from(["red", "sea dune", "night", "nothing known"]))
    parts["filter"] = PhotoFilter(**draw(conditions))
    if parts["text"] is None and len(parts) == 2 and parts["filter"].is_empty:
        parts["text"] = "blue"
    parts["text_alpha"] = draw(st.sampled_from([0, 0.5, 1.7, 10.0]))
    parts["sort_by"] = draw(st.sampled_from(["relevance", "newest"]))
    parts["score_threshold"] = draw(st.none() | st.sampled_from([0.0, 0.2, 0.3, 0.5, 0.9, 1.0]))
    parts["limit"] = draw(st.none() | st.integers(1, 100))
    return Query(**parts | fixed)


def vector_of(engine, query):
    """Embed a query as the design says; independent of the engine's own code."""
    model = engine.model
    text = None if query.text is None else model.encode_texts([query.text])[0]
    if not query.has_reference:
        return text
    if query.photo_id is not None:
        picture = engine.index.vectors[engine.table.row_of(query.photo_id)]
    else:
        picture = model.encode_images([query.image])[0]
    if text is None or query.text_alpha == 0:
        return picture
    return unit_rows([picture + engine.config.steering * query.text_alpha * text])[0]


def allowed_rows(engine, query):
    rows = np.flatnonzero(query.filter.mask(engine.table)).tolist()
    return [row for row in rows if engine.table.photo_ids([row]) != [query.photo_id]]


# -- paging -----------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(query=queries(), per_page=st.integers(1, 100))
def test_pages_put_together_are_the_ranking(engine, query, per_page):
    per_page = max(per_page, 1 if query.limit is not None else 25)
    whole = engine.rank(query)
    pages = all_pages(engine, query, per_page)
    found = ids(pages)
    assert found == engine.table.photo_ids(whole.rows)
    assert [hit.relevance_score for page in pages for hit in page] == whole.scores.tolist()
    assert len(set(found)) == len(found) == whole.total
    assert query.limit is None or len(found) <= query.limit
    *full, last = pages
    assert [len(page) for page in full] == [per_page] * len(full)
    assert len(last) >= 1 or pages == [last]
    assert [page.has_more for page in pages] == [True] * len(full) + [False]
    assert [page.next_cursor is None for page in pages] == [False] * len(full) + [True]
    assert {page.per_page for page in pages} == {per_page}
    assert {page.plan for page in pages} == {whole.plan} == {engine.plan(query)}


@pytest.mark.parametrize(
    ("limit", "per_page", "sizes"),
    [
        (4, 2, [2, 2]),
        (5, 2, [2, 2, 1]),
        (1, 100, [1]),
        (100, 100, [100]),
        (100, 40, [40, 40, 20]),
        (20, 20, [20]),
        (3, 1, [1, 1, 1]),
    ],
)
def test_limit_counts_over_all_pages(engine, limit, per_page, sizes):
    pages = all_pages(engine, Query(text="sea", limit=limit), per_page)
    assert [len(page) for page in pages] == sizes
    assert [page.per_page for page in pages] == [per_page] * len(sizes)
    assert pages[-1].next_cursor is None


def test_without_limit_every_photo_that_meets_the_filter_can_be_paged_to(engine):
    chosen = PhotoFilter(source="unsplash")
    pages = all_pages(engine, Query(text="sea", filter=chosen), 100)
    assert sorted(ids(pages)) == engine.table.photo_ids(np.flatnonzero(chosen.mask(engine.table)))


def test_a_page_size_that_divides_the_results_leaves_no_empty_page(engine):
    pages = all_pages(engine, Query(text="sea"), 100)
    assert [len(page) for page in pages] == [100, 100, 100]


def test_a_page_is_20_results_unless_told_otherwise(engine):
    page = engine.search(Query(text="sea"))
    assert (len(page), page.per_page) == (20, 20)


@pytest.mark.parametrize("per_page", [0, 101, -1, 2.0, True, "20", None])
def test_any_other_page_size_is_refused(exact, per_page):
    with pytest.raises(InputError, match="per_page must be an integer from 1 to 100"):
        exact.search(Query(text="sea"), per_page=per_page)


def test_no_result_is_one_empty_page(engine):
    query = Query(text="sea", filter=PhotoFilter(photographer="nobody"))
    page = engine.search(query, per_page=5)
    assert (list(page), page.has_more, page.next_cursor, page.per_page) == ([], False, None, 5)
    assert page.plan.n_allowed == 0


@settings(max_examples=30, deadline=None)
@given(query=queries(), k=st.integers(0, N + 5))
def test_the_head_of_a_ranking_does_not_depend_on_how_much_of_it_is_wanted(engine, query, k):
    whole, head = engine.rank(query), engine.rank(query, k)
    assert head.rows.tolist() == whole.rows[:k].tolist()
    assert head.scores.tolist() == whole.scores[:k].tolist()
    assert head.total == whole.total == len(whole.rows)
    assert head.plan == whole.plan


def test_less_than_nothing_cannot_be_ranked(engine):
    with pytest.raises(InputError, match="k must be"):
        engine.rank(Query(text="sea"), -1)


# -- order and scores -------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(query=queries())
def test_every_ranking_keeps_its_promises(engine, query):
    ranking = engine.rank(query)
    rows, scores = ranking.rows.tolist(), ranking.scores.tolist()
    days = engine.table.uploaded_days[ranking.rows].tolist()
    assert (ranking.rows.dtype, ranking.scores.dtype) == (np.int64, np.float64)
    assert all(0 <= score <= 1 for score in scores)
    assert set(rows) <= set(allowed_rows(engine, query))
    assert query.score_threshold is None or min(scores, default=1) >= query.score_threshold
    if query.sort_by == "newest":
        assert [(-day, row) for day, row in zip(days, rows, strict=True)] == sorted(
            (-day, row) for day, row in zip(days, rows, strict=True)
        )
    else:
        assert scores == sorted(scores, reverse=True)


@settings(max_examples=60, deadline=None)
@given(query=queries(limit=None))
def test_an_exact_ranking_is_a_plain_sort(exact, query):
    allowed = allowed_rows(exact, query)
    vector = vector_of(exact, query)
    similar = np.ones(N) if vector is None else cosines(exact.index.vectors, vector)
    curve = exact.config.calibration.text  # the curves of an uncalibrated model are the same
    scores = np.ones(N) if vector is None else np.round(curve(similar), 6)
    least = query.score_threshold or 0
    found = [row for row in allowed if scores[row] >= least]
    if query.sort_by == "newest":
        found.sort(key=lambda row: (-int(exact.table.uploaded_days[row]), row))
    else:
        found.sort(key=lambda row: (-float(similar[row]), row))
    ranking = exact.rank(query)
    assert ranking.rows.tolist() == found
    assert ranking.scores.tolist() == pytest.approx(scores[found].tolist())


@settings(max_examples=40, deadline=None)
@given(query=queries(limit=None, sort_by="relevance", score_threshold=None))
def test_a_graph_ranks_its_head_and_leaves_nobody_out(build, exact, query):
    engine = build(**ENGINES["graph"])
    ranking = engine.rank(query)
    if ranking.plan.mode == "browse":
        assert ranking.rows.tolist() == allowed_rows(engine, query)
        return
    vector = vector_of(engine, query)
    mask = np.zeros(N, dtype=bool)
    mask[allowed_rows(engine, query)] = True
    head = engine.index.search(vector[np.newaxis], 7, allowed=mask).rows[0]
    head = head[head >= 0].tolist()
    similar = cosines(engine.index.vectors, vector)
    tail = sorted(set(np.flatnonzero(mask)) - set(head), key=lambda row: (-similar[row], row))
    assert ranking.rows.tolist() == head + tail
    ours, theirs = ranking.scores, exact.rank(query).scores
    assert (ours <= theirs + 1e-9).all()  # a photo that the graph missed scores no more than it


def test_the_careless_graph_of_these_tests_does_miss_photos(build, exact):
    engine = build(**ENGINES["graph"])
    missed = [
        text
        for text in ("red", "sea", "dune", "night", "red sea", "green dune")
        if engine.rank(Query(text=text)).rows.tolist() != exact.rank(Query(text=text)).rows.tolist()
    ]
    assert missed


@settings(max_examples=30, deadline=None)
@given(query=queries(limit=None))
def test_both_orders_give_the_same_photos(engine, query):
    parts = {name: getattr(query, name) for name in ("text", "image", "photo_id", "filter")}
    parts |= {"score_threshold": query.score_threshold, "text_alpha": query.text_alpha}
    best, newest = (engine.rank(Query(sort_by=order, **parts)) for order in ("relevance", "newest"))
    assert sorted(best.rows.tolist()) == sorted(newest.rows.tolist())
    assert best.total == newest.total


def test_a_photo_at_the_threshold_is_in(engine):
    scores = engine.rank(Query(text="sea", score_threshold=0)).scores
    threshold = float(scores[9])
    found = engine.rank(Query(text="sea", score_threshold=threshold))
    assert found.total == np.count_nonzero(scores >= threshold)
    assert found.scores[-1] == threshold


CURVES = [Curve(4.0, -1.0), Curve(12.3, -6.9), Curve(400.0, 3.0), Curve(1e-3, 0.2), Curve(1e9, 0)]


@settings(max_examples=60, deadline=None)
@given(
    query=queries(),
    curve=st.sampled_from(CURVES),
    place=st.integers(0, N - 1),
    step=st.sampled_from([0, 0, 1e-6, -1e-6, 5e-7, -5e-7]),
)
def test_a_threshold_keeps_exactly_what_reaches_it(engine, query, curve, place, step):
    # As near to a photo's score, as it is rounded, as thresholds come.
    calibration = Calibration(text=curve, image=curve, both=curve, source="test")
    config = replace(engine.config, calibration=calibration)
    engine = SearchEngine(engine.table, engine.index, engine.model, config)
    vector = vector_of(engine, query)
    if vector is None:
        return
    similar = cosines(engine.index.vectors, vector)
    scores = np.round(curve(similar), 6)
    threshold = min(max(float(scores[place]) + step, 0), 1)
    near = [row for row in allowed_rows(engine, query) if scores[row] >= threshold]
    near.sort(key=lambda row: (-float(similar[row]), row))
    near = near[: query.limit]
    if query.sort_by == "newest":
        near.sort(key=lambda row: (-int(engine.table.uploaded_days[row]), row))
    whole = engine.rank(replace(query, score_threshold=threshold))
    assert whole.rows.tolist() == near
    assert whole.scores.tolist() == scores[near].tolist()
    part = engine.rank(replace(query, score_threshold=threshold), 7, start=3)
    assert (part.rows.tolist(), part.total) == (near[3:7], len(near))


@settings(max_examples=30, deadline=None)
@given(query=queries(), start=st.integers(0, N + 5), k=st.integers(0, N + 5))
def test_a_part_of_a_ranking_is_cut_out_of_it(engine, query, start, k):
    whole, part = engine.rank(query), engine.rank(query, k, start=start)
    assert part.rows.tolist() == whole.rows[start:k].tolist()
    assert part.scores.tolist() == whole.scores[start:k].tolist()
    assert (part.total, part.plan) == (whole.total, whole.plan)


def test_thresholds_0_and_1_let_all_and_almost_nothing_through(engine):
    assert engine.rank(Query(text="sea", score_threshold=0)).total == N
    assert engine.rank(Query(text="sea", score_threshold=1)).total == 0
    browsing = Query(filter=PhotoFilter(after_date="2024-01-01"), score_threshold=1)
    assert engine.rank(browsing).total == N


def test_equal_photos_come_in_the_order_of_their_ids(exact, vectors):
    ranking = exact.rank(Query(text="sea"))
    twins = {}
    for row in ranking.rows.tolist():
        twins.setdefault(vectors[row].tobytes(), []).append(row)
    assert max(map(len, twins.values())) >= 3
    assert all(rows == sorted(rows) for rows in twins.values())


def test_a_text_that_says_nothing_to_the_model_lists_all_photos_by_id(exact):
    ranking = exact.rank(Query(text="nothing known"))
    assert ranking.rows.tolist() == list(range(N))
    assert len(set(ranking.scores.tolist())) == 1


def test_browsing_scores_1_and_comes_by_id_or_by_date(engine):
    chosen = PhotoFilter(source="pexels")
    by_id = engine.search(Query(filter=chosen), per_page=100)
    assert ids([by_id]) == sorted(ids([by_id]))
    assert {hit.relevance_score for hit in by_id} == {1.0}
    newest = engine.search(Query(filter=chosen, sort_by="newest"), per_page=100)
    days = [hit.photo.uploaded_on for hit in newest]
    assert days == sorted(days, reverse=True)
    assert {hit.relevance_score for hit in newest} == {1.0}


def test_each_kind_of_query_has_its_own_curve(build):
    curves = {"text": Curve(2.0, -1.0), "image": Curve(3.0, 0.5), "both": Curve(9.0, -4.0)}
    engine = build(calibration=Calibration(**curves, source="test"))
    for query, kind in (
        (Query(text="sea"), "text"),
        (Query(photo_id=photo_id(5)), "image"),
        (Query(photo_id=photo_id(5), text="sea"), "both"),
        (Query(photo_id=photo_id(5), text="sea", text_alpha=0), "image"),
    ):
        ranking = engine.rank(query)
        similar = cosines(engine.index.vectors, vector_of(engine, query))[ranking.rows]
        logits = curves[kind].slope * similar.astype(float) + curves[kind].intercept
        assert ranking.scores == pytest.approx(1 / (1 + np.exp(-logits)), abs=1e-6)


def test_a_steep_curve_changes_the_scores_and_not_the_order(build, exact):
    steep = Curve(1e6, -4e5)
    engine = build(calibration=Calibration(text=steep, image=steep, both=steep, source="test"))
    ranking = engine.rank(Query(text="sea"))
    assert set(ranking.scores.tolist()) == {0.0, 1.0}
    assert ranking.rows.tolist() == exact.rank(Query(text="sea")).rows.tolist()


# -- pictures and steering --------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(number=st.integers(0, N - 1), chosen=conditions)
def test_a_photo_is_never_among_its_own_results(engine, number, chosen):
    query = Query(photo_id=photo_id(number), filter=PhotoFilter(**chosen))
    assert photo_id(number) not in engine.table.photo_ids(engine.rank(query).rows)


def test_a_photo_that_alone_meets_the_filter_finds_nothing(build, make_table, unit_vectors):
    table = make_table({"source": "nasa"}, {}, {})
    engine = build(table=table, vectors=unit_vectors(3))
    query = Query(photo_id=photo_id(0), filter=PhotoFilter(source="nasa"))
    page = engine.search(query)
    assert (list(page), page.has_more, page.plan.n_allowed) == ([], False, 0)


def test_twins_of_a_photo_come_first(exact, vectors):
    row = next(r for r in range(N) if (vectors == vectors[r]).all(axis=1).sum() >= 3)
    twins = np.flatnonzero((vectors == vectors[row]).all(axis=1)).tolist()
    ranking = exact.rank(Query(photo_id=photo_id(row)))
    assert ranking.rows[: len(twins) - 1].tolist() == [twin for twin in twins if twin != row]


@pytest.mark.parametrize("reference", [{"photo_id": photo_id(7)}, {"image": "#0343df"}])
def test_alpha_0_is_exactly_the_search_by_the_picture(engine, reference):
    if "image" in reference:
        reference = {"image": Image.new("RGB", (4, 4), reference["image"])}
    plain = engine.rank(Query(**reference))
    steered = engine.rank(Query(**reference, text="night", text_alpha=0))
    assert steered.rows.tolist() == plain.rows.tolist()
    assert steered.scores.tolist() == plain.scores.tolist()


def test_alpha_has_no_effect_without_a_text_or_without_a_picture(engine):
    for parts in ({"photo_id": photo_id(7)}, {"text": "sea"}):
        one, other = (engine.rank(Query(**parts, text_alpha=alpha)) for alpha in (0, 10))
        assert one.rows.tolist() == other.rows.tolist()
        assert one.scores.tolist() == other.scores.tolist()


def test_a_higher_alpha_moves_the_results_towards_the_text(build, table, vectors, toy_model):
    # The difference of two photos' cosines changes its sign at most once while the weight grows,
    # so the photo that is the text itself can only climb.
    with_sea = vectors.copy()
    with_sea[250] = toy_model.encode_texts(["sea"])[0]
    engine = build(vectors=with_sea)
    places = [
        engine.rank(Query(photo_id=photo_id(7), text="sea", text_alpha=alpha))
        .rows.tolist()
        .index(250)
        for alpha in (0, 0.2, 0.5, 1, 1.7, 3, 5, 10)
    ]
    assert places == sorted(places, reverse=True)
    assert places[0] > 20
    assert places[-1] == 0


def test_a_picture_is_the_same_as_file_as_bytes_and_in_memory(exact, make_picture, tmp_path):
    path = make_picture(tmp_path / "blue.png", "#0343df", (40, 30))
    rankings = [
        exact.rank(Query(image=image)).rows.tolist()
        for image in (path, str(path), path.read_bytes(), Image.open(path))
    ]
    assert rankings == [rankings[0]] * 4


def test_a_picture_and_a_word_for_it_find_the_same_photo_first(build, vectors, toy_model):
    with_green = vectors.copy()
    with_green[33] = toy_model.encode_texts(["green"])[0]
    engine = build(vectors=with_green)
    for query in (Query(text="green"), Query(image=Image.new("RGB", (3, 3), "#00ff00"))):
        assert engine.rank(query, 1).rows.tolist() == [33]


def test_a_refused_picture_is_the_caller_s_fault(exact, tmp_path):
    for image in (b"", b"no picture", tmp_path / "missing.png"):
        with pytest.raises(ImageError):
            exact.search(Query(image=image))


# -- what the model is asked ------------------------------------------------------------------


class Recording:
    """A model that remembers what it was asked."""

    def __init__(self, model):
        self._model, self.asked = model, []

    def __getattr__(self, name):
        return getattr(self._model, name)

    def encode_texts(self, texts):
        self.asked.append(list(texts))
        return self._model.encode_texts(texts)

    def encode_images(self, images):
        self.asked.append(f"{len(images)} images")
        return self._model.encode_images(images)


@pytest.fixture
def recording(build, toy_model):
    return build(model=Recording(toy_model))


def test_later_pages_need_neither_the_picture_nor_the_model(recording, make_picture, tmp_path):
    path = make_picture(tmp_path / "red.png")
    first = recording.search(Query(image=path, text="night"), per_page=30)
    path.unlink()
    recording.model.asked.clear()
    rest = ids([recording.search(cursor=first.next_cursor)])
    assert recording.model.asked == []
    whole = Query(image=Image.new("RGB", (8, 6), "#e50000"), text="night")
    assert ids([first]) + rest == recording.table.photo_ids(recording.rank(whole, 60).rows)


def test_a_photo_that_is_indexed_is_not_embedded_again(recording):
    all_pages(recording, Query(photo_id=photo_id(5)), 100)
    assert recording.model.asked == []


def test_texts_are_embedded_in_one_batch_and_once(recording):
    recording.warm(["sea", "dune", "sea"])
    recording.warm(["dune", "sea"])
    recording.warm([])
    assert recording.model.asked == [["sea", "dune"]]
    all_pages(recording, Query(text="dune"), 100)
    recording.rank(Query(text="night"))
    recording.rank(Query(text="night", sort_by="newest"))
    assert recording.model.asked == [["sea", "dune"], ["night"]]


def test_a_warm_engine_answers_as_a_cold_one(build):
    warm, cold = build(), build()
    warm.warm(["sea", "sea dune", "night"])
    for text in ("night", "sea dune"):
        assert (
            warm.rank(Query(text=text)).rows.tolist() == cold.rank(Query(text=text)).rows.tolist()
        )


def test_browsing_asks_no_model(recording):
    all_pages(recording, Query(filter=PhotoFilter(source="nasa")), 100)
    assert recording.model.asked == []


# -- plans ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "mode", "reason"),
    [
        (Query(filter=PhotoFilter(source="unsplash")), "browse", "by photo_id"),
        (Query(filter=PhotoFilter(source="nasa"), sort_by="newest"), "browse", "by date, then"),
        (Query(text="sea"), "graph", "20 graph steps cost less than scoring 300 photos"),
        (Query(photo_id=photo_id(1)), "graph", "graph steps cost less than scoring 299 photos"),
        (Query(text="sea", score_threshold=0.0), "exact", "threshold"),
        (Query(text="sea", sort_by="newest"), "exact", "date order"),
        (Query(text="sea", filter=PhotoFilter(source="nasa")), "exact", "photos costs less than"),
    ],
)
def test_a_plan_says_what_is_done_and_why(build, query, mode, reason):
    plan = build(**ENGINES["planned"]).plan(query)
    assert plan.mode == mode
    assert reason in plan.reason
    assert plan.n_photos == N
    assert plan.conditions == query.filter.describe()
    assert plan.explain().startswith(f"{mode}: ")


def test_an_exact_index_scores_every_photo(exact):
    plan = exact.plan(Query(text="sea"))
    assert (plan.mode, plan.reason) == ("exact", "the exact index scores every allowed photo")


@pytest.mark.parametrize(
    ("step_rows", "mode"), [(0, "graph"), (29, "graph"), (30, "exact"), (2**40, "exact")]
)
def test_the_planner_compares_the_cost_of_ten_steps_with_that_of_300_photos(build, step_rows, mode):
    assert build(index="hnsw", depth=10, step_rows=step_rows).plan(Query(text="sea")).mode == mode


@pytest.mark.parametrize("step_rows", [1, 2, 3, 10])
def test_a_stricter_filter_never_turns_exact_into_graph(build, step_rows):
    engine = build(index="hnsw", depth=10, step_rows=step_rows)
    plans = [
        engine.plan(Query(text="sea", filter=PhotoFilter(after_date=f"2024-01-{day:02d}")))
        for day in range(1, 12)
    ]
    allowed, modes = [plan.n_allowed for plan in plans], [plan.mode for plan in plans]
    assert allowed == sorted(allowed, reverse=True)
    assert modes == sorted(modes, reverse=True)  # graph, graph, ..., exact, exact
    assert modes[-1] == "exact"


def test_a_plan_counts_the_photos_that_may_be_found(exact):
    query = Query(photo_id=photo_id(1), filter=PhotoFilter(license_type="cc0"))
    plan = exact.plan(query)
    assert plan.n_allowed == exact.rank(query).total == len(allowed_rows(exact, query))
    assert plan.selectivity == plan.n_allowed / N


def test_a_plan_names_model_and_calibration(exact):
    assert exact.plan(Query(text="sea")).scored_by == "toy, calibration uncalibrated"


# -- cursors ----------------------------------------------------------------------------------


def test_a_cursor_holds_its_query_and_page_size_whatever_else_is_given(engine):
    query = Query(text="sea", filter=PhotoFilter(license_type="cc0"), limit=50)
    token = engine.search(query, per_page=7).next_cursor
    second = engine.search(cursor=token)
    assert engine.search(Query(text="night"), per_page=99, cursor=token) == second
    assert engine.search(cursor=token, per_page=0) == second
    assert second.per_page == 7
    assert engine.search(cursor=token) == second


def test_a_cursor_of_another_snapshot_configuration_key_or_audience_is_refused(build):
    parts = {"snapshot_id": "000001-a", "key": b"k"}
    engine = build(parts=parts)
    token = engine.search(Query(text="sea"), audience="ann:search").next_cursor
    assert len(engine.search(cursor=token, audience="ann:search")) == 20
    assert len(build(parts=parts).search(cursor=token, audience="ann:search")) == 20
    for other in (
        build(parts=parts | {"snapshot_id": "000002-b"}),
        build(parts=parts, depth=201),
        build(parts=parts, steering=0.36),
        build(parts=parts | {"key": b"other"}),
    ):
        with pytest.raises(CursorError, match="cursor must"):
            other.search(cursor=token, audience="ann:search")
    for audience in ("", "bob:search", "ann:similar"):
        with pytest.raises(CursorError):
            engine.search(cursor=token, audience=audience)


def test_a_cursor_of_another_configuration_says_what_differs(build):
    token = build().search(Query(text="sea")).next_cursor
    other = build(depth=3)
    with pytest.raises(CursorError, match=other.config.config_id):
        other.search(cursor=token)


@pytest.mark.parametrize("cursor", ["", "token", "a.b.c", "é"])
def test_a_text_that_is_no_cursor_is_refused(exact, cursor):
    with pytest.raises(CursorError, match="cursor must be the next_cursor of a page"):
        exact.search(Query(text="sea"), cursor=cursor)


# -- refused ----------------------------------------------------------------------------------


def test_a_search_needs_a_query_or_a_cursor(exact):
    with pytest.raises(InputError, match="a query or a cursor, got neither"):
        exact.search()


@pytest.mark.parametrize("unknown", [photo_id(N), "", "\ud800", photo_id(1).upper() + "X", "0"])
def test_a_photo_that_is_not_indexed_is_not_found(engine, unknown):
    query = Query(photo_id=unknown, filter=PhotoFilter(source="nasa"))
    for ask in (engine.search, engine.rank, engine.plan):
        with pytest.raises(NotFoundError, match="photo_id must name an indexed photo"):
            ask(query)


def test_a_source_that_the_library_does_not_have_is_refused(engine):
    query = Query(text="sea", filter=PhotoFilter(source="flickr"))
    for ask in (engine.search, engine.rank, engine.plan):
        with pytest.raises(InputError, match="nasa, pexels, unsplash; got 'flickr'"):
            ask(query)


def test_parts_that_do_not_belong_together_are_refused(
    table, vectors, toy_model, make_table, unit_vectors
):
    config = Config(model="toy", model_id=toy_model.model_id)
    index = INDEXES["exact"](vectors, config, np.arange(N))
    wide = INDEXES["exact"](unit_vectors(N, 17), config, np.arange(N))
    for parts in ((make_table({}), index), (table, wide)):
        with pytest.raises(MismatchError, match="table, index and model must agree"):
            SearchEngine(*parts, toy_model, config)
    for model_id in ("", "toy-ffffffffffff"):
        with pytest.raises(MismatchError, match="toy-0123456789ab"):
            SearchEngine(table, index, toy_model, Config(model="toy", model_id=model_id))


# -- the rest ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", INDEXES)
def test_an_engine_without_photos_answers(build, make_table, vectors, kind):
    engine = build(table=make_table(), vectors=vectors[:0], index=kind, step_rows=0)
    for query in (
        Query(text="sea"),
        Query(image=Image.new("RGB", (2, 2)), text="sea", score_threshold=0.5),
        Query(filter=PhotoFilter(orientation="square"), sort_by="newest"),
    ):
        page = engine.search(query)
        assert (list(page), page.has_more, page.plan.selectivity) == ([], False, 1.0)


@pytest.mark.parametrize("kind", INDEXES)
def test_an_engine_with_one_photo_answers(build, make_table, unit_vectors, kind):
    engine = build(table=make_table({}), vectors=unit_vectors(1), index=kind, step_rows=0)
    assert ids(all_pages(engine, Query(text="sea"), 1)) == [photo_id(0)]
    assert ids(all_pages(engine, Query(photo_id=photo_id(0)), 1)) == []


def test_hits_carry_the_record_and_the_small_picture(build, table):
    engine = build(parts={"thumbnail": lambda photo: Path(f"{photo.photo_id}.webp")})
    rows = engine.rank(Query(text="sea"), 3).rows.tolist()
    page = engine.search(Query(text="sea"), per_page=3)
    assert [hit.photo for hit in page] == [table.photo(row) for row in rows]
    assert [hit.thumbnail for hit in page] == [Path(f"{photo_id(row)}.webp") for row in rows]


def test_eight_threads_page_as_one_does(engine):
    query = Query(photo_id=photo_id(3), text="night sea", filter=PhotoFilter(license_type="cc0"))
    expected = ids(all_pages(engine, query, 20))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: ids(all_pages(engine, query, 20)), range(16)))
    assert found == [expected] * 16


# -- clusters ---------------------------------------------------------------------------------


def test_the_clusters_of_these_tests_are_searched_and_do_miss_photos(build, exact):
    engine = build(**ENGINES["clustered"])
    asked = [Query(text=text) for text in ("red", "sea", "dune", "night", "red sea", "green dune")]
    assert {engine.plan(query).mode for query in asked} == {"clustered"}
    found = [engine.rank(query).rows.tolist() for query in asked]
    assert found != [exact.rank(query).rows.tolist() for query in asked]
    assert [sorted(rows) for rows in found] == [list(range(N))] * len(asked)


def test_a_first_page_asks_the_clusters_for_a_page_and_no_more(build, monkeypatch):
    engine = build(**ENGINES["clustered"])
    asked, search = [], type(engine.index).search

    def counted(self, queries, k, **options):
        asked.append((k, options["recall"]))
        return search(self, queries, k, **options)

    monkeypatch.setattr(type(engine.index), "search", counted)
    first = engine.search(Query(text="sea"))
    assert asked == [(24, 0.1)]
    engine.search(cursor=first.next_cursor)
    assert asked[1:] == [(24, 0.1), (40, 0.1)]


@settings(max_examples=30, deadline=None)
@given(query=queries())
def test_a_recall_that_is_asked_for_is_kept_on_every_page(build, exact, query):
    # It was measured at half of what is asked for.
    config = build(**ENGINES["clustered"]).config
    tuning = always(replace(config, tuning=None), 0.1, recall=0.5)
    engine = build(parts=None, **ENGINES["clustered"])
    engine.config = replace(config, tuning=tuning)
    asked = replace(query, min_recall=0.9)
    pages = all_pages(engine, asked, 60)
    assert ids(pages) == ids(all_pages(exact, query, 60))
    assert {page.plan.expected_recall for page in pages} == {1.0}
    careless = replace(query, min_recall=0.5)
    assert {page.plan for page in all_pages(engine, careless, 60)} == {engine.plan(careless)}


# -- one planner, one result set --------------------------------------------------------------


@pytest.mark.parametrize("share", ["unsplash", None])
def test_a_step_of_0_rows_really_walks_the_graph(build, monkeypatch, share):
    walked = []
    walk = HnswIndex._walk
    monkeypatch.setattr(
        HnswIndex, "_walk", lambda self, *rest: walked.append(rest) or walk(self, *rest)
    )
    engine = build(index="hnsw", step_rows=0, depth=10)
    query = Query(text="sea", filter=PhotoFilter(source=share or ()))
    assert engine.rank(query, 10).plan.mode == "graph"
    assert len(walked) == 1
    wide = build(index="hnsw", step_rows=2**40, depth=10)
    assert wide.rank(query, 10).plan.mode == "exact"
    assert len(walked) == 1


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("limit", [1, 5, 20, 100])
@pytest.mark.parametrize(
    "parts",
    [{"text": "sea"}, {"photo_id": photo_id(3)}, {"text": "red", "score_threshold": 0.4}],
    ids=["text", "photo", "threshold"],
)
def test_a_limit_leaves_the_same_photos_in_either_order(build, kind, limit, parts):
    engine = build(**ENGINES[kind])
    best = engine.rank(Query(limit=limit, **parts))
    newest = engine.rank(Query(limit=limit, sort_by="newest", **parts))
    assert best.total == newest.total <= limit
    assert sorted(best.rows.tolist()) == sorted(newest.rows.tolist())
    days = engine.table.uploaded_days[newest.rows].tolist()
    assert days == sorted(days, reverse=True)


def test_with_conditions_only_a_limit_leaves_the_newest(engine):
    query = Query(filter=PhotoFilter(source="unsplash"), sort_by="newest")
    whole = engine.rank(query).rows.tolist()
    few = engine.rank(replace(query, limit=7))
    assert (few.rows.tolist(), few.total) == (whole[:7], 7)


# -- words alone, places, pictures in memory --------------------------------------------------


def test_a_search_takes_just_words(engine):
    found, wanted = engine.search("red sea"), engine.search(Query(text="red sea"))
    assert found.hits == wanted.hits
    with pytest.raises(InputError, match="must have a text"):
        engine.search(" ")


def test_a_page_says_its_plan_in_words(engine, capsys):
    page = engine.search("sea")
    print(page.plan)  # noqa: T201 - what a notebook does
    assert capsys.readouterr().out == page.plan.explain() + "\n"


def test_every_page_starts_at_its_place_in_the_ranking(engine):
    pages = all_pages(engine, Query(text="sea", limit=25), 10)
    assert [(page.start, len(page)) for page in pages] == [(1, 10), (11, 10), (21, 5)]
    assert "<b>11.</b>" in pages[1]._repr_html_()
    assert "<b>1.</b>" not in pages[1]._repr_html_()


def test_a_turned_picture_is_the_same_opened_as_by_its_file(build, tmp_path):
    seen = []

    class Seeing(type(build().model)):
        def encode_images(self, images):
            seen.extend(image.tobytes() for image in images)
            return super().encode_images(images)

    engine = build(model=Seeing())
    exif = Image.Exif()
    exif[0x0112] = 6
    path = tmp_path / "turned.png"
    picture = Image.new("RGB", (12, 6), "red")
    picture.paste((0, 0, 255), (0, 0, 4, 6))
    picture.save(path, exif=exif)
    with Image.open(path) as lazily:
        found = engine.search(Query(image=lazily))
    assert found.hits == engine.search(Query(image=path)).hits
    assert seen[0] == seen[1]


def test_an_opened_picture_that_is_cut_short_is_the_caller_s_fault(exact, tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (60, 60, 3), dtype=np.uint8)
    path = tmp_path / "cut.jpg"
    Image.fromarray(noise).save(path)
    path.write_bytes(path.read_bytes()[:2_000])
    with Image.open(path) as lazily, pytest.raises(ImageError) as caught:
        exact.search(Query(image=lazily))
    assert caught.value.reason == "damaged"
