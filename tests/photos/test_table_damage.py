"""A table of photos that is cut, damaged or of another version is refused by name."""

import numpy as np
import pytest

from searchlab.errors import DataError, InputError
from searchlab.photos.columns import open_columns, save_columns
from searchlab.photos.table import CODED_COLUMNS, NUMBER_COLUMNS, TEXT_COLUMNS, PhotoTable


@pytest.fixture(scope="module")
def saved(tmp_path_factory, six_photos):
    path = tmp_path_factory.mktemp("table") / "photos.columns"
    six_photos.save(path)
    return path


@pytest.mark.parametrize(
    "share",
    [
        0.0,
        0.001,
        0.3,
        0.9,
        0.999,
    ],
)
def test_a_file_cut_short_is_named_and_the_remedy_told(saved, tmp_path, share):
    whole = saved.read_bytes()
    path = tmp_path / "cut.columns"
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(DataError, match=r"cut\.columns .*index .*again"):
        PhotoTable.open(path)


@pytest.mark.parametrize(
    "content", [b"{}", b"ARROW1\0\0" + b"\xff" * 500 + b"ARROW1", b"\0" * 4096, b"PAR1" * 100]
)
def test_garbage_is_named_and_the_remedy_told(tmp_path, content):
    path = tmp_path / "garbage.columns"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"garbage\.columns .*index .*again"):
        PhotoTable.open(path)


def test_a_missing_file_or_a_folder_is_named(tmp_path):
    with pytest.raises(DataError, match=r"missing\.columns"):
        PhotoTable.open(tmp_path / "missing.columns")
    with pytest.raises(DataError, match=tmp_path.name):
        PhotoTable.open(tmp_path)


@pytest.fixture
def changed(saved, tmp_path):
    """Write the arrays of a good table after some change."""

    def write(change):
        arrays = open_columns(saved)
        change(arrays)
        save_columns(tmp_path / "changed.columns", arrays)
        return tmp_path / "changed.columns"

    return write


STORED = (
    *NUMBER_COLUMNS,
    *(f"{name}.{part}" for name in TEXT_COLUMNS for part in ("starts", "data")),
    *CODED_COLUMNS,
    *(f"{name}.values.{part}" for name in CODED_COLUMNS for part in ("starts", "data")),
)


def test_a_file_holds_the_arrays_of_a_table_and_no_others(saved):
    assert open_columns(saved).keys() == set(STORED)


@pytest.mark.parametrize("name", STORED)
def test_a_table_of_a_version_with_less_columns_is_named_and_the_remedy_told(changed, name):
    path = changed(lambda arrays: arrays.pop(name))
    with pytest.raises(DataError, match=r"changed\.columns .*index .*again"):
        PhotoTable.open(path)


def test_a_table_of_a_version_with_more_columns_is_named_and_the_remedy_told(changed):
    path = changed(lambda arrays: arrays.update(more=arrays["width"]))
    with pytest.raises(DataError, match=r"changed\.columns .*index .*again"):
        PhotoTable.open(path)


def test_other_columns_are_named_and_the_remedy_told(tmp_path):
    save_columns(tmp_path / "other.columns", {"more": np.arange(3)})
    with pytest.raises(DataError, match=r"other\.columns .*index .*again"):
        PhotoTable.open(tmp_path / "other.columns")
    save_columns(tmp_path / "other.columns", {})
    with pytest.raises(DataError, match=r"other\.columns .*index .*again"):
        PhotoTable.open(tmp_path / "other.columns")


@pytest.mark.parametrize(
    "name", [*NUMBER_COLUMNS, "source", "photo_id.starts", "sha256.starts", "source.values.starts"]
)
def test_a_column_of_another_dtype_is_named_and_the_remedy_told(changed, name):
    path = changed(lambda arrays: arrays.update({name: arrays[name].astype(np.float32)}))
    with pytest.raises(DataError, match=r"changed\.columns .*index .*again"):
        PhotoTable.open(path)


@pytest.mark.parametrize("name", [*NUMBER_COLUMNS, "source", "photo_id.starts", "file.starts"])
@pytest.mark.parametrize("length", [1, 5])
def test_a_column_of_another_length_is_named_and_the_remedy_told(changed, name, length):
    path = changed(lambda arrays: arrays.update({name: arrays[name][:length]}))
    with pytest.raises(DataError, match=r"changed\.columns .*index .*again"):
        PhotoTable.open(path)


@pytest.mark.parametrize("name", [*NUMBER_COLUMNS, "source"])
def test_an_empty_column_among_full_ones_is_named_and_the_remedy_told(changed, name):
    path = changed(lambda arrays: arrays.update({name: arrays[name][:0]}))
    with pytest.raises(DataError, match=r"changed\.columns .*index .*again"):
        PhotoTable.open(path)


@pytest.mark.parametrize("name", ["photo_id", "file", "source.values"])
def test_texts_without_any_start_are_named_and_the_remedy_told(changed, name):
    path = changed(lambda arrays: arrays.update({f"{name}.starts": arrays[f"{name}.starts"][:0]}))
    with pytest.raises(DataError, match=r"changed\.columns .*index .*again"):
        PhotoTable.open(path)


@pytest.mark.parametrize("name", ["photo_id", "description", "source.values"])
def test_texts_that_end_elsewhere_than_their_data_are_refused(changed, name):
    path = changed(
        lambda arrays: arrays.update({f"{name}.data": np.delete(arrays[f"{name}.data"], -1)})
    )
    with pytest.raises(DataError, match=r"changed\.columns .*index .*again"):
        PhotoTable.open(path)


def test_distinct_values_that_are_no_unicode_are_named_and_the_remedy_told(changed):
    path = changed(
        lambda arrays: arrays.update({"source.values.data": arrays["source.values.data"] | 0x80})
    )
    with pytest.raises(DataError, match=r"changed\.columns .*index .*again"):
        PhotoTable.open(path)


def test_a_constructor_wants_its_columns_and_no_others(make_table):
    with pytest.raises(DataError, match="its columns and no others"):
        PhotoTable({}, {}, {})


def test_text_that_is_no_unicode_is_refused_and_not_half_stored(make_photo):
    with pytest.raises(InputError, match="without lone surrogates"):
        PhotoTable.from_photos([make_photo(1, description="\ud800")])
