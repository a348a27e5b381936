"""What words add up to in one segment, by hand, for both ways of adding up."""

import numpy as np
import pytest

from searchlab.errors import DataError
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.words import segment
from searchlab.search.words.build import build_segment
from searchlab.search.words.fields import WEIGHTS, documents_of
from searchlab.search.words.languages import LANGUAGES
from searchlab.search.words.postings import PADDING, encode
from searchlab.search.words.segment import (
    ARRAYS,
    WHOLE_BITS,
    WHOLES,
    PostingLists,
    Segment,
    add_up,
)
from searchlab.search.words.terms import whole_of

TITLE, DESCRIPTION = 1, 2


TERMS = [[(0, 1), (1, 2), (3, 3)], [(1, 1), (2, 1)], [(0, 2), (2, 2), (4, 2)]]


class Words(Segment):
    """As much of a segment as is read: three terms in five documents."""

    path = None

    def __init__(self):
        counts = np.array([len(postings) for postings in TERMS])
        docs, fields = np.array([posting for postings in TERMS for posting in postings]).T
        parts = list(encode(counts, docs.astype(np.uint32), fields.astype(np.uint8)))
        self.arrays = {
            "post_starts": np.array([0, *np.cumsum(parts[0][1])], dtype=np.uint32),
            "post_bytes": np.concatenate([data for data, _ in parts]),
            "lengths": np.array([2, 4, 3, 2, 1, 5, 4, 8, 1, 1], dtype=np.uint8),
            "digests": np.zeros(5, dtype=np.uint64),
        }


# The second term is another form of the first word; the second word only adds to what has the
# first.
LISTS = PostingLists(
    terms=np.array([0, 1, 2]),
    words=np.array([0, 0, 1]),
    quality=np.array([1, 0.5, 1], dtype=np.float32),
    n_leading=1,
    n_most=5,
)
IDF = np.array([2, 3], dtype=np.float32)
COVERAGE = [
    2 * WEIGHTS[TITLE] + 3 * WEIGHTS[DESCRIPTION],
    2 * max(WEIGHTS[TITLE] * 0.5, WEIGHTS[DESCRIPTION]),
    2 * WEIGHTS[TITLE] * 0.5 + 3 * WEIGHTS[DESCRIPTION],
    2 * WEIGHTS[TITLE | DESCRIPTION],
]
PRECISION = [1 / 2, 1 / 2, 1.0, 1 / 4]


@pytest.fixture(params=["numpy", "kernel"])
def add(request, monkeypatch):
    monkeypatch.setattr(segment, "COMPILED_FROM", 0 if request.param == "kernel" else 1_000)

    def call(doc_rows=(), allowed=None, lists=LISTS):
        return add_up(Words(), lists, IDF, np.array(doc_rows, dtype=np.int32), allowed)

    return call


@pytest.mark.parametrize("harm", [("post_bytes", 1, 200), ("post_starts", 1, 2**31)])
def test_damage_is_refused_both_ways(monkeypatch, harm):
    name, place, value = harm
    for compiled_from in (0, 1_000):
        monkeypatch.setattr(segment, "COMPILED_FROM", compiled_from)
        words = Words()
        words.arrays[name][place] = value
        with pytest.raises(DataError, match="--rebuild"):
            add_up(words, LISTS, IDF, np.zeros(0, dtype=np.int32), None)


@pytest.fixture(scope="module")
def whole(make_table):
    table = make_table(
        {"title": "Two dogs in 1999", "source_description": "Dogs run over the beach"},
        {"title": "Harbour", "source_description": "Ships of 12 harbours"},
    )
    return build_segment(documents_of(table, ()))


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_of_another_type_is_refused_and_one_that_is_too_short(whole, name):
    Segment(whole.arrays, whole.terms)
    with pytest.raises(DataError, match=name):
        Segment({**whole.arrays, name: whole.arrays[name].astype(np.float32)}, whole.terms)
    if name != "languages":  # which are as many as the texts have
        with pytest.raises(DataError):
            Segment({**whole.arrays, name: whole.arrays[name][:-1]}, whole.terms)


def test_a_language_beyond_the_last_is_refused(whole):
    some = whole.arrays["languages"].copy()
    some[0] = len(LANGUAGES) - 1
    Segment({**whole.arrays, "languages": some}, whole.terms)
    some[0] = len(LANGUAGES)
    with pytest.raises(DataError, match="do not fit together"):
        Segment({**whole.arrays, "languages": some}, whole.terms)


