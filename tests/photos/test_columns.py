"""Columns on disk: what is written comes back, and what was not written here is refused."""

import contextlib
import json
import mmap
import os
import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from searchlab.errors import DataError, InputError
from searchlab.photos.columns import open_columns, save_columns
from tests.support.examples import examples

DTYPES = ("u1", "<u4", "<u8", "<i4", "<i8", "<f4")
REFUSED = r"c\.columns must hold columns, got: .*; index again with .* --rebuild`"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "c.columns"


def check_round_trip(path, arrays):
    """Save and open arrays, and compare."""
    save_columns(path, arrays)
    columns = open_columns(path)
    assert list(columns) == list(arrays)
    for name, array in arrays.items():
        assert columns[name].dtype == array.dtype.newbyteorder("=")
        np.testing.assert_array_equal(columns[name], array)
    return columns


@pytest.fixture
def same(path):
    return lambda arrays: check_round_trip(path, arrays)


@pytest.fixture
def forge(path):
    """Write a file with any header before four kilobytes of zeros."""

    def write(header, *, magic=b"SLCOLS01", length=None, room=None):
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        length = len(text) if length is None else length
        room = 4096 - (16 + len(text)) % 64 if room is None else room
        path.write_bytes(magic + length.to_bytes(8, "little") + text + bytes(room))
        return path

    return write


def read_header(path):
    content = path.read_bytes()
    return json.loads(content[16 : 16 + int.from_bytes(content[8:16], "little")])


# -- round trips ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [0, 1, 2, 7, 63, 64, 65, 1000])
def test_every_dtype_comes_back_with_its_ends(same, dtype, length):
    limits = np.finfo(dtype) if np.dtype(dtype).kind == "f" else np.iinfo(dtype)
    values = np.resize(np.array([limits.min, limits.max, 0, 1], dtype=dtype), length)
    same({"before": values, "empty": values[:0], "after": values[::-1]})


@settings(max_examples=examples(60), deadline=None)
@given(
    st.dictionaries(
        st.text(max_size=8),
        st.sampled_from([*DTYPES, ">u4", ">i4", ">i8"]).flatmap(
            lambda dtype: hnp.arrays(dtype, st.integers(0, 40))
        ),
        max_size=6,
    )
)
@example({})
@example({"\ud800": np.zeros(1, "u1"), '"}\n': np.zeros(0, "<i8"), "": np.ones(2, "<i4")})
def test_any_arrays_come_back_under_their_names(tmp_path_factory, arrays):
    check_round_trip(tmp_path_factory.getbasetemp() / "any.columns", arrays)


def test_big_endian_numbers_keep_their_values_and_are_stored_little_endian(same, path):
    columns = same({"x": np.array([1, 2**31 - 1, -2], dtype=">i4")})
    assert columns["x"].tolist() == [1, 2**31 - 1, -2]
    assert path.read_bytes().find(bytes.fromhex("01000000 ffffff7f feffffff")) % 64 == 0


def test_arrays_that_are_not_contiguous_come_back(same):
    numbers = np.arange(40)
    same(
        {
            "backwards": numbers[::-1],
            "every third": numbers[::3],
            "column": np.eye(9, 3, dtype="i4")[:, 1],
        }
    )


def test_no_columns_at_all_come_back(same):
    same({})


def test_many_columns_come_back(same):
    same({f"column {number}": np.full(number % 5, number) for number in range(2_000)})


@pytest.mark.parametrize("size", [1, 63, 64, 65, 127])
def test_every_array_lies_at_a_multiple_of_64_bytes_and_none_on_another(same, path, size):
    arrays = {name: np.full(size, place, dtype="u1") for place, name in enumerate("abcdef")}
    columns = same(arrays)
    offsets = [where["offset"] for where in read_header(path).values()]
    assert [offset % 64 for offset in offsets] == [0] * 6
    assert min(np.diff(offsets)) >= size
    assert offsets[0] >= 16 + int.from_bytes(path.read_bytes()[8:16], "little")
    assert all(array.ctypes.data % 64 == 0 for array in columns.values())


@pytest.mark.parametrize("size", range(0, 130, 3))
def test_a_header_of_any_length_has_room_for_its_offsets(same, size):
    same({"n" * size: np.arange(3), "m": np.arange(5, dtype="u1")})


