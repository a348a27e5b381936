"""Terms: texts are folded, cut into words, compared up to one edit."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.search.words.terms import (
    fold,
    one_edit_apart,
    terms_of,
    words_of,
    words_of_name,
    words_of_query,
)
from tests.support.examples import examples


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Ångström Đorđe Łukasz Øyvind", "angstrom dorde lukasz oyvind"),
        ("Straße ÆTHER Œuvre Þór ışık İ", "strasse aether oeuvre thor isik i"),
        ("ﬁne ＦＵＬＬ ①", "fine full 1"),
        ("Σίσυφος ΣΊΣΥΦΟΣ", "σισυφοσ σισυφοσ"),
        ("Ёжик", "ежик"),
        ("مُحَمَّد", "محمد"),
        ("שָׁלוֹם", "שלום"),
        ("a\N{SOFT HYPHEN}b\N{ZERO WIDTH SPACE}c\N{RIGHT-TO-LEFT OVERRIDE}d", "abcd"),
        ("a\N{NO-BREAK SPACE}\t\n b", "a b"),
    ],
)
def test_case_accents_and_letters_without_a_decomposition_are_folded(text, folded):
    assert fold(text) == folded


def test_vowels_of_indic_scripts_are_no_accents():
    assert fold("की") != fold("कु")


@given(st.text(max_size=30))
def test_what_is_folded_folds_to_itself(text):
    assert fold(fold(text)) == fold(text)


def test_names_of_files_are_cut_at_capitals_and_digits():
    assert words_of_name("SunsetBeach_2023-IMG0042") == ["sunset", "beach", "2023", "img", "0042"]
    assert words_of("don't STOP") == ["don", "t", "stop"]
    assert words_of("x" * 100) == []


@pytest.mark.parametrize("length", [64, 65, 127, 128, 300])
def test_a_long_run_without_spaces_keeps_every_pair_of_its_characters(length):
    run = "".join(chr(0x4E00 + number) for number in range(length))
    words = words_of(f"日 {run}")
    assert max(map(len, words)) <= 64
    pairs = {term.term for word in words[1:] for term in terms_of(word, asked=True)}
    assert pairs == {run[i : i + 2] for i in range(length - 1)}
    assert words_of(f"{'x' * 65}{run}") == words[1:]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Sonnen\u00adblume", ["sonnenblume"]),
        ("sun\u2060flower", ["sunflower"]),
        ("كـــتاب", ["كتاب"]),
        ("ශ්\u200dරී", ["ශ්රී"]),
        ("می\u200cخواهم", ["می", "خواهم"]),
        ("İnek İÇİN", ["inek", "için"]),
    ],
)
def test_what_cannot_be_seen_within_a_word_does_not_cut_it(text, words):
    assert words_of(text) == words


def test_letters_beside_an_unspaced_script_are_a_word_of_their_own():
    spelled = [term for term in terms_of("canon相机") if term.spelled]
    assert spelled == [*terms_of("canon")]


@pytest.mark.parametrize(
    ("query", "written", "words"),
    [
        ("DSC01234", {"dsc", "01234"}, ["dsc", "01234"]),
        ("DSC01234", {"dsc01234", "dsc", "01234"}, ["dsc01234"]),
        ("DSC01234", {"dsc"}, ["dsc01234"]),
        ("SunsetBeach.JPG today", {"sunset", "beach"}, ["sunset", "beach", "today"]),
        ("a jpg", set(), ["a", "jpg"]),
        ("St.Jpgs", set(), ["st", "jpgs"]),
    ],
)
def test_a_name_is_read_as_its_parts_where_nobody_wrote_it_otherwise(query, written, words):
    assert words_of_query(query, written.__contains__) == words


@settings(max_examples=examples(300), deadline=None)
@given(word=st.text("abc", min_size=1, max_size=7), other=st.text("abc", min_size=1, max_size=7))
def test_one_edit_is_what_a_search_over_all_edits_says(word, other):
    edits = {word[:i] + word[i + 1 :] for i in range(len(word))}
    edits |= {word[:i] + c + word[i:] for i in range(len(word) + 1) for c in "abc"}
    edits |= {word[:i] + c + word[i + 1 :] for i in range(len(word)) for c in "abc"}
    edits |= {word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(len(word) - 1)}
    assert one_edit_apart(word, other) == (other in edits - {word})
