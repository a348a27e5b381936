"""Interruptions and damage: the old state stays, the remedy is named and mends it."""

import shutil
from dataclasses import replace

import pytest

from searchlab.errors import DataError, NotFoundError
from searchlab.library import manifests, snapshots
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library, open_library
from searchlab.library.roots import check_root
from searchlab.models import load_model
from searchlab.models.palette.embedder import PaletteEmbedder
from searchlab.search.queries import Query
from tests.support import library_world
from tests.support.library_world import ALL, GRAPH, PALETTE, ids_by_name, ranked, state_of

pytestmark = pytest.mark.slow

embedded = library_world.embedded
index = library_world.index
library = library_world.library
photos = library_world.photos
put = library_world.put


def test_an_interrupted_run_leaves_the_old_state_and_the_next_embeds_the_rest(
    put, index, library, monkeypatch, embedded
):
    put("a.png", 1_000)
    index()
    before = state_of(library)
    for i in range(60):
        put(f"{i}.png", i)
    encode = PaletteEmbedder.encode_images
    calls = iter([False, False, True])

    def interrupted(self, images):
        if next(calls):
            raise KeyboardInterrupt
        return encode(self, images)

    with monkeypatch.context() as patch:
        patch.setattr(PaletteEmbedder, "encode_images", interrupted)
        with pytest.raises(KeyboardInterrupt):
            index()
    assert state_of(library) == before
    assert sum(embedded) == 1 + 32
    assert index().n_photos == 61
    assert sum(embedded) == 61


@pytest.mark.parametrize("config", [PALETTE, GRAPH], ids=["exact", "hnsw"])
@pytest.mark.parametrize("file", ["photos.columns", "vectors.npy", "manifest.json"])
def test_a_damaged_file_is_told_and_rebuilt_without_embedding(
    put, index, library, file, config, embedded
):
    for i in range(12):
        put(f"{i}.png", i)
    name = index(config=config).snapshot_id
    before = ranked(library, Query(text="red"))
    path = library.folder / "snapshots" / name / file
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    damaged = open_library(library.folder)
    with pytest.raises(DataError, match=rf"{file}.*--rebuild"):
        damaged.search(Query(text="red"))
    with pytest.raises(DataError, match=file):
        index()
    if file == "manifest.json":  # which alone names folders and configuration
        report = index(rebuild=True, config=config)
    else:
        report = index_photos(library, rebuild=True)
    assert report.n_photos == 12
    assert sum(embedded) == 12
    rebuilt = open_library(library.folder)
    assert rebuilt.snapshot().config == replace(config, model_id=load_model("palette").model_id)
    assert ranked(rebuilt, Query(text="red")) == before
    rebuilt.check()


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"../..", b"000077-01234567\n"])
def test_a_damaged_current_is_told_and_rebuilt(put, index, library, content):
    put("a.png", 1)
    index(config=GRAPH)
    (library.folder / "CURRENT").write_bytes(content)
    with pytest.raises(DataError, match=r"--rebuild"):
        open_library(library.folder).search(ALL)
    assert index_photos(library, rebuild=True).n_photos == 1
    assert open_library(library.folder).snapshot().config.index == "hnsw"
    assert list(ids_by_name(open_library(library.folder))) == ["a.png"]


def test_a_library_without_its_snapshots_is_rebuilt_without_embedding(
    put, index, library, embedded
):
    put("a.png", 1)
    index()
    shutil.rmtree(library.folder / "snapshots")
    with pytest.raises(DataError, match=r"--rebuild"):
        open_library(library.folder).search(ALL)
    assert index(rebuild=True).n_photos == 1
    assert sum(embedded) == 1


def test_a_library_without_its_cache_or_thumbnails_is_searched_and_indexed_again(
    put, index, library
):
    put("a.png", "red")
    put("b.png", "blue")
    index()
    before = ids_by_name(library)
    (library.folder / "cache.db").unlink()
    shutil.rmtree(library.folder / "thumbnails")
    assert library.search(Query(text="red")).hits[0].thumbnail is None
    index()
    assert ids_by_name(library) == before
    assert library.search(Query(text="red")).hits[0].thumbnail.exists()


def test_rebuilding_a_sound_library_gives_the_same_photos(put, index, library, embedded):
    for i in range(20):
        put(f"{i}.png", i)
    first = index(config=GRAPH)
    before = ids_by_name(library), ranked(library, Query(text="red"))
    second = index_photos(library, rebuild=True)
    assert (ids_by_name(library), ranked(library, Query(text="red"))) == before
    assert (second.n_photos, second.added, second.removed) == (20, 0, 0)
    assert second.snapshot_id[7:] == first.snapshot_id[7:]
    assert sum(embedded) == 20


def test_a_library_of_another_version_is_rebuilt_without_embedding_twice(
    put, index, library, embedded, monkeypatch
):
    for i in range(5):
        put(f"{i}.png", i)
    with monkeypatch.context() as patch:
        for module in (manifests, snapshots):
            patch.setattr(module, "FORMAT", manifests.FORMAT - 1)
        index(config=GRAPH)
    library = open_library(library.folder)
    with pytest.raises(DataError, match=rf"this searchlab reads {manifests.FORMAT}.*--rebuild"):
        index_photos(library)
    report = index_photos(library, rebuild=True)
    assert (report.n_photos, report.added, report.removed) == (5, 0, 0)
    assert library.snapshot().config.index == GRAPH.index
    assert sum(embedded) == 5


def test_rebuilding_frees_the_graph_of_deleted_photos(put, index, library, photos, tmp_path):
    for i in range(40):
        put(f"{i}.png", i)
    index(config=GRAPH)
    for i in range(5):
        (photos / f"{i}.png").unlink()
    index_photos(library)
    name = index_photos(library, rebuild=True).snapshot_id
    fresh = create_library(tmp_path / "fresh")
    other = index_photos(fresh, [check_root(photos)], config=GRAPH).snapshot_id
    graph = library.folder / "snapshots" / name / "graph.hnsw"
    assert (
        graph.stat().st_size == (fresh.folder / "snapshots" / other / "graph.hnsw").stat().st_size
    )


def test_check_reads_every_file_of_the_state_in_force(put, index, library):
    put("a.png", 1)
    name = index(config=GRAPH).snapshot_id
    assert library.check() == [
        "facets.columns",
        "graph.hnsw",
        "photos.columns",
        "vectors.npy",
        "words-0.columns",
        "words.columns",
    ]
    path = library.folder / "snapshots" / name / "vectors.npy"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(DataError, match=r"vectors\.npy"):
        library.check()


def test_check_of_an_empty_library_says_that_nothing_was_indexed(library):
    with pytest.raises(NotFoundError, match="searchlab index"):
        library.check()
