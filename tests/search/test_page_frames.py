"""A page as a data frame: a row a photo, a plain value a cell, in the order of the page."""

import sys

import pytest

from searchlab.errors import InputError, MissingExtraError
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.queries import Query
from tests.support import experiment_world

folder, library = experiment_world.folder, experiment_world.library


def test_a_frame_has_a_row_for_each_photo_and_plain_values(library):
    pytest.importorskip("pandas")
    page = library.search(Query(text="red"), per_page=3)
    frame = page.frame()
    assert list(frame["photo_id"]) == [hit.photo.photo_id for hit in page]
    assert list(frame["rank"]) == [1, 2, 3]
    assert frame.columns[:3].tolist() == ["rank", "photo_id", "relevance_score"]
    assert frame.loc[0, "file"].endswith("red.png")
    values = [value for column in frame.columns for value in frame[column]]
    assert not [value for value in values if isinstance(value, dict | list | tuple)]


def test_an_empty_page_has_the_columns(library):
    pytest.importorskip("pandas")
    nothing = PhotoFilter(after_date="2999-01-01")
    frame = library.search(Query(text="red", filter=nothing)).frame()
    assert len(frame) == 0
    assert "relevance_score" in frame.columns


def test_a_page_given_to_pandas_itself_has_plain_columns(library):
    pandas = pytest.importorskip("pandas")
    page = library.search(Query(text="red"), per_page=3)
    frame = pandas.DataFrame(page)
    assert frame.columns[:5].tolist() == [
        "photo_id", "relevance_score", "title", "caption", "file",
    ]  # fmt: skip
    assert frame.equals(page.frame().drop(columns="rank"))


def test_a_hit_is_a_row_that_names_its_columns(library):
    hit = library.search(Query(text="red"), per_page=1)[0]
    assert hit["photo_id"] == hit.photo.photo_id
    assert dict(hit)["file"] == str(hit.file)
    assert "urls" not in hit
    assert dict(hit).keys() == set(hit)


def test_a_page_goes_into_parquet_with_files_and_titles(library, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    page = library.search(Query(text="red"), per_page=3)
    rows = parquet.read_table(page.to_parquet(tmp_path / "page.parquet")).to_pylist()
    assert [row["rank"] for row in rows] == [1, 2, 3]
    assert [row["file"] for row in rows] == [str(hit.file) for hit in page]
    nothing = PhotoFilter(after_date="2999-01-01")
    with pytest.raises(InputError, match="must get one row or more"):
        library.search(Query(text="red", filter=nothing)).to_parquet(tmp_path / "none.parquet")


def test_a_parquet_file_that_cannot_be_written_is_refused_by_its_name(library, tmp_path):
    pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "none" / "x.parquet"
    with pytest.raises(InputError) as refused:
        library.search(Query(text="red"), per_page=3).to_parquet(path)
    reason = "No such file or directory"
    assert str(refused.value) == f"{path} must be a file that can be written, got: {reason}"


def test_without_pyarrow_parquet_names_what_to_install(library, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    page = library.search(Query(text="red"), per_page=1)
    with pytest.raises(MissingExtraError, match=r"pip install 'searchlab\[tables\]'"):
        page.to_parquet(tmp_path / "page.parquet")


def test_without_pandas_a_frame_names_what_to_install(library, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    page = library.search(Query(text="red"), per_page=1)
    with pytest.raises(MissingExtraError, match=r"pip install 'searchlab\[tables\]'"):
        page.frame()
