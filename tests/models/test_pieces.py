"""Folding of texts, and cutting of words into their most probable known pieces."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchlab.models.mini.text import UNKNOWN, Pieces, fold

SCORES = {"▁ab": -3.0, "▁a": -2.0, "b": -2.5, "c": -2.0, "bc": -3.0, "▁": -6.0, "cc": -9.0}


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("A Dog!", "a dog"),
        ("L’Écureuil", "l écureuil"),
        ("ＷＩＤＥ ﬁsh", "wide fish"),
        ("می‌شود", "می شود"),
        ("tele\u00advision", "television"),
        ("❤️", "❤"),
        ("a\x00b", "a b"),
        ("  \t\n ", ""),
    ],
)
def test_fold_keeps_what_carries_meaning(text, folded):
    assert fold(text) == folded


@given(st.text(max_size=40))
def test_fold_is_idempotent_and_spaces_are_single(text):
    folded = fold(text)
    assert fold(folded) == folded
    assert folded == " ".join(folded.split())


def test_a_known_word_is_one_piece():
    assert Pieces(SCORES).cut("▁ab") == ["▁ab"]


def test_characters_in_no_piece_are_left_out():
    assert Pieces(SCORES).cut("▁abzc") == ["▁ab", "c"]


def score(parts):
    return sum(SCORES.get(part, UNKNOWN if len(part) == 1 else -1e9) for part in parts)


@given(st.text(alphabet="abcx", min_size=1, max_size=6))
def test_the_cut_is_the_best_of_all_cuts(letters):
    word = "▁" + letters
    places = range(1, len(word))
    every = [
        [word[i:j] for i, j in zip((0, *inner), (*inner, len(word)), strict=True)]
        for n in range(len(word))
        for inner in combinations(places, n)
    ]
    parts = Pieces({**SCORES, **dict.fromkeys(set(word) - SCORES.keys(), UNKNOWN)}).cut(word)
    if word in SCORES:
        assert parts == [word]
    else:
        assert score(parts) == pytest.approx(max(map(score, every)))


def test_encode_gives_rows_in_reading_order():
    assert Pieces(SCORES).encode("AB, a c") == [0, 1, 5, 3]


def test_scripts_without_spaces_start_without_the_marker():
    assert Pieces({"松鼠": -5.0, "▁松鼠": -1.0}).encode("松鼠") == [0]
