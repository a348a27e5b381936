"""Two streams, one ranking: what photos show and what is written about them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from searchlab.config import Config
from searchlab.config.calibration import UNCALIBRATED
from searchlab.config.word_weights import WordWeights
from searchlab.errors import InputError
from searchlab.models.protocol import unit_rows
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.indexes import build_index, merging
from searchlab.search.indexes.merging import nearest, nearly_nearest
from searchlab.search.indexes.scoring import cosines
from searchlab.search.queries import Query
from searchlab.search.words import matches
from searchlab.search.words.matches import NO_GAINS, Gains
from searchlab.studies.vectors.made import clustered, text_like
from tests.support import engine_world
from tests.support.engine_world import (
    ENGINES,
    add_gains,
    all_pages,
    allowed_rows,
    ids,
    queries,
    rows_of,
    vector_of,
)
from tests.support.examples import examples

build = engine_world.build
exact = engine_world.exact
table = engine_world.table
vectors = engine_world.vectors


def wanted_order(engine, query):
    """Every allowed photo by cosine and gain, from the design; independent of the merging."""
    allowed = allowed_rows(engine, query)
    similar = cosines(rows_of(engine), vector_of(engine, query))
    scores = add_gains(engine, query, similar)
    best = sorted(allowed, key=lambda row: (-scores[row], row))
    return best, np.round(UNCALIBRATED.text(scores[best]), 6)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(query=queries(limit=None, sort_by="relevance"))
def test_an_exact_merged_ranking_is_a_plain_sort_of_cosines_and_gains(build, query):
    engine = build(**ENGINES["written"])
    query = replace(query, text=query.text or "red", image=None, photo_id=None)
    # The idf of a word is counted over all photos, so a filter changes no score.
    best, scores = wanted_order(engine, query)
    reaches = scores >= (query.score_threshold or 0)
    ranking = engine.rank(query)
    assert ranking.scores.tolist() == pytest.approx(scores[reaches].tolist(), abs=2e-6)
    near_ties = np.abs(np.diff(ranking.scores)) < 2e-6
    if not near_ties.any():
        assert ranking.rows.tolist() == [
            row for row, is_in in zip(best, reaches, strict=True) if is_in
        ]


@pytest.mark.parametrize("kind", ["written graph", "written clustered"])
def test_what_is_written_is_not_lost_by_an_approximate_index(build, kind):
    engine = build(**ENGINES[kind])
    for text in ("A dune by the sea", "red", "night"):
        best, _ = wanted_order(engine, Query(text=text))
        head = engine.rank(Query(text=text), 5).rows.tolist()
        matches = engine.words.match(text)
        if matches.whole.any():
            assert set(head[:3]) <= set(matches.rows[matches.whole].tolist())
            assert head[:3] == best[:3]


def test_a_photo_without_words_loses_nothing(build):
    without = build(**ENGINES["exact"])
    engine = build(**ENGINES["written"])
    ranking, vectors_only = engine.rank(Query(text="sea")), without.rank(Query(text="sea"))
    plain = dict(zip(vectors_only.rows.tolist(), vectors_only.scores.tolist(), strict=True))
    matched = set(engine.words.match("sea").rows.tolist())
    for row, score in zip(ranking.rows.tolist(), ranking.scores.tolist(), strict=True):
        if row in matched:
            assert score > plain[row]
        else:
            assert score == plain[row]


def test_the_plan_says_what_the_texts_gave(build):
    engine = build(**ENGINES["written"])
    plan = engine.plan(Query(text="sea"))
    assert "texts: " in plan.explain()
    assert "sea" in plan.words
    assert engine.plan(Query(text="nihgt")).words.count("nihgt read as night") == 1
    assert engine.plan(Query(photo_id=engine_world.photo_id(0))).words == ""
    matched = engine.words.match("sea").rows
    ranking = engine.rank(Query(text="sea"), 30)
    n_matched = int(np.isin(ranking.rows, matched).sum())
    assert 0 < n_matched < 30
    assert ranking.plan.words.endswith(f"; {n_matched} of the 30 here")


def test_filters_hold_for_photos_found_by_words(build):
    engine = build(**ENGINES["written clustered"])
    query = Query(text="A dune by the sea", filter=PhotoFilter(source="nasa"))
    found = ids(all_pages(engine, query, 10))
    assert found
    assert sorted(found) == engine.table.photo_ids(allowed_rows(engine, query))


# -- gains of many photos ------------------------------------------------------------------------

FEW_ROWS = {"seed": 5, "n_wanted": 60, "share": 0.9, "levels": 3}


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_wanted=st.integers(1, 60),
    share=st.sampled_from([0.01, 0.3, 0.9]),
    levels=st.sampled_from([1, 3, 1000]),
    at_least=st.sampled_from([-np.inf, 0.2, 0.6, "the second score"]),
    kept=st.sampled_from([1.0, 0.7, 0.05]),
    at_once=st.booleans(),
)
@example(**FEW_ROWS, at_least=-np.inf, kept=0.05, at_once=True)  # more are wanted than there are
@example(**FEW_ROWS, at_least="the second score", kept=0.7, at_once=True)
@example(**FEW_ROWS, at_least="the second score", kept=0.7, at_once=False)
def test_the_best_of_many_gains_are_those_of_a_plain_sort(
    monkeypatch_few, seed, n_wanted, share, levels, at_least, kept, at_once
):
    merging._SCANNED = 500 if at_once else 0
    rng = np.random.default_rng(seed)
    vectors = unit_rows(rng.normal(size=(500, 8)).astype(np.float32))
    index = build_index(vectors, Config(index="clustered", n_lists=8))
    query = unit_rows(rng.normal(size=(1, 8)).astype(np.float32))[0]
    mask = rng.random(500) < kept
    rows = np.flatnonzero((rng.random(500) < share) & mask)
    values = np.arange(levels + 1) / levels * 0.5
    gains = Gains(rows, rng.integers(1, levels + 1, size=len(rows)), values)
    allowed = None if kept == 1 else Bitmap.of_mask(mask)
    scores = cosines(vectors, query).astype(np.float64) + gains.of(np.arange(500))
    if at_least == "the second score":
        at_least = float(np.sort(scores[mask])[-2])
    best = nearest(index, query, n_wanted, gains, allowed=allowed, at_least=at_least)
    reaches = np.flatnonzero((scores >= at_least) & mask)
    expected = sorted(reaches, key=lambda row: (-scores[row], row))
    assert best.rows.tolist() == expected[:n_wanted]
    assert best.scores.tolist() == scores[expected[:n_wanted]].tolist()


@pytest.fixture(scope="module")
def monkeypatch_few():
    """Make groups of gains small, so that there are several."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (merging, matches):
            patch.setattr(module, "SCORED_ONE_BY_ONE", 10)
        patch.setattr(merging, "_SCANNED", merging._SCANNED)
        yield