def test_a_whole_text_of_a_document_that_is_not_there_is_refused_also_beside_one_that_is(
    make_table,
):
    twins = make_table({"title": "Harbour"}, {"title": "Harbour"})
    built = build_segment(documents_of(twins, ()))
    whole = whole_of(["harbour"])
    docs, _ = Segment(built.arrays, built.terms).wholes(whole)
    assert sorted(docs.tolist()) == [0, 1]
    later = built.arrays["whole_docs"].copy()
    later[later >> WHOLE_BITS == 1] += len(built) << WHOLE_BITS
    with pytest.raises(DataError, match="whole texts of its documents"):
        Segment({**built.arrays, "whole_docs": later}, built.terms).wholes(whole)


def test_a_field_that_no_whole_text_has_is_refused(whole):
    coded = whole.arrays["whole_docs"].copy()
    for field in range(len(WHOLES)):
        coded[:] = coded >> WHOLE_BITS << WHOLE_BITS | field
        Segment({**whole.arrays, "whole_docs": coded}, whole.terms).wholes(whole_of(["harbour"]))
    coded[:] = coded >> WHOLE_BITS << WHOLE_BITS | len(WHOLES)
    with pytest.raises(DataError, match="whole texts of its documents"):
        Segment({**whole.arrays, "whole_docs": coded}, whole.terms).wholes(whole_of(["harbour"]))


def test_a_form_beyond_the_last_term_is_refused_also_beside_one_that_is_there(whole):
    built = Segment(whole.arrays, whole.terms)
    one, other = (built.term(word) for word in ("harbour", "harbours"))
    assert built.forms("harbour") == sorted([one, other])
    forms = whole.arrays["stem_terms"].copy()
    forms[forms == max(one, other)] = len(whole.terms)
    with pytest.raises(DataError, match="terms that it has"):
        Segment({**whole.arrays, "stem_terms": forms}, whole.terms).forms("harbour")


def test_lists_may_reach_to_the_padding_behind_them_and_no_further(whole):
    starts = whole.arrays["post_starts"].copy()
    starts[-1] = len(whole.arrays["post_bytes"]) - PADDING
    Segment({**whole.arrays, "post_starts": starts}, whole.terms)
    starts[-1] += 1
    with pytest.raises(DataError, match="do not fit together"):
        Segment({**whole.arrays, "post_starts": starts}, whole.terms)


def check(matched, rows, docs):
    assert matched.rows.tolist() == rows
    np.testing.assert_allclose(matched.coverage, [COVERAGE[doc] for doc in docs], rtol=1e-6)
    np.testing.assert_allclose(matched.precision, [PRECISION[doc] for doc in docs], rtol=1e-6)


def test_words_add_up_by_their_best_form_and_field(add):
    check(add(), [0, 1, 2, 3], [0, 1, 2, 3])


def test_documents_are_found_at_the_rows_of_their_photos_unless_these_have_left(add):
    check(add([0, -1, 1, 2, 3]), [0, 1, 2], [0, 2, 3])
    check(add([-1, 0, 7, -1, 8]), [0, 7], [1, 2])


def test_only_rows_that_are_allowed_are_found(add):
    check(add(allowed=Bitmap.of_rows([0, 3, 4], 5)), [0, 3], [0, 3])
    check(add([-1, 0, 1, 2, 3], Bitmap.of_rows([0, 2], 4)), [0, 2], [1, 3])
    check(add(allowed=Bitmap.empty(5)), [], [])


def test_where_every_word_leads_one_of_them_is_enough(add):
    matched = add(lists=LISTS._replace(n_leading=2))
    assert matched.rows.tolist() == [0, 1, 2, 3, 4]
    assert matched.coverage[-1] == 3 * WEIGHTS[DESCRIPTION]


def test_a_field_that_is_not_read_is_not_there(add):
    matched = add(lists=LISTS._replace(read=TITLE))
    assert matched.rows.tolist() == [0, 1, 2, 3]
    weight = 2 * WEIGHTS[TITLE]
    np.testing.assert_allclose(matched.coverage, weight * np.array([1, 0.5, 0.5, 1]), rtol=1e-6)
