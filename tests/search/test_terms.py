"""Terms: texts are folded, cut into words, told by language, and compared up to one edit."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.search.words.terms import (
    LANGUAGES,
    fold,
    language_of,
    one_edit_apart,
    words_of,
    words_of_name,
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


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("a dog and a cat on the grass", "english"),
        ("ein Hund und eine Katze auf dem Gras", "german"),
        ("un chien et un chat dans l'herbe", "french"),
        ("un perro y un gato en la hierba", "spanish"),
        ("собака и кошка на траве", "russian"),
        ("σκύλος", "greek"),
        ("Windmills", None),
        ("0042", None),
    ],
)
def test_short_texts_tell_their_language(text, language):
    number = language_of(words_of(text))
    assert (None if number is None else LANGUAGES[number]) == language


@settings(max_examples=examples(300), deadline=None)
@given(word=st.text("abc", min_size=1, max_size=7), other=st.text("abc", min_size=1, max_size=7))
def test_one_edit_is_what_a_search_over_all_edits_says(word, other):
    edits = {word[:i] + word[i + 1 :] for i in range(len(word))}
    edits |= {word[:i] + c + word[i:] for i in range(len(word) + 1) for c in "abc"}
    edits |= {word[:i] + c + word[i + 1 :] for i in range(len(word)) for c in "abc"}
    edits |= {word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(len(word) - 1)}
    assert one_edit_apart(word, other) == (other in edits - {word})