def test_without_gains_the_first_row_is_found_like_any_other_and_no_place_stays_empty():
    vectors = unit_rows(np.random.default_rng(0).normal(size=(3, 8)).astype(np.float32))
    index = build_index(vectors, Config(index="clustered", n_lists=1))
    best = nearly_nearest(index, vectors[0], 5, NO_GAINS)
    assert best.rows[0] == 0
    assert sorted(best.rows.tolist()) == [0, 1, 2]
    assert best.scores.tolist() == cosines(vectors, vectors[0])[best.rows].tolist()


@pytest.mark.usefixtures("monkeypatch_few")
def test_a_row_far_below_the_nearest_of_its_group_comes_before_them_by_its_gain(monkeypatch):
    monkeypatch.setattr(merging, "_SCANNED", 0)
    # Ten of the largest gain, far away; of the next group two that are near, one by its gain only.
    cosines_of_rows = np.array([-0.9] * 10 + [0.9, 0.5, 0.25] + [-0.9] * 12, dtype=np.float32)
    steps = np.array([3] * 10 + [1, 1, 2] + [1] * 12)
    vectors = np.stack([cosines_of_rows, np.sqrt(1 - cosines_of_rows**2)], axis=1)
    gains = Gains(np.arange(25), steps, np.array([0, 0.1, 0.4, 0.41]))
    index = build_index(vectors, Config(index="exact"))
    best = nearest(index, np.array([1, 0], dtype=np.float32), 2, gains)
    assert best.rows.tolist() == [10, 12]


