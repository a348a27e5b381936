"""`searchlab export`: from one library into files, and from files into another library."""

import pytest

from tests.support.cli_world import error_of
from tests.support.library_world import photos, put

photos, put = photos, put


@pytest.fixture
def data(run, photos, put, tmp_path):
    put("r.png", "#e01010")
    put("b.png", "#1010e0")
    assert run("index", photos, "--data", tmp_path / "data", "--model", "palette").code == 0
    return tmp_path / "data"


@pytest.mark.slow
def test_vectors_go_out_and_come_in_again(run, data, photos, tmp_path):
    (tmp_path / "queries.txt").write_text("red\nblue\n")
    out = tmp_path / "v"
    done = run("export", "vectors", out, "--data", data, "--texts", tmp_path / "queries.txt")
    assert done.code == 0, done.err
    assert done.out.startswith("2 photos and 2 texts, 223 components: vectors-")
    other = tmp_path / "other"
    assert run("index", photos, "--data", other, "--model", f"vectors:{out}").code == 0
    for place in (data, other):
        found = run("search", "blue", "--data", place, "--paths").out.split()
        assert found[0].endswith("b.png")
    assert "must go into a new or empty folder" in error_of(
        run("export", "vectors", out, "--data", data), 1
    )
    assert run("export", "vectors", out, "--data", data, "--force", "--format", "npz").code == 0
    assert sorted(path.name for path in out.iterdir()) == ["photos.npz", "vectors.json"]


def test_wrong_options_are_one_line(run, data, tmp_path):
    out = tmp_path / "v"
    wrong = run("export", "vectors", out, "--data", data, "--format", "csv")
    assert "npy, npz, parquet or safetensors, got 'csv'" in error_of(wrong, 2)
    wrong = run("export", "vectors", out, "--data", data, "--texts", tmp_path / "none.txt")
    said = f"--texts must be a file of texts in UTF-8, one a line, got {tmp_path / 'none.txt'}"
    assert error_of(wrong, 2) == f"searchlab: {said}: No such file or directory"
    assert not out.exists()


def test_an_atlas_of_made_vectors_is_written_and_one_of_few_photos_refused(run, data, tmp_path):
    out = tmp_path / "atlas"
    done = run("export", "atlas", out, "--made", "clustered-3k-8", "--queries", "3", "-k", "5")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0] == "3,000 photos, 3 relations, each with 9 filters:"
    assert lines[-1] == "  neighbors_int_100.0p: id >= 2997, 3 photos"
    assert (out / "aligned" / "neighbors_int_99p.parquet").is_file()
    refused = error_of(run("export", "atlas", tmp_path / "other", "--data", data), 2)
    assert "3,000 photos or more, got 2" in refused
