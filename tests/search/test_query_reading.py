"""What a query's own words do to its scores and to its order by date, and what a plan says."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchlab.config import Config
from searchlab.config.calibration import UNCALIBRATED, Calibration, Curve, QueryTraits, QueryWeights
from searchlab.config.word_weights import USUAL_WORDS
from searchlab.errors import DataError, InputError, MismatchError
from searchlab.models import load_model
from searchlab.models.protocol import PhotosAtLarge
from searchlab.models.shipped_calibration import calibrate
from searchlab.search.engine import SearchEngine
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.indexes import build_index
from searchlab.search.indexes.scoring import cosines
from searchlab.search.queries import Query
from searchlab.search.query_reading import describe_reading, known_words, traits_of
from searchlab.search.words.terms import fold

N = 60
MINI = load_model("mini")
CONFIG = calibrate(Config())


@pytest.fixture(scope="module")
def vectors():
    """Photos at all distances from "a dog"."""
    rng = np.random.default_rng(3)
    dog = MINI.encode_texts(["a dog"])[0].astype(float)
    away = rng.normal(size=(N, MINI.dim))
    away -= np.outer(away @ dog, dog)
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    near = np.linspace(-0.2, 0.9, N)[:, None]
    return np.asarray(near * dog + np.sqrt(1 - near**2) * away, dtype=np.float32)


@pytest.fixture(scope="module")
def engine_of(make_table, vectors):
    def make(config=CONFIG, rows=slice(None)):
        days = [{"uploaded_on": f"2024-01-{1 + place % 28:02d}"} for place in range(N)]
        table = make_table(*days[rows])
        index = build_index(np.ascontiguousarray(vectors[rows]), config)
        return SearchEngine(table, index, MINI, config)

    return make


# -- scores -------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["a dog", "ein Hund", "犬", "qwxz blorf", "a dog on a red boat"])
def test_a_score_is_the_logistic_of_cosine_and_traits(engine_of, text):
    engine, calibration = engine_of(), CONFIG.calibration
    ranking = engine.rank(Query(text=text))
    vector = MINI.encode_texts([text])[0]
    reading, weights = MINI.read_text(text), calibration.query
    logits = (
        calibration.text.slope * cosines(engine.index.vectors, vector)[ranking.rows].astype(float)
        + calibration.text.intercept
        + weights.background * MINI.at_large.background(vector)
        + weights.familiarity * reading.familiarity
        + weights.length * math.log(reading.n_pieces)
    )
    assert ranking.scores == pytest.approx(1 / (1 + np.exp(-logits)), abs=2e-6)
    assert (np.diff(ranking.scores) <= 0).all()


def test_a_photo_scores_the_same_alone_as_among_others(engine_of):
    whole = engine_of().rank(Query(text="a dog"))
    for row in (0, 30, N - 1):
        alone = engine_of(rows=slice(row, row + 1)).rank(Query(text="a dog"))
        assert alone.scores[0] == whole.scores[whole.rows.tolist().index(row)]


def test_letters_at_random_score_less_than_words_at_the_same_cosine():
    curves = {}
    for text in ("a dog", "qwxzv", "zzkrw blorfg"):
        traits = traits_of(text, MINI.encode_texts([text])[0], MINI)
        curves[text] = CONFIG.calibration.curve("text", traits=traits)
    at = np.array([0.4])
    assert max(curves["qwxzv"](at), curves["zzkrw blorfg"](at)) < curves["a dog"](at) / 2


def test_traits_are_of_words_alone_and_count_beside_a_picture_as_the_words_do(engine_of):
    engine = engine_of()
    alone = engine.curve_of(Query(text="a dog"))
    assert alone != CONFIG.calibration.text
    picture = Query(photo_id=engine.table.photo_ids([0])[0])
    assert engine.curve_of(picture) == CONFIG.calibration.image
    both = replace(picture, text="a dog")
    assert engine.curve_of(both) == CONFIG.calibration.both
    faint = engine.curve_of(replace(both, text_alpha=0.5))
    assert faint == CONFIG.calibration.curve("both", text_alpha=0.5)
    curve = CONFIG.calibration.curve
    traits = traits_of("a dog", MINI.encode_texts(["a dog"])[0], MINI)
    nearly = curve("both", text_alpha=1e9, traits=traits)
    assert (nearly.slope, nearly.intercept) == pytest.approx((alone.slope, alone.intercept))
    assert engine.curve_of(replace(both, text_alpha=10)) == curve(
        "both", text_alpha=10, traits=traits
    )


def test_beside_a_picture_letters_at_random_score_less_than_words_where_the_words_count_most(
    engine_of,
):
    engine = engine_of()
    picture = Query(photo_id=engine.table.photo_ids([0])[0], text_alpha=10)
    at = np.array([0.4])
    scores = {text: engine.curve_of(replace(picture, text=text))(at) for text in ("a dog", "qwxzv")}
    assert scores["qwxzv"] < scores["a dog"] / 2


def test_scores_need_the_photos_at_large_that_they_were_fitted_with(engine_of):
    weights = replace(CONFIG.calibration.query, at_large="0" * 12)
    other = replace(CONFIG, calibration=replace(CONFIG.calibration, query=weights))
    with pytest.raises(MismatchError, match=r"photos at large .*000000000000.*fit the calibration"):
        engine_of(other)


@pytest.mark.parametrize("text", ["linna", "Mutter", "Château", "собака", "kissa"])
def test_a_word_of_another_language_is_known_and_scores_as_if_nothing_were_written(text):
    assert known_words(text, MINI) == {fold(text)}


@pytest.mark.parametrize("text", ["childrn", "windmlil", "Eifel tovver", "montain", "犬", "42"])
def test_typing_errors_and_what_is_no_word_are_not_known(text):
    assert known_words(text, MINI) == frozenset()
    assert known_words("linna", object()) == frozenset()


def test_a_chance_likeness_of_a_known_word_moves_no_photo_and_no_score(make_table, vectors):
    titles = [{"title": "Linda" if place == 3 else ""} for place in range(N)]
    table = make_table(*({"source_description": "", "alt_description": ""} | t for t in titles))
    with_words = replace(CONFIG, words=USUAL_WORDS)
    index = build_index(vectors, CONFIG)
    seen, both = (SearchEngine(table, index, MINI, config) for config in (CONFIG, with_words))
    for text, is_alike in (("linna", True), ("lindda", False)):
        rankings = [engine.rank(Query(text=text)) for engine in (seen, both)]
        assert (rankings[0].rows.tolist() == rankings[1].rows.tolist()) == is_alike
        assert (rankings[0].scores.tolist() == rankings[1].scores.tolist()) == is_alike


# -- photos at large ----------------------------------------------------------------------------


def test_background_is_what_one_photo_in_a_hundred_reaches():
    rng = np.random.default_rng(0)
    photos = rng.normal(size=(20_000, 16)) * np.linspace(0.1, 1, 16) + 0.3
    photos = np.asarray(photos / np.linalg.norm(photos, axis=1, keepdims=True), dtype=np.float32)
    at_large = PhotosAtLarge.of_vectors(photos, n_factors=16)
    for query in photos[:5]:
        reached = float((photos @ query >= at_large.background(query)).mean())
        assert reached == pytest.approx(0.01, abs=0.01)


def test_photos_at_large_come_back_from_disk_and_are_named_by_their_numbers(tmp_path):
    at_large = PhotosAtLarge.of_vectors(MINI.encode_texts([f"{n} boats" for n in range(60)]))
    at_large.save(tmp_path / "at_large.npz")
    again = PhotosAtLarge.load(tmp_path / "at_large.npz")
    assert again.digest == at_large.digest != MINI.at_large.digest
    (tmp_path / "at_large.npz").write_bytes(b"PK")
    with pytest.raises(DataError, match="must be readable"):
        PhotosAtLarge.load(tmp_path / "at_large.npz")


# -- by date ------------------------------------------------------------------------------------


def test_newest_shows_what_is_relevant_and_the_plan_says_from_where(engine_of):
    engine = engine_of()
    best = engine.rank(Query(text="a dog"))
    newest = engine.rank(Query(text="a dog", sort_by="newest"))
    relevant = best.rows[best.scores >= CONFIG.newest_score]
    assert 0 < len(relevant) < N
    days = engine.table.uploaded_days
    assert newest.rows.tolist() == sorted(relevant.tolist(), key=lambda row: (-days[row], row))
    assert newest.total == len(relevant)
    assert "newest: of the photos that score 0.25 and more" in newest.plan.explain()
    assert engine.plan(Query(text="a dog", sort_by="newest")) == newest.plan
    assert "newest" not in best.plan.explain()


def test_a_threshold_of_the_query_counts_instead(engine_of):
    engine = engine_of()
    whole = engine.rank(Query(text="a dog", sort_by="newest", score_threshold=0))
    assert (whole.total, whole.plan.newest_score) == (N, None)
    strict = engine.rank(Query(text="a dog", sort_by="newest", score_threshold=0.6))
    assert (strict.scores >= 0.6).all()
    assert strict.total < engine.rank(Query(text="a dog", sort_by="newest")).total


def test_conditions_pictures_and_scores_that_are_an_order_alone_bound_nothing(engine_of):
    engine = engine_of()
    assert engine.rank(Query(filter=PhotoFilter(after_date="2000-01-01"), sort_by="newest")).total
    picture = Query(photo_id=engine.table.photo_ids([0])[0], sort_by="newest")
    assert engine.rank(picture).total == N - 1
    plain = engine_of(replace(CONFIG, calibration=UNCALIBRATED))
    assert plain.rank(Query(text="a dog", sort_by="newest")).total == N
    unbounded = engine_of(replace(CONFIG, newest_score=0))
    assert unbounded.rank(Query(text="a dog", sort_by="newest")).total == N


def test_pages_by_date_are_slices_of_the_relevant(engine_of):
    engine, query = engine_of(), Query(text="a dog", sort_by="newest")
    seen, page = [], engine.slice(query, per_page=4)
    seen += page.rows.tolist()
    while page.next_cursor:
        page = engine.slice(cursor=page.next_cursor)
        seen += page.rows.tolist()
    assert seen == engine.rank(query).rows.tolist()


# -- what a plan says ---------------------------------------------------------------------------


def test_words_that_the_model_does_not_know_are_named(engine_of):
    said = engine_of().plan(Query(text="a dog ᚠᚢᚦ qwxzv")).explain()
    assert "words: mini knows nothing of 'ᚠᚢᚦ'; knows 'qwxzv' only in pieces" in said
    for known in ("a dog", "ein Hund am Strand", "两个孩子", "犬", "", "snow"):
        assert not describe_reading(known, MINI)


def test_languages_whose_sentences_are_not_known_to_be_read_are_named():
    said = describe_reading("ஒரு நாய் இந்த வீட்டில் உள்ள", MINI)
    assert "not known to read sentences of Tamil" in said
    assert "Tamil" not in describe_reading("நாய்", MINI)
    for read in ("uma casa na praia", "ein Haus am Meer", "समुद्र के पास एक घर है"):
        assert "not known" not in describe_reading(read, MINI)


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("ఇంట్లో ఒక కుక్క ఉంది", "Telugu"),
        ("በቤቱ ውስጥ ውሻ አለ", "Ethiopic"),
        ("ឆ្កែមួយក្បាលនៅក្នុងផ្ទះ", "Khmer"),
        ("ઘરમાં એક કૂતરો છે", "Gujarati"),
    ],
)
def test_scripts_of_languages_that_are_not_read_are_named_in_sentences(text, script):
    assert f"not known to read sentences in {script} script" in describe_reading(text, MINI)
    assert "script" not in describe_reading(text[:4], MINI)
    for other in ("একটি বাড়িতে একটি কুকুর আছে", "a photo of ಬೆಂಗಳೂರು palace", "ఛాయాచిత్రకారుడు"):
        assert "script" not in describe_reading(other, MINI)


def test_models_that_say_nothing_of_words_say_nothing():
    assert describe_reading("ᚠᚢᚦ", load_model("palette")) == ""
    assert traits_of("red", np.zeros(4, dtype=np.float32), load_model("palette")) is None


@given(st.text(max_size=40))
def test_any_text_is_read(text):
    reading = MINI.read_text(text)
    assert -6 <= reading.familiarity <= 0
    assert reading.n_pieces >= 0
    assert not set(reading.unknown) & set(reading.spelled)


# -- configuration ------------------------------------------------------------------------------


def test_weights_are_part_of_a_configuration_and_of_its_id():
    assert Config.from_dict(CONFIG.to_dict()) == CONFIG
    before = replace(CONFIG, calibration=replace(CONFIG.calibration, query=None))
    assert "query" not in before.to_dict()["calibration"]
    assert before.config_id != CONFIG.config_id
    assert "newest_score" not in CONFIG.to_dict()
    assert replace(CONFIG, newest_score=0.4).config_id != CONFIG.config_id


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, "x", None, True])
def test_newest_score_is_a_score(value):
    with pytest.raises(InputError, match="newest_score must be"):
        Config(newest_score=value)


def test_weights_that_are_none_are_refused():
    curve = Curve(1, 0)
    values = Calibration(curve, curve, curve, "x", QueryWeights(1, 2, 3, "y")).to_dict()
    assert Calibration.from_dict(values).query == QueryWeights(1, 2, 3, "y")
    for wrong in ({"background": 1}, {**values["query"], "length": math.inf}, [], "x"):
        with pytest.raises(InputError):
            Calibration.from_dict(values | {"query": wrong})
    assert QueryWeights(1, 2, 3, "y").log_odds(QueryTraits(1, 10, 100)) == 321