@pytest.fixture(scope="module")
def scenes():
    vectors, scene_of = clustered(8_040, 32, clusters=40, seed=1)
    return vectors[:8_000].copy(), scene_of[:8_000], text_like(vectors[8_000:], seed=2)


@pytest.fixture(scope="module")
def indexes(scenes):
    kinds = ("exact", "hnsw", "clustered")
    return {kind: build_index(scenes[0], Config(index=kind)) for kind in kinds}


def gained_rows(relation, scene_of, rng):
    """Rows that a word is written about: anywhere, or where the photos look alike."""
    chance = 0.03 if relation == "few" else 0.4
    if relation == "alike":
        return np.flatnonzero(np.isin(scene_of, rng.choice(40, 12, replace=False)))
    return np.flatnonzero(rng.random(len(scene_of)) < chance)


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["anywhere", "few", "alike"])
@pytest.mark.parametrize("levels", [1, 60])
@pytest.mark.parametrize("share", [None, 0.7, 0.02])
def test_one_scan_finds_the_best_by_cosine_and_gain(scenes, indexes, relation, levels, share):
    vectors, scene_of, queries = scenes
    index = indexes["clustered"]
    rng = np.random.default_rng([levels, len(relation)])
    mask = np.ones(len(vectors), bool) if share is None else rng.random(len(vectors)) < share
    rows = gained_rows(relation, scene_of, rng)
    rows = rows[mask[rows]]
    steps = rng.integers(1, levels + 1, size=len(rows))
    gains = Gains(rows, steps, np.arange(levels + 1) / levels * 0.5)
    allowed = None if share is None else Bitmap.of_mask(mask)
    shares = []
    for query in queries:
        best = nearest(index, query, 20, gains, allowed=allowed)
        ours = nearly_nearest(index, query, 20, gains, allowed=allowed)
        assert len(set(ours.rows.tolist())) == len(ours.rows) == 20
        assert mask[ours.rows].all()
        shares.append(np.isin(best.rows, ours.rows).mean())
    # The recall that an index is asked for is 0.99 if left out.
    assert np.mean(shares) > 0.985
    assert min(shares) >= 0.8


@pytest.mark.parametrize("kind", ["exact", "hnsw", "clustered"])
@pytest.mark.parametrize("n_gained", [1, 150, 2_000, 8_000])
def test_every_index_finds_the_largest_gains_and_fills_what_is_wanted(
    scenes, indexes, kind, n_gained
):
    _, _, queries = scenes
    index = indexes[kind]
    rng = np.random.default_rng(n_gained)
    rows = np.sort(rng.choice(8_000, n_gained, replace=False))
    steps = rng.integers(1, 3, size=n_gained)
    steps[:1] = 3  # gains so much that nothing else comes before it
    gains = Gains(rows, steps, np.array([0, 0.01, 0.02, 3.0]))
    ours = nearly_nearest(index, queries[0], 30, gains)
    assert ours.rows[0] == rows[0]
    assert len(set(ours.rows.tolist())) == len(ours.rows) == 30
    assert (np.diff(ours.scores) <= 0).all()


def test_no_gains_change_nothing(exact):
    vector = vector_of(exact, Query(text="sea"))
    ours = nearest(exact.index, vector, 20, NO_GAINS)
    theirs = exact.index.nearest(vector, 20)
    assert ours.rows.tolist() == theirs.rows.tolist()
    assert ours.scores.tolist() == theirs.scores.tolist()


# -- configuration -------------------------------------------------------------------------------


def test_weights_are_part_of_a_config_and_leave_ids_on_record_alone():
    plain = Config()
    assert "words" not in plain.to_dict()
    written = replace(plain, words=WordWeights(3, 2))
    assert written.config_id != plain.config_id
    assert written.index_id == plain.index_id
    assert Config.from_dict(written.to_dict()) == written


@pytest.mark.parametrize("words", [{"coverage": 1}, {"coverage": -1, "precision": 0}, [1, 2], "x"])
def test_weights_that_are_none_are_refused(words):
    with pytest.raises(InputError, match="coverage"):
        Config.from_dict({**Config().to_dict(), "words": words})
