"""Mixing a picture with words: what each counts, over libraries of any kind."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.config.word_weights import WordWeights
from searchlab.models.protocol import unit_rows
from searchlab.search.mixing import EVERYDAY, Background, add
from searchlab.search.queries import Query
from tests.support import engine_world

DIM = 16
build = engine_world.build
table = engine_world.table
vectors = engine_world.vectors
STANDARDISED = {"mixing": "standardised", "steering": 1 / 1.7}


def narrow_words(rng, n):
    """Words as models embed them: all alike, and about one part of what photos differ in."""
    rows = 0.3 * rng.normal(size=(n, DIM))
    rows[:, 0] += 1.5
    return unit_rows(rows)


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(5)
    photos = unit_rows(rng.normal(size=(400, DIM)))
    return photos, Background(photos, narrow_words(rng, len(EVERYDAY))), narrow_words(rng, 20)


@settings(deadline=None)
@given(row=st.integers(0, 399), word=st.integers(0, 19))
def test_at_a_weight_of_1_words_move_the_scores_as_much_as_the_picture(world, row, word):
    photos, background, words = world
    picture = photos[row]
    mixed = background.mix(picture, words[word], 1.0)
    of_words = mixed.text_share * (photos @ (words[word] - background.common))
    of_picture = photos @ mixed.vector - of_words
    assert of_words.std() == pytest.approx(of_picture.std(), rel=1e-3)


@settings(deadline=None)
@given(
    row=st.integers(0, 399),
    word=st.integers(0, 19),
    weights=st.lists(st.floats(0, 6), min_size=2, max_size=6),
)
def test_the_more_words_count_the_nearer_the_mix_is_to_them(world, row, word, weights):
    photos, background, words = world
    bare = words[word] - background.common
    mixes = [background.mix(photos[row], words[word], weight) for weight in sorted(weights)]
    assert np.all(np.diff([mixed.vector @ bare for mixed in mixes]) >= -1e-6)
    assert np.all(np.diff([mixed.vector @ photos[row] for mixed in mixes]) <= 1e-6)


def test_at_no_weight_the_mix_is_the_picture(world):
    photos, background, words = world
    for mixed in (background.mix(photos[3], words[0], 0.0), add(photos[3], words[0], 0.0)):
        assert mixed.vector == pytest.approx(photos[3], abs=1e-6)
        assert mixed.text_share == 0


def test_what_all_words_are_near_to_gains_nothing_by_any_of_them(world):
    photos, background, words = world
    hub = unit_rows(words.mean(axis=0, keepdims=True))
    photos = np.concatenate([photos, hub])
    firsts = []
    for mix in (add, background.mix):
        mixed = [mix(photos[row], word, 1.0).vector for row in range(50) for word in words]
        firsts.append(sum(int(np.argsort(-(photos @ vector))[1] == 400) for vector in mixed))
    assert firsts[1] < firsts[0] / 2


def test_words_that_a_model_does_not_know_change_nothing(world):
    photos, background, _ = world
    mixed = background.mix(photos[3], np.zeros(DIM, dtype=np.float32), 2.0)
    assert mixed.vector == pytest.approx(photos[3], abs=1e-6)


def test_a_part_of_the_model_that_does_not_know_the_words_is_left_to_the_picture(world):
    photos, background, words = world
    half = words[0].copy()
    half[: DIM // 2] = 0
    mixed = background.mix(photos[3], half, 1.0).vector[: DIM // 2]
    assert mixed / np.linalg.norm(mixed) == pytest.approx(
        photos[3][: DIM // 2] / np.linalg.norm(photos[3][: DIM // 2]), abs=1e-5
    )


def test_words_that_fit_no_photo_better_than_another_do_not_drown_the_picture(world):
    photos, _, words = world
    flat = photos.copy()
    flat[:, 7] = 0  # no photo has anything of it
    flat = unit_rows(flat)
    only_7 = np.eye(DIM, dtype=np.float32)[7]
    background = Background(flat, words)
    ranked = [
        np.argsort(-(flat @ vector))[:10].tolist()
        for vector in (flat[3], background.mix(flat[3], only_7 + background.common, 1.0).vector)
    ]
    assert ranked[0] == ranked[1]


@pytest.mark.parametrize("n", [0, 1, 2])
def test_libraries_of_few_photos_mix_too(world, n):
    photos, _, words = world
    background = Background(photos[:n], words)
    mixed = background.mix(photos[0], words[0], 1.0)
    assert np.linalg.norm(mixed.vector) == pytest.approx(1)
    assert mixed.text_share > 0


def test_photos_that_are_all_the_same_are_no_background(world):
    photos, _, words = world
    background = Background(np.repeat(photos[:1], 30, axis=0), words)
    assert np.isfinite(background.mix(photos[5], words[0], 1.0).vector).all()


def test_the_mix_is_what_the_design_says(world):
    photos, background, words = world
    everyday = narrow_words(np.random.default_rng(9), len(EVERYDAY)).astype(float)
    background = Background(photos, everyday)
    cosines = photos @ everyday.T
    odds = np.exp(2 * cosines / cosines.std())
    common = (odds / odds.sum(axis=1, keepdims=True)).mean(axis=0) @ everyday
    bare = words[4] - common
    ratio = (photos @ photos[9]).std() / (photos @ bare).std()
    mixed = photos[9] + 0.7 * ratio * bare
    got = background.mix(photos[9], words[4], 0.7)
    assert got.vector == pytest.approx(mixed / np.linalg.norm(mixed), abs=1e-5)
    assert got.text_share == pytest.approx(0.7 * ratio / np.linalg.norm(mixed), rel=1e-4)


# -- in an engine -------------------------------------------------------------------------------


def test_alpha_0_is_exactly_the_picture_and_more_alpha_more_text(build, vectors, toy_model):
    with_sea = vectors.copy()
    with_sea[250] = toy_model.encode_texts(["sea"])[0]
    engine = build(vectors=with_sea, **STANDARDISED)
    reference = {"photo_id": engine_world.photo_id(7)}
    plain = engine.rank(Query(**reference))
    steered = engine.rank(Query(**reference, text="sea", text_alpha=0))
    assert steered.rows.tolist() == plain.rows.tolist()
    assert steered.scores.tolist() == plain.scores.tolist()
    places = [
        engine.rank(Query(**reference, text="sea", text_alpha=alpha)).rows.tolist().index(250)
        for alpha in (0, 0.2, 0.5, 1, 1.7, 3, 5, 10)
    ]
    assert places == sorted(places, reverse=True)
    assert places[-1] == 0


def test_two_engines_of_a_library_mix_alike_whatever_was_asked_before(build):
    query = Query(photo_id=engine_world.photo_id(7), text="sea")
    one, other = build(**STANDARDISED), build(**STANDARDISED)
    other.warm(["dog", "sea", "night"])
    assert one.query_vector(query).tolist() == other.query_vector(query).tolist()


def test_a_filter_does_not_change_how_photos_compare(build):
    engine = build(**STANDARDISED)
    everything = engine.rank(Query(photo_id=engine_world.photo_id(7), text="sea")).rows.tolist()
    only = engine_world.PhotoFilter(source="pexels")
    rows = engine.rank(
        Query(photo_id=engine_world.photo_id(7), text="sea", filter=only)
    ).rows.tolist()
    assert rows == [row for row in everything if row in set(rows)]


# -- words that are written about a photo -------------------------------------------------------


@pytest.fixture(scope="module")
def written(build, make_table):
    """Engines with and without texts over photos of which one tells of snow, another is snow."""
    texts = {5: "A garden under snow", 6: "snow", 9: "red snow and a dune"}
    described = make_table(*({"source_description": texts.get(row, "")} for row in range(300)))
    plain = build(table=described, **STANDARDISED)
    return plain, build(table=described, words=WordWeights(3.0, 3.0), **STANDARDISED)


@pytest.mark.parametrize("alpha", [0.5, 1.7, 10])
def test_photos_rise_by_words_about_them_and_no_other_photo_changes_place(written, alpha):
    query = Query(photo_id=engine_world.photo_id(7), text="snow", text_alpha=alpha)
    before, after = (engine.rank(query).rows.tolist() for engine in written)
    for row in (5, 6, 9):
        assert after.index(row) < before.index(row)
    others = [[row for row in rows if row not in (5, 6, 9)] for rows in (before, after)]
    assert others[0] == others[1]


def test_words_about_a_photo_count_the_more_the_more_the_text_counts(written):
    places = [
        written[1]
        .rank(Query(photo_id=engine_world.photo_id(7), text="snow", text_alpha=alpha))
        .rows.tolist()
        .index(5)
        for alpha in (0.1, 0.5, 1, 1.7, 3, 10)
    ]
    assert places == sorted(places, reverse=True)


def test_a_title_that_is_just_the_words_does_not_outdo_every_picture(written):
    low = Query(photo_id=engine_world.photo_id(7), text="snow", text_alpha=0.05)
    assert written[1].rank(low).rows[0] != 6
    assert written[1].rank(Query(text="snow")).rows[0] == 6


def test_at_alpha_0_words_about_photos_are_not_read(written):
    query = Query(photo_id=engine_world.photo_id(7), text="snow", text_alpha=0)
    plain = Query(photo_id=engine_world.photo_id(7))
    one, other = (written[1].rank(asked) for asked in (query, plain))
    assert one.rows.tolist() == other.rows.tolist()
    assert one.scores.tolist() == other.scores.tolist()
