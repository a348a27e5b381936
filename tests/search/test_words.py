"""The text index: what is written about photos, in many languages, and filtered."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.words import index as words_index
from searchlab.search.words import matches as words_matches
from searchlab.search.words import segment
from searchlab.search.words.fields import SHOWN_FIELDS
from searchlab.search.words.languages import LANGUAGES, content_words, language_of
from searchlab.search.words.terms import terms_of, words_of
from tests.support.examples import examples

VOCABULARY = ("owl", "owls", "castle", "river", "Zürich", "the", "0042", "雪山", "собака", "sunset")


def rows_of(index, text, allowed=None):
    return index.match(text, allowed).rows.tolist()


# -- words --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("title", "query"),
    [
        ("Châteaux de la Loire", "chateau"),
        ("CHÂTEAU", "château"),
        ("Running dogs in the snow", "dog"),
        ("Der Hund läuft durch die Felder", "Feld"),
        ("Los perros corren por la playa", "perro"),
        ("Собаки бегут по снегу", "собака"),
        ("البيوت في المدينة", "مدينة"),
        ("कुत्ता घास में है", "कुत्ता"),
        ("一只猫头鹰站在树枝上", "猫头鹰"),
        ("一只狗", "狗"),
        ("夕焼けの海", "夕焼け"),
        ("สุนัขวิ่งบนชายหาด", "สุนัข"),
        ("강아지가 달린다", "강아지"),
        ("O’Neil’s boat", "oneil's boat"),
        ("Eileen Collins", "eileen colins"),
        ("Windmills", "windmlils"),
        ("समुद्र तट", "समुद्ग"),
        ("পাহাড়ি পথ", "পাহাড়া"),
        ("L'église", "eglise"),
        ("Straße bei Nacht", "strasse"),
        ("\u00e9cole", "e\u0301cole"),
        ("İstanbul", "istanbul"),
        ("สุนัข" * 30 + "ชายหาด", "ชายหาด"),
    ],
)
def test_a_query_finds_a_title_in_other_forms(described, title, query):
    _, index = described(title, "unrelated")
    assert rows_of(index, query) == [0]


@pytest.mark.parametrize(
    ("title", "query"),
    [
        ("IMG 0042", "0043"),
        ("Room 10045", "10046"),
        ("cat", "cut"),
        ("rose", "nose"),
        ("Collins", "colxxns"),
        ("owl", "bowls"),
        ("India Gate", "gato"),
    ],
)
def test_numbers_short_words_and_two_mistakes_are_not_forgiven(described, title, query):
    _, index = described(title)
    assert rows_of(index, query) == []


def test_a_word_that_stands_there_is_not_read_as_its_neighbour(described):
    _, index = described("house", "mouse", "horse")
    assert rows_of(index, "house") == [0]
    match = index.match("hause")
    assert match.rows.tolist() == [0]
    assert match.read_as == {"hause": ["house"]}
    assert "hause read as house" in match.describe()


def test_a_known_word_is_no_typing_error(described):
    _, index = described("Linda and a house", "Linna castle")
    assert rows_of(index, "lindda hause") == [0]
    known = index.match("lindda hause", known=frozenset({"lindda"}))
    assert known.read_as == {"hause": ["house"]}
    assert index.match("hause", known=frozenset({"hause"})).rows.tolist() == []
    assert rows_of(index, "hause") == [0]  # of another model
    assert index.match("linna", known=frozenset({"linna"})).rows.tolist() == [1]
    assert index.match("house", known=frozenset({"house"})).rows.tolist() == [0]


def test_words_are_found_in_every_field_and_count_by_where_they_stand(described):
    places = ["title", "source_description", "tags", "file", "photographer_full_name", "place"]
    texts = [{place: "Heron.jpg" if place == "file" else "Heron"} for place in places]
    texts.append({"folder": "Heron"})
    _, index = described(*texts, "nothing")
    match = index.match("heron")
    assert match.rows.tolist() == list(range(7))
    assert match.coverage.tolist() == sorted(match.coverage.tolist(), reverse=True)
    assert match.whole.tolist() == [True, True, False, True, False, False, False]


def test_generated_descriptions_are_not_what_somebody_wrote(described):
    _, index = described({"alt_description": "Photo of a kite, mostly red (generated)."}, "kite")
    assert rows_of(index, "kite") == [1]


def test_withheld_texts_are_not_read_nor_is_what_often_says_the_same(described):
    _, index = described(
        {
            "title": "Heron",
            "file": "heron.jpg",
            "folder": "heron",
            "tags": "heron",
            "place": "Heron",
        },
        withheld={"title"},
    )
    assert len(index.match("heron")) == 0


@pytest.mark.parametrize("query", ["DSC01234", "dsc01234", "DSC01234.jpg", "DSC 01234"])
def test_a_file_is_found_by_its_name_as_it_stands(described, query):
    _, index = described(
        {"file": "2024/DSC01234.jpg"}, {"file": "2024/DSC01235.jpg"}, {"title": "01234"}
    )
    matches = index.match(query)
    assert matches.rows[matches.whole].tolist() == [0]
    assert matches.coverage.argmax() == 0


def test_a_title_that_is_a_file_name_is_found_as_a_whole(described):
    _, index = described({"title": "Lake.jpg"}, "Lake")
    matches = index.match("lake.jpg")
    assert matches.whole.tolist() == [True, True]


def test_the_file_of_a_photo_is_found_beside_a_title_that_is_the_name_of_another(described):
    _, index = described({"title": "P1010042"}, {"file": "P1010042.jpg"})
    for query in ("P1010042", "p1010042", "P1010042.jpg"):
        assert index.match(query).whole.tolist() == [True, True], query


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("WhatsApp Images", "whatsapp"),
        ("GoPro_001", "gopro"),
        ("McDonald wedding", "mcdonald"),
        ("Отпуск2023", "отпуск"),
        ("Отпуск2023", "отпуск 2023"),
        ("E\u0301te\u03012023", "été"),
        ("ΚαλοκαίριΘάλασσα2021", "θάλασσα"),
    ],
)
def test_a_name_is_found_by_its_parts_and_without_its_capitals(described, name, query):
    _, index = described({"folder": name}, {"file": f"{name}.jpg"}, "a lake", {"title": "2023"})
    assert index.match(query).coverage[:2] == pytest.approx([0.6, 0.8])  # all words, by field
    assert index.match(query).rows[:2].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("query", "language"),
    [
        ("red door", None),
        ("red van", None),
        ("mint leaves", None),
        ("father son", None),
        ("ten apples", None),
        ("de hond en de kat van mijn oma", "dutch"),
        ("een hond door het raam", "dutch"),
    ],
)
def test_an_english_noun_tells_of_no_other_language_alone(query, language):
    told = language_of(words_of(query))
    assert (None if told is None else LANGUAGES[told]) == language
    content = {word.text for word in content_words(words_of(query))}
    assert content.isdisjoint({"van", "door"}) if language else content == {*query.split()}


def test_a_title_with_an_english_noun_is_read_as_english(described):
    _, index = described(
        "Red door", "Red rose in the garden", "The oak", "Two blue doors of a barn"
    )
    matches = index.match("red doors")
    assert matches.rows[matches.coverage.argmax()] == 0
    assert matches.coverage.max() == pytest.approx(1, abs=0.2)


def test_apostrophes_that_are_letters_part_words_as_others_do(described):
    titles = ("Oʻzbekiston", "Кам\u02bcянець", "Кам’янець")
    _, index = described(*titles)
    assert rows_of(index, "o'zbekiston") == [0]
    assert rows_of(index, "кам'янець") == [1, 2]


def test_a_photo_id_as_a_file_name_is_no_words(described):
    _, index = described(
        {"title": "", "file": "0003aa71-2bd2-5370-a700-9b9f528a4a5b.jpg"}, "3 owls"
    )
    assert rows_of(index, "3") == [1]
    assert rows_of(index, "2 bd") == []


def test_the_whole_title_and_rare_words_come_first(described):
    _, index = described("An owl.", "An owl on a castle", "A castle", "A castle", "The owl and me")
    match = index.match("an owl")
    assert match.rows.tolist() == [0, 1, 4]
    assert match.whole.tolist() == [True, False, False]
    assert match.precision.tolist() == pytest.approx([1, 0.5, 0.5])
    both = index.match("owl castle")
    best = both.rows[np.argmax(both.coverage)]
    assert (best, both.coverage.max()) == (1, pytest.approx(1))


@pytest.mark.parametrize(
    "text", ["", "   ", "!!!", "\u0301", "🦉", "the of and", "a" * 500, "一" * 500]
)
def test_no_query_is_too_odd(described, text):
    _, index = described("An owl.", "the of and")
    match = index.match(text)
    assert (match.coverage >= 0).all()
    assert (match.coverage <= 1).all()
    assert isinstance(match.describe(), str)


@settings(max_examples=examples(200), deadline=None)
@given(text=st.text(max_size=60))
def test_any_text_finds_itself(described, text):
    if not any(terms_of(word) for word in words_of(text)):
        return
    _, index = described({"title": text}, "something else")
    match = index.match(text)
    assert 0 in match.rows
    assert match.whole[match.rows == 0].all()


def test_what_was_found_is_kept_within_bounds_and_for_the_fields_that_were_read(
    described, monkeypatch
):
    _, index = described(*["owl"] * 5, {"title": "x", "place": "owl"})
    first = index.match("owl")
    assert index.match("owl") is first
    assert len(index.match("owl", read=SHOWN_FIELDS)) == 5
    monkeypatch.setattr(words_matches, "_MOST_PHOTOS", 11)
    assert index.match("x").rows.tolist() == [5]  # the twelfth photo that is kept
    assert index.match("owl") is not first
    assert index.match("owl").rows.tolist() == first.rows.tolist()
    monkeypatch.setattr(words_matches, "_MOST_PHOTOS", 3)
    index.found_before.forget()
    assert index.match("owl") is not index.match("owl")


# -- filters, and both ways of adding up ----------------------------------------------------------

titles = st.lists(st.sampled_from(VOCABULARY), max_size=6).map(" ".join)
english = st.lists(st.sampled_from([*VOCABULARY[:4], "0042", "sunset"]), max_size=4).map(" ".join)


@settings(max_examples=examples(60), deadline=None)
@given(texts=st.lists(titles, min_size=1, max_size=40), query=titles, data=st.data())
def test_filters_hold_inside_and_both_ways_of_adding_up_agree(described, texts, query, data):
    table, index = described(*texts)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(table), max_size=len(table))))
    allowed = Bitmap.of_mask(mask)
    whole, part = index.match(query), index.match(query, allowed)
    inside = mask[whole.rows]
    assert part.rows.tolist() == whole.rows[inside].tolist()
    assert part.coverage.tolist() == whole.coverage[inside].tolist()
    assert part.whole.tolist() == whole.whole[inside].tolist()
    assert part.precision.tolist() == whole.precision[inside].tolist()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(words_index, "_FILTERED_AFTER", -1)
        index.found_before.forget()
        within = index.match(query, allowed)
        patch.setattr(segment, "COMPILED_FROM", 0)
        index.found_before.forget()
        compiled = index.match(query, allowed)
    assert within.rows.tolist() == part.rows.tolist()
    assert within.coverage.tolist() == part.coverage.tolist()
    assert within.precision.tolist() == part.precision.tolist()
    assert within.whole.tolist() == part.whole.tolist()
    assert within.describe() == part.describe()
    assert compiled.rows.tolist() == part.rows.tolist()
    assert compiled.coverage.tolist() == pytest.approx(part.coverage.tolist(), abs=1e-6)
    assert compiled.precision.tolist() == pytest.approx(part.precision.tolist(), abs=1e-6)


@pytest.mark.parametrize("compiled_from", [0, 1_000_000])
def test_a_word_of_most_photos_finds_none_of_its_own_beside_a_rare_one(
    described, monkeypatch, compiled_from
):
    monkeypatch.setattr(segment, "COMPILED_FROM", compiled_from)
    monkeypatch.setattr(words_index, "_COMMON_FROM", 5)  # of few photos none is common
    _, index = described(*["river"] * 30, "castle", "castle river", *["meadow"] * 3)
    assert sorted(rows_of(index, "river castle")) == [30, 31]
    assert len(rows_of(index, "river")) == 31


@settings(max_examples=examples(60), deadline=None)
@given(
    photos=st.lists(
        st.fixed_dictionaries(
            dict.fromkeys(("title", "source_description", "tags", "file", "place"), english)
        ),
        min_size=1,
        max_size=20,
    ),
    query=english | st.just("sunste"),
    kernel=st.booleans(),
)
def test_fields_that_are_not_read_change_nothing(described, photos, query, kernel):
    _, index = described(*photos)
    bare = [photo | {"tags": "", "file": "", "place": ""} for photo in photos]
    _, without = described(*bare)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment, "COMPILED_FROM", 0 if kernel else 1_000)
        shown, expected = index.match(query, read=SHOWN_FIELDS), without.match(query)
    assert shown.rows.tolist() == expected.rows.tolist()
    assert shown.coverage.tolist() == expected.coverage.tolist()
    assert shown.precision.tolist() == expected.precision.tolist()
    assert shown.whole.tolist() == expected.whole.tolist()
    assert (shown.counts, shown.read_as) == (expected.counts, expected.read_as)


def test_a_match_says_which_fields_were_read(described):
    _, index = described({"title": "", "place": "Elm Street 5"})
    assert index.match("elm street").describe() == "1 photo by words (elm 1; street 1)"
    assert index.match("elm street", read=SHOWN_FIELDS).describe() == (
        "0 photos by words (elm 0; street 0); read: title, description, photographer, source"
    )


@settings(max_examples=examples(60), deadline=None)
@given(texts=st.lists(titles, min_size=1, max_size=20), word=st.sampled_from(["river", "0042"]))
def test_a_word_without_forms_is_found_where_it_stands_and_nowhere_else(described, texts, word):
    _, index = described(*texts)
    there = [row for row, text in enumerate(texts) if re.search(rf"\b{word}\b", text)]
    assert rows_of(index, word) == there