def test_offsets_of_more_digits_than_the_first_fit_the_header(same, path):
    same(
        {f"{place}": np.zeros(10**place, dtype="u1") for place in range(8)} | {"end": np.arange(4)}
    )
    digits = {len(str(where["offset"])) for where in read_header(path).values()}
    assert digits == {3, 4, 5, 6, 7, 8} or digits == {4, 5, 6, 7, 8}


def test_the_same_arrays_make_the_same_bytes(path):
    arrays = {"x": np.arange(9), "y": np.arange(5, dtype=np.uint8)}
    save_columns(path, arrays)
    first = path.read_bytes()
    save_columns(path, {name: array.copy() for name, array in arrays.items()})
    assert path.read_bytes() == first


def test_a_longer_file_is_replaced_as_a_whole(same):
    same({"x": np.arange(10_000)})
    same({"y": np.arange(2)})


@pytest.mark.parametrize("dtype", ["f8", "?", "i2", "u2", "i1", "S3", "M8[D]", "O", "c8"])
def test_other_dtypes_are_refused_before_anything_is_written(path, dtype):
    with pytest.raises(InputError, match="'x'"):
        save_columns(path, {"x": np.zeros(2, dtype=dtype)})
    assert not path.exists()


def test_arrays_of_more_dimensions_are_refused_before_anything_is_written(path):
    with pytest.raises(InputError, match="'x'"):
        save_columns(path, {"x": np.zeros((2, 3), dtype=np.int64)})
    assert not path.exists()


# -- the memory map ---------------------------------------------------------------------------


def test_arrays_are_views_of_a_memory_map_that_cannot_be_written(same):
    for array in same({"x": np.arange(5), "e": np.zeros(0, "i4")}).values():
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 1
        owner = array
        while isinstance(owner, np.ndarray):
            assert type(owner) in (np.ndarray, np.memmap)
            owner = owner.base
        assert isinstance(owner, mmap.mmap)


def test_a_large_file_is_opened_without_being_read(path):
    # Sixteen gigabytes of nothing, on a file system that stores no zeros.
    save_columns(path, {"x": np.zeros(8, dtype=np.uint8)})
    length = int.from_bytes(path.read_bytes()[8:16], "little")
    header = read_header(path)
    header["x"]["length"] = 2**34
    text = json.dumps(header).encode().ljust(length)
    assert len(text) == length
    with path.open("r+b") as file:
        file.seek(16)
        file.write(text)
        file.truncate(header["x"]["offset"] + 2**34)
    assert len(open_columns(path)["x"]) == 2**34


@pytest.mark.skipif(sys.platform == "win32", reason="a mapped file cannot be removed there")
def test_an_open_file_may_be_removed(same, path):
    columns = same({"x": np.arange(100_000)})
    path.unlink()
    assert columns["x"][-1] == 99_999


# -- damaged files ----------------------------------------------------------------------------


def test_a_file_cut_anywhere_before_the_end_of_its_arrays_is_refused(path):
    save_columns(path, {"x": np.arange(3), "y": np.arange(70, dtype="u1"), "z": np.zeros(0, "i4")})
    whole = path.read_bytes()
    where = read_header(path)["z"]["offset"]
    assert where == len(whole)
    for size in range(where):
        path.write_bytes(whole[:size])
        with pytest.raises(DataError, match=REFUSED):
            open_columns(path)


def test_a_file_without_all_of_its_last_zeros_is_refused(path):
    save_columns(path, {"x": np.arange(3)})
    whole = path.read_bytes()
    assert whole.endswith(bytes(40))
    for missing in (1, 39, 40):
        path.write_bytes(whole[:-missing])
        with pytest.raises(DataError, match=REFUSED):
            open_columns(path)


@pytest.mark.slow
def test_a_flipped_bit_in_the_header_is_refused_or_gives_columns(path):
    save_columns(path, {"x": np.arange(3), "y": np.arange(70, dtype="u1")})
    whole = path.read_bytes()
    for place in range(read_header(path)["x"]["offset"]):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[place] ^= 1 << bit
            path.write_bytes(damaged)
            with contextlib.suppress(DataError):  # and nothing else
                assert all(array.ndim == 1 for array in open_columns(path).values())


@pytest.mark.parametrize(
    "magic", [b"SLCOLS02", b"slcols01", b"ARROW1\0\0", b"\x93NUMPY\x01\0", bytes(8), b"\n\r;'\"{}%"]
)
def test_a_file_of_another_kind_is_refused(forge, magic):
    with pytest.raises(DataError, match=REFUSED):
        open_columns(forge({}, magic=magic))


