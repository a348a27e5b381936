"""Columns of texts: any Unicode comes back, and what is none is refused."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from searchlab.errors import DataError, InputError
from searchlab.photos.columns import Texts, join_texts, open_columns, pack_texts, save_columns

UNICODE = st.text(st.characters(exclude_categories=["Cs"]))
HOSTILE = ["", "\0", "é", "e\u0301", "𝔄\U0010ffff", "\u202e\ufeff\ufffe", "a\r\n\u2028", "\x7f\x80"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "c.columns"


@settings(deadline=None)
@given(st.lists(UNICODE, max_size=12))
@example(HOSTILE)
@example([])
@example([""])
@example(["", "", ""])
def test_any_unicode_texts_come_back(tmp_path_factory, texts):
    packed = pack_texts(iter(texts))
    assert (packed.starts.dtype, packed.data.dtype) == (np.int64, np.uint8)
    assert packed.starts[0] == 0
    assert packed.data.tobytes() == "".join(texts).encode()
    path = tmp_path_factory.getbasetemp() / "texts.columns"
    save_columns(path, {"x.starts": packed.starts, "x.data": packed.data})
    opened = open_columns(path)
    mapped = Texts(opened["x.starts"], opened["x.data"])
    for one in (packed, mapped, opened.texts("x")):
        assert len(one) == len(texts)
        assert list(one) == texts
        assert [one[place] for place in range(len(texts))] == texts
        backwards = np.arange(len(texts))[::-1]
        assert one.at(backwards) == texts[::-1]


def test_texts_of_more_than_one_block_come_back_in_order(path):
    texts = [f"{number} é" * (number % 3) for number in range(10_000)]
    packed = pack_texts(texts)
    save_columns(path, {"x.starts": packed.starts, "x.data": packed.data})
    assert list(open_columns(path).texts("x")) == texts


@pytest.mark.parametrize("word", ["a", "é"])
def test_texts_near_each_other_and_far_apart_are_read_alike(path, word):
    long = word * 5_000
    texts = ["first", long, "", "ö", "last but one", "", long, word]
    packed = pack_texts(texts)
    save_columns(path, {"x.starts": packed.starts, "x.data": packed.data})
    for column in (packed, open_columns(path).texts("x")):
        for places in ([7, 0], [3, 4, 2], [4, 4], [2], [5, 2], [6, 1, 0, 7, 3], []):
            expected = [texts[place] for place in places]
            assert column.at(np.array(places, dtype=np.int64)) == expected


def test_a_text_is_read_from_the_file_that_was_opened_also_after_another_took_its_name(path):
    for word in ("before", "behind"):
        packed = pack_texts([word])
        path.unlink(missing_ok=True)
        save_columns(path, {"x.starts": packed.starts, "x.data": packed.data})
        if word == "before":
            texts = open_columns(path).texts("x")
    assert (texts[0], list(texts)) == ("before", ["before"])


def test_places_that_no_text_has_are_refused():
    for places in ([2], [-1], [0, 5]):
        with pytest.raises(IndexError):
            pack_texts(["a", "b"]).at(np.array(places))


@pytest.mark.parametrize("starts", [(0, 2**40, 1, 2), (0, -1, 1, 2), (0, 2, 1, 2)])
def test_texts_that_point_beyond_their_data_or_overlap_are_a_data_error(path, starts):
    starts = np.array(starts, dtype=np.int64)
    save_columns(path, {"x.starts": starts, "x.data": np.frombuffer(b"ab", np.uint8)})
    texts = open_columns(path).texts("x")
    with pytest.raises(DataError, match="--rebuild"):
        list(texts)
    with pytest.raises(DataError, match="--rebuild"):
        [texts[place] for place in range(3)]
    with pytest.raises(DataError, match="--rebuild"):
        texts.at(np.arange(3))


def test_a_text_that_is_no_utf8_is_a_data_error(path):
    starts = np.array([0, 1, 2], dtype=np.int64)
    save_columns(path, {"x.starts": starts, "x.data": np.frombuffer(b"a\xff", np.uint8)})
    texts = open_columns(path).texts("x")
    assert texts[0] == "a"
    with pytest.raises(DataError, match="must be UTF-8"):
        list(texts)
    with pytest.raises(DataError, match="must be UTF-8"):
        texts.at(np.arange(2))


@settings(deadline=None)
@given(st.lists(st.lists(UNICODE, max_size=4), max_size=6))
@example([])
@example([[]])
@example([[], ["", "a"], [], [], ["é", ""], []])
def test_joined_texts_are_the_texts_of_the_parts(parts):
    joined = join_texts([pack_texts(part) for part in parts])
    assert list(joined) == [text for part in parts for text in part]
    assert (joined.starts.dtype, joined.data.dtype) == (np.int64, np.uint8)
    assert len(joined.data) == joined.starts[-1]


def test_joining_leaves_the_parts_as_they_were():
    first, second = pack_texts(["a", "b"]), pack_texts(["c"])
    assert list(join_texts([first, second, first])) == ["a", "b", "c", "a", "b"]
    assert (list(first), list(second)) == (["a", "b"], ["c"])


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\ud83d\ude00"])
def test_lone_surrogates_are_refused(text):
    with pytest.raises(InputError, match=r"without lone surrogates, got .*\\ud"):
        pack_texts(["fine", text])


def test_a_refused_text_is_shown_at_a_readable_length():
    with pytest.raises(InputError) as caught:
        pack_texts(["\ud800" + "x" * 100_000])
    assert len(str(caught.value)) < 300


def test_rows_count_from_0_to_the_last():
    texts = pack_texts(["a", "b"])
    assert texts[np.int64(1)] == "b"
    with pytest.raises(IndexError):
        texts[2]


def test_a_row_from_the_end_is_the_one_that_python_means():
    texts = pack_texts(["a", "bc", "d"])
    assert [texts[-1], texts[-2], texts[-3]] == ["d", "bc", "a"]
    with pytest.raises(IndexError):
        texts[-4]


def test_importing_is_light():
    script = (
        "import sys, searchlab.photos.table\n"
        "print({'pyarrow', 'pandas', 'sklearn', 'scipy', 'onnxruntime'} & {*sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"
