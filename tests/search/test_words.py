"""The text index: what is written about photos, in many languages, filtered, saved and updated."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.errors import DataError, InputError
from searchlab.photos.table import PhotoTable
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.words import build as words_build
from searchlab.search.words import index as words_index
from searchlab.search.words import matches as words_matches
from searchlab.search.words import segment
from searchlab.search.words.fields import SHOWN_FIELDS
from searchlab.search.words.index import WordIndex
from searchlab.search.words.terms import terms_of, words_of
from tests.support.examples import examples

VOCABULARY = ("owl", "owls", "castle", "river", "Zürich", "the", "0042", "雪山", "собака", "sunset")


@pytest.fixture(scope="module")
def described(make_table):
    """Builds a table with a title, a tag line and a file name a photo, and its text index."""

    def build(*texts, **options):
        table = make_table(*({"source_description": "", "alt_description": ""} for _ in texts))
        rows = [table.row(row) | parts(text) for row, text in enumerate(texts)]
        table = PhotoTable.from_rows([rows])
        return table, WordIndex.build(table, **options)

    def parts(text):
        fields = {"title": text} if isinstance(text, str) else text
        return {"file": "", "folder": "", "photographer_full_name": "", **fields}

    return build


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
        ("L'église", "eglise"),
        ("Straße bei Nacht", "strasse"),
        ("\u00e9cole", "e\u0301cole"),
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
# Titles of one language: a word is stemmed in those of all texts that a segment has it from.
told = st.lists(st.sampled_from([word for word in VOCABULARY if word != "собака"]), max_size=6).map(
    " ".join
)
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
    assert index.match("elm street").describe() == "1 photos by words (elm 1; street 1)"
    assert index.match("elm street", read=SHOWN_FIELDS).describe() == (
        "0 photos by words (elm 0; street 0); read: title, description, photographer, source"
    )


@settings(max_examples=examples(60), deadline=None)
@given(texts=st.lists(titles, min_size=1, max_size=20), word=st.sampled_from(["river", "0042"]))
def test_a_word_without_forms_is_found_where_it_stands_and_nowhere_else(described, texts, word):
    _, index = described(*texts)
    there = [row for row, text in enumerate(texts) if re.search(rf"\b{word}\b", text)]
    assert rows_of(index, word) == there


# -- building ------------------------------------------------------------------------------------

mixed = st.lists(
    st.sampled_from(["owl", "the", "der", "Été12", "été12", "0042", "собака", "雪山2020", "IMG_7"]),
    max_size=6,
).map(" ".join)


@settings(max_examples=examples(60), deadline=None)
@given(
    photos=st.lists(
        st.fixed_dictionaries(dict.fromkeys(("title", "source_description", "tags"), mixed)),
        min_size=1,
        max_size=20,
    ),
    n_docs=st.integers(1, 5),
    n_words=st.integers(1, 30),
)
def test_blocks_of_any_size_build_the_same_segment(described, photos, n_docs, n_words):
    _, whole = described(*photos)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(words_build, "_DOCS_AT_ONCE", n_docs)
        patch.setattr(words_build, "_WORDS_AT_ONCE", n_words)
        _, parts = described(*photos)
    (one,), (other,) = whole.segments, parts.segments
    assert list(one.terms) == list(other.terms)
    for name, array in one.arrays.items():
        assert array.tolist() == other.arrays[name].tolist()


def test_more_words_than_a_segment_can_hold_are_refused(described, monkeypatch):
    monkeypatch.setattr(words_build, "_MOST_BYTES", 20)
    with pytest.raises(InputError, match="index fewer folders"):
        described("An owl on a castle by the river", "A castle")


# -- on disk, and from one state to the next ------------------------------------------------------


def check_equal(one, other, queries):
    for query in queries:
        ours, theirs = one.match(query), other.match(query)
        assert ours.rows.tolist() == theirs.rows.tolist()
        assert ours.coverage.tolist() == theirs.coverage.tolist()
        assert ours.precision.tolist() == theirs.precision.tolist()
        assert ours.whole.tolist() == theirs.whole.tolist()


def test_what_is_saved_is_opened_and_shared_by_link(described, tmp_path):
    table, index = described("An owl.", "A castle", "雪山 at sunset")
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    index.save(tmp_path / "one")
    opened = WordIndex.open(tmp_path / "one", len(table))
    check_equal(index, opened, ["owl", "castles", "雪山", "sunste"])
    same = WordIndex.build(table, before=opened)
    same.save(tmp_path / "two")
    files = [tmp_path / name / "words-0.columns" for name in ("one", "two")]
    assert files[0].samefile(files[1])


@settings(max_examples=examples(40), deadline=None)
@given(
    states=st.lists(
        st.dictionaries(st.integers(0, 30), told, min_size=1, max_size=25), min_size=2, max_size=5
    ),
)
def test_a_library_that_changed_answers_as_one_indexed_afresh(make_table, states, tmp_path_factory):
    index = None
    for state in states:
        plain = make_table(*({"source_description": ""} for _ in range(31)))
        rows = [plain.row(number) | {"title": title} for number, title in sorted(state.items())]
        table = PhotoTable.from_rows([rows])
        index = WordIndex.build(table, before=index)
        assert len(index.segments) <= 6
        folder = tmp_path_factory.mktemp("words")
        index.save(folder)
        index = WordIndex.open(folder, len(table))
        afresh = WordIndex.build(table)
        check_equal(index, afresh, ["river castle", "owl", "Zürich 0042", "雪山", "sunet"])


def test_many_small_changes_leave_few_segments(make_table):
    plain = make_table(*({} for _ in range(200)))
    index = None
    for count in range(100, 200):
        table = PhotoTable.from_rows([[plain.row(row) for row in range(count)]])
        index = WordIndex.build(table, before=index)
    assert len(index.segments) <= 8
    assert sum(len(segment) for segment in index.segments) == 199


@pytest.mark.parametrize("name", ["words.columns", "words-0.columns"])
@pytest.mark.parametrize("harm", ["gone", "cut", "foreign"])
def test_damage_is_told_with_its_remedy(described, tmp_path, name, harm):
    table, index = described("An owl.", "A castle")
    index.save(tmp_path)
    path = tmp_path / name
    if harm == "gone":
        path.unlink()
    elif harm == "cut":
        path.write_bytes(path.read_bytes()[:100])
    else:
        described("x", "y", "z")[1].save(tmp_path / "..")
        path.write_bytes((tmp_path / ".." / name).read_bytes())
    with pytest.raises(DataError, match=r"index (the photos )?again"):
        WordIndex.open(tmp_path, 1 if harm == "foreign" else len(table))