@pytest.mark.parametrize("content", [b"", b"S", b"SLCOLS01", b"SLCOLS01" + bytes(7)])
def test_a_file_that_is_too_short_is_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(DataError, match="it is too short"):
        open_columns(path)


@pytest.mark.parametrize("length", [0, 1, 10, 2**31, 2**63 - 16, 2**63 - 1, 2**63, 2**64 - 1])
def test_a_wrong_length_of_the_header_is_refused(forge, length):
    header = {"x": {"dtype": "|u1", "length": 1, "offset": 64}}
    with pytest.raises(DataError, match=REFUSED):
        open_columns(forge(header, length=length))


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"{",
        b"\xff\xfe\x00",
        b"\x00" * 40,
        b"null",
        b"3",
        b"[]",
        b'"x"',
        b'{"x": null}',
        b'{"x": []}',
        b'{"x": {}}',
        b'{"x": "dtype"}',
        b'{"x": {"dtype": "|u1", "length": 1}}',
        b'{"x": {"dtype": "|u1", "length": 1, "offset": 64, "more": 1}}',
        b'{"x": {"dtype": "|u1", "length": 1, "offset": 64, "whole": 1}}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"x": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        b'{"x": {"dtype": "|u1", "length": ' + b"9" * 5_000 + b', "offset": 64}}',
    ],
    ids=lambda header: header[:40].decode("ascii", "replace"),
)
def test_a_header_that_is_none_is_refused(forge, header):
    with pytest.raises(DataError, match=r"c\.columns must hold columns"):
        open_columns(forge(header))


HUGE = 10**4_000


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("offset", [-64, -1, 1, 63, 65, 2**20, 2**62, 2**63, 2**64, 2**80, -(2**63), HUGE, -HUGE]),
        ("length", [-1, -8, 10**4, 2**60, 2**61, 2**63, 2**64, 2**80, -(2**64), HUGE, -HUGE]),
        ("dtype", ["<f8", "|O", "O", ">i8", "<i2", "|u1,|u1", "", "u1", "i8", "|V8", "<i8\0"]),
    ],
)
def test_numbers_and_dtypes_out_of_bounds_are_refused(forge, field, values):
    good = {"dtype": "<i8", "length": 8, "offset": 256}
    assert len(open_columns(forge({"x": good}))["x"]) == 8
    for value in [*values, None, "8", [8], {}, 64.5, float("nan"), float("inf"), -float("inf")]:
        with pytest.raises(DataError, match=REFUSED):
            open_columns(forge({"x": good | {field: value}}))


def test_an_array_may_end_with_the_file_and_not_one_byte_later(forge):
    header = {"x": {"dtype": "<i8", "length": 8, "offset": 64}}
    size = 16 + len(json.dumps(header))
    assert size <= 128
    assert len(open_columns(forge(header, room=128 - size))["x"]) == 8
    with pytest.raises(DataError, match="it is cut short"):
        open_columns(forge(header, room=127 - size))


@settings(max_examples=examples(150), deadline=None)
@given(st.binary(max_size=300))
@example(b"SLCOLS01" + (2).to_bytes(8, "little") + b"[]")
def test_any_other_bytes_are_refused_and_nothing_else_is_raised(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "c.columns"
    path.write_bytes(b"SLCOLS01" + content)
    with pytest.raises(DataError, match=r"c\.columns must hold columns"):
        open_columns(path)


def test_a_folder_a_missing_file_and_one_that_never_was_a_name_are_refused(path):
    with pytest.raises(DataError, match=REFUSED):
        open_columns(path)
    with pytest.raises(DataError, match=r"deeper must hold columns"):
        open_columns(path / "deeper")
    path.mkdir()
    for number in range(40):  # so that a folder's own size is past the shortest file's
        (path / f"{number}").touch()
    with pytest.raises(DataError, match=REFUSED):
        open_columns(path)
    with pytest.raises(DataError, match="must hold columns"):
        open_columns(path / "a\0b")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_refused_and_not_waited_for(path):
    os.mkfifo(path)
    with pytest.raises(DataError, match=REFUSED):
        open_columns(path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads all")
def test_a_file_that_may_not_be_read_is_refused(same, path):
    same({"x": np.arange(3)})
    path.chmod(0)
    with pytest.raises(DataError, match=REFUSED):
        open_columns(path)
