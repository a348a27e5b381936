"""The text index as it is built, saved and brought up to date."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.errors import DataError, InputError
from searchlab.photos.table import PhotoTable
from searchlab.search.words import build as words_build
from searchlab.search.words import fields as words_fields
from searchlab.search.words import index as words_index
from searchlab.search.words.index import WordIndex
from tests.support.examples import examples

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


# Titles of one language: a word is stemmed in those of all texts that a segment has it from.
told = st.lists(
    st.sampled_from(("owl", "owls", "castle", "river", "Zürich", "the", "0042", "雪山", "sunset")),
    max_size=6,
).map(" ".join)


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


@pytest.mark.slow
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


def test_rules_of_another_kind_keep_no_segment(described, monkeypatch):
    table, before = described("owl", "castle")
    assert WordIndex.build(table, before=before).segments == before.segments
    monkeypatch.setattr(words_fields, "RULES", -1)
    assert WordIndex.build(table, before=before).segments != before.segments


@pytest.mark.parametrize("names", [("cao_01", "zzz"), ("zzz", "cao_01")])
@pytest.mark.parametrize(
    ("title", "plain", "query"),
    [
        ("Um cão na praia com uma menina", "cao_01", "cães"),
        ("Ein Bär und eine Frau auf dem Eis", "bar_01", "Bären"),
    ],
)
def test_every_spelling_of_a_term_has_its_stem(described, names, title, plain, query):
    """Whichever is met first: a file name without accents takes no photo its forms."""
    files = [{"title": "", "file": f"{name.replace('cao_01', plain)}.jpg"} for name in names]
    _, index = described(files[0], title, files[1])
    assert 1 in index.match(query).rows


@pytest.mark.parametrize(
    ("before", "after", "query"),
    [
        ("Eileen Colins", "Eileen Collins", "colins"),
        ("Martine divorce", "A divorce", "martino"),
    ],
)
def test_words_of_photos_that_left_are_no_words(described, before, after, query):
    others = ["Martins farm", *("River and lake" for _ in range(9))]
    _, old = described(before, *others)
    table, afresh = described(after, *others)
    grown = WordIndex.build(table, before=old)
    assert len(grown.segments) == 2
    ours, theirs = grown.match(query), afresh.match(query)
    assert (ours.read_as, ours.counts) == (theirs.read_as, theirs.counts)
    check_equal(grown, afresh, [query])


@pytest.mark.parametrize("limit", [0, 10**6])
def test_photos_of_a_word_are_counted_once_however_many_they_are(described, monkeypatch, limit):
    monkeypatch.setattr(words_index, "_MARKED_FROM", limit)
    texts = ["castle castles"] * 30 + ["river"] * 11
    table, index = described(*texts)
    assert index.match("castle river").counts == {"castle": 30, "river": 11}
    fewer = PhotoTable.from_rows([[table.row(row) for row in range(12, 41)]])
    grown = WordIndex.build(fewer, before=index)
    assert len(grown.segments) == 1
    assert grown.match("castle river").counts == {"castle": 18, "river": 11}


def test_a_library_without_photos_keeps_no_segment(described):
    _, index = described("owl")
    assert WordIndex.build(PhotoTable.from_rows([]), before=index).segments == []


@pytest.mark.slow
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
