"""The demo's own library: nobody else's photos, and the same photos wherever they are installed."""

import importlib
import io
import json
import shutil
from dataclasses import replace

import pytest
from rich.console import Console

from searchlab.config import Config
from searchlab.errors import InputError, MismatchError
from searchlab.evaluation.datasets import bundled_root
from searchlab.library import embed
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library

# The package has the command of this name.
demo = importlib.import_module("searchlab.cli.demo")

pytestmark = pytest.mark.slow

FEW = ("skimage-chelsea", "skimage-coffee", "sklearn-flower")


@pytest.fixture
def few(tmp_path, monkeypatch):
    """Installs three of the bundled photos in a folder of some name."""
    whole = bundled_root() / "demo"

    def install(name):
        folder = tmp_path / name / "demo"
        (folder / "images").mkdir(parents=True)
        lines = (whole / "photos.jsonl").read_text(encoding="utf-8").splitlines()
        few_lines = [line for line in lines if any(photo in line for photo in FEW)]
        (folder / "photos.jsonl").write_text("\n".join(few_lines), encoding="utf-8")
        for photo in FEW:
            shutil.copy(whole / "images" / f"{photo}.jpg", folder / "images")
        monkeypatch.setattr(demo, "bundled_root", lambda: folder.parent)

    return install


def test_a_demo_of_another_installation_goes_on_with_the_same_photos(few, tmp_path):
    few("old")
    first = demo.build_demo_library(tmp_path / "data").engine
    few("new")
    shutil.rmtree(tmp_path / "old")
    second = demo.build_demo_library(tmp_path / "data").engine
    assert len(second.table) == len(FEW)
    assert list(second.table.texts("photo_id")) == list(first.table.texts("photo_id"))
    assert all(str(tmp_path / "new") in file for file in second.table.texts("file"))


def test_without_a_folder_it_lies_in_the_cache_and_is_found_again(few, tmp_path, monkeypatch):
    few("bundled")
    monkeypatch.setenv("SEARCHLAB_CACHE", str(tmp_path / "cache"))
    first = demo.build_demo_library()
    assert tmp_path / "cache" in first.folder.parents
    assert len(first.engine.table) == len(FEW)
    assert demo.build_demo_library().engine.snapshot_id == first.engine.snapshot_id


def test_a_new_folder_takes_over_what_the_cache_has_embedded(few, tmp_path, monkeypatch):
    few("bundled")
    monkeypatch.setenv("SEARCHLAB_CACHE", str(tmp_path / "cache"))
    kept = demo.build_demo_library()
    with monkeypatch.context() as patched:
        patched.setattr(embed, "_embed_batch", None)
        engine = demo.build_demo_library(tmp_path / "first").engine
    assert engine.snapshot_id == kept.engine.snapshot_id
    (kept.folder / "cache.db").write_bytes(b"damaged" * 1_000)
    assert len(demo.build_demo_library(tmp_path / "second").engine.table) == len(FEW)


def test_a_cache_that_cannot_be_written_does_not_hinder(few, tmp_path, monkeypatch):
    few("bundled")
    (tmp_path / "cache").write_text("a file")
    monkeypatch.setenv("SEARCHLAB_CACHE", str(tmp_path / "cache"))
    assert len(demo.build_demo_library(tmp_path / "data").engine.table) == len(FEW)
    with pytest.raises(InputError, match="cache of photos must be a folder"):
        demo.build_demo_library()


def test_a_library_of_other_photos_is_not_taken_for_the_demo(few, tmp_path):
    few("bundled")
    shutil.copytree(tmp_path / "bundled/demo/images", tmp_path / "mine")
    library = create_library(tmp_path / "data")
    index_photos(library, [tmp_path / "mine"], config=Config(model="palette"))
    with pytest.raises(InputError, match="library of its own"):
        demo.build_demo_library(tmp_path / "data")


def test_a_named_configuration_of_other_weights_is_refused_not_recalibrated(few, tmp_path):
    few("bundled")
    library = create_library(tmp_path / "data")
    other = replace(Config(model="palette"), model_id="palette-000000000000")
    with pytest.raises(MismatchError, match="measure again"):
        index_photos(library, [tmp_path / "bundled/demo/images"], config=other)
    assert library.snapshot() is None


def test_a_demo_after_an_upgrade_replaces_what_was_measured_on_other_data(
    few, tmp_path, monkeypatch
):
    few("bundled")
    monkeypatch.setattr(demo, "_SYSTEMS", (("palette", {}),))
    revisions = []
    for n in (4, 5):
        monkeypatch.setattr(
            demo, "demo_queries", lambda dataset, n=n: dataset.sample(["en"], n, seed=0)
        )
        nowhere = Console(file=io.StringIO())
        demo.run_demo(tmp_path / "data", force=False, out=nowhere, log=nowhere)
        (path,) = (tmp_path / "data" / "results" / "search_quality" / "demo").glob("*.json")
        revisions.append(json.loads(path.read_text(encoding="utf-8"))["dataset_revision"])
    assert revisions[0] != revisions[1]


def test_a_demo_whose_installation_is_reached_by_a_link_is_built_again(few, tmp_path, monkeypatch):
    few("real")
    (tmp_path / "link").symlink_to(tmp_path / "real", target_is_directory=True)
    monkeypatch.setattr(demo, "bundled_root", lambda: tmp_path / "link")
    first = demo.build_demo_library(tmp_path / "data")
    again = demo.build_demo_library(tmp_path / "data")
    assert again.engine.snapshot_id == first.engine.snapshot_id
    assert len(again.engine.table) == len(FEW)
