"""Folding of texts, and cutting of words into their most probable known pieces."""

import threading
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchlab.models.mini.artefacts import MINI_DATA
from searchlab.models.mini.pieces import LONGEST_PIECE, UNKNOWN, Pieces, fold

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


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("İnek", "inek"),
        ("كَلْبٌ", "كلب"),
        ("חָתוּל", "חתול"),
        ("x\N{COMBINING RING BELOW}box", "xbox"),
    ],
)
def test_marks_that_few_write_change_nothing(written, plain):
    pieces = Pieces.open(MINI_DATA)
    assert pieces.encode(written) == pieces.encode(plain)


def test_marks_that_pieces_have_stay():
    pieces = Pieces({"▁a\u05b7b": -3.0, "▁ab": -5.0, "c": -2.0})
    assert pieces.cut("▁a\u05b7bc") == ["▁a\u05b7b", "c"]


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


def plain_cut(scores, word):
    """The best cut, by a dictionary and every look-up, as the trie must find it."""
    if word in scores:
        return [word]
    best, back = [0.0] + [-1e30] * len(word), [0] * (len(word) + 1)
    for start in range(len(word)):
        for end in range(start + 1, min(len(word), start + LONGEST_PIECE) + 1):
            score = scores.get(word[start:end], UNKNOWN if end == start + 1 else None)
            if score is not None and best[start] + score > best[end]:
                best[end], back[end] = best[start] + score, start
    parts, end = [], len(word)
    while end:
        parts.append(word[back[end] : end])
        end = back[end]
    return [part for part in parts[::-1] if part in scores]


@given(
    st.dictionaries(
        st.text("▁abé犬", min_size=1, max_size=4),
        st.sampled_from([-2.0, -3.0, -3.5, -70.0]),
        min_size=1,
    ),
    st.lists(st.text("▁abéz犬", min_size=1, max_size=9), max_size=5),
)
def test_the_trie_cuts_as_a_dictionary_would(scores, words):
    pieces = Pieces(scores)
    assert len(pieces) == len(scores)
    for word in [*words, *scores]:
        assert pieces.cut(word) == plain_cut(scores, word)
        assert (word in pieces) == (word in scores)
    assert all(pieces.log_probability(piece) == score for piece, score in scores.items())


def test_the_longest_word_is_cut_in_pieces_that_are_not_too_long():
    scores = {"a" * n: -1.0 * n**0.5 for n in (1, LONGEST_PIECE, LONGEST_PIECE + 5)}
    word = "a" * 400
    assert Pieces(scores).cut(word) == plain_cut(scores, word) == ["a" * LONGEST_PIECE] * 20


def test_pieces_are_opened_as_they_were_saved(tmp_path):
    Pieces(SCORES).save(tmp_path)
    opened = Pieces.open(tmp_path)
    assert (tmp_path / "pieces.txt").read_text(encoding="utf-8").split("\n") == list(SCORES)
    assert opened.encode("AB, a c") == [0, 1, 5, 3]
    assert {piece: opened.log_probability(piece) for piece in SCORES} == SCORES
    again = tmp_path / "again"
    again.mkdir()
    opened.save(again)
    for file in tmp_path.glob("piece*"):
        assert (again / file.name).read_bytes() == file.read_bytes()


@pytest.mark.parametrize("name", ["pieces.trie", "pieces_rows.npy", "piece_scores.npy"])
def test_files_that_do_not_belong_together_are_refused(tmp_path, name):
    Pieces(SCORES).save(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    Pieces({"a": -1.0}).save(other)
    (tmp_path / name).write_bytes((other / name).read_bytes())
    with pytest.raises(ValueError, match="must hold as many pieces"):
        Pieces.open(tmp_path)


def test_what_is_no_trie_is_refused(tmp_path):
    Pieces(SCORES).save(tmp_path)
    (tmp_path / "pieces.trie").write_bytes(b"no trie")
    with pytest.raises(ValueError, match=r"pieces\.trie is no trie"):
        Pieces.open(tmp_path)


@pytest.mark.slow
def test_the_shipped_trie_is_made_of_the_shipped_pieces(tmp_path):
    names = (MINI_DATA / "pieces.txt").read_text(encoding="utf-8").split("\n")
    scores = np.load(MINI_DATA / "piece_scores.npy").astype(float).tolist()
    Pieces(dict(zip(names, scores, strict=True))).save(tmp_path)
    for file in tmp_path.iterdir():
        assert file.read_bytes() == (MINI_DATA / file.name).read_bytes(), file.name


def test_threads_may_cut_at_the_same_time():
    pieces, found = Pieces(SCORES), []
    threads = [
        threading.Thread(target=lambda: found.append([pieces.encode("AB, a c")] * 200))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[[0, 1, 5, 3]] * 200] * 8
