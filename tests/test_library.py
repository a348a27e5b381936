import contextlib
import datetime
import json
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from searchlab import catalog, models
from searchlab import library as library_module
from searchlab.config import UNCALIBRATED, Config
from searchlab.cursors import CursorError
from searchlab.errors import (
    ConflictError,
    DataError,
    InputError,
    MismatchError,
    NotFoundError,
)
from searchlab.filters import PhotoFilter
from searchlab.indexes import HnswIndex
from searchlab.ingest import index_photos
from searchlab.library import create_library, open_library
from searchlab.models import load_model
from searchlab.models.palette import PaletteEmbedder
from searchlab.models.protocol import unit_rows
from searchlab.pruning import prune
from searchlab.queries import Query
from searchlab.scan import Root, check_root
from searchlab.snapshots import KEPT

PALETTE = Config(model="palette")
# Every query of 5 walks the graph, and with this ef_search the walk finds what exact search finds.
GRAPH = Config(model="palette", index="hnsw", step_rows=0, depth=5, ef_search=300)
ALL = Query(filter=PhotoFilter(after_date="1000-01-01"))


@pytest.fixture
def photos(tmp_path):
    folder = (tmp_path / "photos").resolve()
    folder.mkdir()
    return folder


@pytest.fixture
def put(photos):
    """Writes a picture: of one colour, or a mosaic that a number decides."""

    def write(name, look):
        path = photos / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(look, str):
            Image.new("RGB", (40, 30), look).save(path)
        else:
            tiles = np.random.default_rng(look).integers(0, 256, (3, 4, 3), dtype=np.uint8)
            Image.fromarray(tiles).resize((40, 30), Image.Resampling.NEAREST).save(path)
        return path

    return write


@pytest.fixture
def library(tmp_path):
    return create_library(tmp_path / "library")


@pytest.fixture
def index(library, photos):
    """Indexes `photos` into `library`."""

    def run(*roots, **options):
        options.setdefault("config", PALETTE)
        return index_photos(library, roots or [check_root(photos)], **options)

    return run


@pytest.fixture
def embedded(monkeypatch):
    """How many pictures each call embeds."""
    counts = []
    encode = PaletteEmbedder.encode_images

    def counted(self, images):
        # All but the probe that a library keeps as its model's canary.
        counts.append(sum(image.size != (320, 320) for image in images))
        return encode(self, images)

    load_model("palette").encode_images([Image.new("RGB", (1, 1))])
    monkeypatch.setattr(PaletteEmbedder, "encode_images", counted)
    return counts


@pytest.fixture
def mean(monkeypatch):
    """Registers a second model of pictures, the mean colour."""
    model = SimpleNamespace(
        name="mean",
        model_id="mean-000000000001",
        dim=3,
        reads="image",
        input_size=8,
        encode_texts=lambda texts: np.tile(unit_rows(np.array([[0, 0, 1]])), (len(texts), 1)),
        encode_images=lambda images: unit_rows(
            np.array([np.asarray(image).reshape(-1, 3).mean(axis=0) + 1 for image in images])
        ),
    )
    model.parts = ((model, 1.0),)
    monkeypatch.setitem(models.MODELS, "mean", lambda _rest: model)
    monkeypatch.setattr(models, "_loaded", {"palette": load_model("palette")})
    return Config(model="mean")


def found(library, query=ALL):
    """Photo ids by file name."""
    hits = library.search(query, per_page=100).hits
    return {hit.photo.file.rpartition("/")[2]: hit.photo.photo_id for hit in hits}


def ranked(library, query):
    return [hit.photo.file.rpartition("/")[2] for hit in library.search(query, per_page=100)]


def state_of(library):
    """Everything on disk that searching reads."""
    kept = [library.folder / "CURRENT", *(library.folder / "snapshots").rglob("*")]
    return {str(path): path.read_bytes() for path in kept if path.is_file()}


# Indexing and searching


def test_what_was_indexed_is_found_by_words_pictures_and_filters(put, index, library):
    put("red.png", "red")
    put("sub/blue.png", "blue")
    put("green.png", "#00aa00")
    report = index()
    assert (report.n_photos, report.added, report.removed, report.copies) == (3, 3, 0, 0)
    assert (report.problems, report.missing) == ([], [])
    assert ranked(library, Query(text="blue"))[0] == "blue.png"
    assert ranked(library, Query(image=Image.new("RGB", (9, 9), "red")))[0] == "red.png"
    assert ranked(library, Query(filter=PhotoFilter(color_name="green"))) == ["green.png"]
    blue = found(library)["blue.png"]
    assert ranked(library, Query(photo_id=blue)) != []
    assert "blue.png" not in ranked(library, Query(photo_id=blue))


def test_every_photo_has_its_thumbnail(put, index, library):
    put("red.png", "red")
    index()
    [hit] = library.search(ALL).hits
    with Image.open(hit.thumbnail) as small:
        assert small.format == "WEBP"


def test_indexing_again_changes_nothing_and_embeds_nothing(put, index, library, embedded):
    for i in range(20):
        put(f"{i}.png", i)
    first = index()
    assert sum(embedded) == 20
    before = state_of(library)
    second = index()
    assert sum(embedded) == 20
    assert (second.added, second.removed, second.snapshot_id) == (0, 0, first.snapshot_id)
    assert state_of(library) == before


def test_only_an_added_photo_is_embedded(put, index, library, embedded):
    for i in range(20):
        put(f"{i}.png", i)
    index()
    before = found(library)
    put("new.png", 99)
    report = index()
    assert (report.n_photos, report.added, report.removed) == (21, 1, 0)
    assert sum(embedded) == 21
    after = found(library)
    assert {name: after[name] for name in before} == before


def test_a_deleted_photo_leaves(put, index, library):
    put("a.png", 1)
    put("b.png", 2).unlink()
    index()
    gone = put("b.png", 2)
    index()
    gone.unlink()
    report = index()
    assert (report.n_photos, report.added, report.removed) == (1, 0, 1)
    assert list(found(library)) == ["a.png"]


def test_moved_and_renamed_photos_stay_the_same_photos(put, index, library, photos, embedded):
    put("a.png", 1)
    put("b.png", 2)
    index()
    before = found(library)
    (photos / "deep/er").mkdir(parents=True)
    (photos / "a.png").rename(photos / "deep/er/a.png")
    (photos / "b.png").rename(photos / "z.png")
    report = index()
    assert (report.added, report.removed) == (0, 0)
    assert sum(embedded) == 2
    assert found(library) == {"a.png": before["a.png"], "z.png": before["b.png"]}


def test_an_edited_photo_is_a_new_one(put, index, library):
    put("a.png", "red")
    put("b.png", 2)
    index()
    before = found(library)
    put("a.png", "blue")
    report = index()
    assert (report.n_photos, report.added, report.removed) == (2, 1, 1)
    after = found(library)
    assert after["b.png"] == before["b.png"]
    assert after["a.png"] != before["a.png"]
    assert ranked(library, Query(text="blue"))[0] == "a.png"


def test_an_edited_photo_with_a_librarys_id_stays_the_same_photo(put, index, library, photos):
    put("a.png", "red")
    (photos / "photos.jsonl").write_text('{"file": "a.png", "source_photo_id": "x1"}\n')
    index()
    before = found(library)
    put("a.png", "blue")
    report = index()
    assert (report.added, report.removed) == (0, 0)
    assert found(library) == before
    assert library.search(ALL).hits[0].photo.color_hex == "#0000ff"


def test_copies_are_one_photo_and_the_copy_takes_over(put, index, library, photos, embedded):
    put("a.png", 1)
    put("copy.png", 1)
    put("sub/again.png", 1)
    report = index()
    assert (report.n_photos, report.copies, sum(embedded)) == (1, 2, 1)
    before = found(library)
    (photos / "a.png").unlink()
    report = index()
    assert (report.added, report.removed, report.copies) == (0, 0, 1)
    assert found(library) == {"copy.png": before["a.png"]}


def test_an_edited_record_changes_the_photo_without_embedding(
    put, index, library, photos, embedded
):
    put("a.png", 1)
    index()
    before = found(library)
    (photos / "photos.jsonl").write_text('{"file": "a.png", "title": "Fox", "license_type": "cc0"}')
    index()
    [hit] = library.search(Query(filter=PhotoFilter(license_type=("cc0",)))).hits
    assert hit.photo.attribution["plain"] == "“Fox” (cc0)"
    assert found(library) == before
    assert sum(embedded) == 1


def test_bad_files_are_reported_by_every_run_and_stop_nothing(put, index, photos):
    put("good.png", 1)
    (photos / "bad.jpg").write_bytes(b"no picture")
    (photos / "photos.jsonl").write_text("[]\n")
    first = index()
    assert first.n_photos == 1
    assert [(problem.where, problem.reason) for problem in first.problems] == [
        (str(photos / "bad.jpg"), "not an image"),
        (f"{photos / 'photos.jsonl'}:1", first.problems[1].reason),
    ]
    assert index().problems == first.problems


def test_a_copy_of_a_bad_file_is_reported_as_bad(put, index, photos):
    put("good.png", 1)
    (photos / "bad.jpg").write_bytes(b"no picture")
    (photos / "copy.jpg").write_bytes(b"no picture")
    report = index()
    assert [(problem.where, problem.reason) for problem in report.problems] == [
        (str(photos / "bad.jpg"), "not an image"),
        (str(photos / "copy.jpg"), "not an image"),
    ]
    assert report.copies == 0


def test_a_library_inside_a_covered_folder_does_not_index_itself(put, photos):
    put("a.png", 1)
    library = create_library(photos / "searchlab-data")
    for _ in range(3):
        report = index_photos(library, [check_root(photos)], config=PALETTE)
        assert (report.n_photos, report.problems) == (1, [])


def test_several_roots_with_their_sources(put, index, library, photos):
    put("one/a.png", 1)
    put("two/b.png", 2)
    index(check_root(photos / "one", source="unsplash"))
    index(check_root(photos / "two", source="pexels"))
    assert ranked(library, Query(filter=PhotoFilter(source=("pexels",)))) == ["b.png"]
    assert set(found(library)) == {"a.png", "b.png"}


def test_a_root_named_by_a_link_is_the_root_itself(put, index, library, photos, tmp_path):
    put("a.png", 1)
    index()
    (tmp_path / "link").symlink_to(photos, target_is_directory=True)
    assert index(check_root(tmp_path / "link")).n_photos == 1
    assert library.snapshot().roots == (Root(photos, source="local"),)


def test_upload_dates_stay_over_indexing_and_moving(put, index, library, photos, monkeypatch):
    def on_day(day):
        class Clock(datetime.datetime):
            @classmethod
            def now(cls, tz=None):
                return datetime.datetime(2030, 1, day, tzinfo=tz)

        monkeypatch.setattr(
            catalog,
            "datetime",
            SimpleNamespace(datetime=Clock, date=datetime.date, UTC=datetime.UTC),
        )

    def dates():
        return {
            hit.photo.file.rpartition("/")[2]: hit.photo.uploaded_on for hit in library.search(ALL)
        }

    on_day(1)
    put("a.png", 1)
    index()
    on_day(2)
    put("b.png", 2)
    (photos / "a.png").rename(photos / "z.png")
    index()
    assert dates() == {"z.png": "2030-01-01", "b.png": "2030-01-02"}
    on_day(3)
    index(rebuild=True)
    library.publish(GRAPH)
    assert dates() == {"z.png": "2030-01-01", "b.png": "2030-01-02"}
    assert ranked(library, replace(ALL, sort_by="newest")) == ["b.png", "z.png"]


# Roots that are missing, forgotten or empty


def test_a_missing_root_keeps_its_photos_and_is_told(
    put, index, library, photos, tmp_path, embedded
):
    put("near/a.png", 1)
    put("far/b.png", 2)
    index(check_root(photos / "near"), check_root(photos / "far"))
    before = found(library)
    (photos / "far").rename(tmp_path / "unplugged")
    put("near/c.png", 3)
    report = index_photos(library)
    assert report.missing == [photos / "far"]
    assert (report.n_photos, report.added, report.removed) == (3, 1, 0)
    assert found(library) | before == found(library)
    assert ranked(library, Query(photo_id=before["b.png"])) != []
    (tmp_path / "unplugged").rename(photos / "far")
    report = index_photos(library)
    assert (report.missing, report.added, report.removed) == ([], 0, 0)
    assert sum(embedded) == 3


def test_a_forgotten_root_takes_its_photos_along(put, index, library, photos):
    put("one/a.png", 1)
    put("two/b.png", 2)
    index(check_root(photos / "one"), check_root(photos / "two"))
    report = index_photos(library, forget=[photos / "two"])
    assert (report.n_photos, report.removed) == (1, 1)
    assert list(found(library)) == ["a.png"]
    assert index_photos(library).n_photos == 1


def test_a_missing_root_can_be_forgotten(put, index, library, photos):
    put("one/a.png", 1)
    put("two/b.png", 2)
    index(check_root(photos / "one"), check_root(photos / "two"))
    shutil.rmtree(photos / "two")
    report = index_photos(library, forget=[photos / "two"])
    assert (report.n_photos, report.missing) == (1, [])


def test_forgetting_what_is_not_covered_is_an_input_error_that_lists_what_is(put, index, photos):
    put("a.png", 1)
    index()
    with pytest.raises(InputError, match=f"covered: {photos}"):
        index(forget=[photos / "other"])


def test_forgetting_the_last_root_is_refused_and_the_state_stays(put, index, library, photos):
    put("a.png", 1)
    index()
    before = state_of(library)
    with pytest.raises(InputError, match="at least one folder"):
        index_photos(library, forget=[photos])
    assert state_of(library) == before


def test_nothing_to_cover_is_an_input_error(library):
    with pytest.raises(InputError, match="folder"):
        index_photos(library, config=PALETTE)


def test_an_empty_folder_is_an_input_error_that_names_it(index, library, photos):
    with pytest.raises(InputError, match=str(photos)):
        index()
    with pytest.raises(NotFoundError, match="searchlab index"):
        library.search(Query(text="red"))


def test_a_folder_of_bad_files_only_is_an_input_error_with_a_reason(index, photos):
    (photos / "bad.jpg").write_bytes(b"no picture")
    with pytest.raises(InputError, match=r"bad\.jpg.*not an image"):
        index()


def test_a_folder_that_became_empty_is_taken_for_one_that_is_not_mounted(
    put, index, library, photos
):
    path = put("a.png", 1)
    index()
    before = state_of(library)
    path.unlink()
    assert index().missing == [photos]
    assert state_of(library) == before
    assert list(found(library)) == ["a.png"]


def test_a_folder_that_moved_is_covered_anew_and_its_photos_stay_the_same(
    put, index, library, photos, tmp_path, embedded
):
    for i in range(5):
        put(f"{i}.png", i)
    index()
    before = found(library)
    photos.rename(tmp_path / "moved")
    report = index(check_root(tmp_path / "moved"), forget=[photos])
    assert (report.added, report.removed, report.missing) == (0, 0, [])
    assert found(library) == before
    assert sum(embedded) == 5


def test_a_library_that_moved_is_the_same_library(put, index, library, tmp_path, embedded):
    for i in range(5):
        put(f"{i}.png", i)
    index()
    before = found(library)
    cursor = library.search(Query(text="red"), per_page=2).next_cursor
    library.folder.rename(tmp_path / "elsewhere")
    moved = open_library(tmp_path / "elsewhere")
    assert found(moved) == before
    assert all(hit.thumbnail.exists() for hit in moved.search(cursor=cursor))
    index_photos(moved)
    assert sum(embedded) == 5


# Interruptions and damage


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
    assert list(found(open_library(library.folder))) == ["a.png"]


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
    before = found(library)
    (library.folder / "cache.db").unlink()
    shutil.rmtree(library.folder / "thumbnails")
    assert library.search(Query(text="red")).hits[0].thumbnail is None
    index()
    assert found(library) == before
    assert library.search(Query(text="red")).hits[0].thumbnail.exists()


def test_rebuilding_a_sound_library_gives_the_same_photos(put, index, library, embedded):
    for i in range(20):
        put(f"{i}.png", i)
    first = index(config=GRAPH)
    before = found(library), ranked(library, Query(text="red"))
    second = index_photos(library, rebuild=True)
    assert (found(library), ranked(library, Query(text="red"))) == before
    assert (second.n_photos, second.added, second.removed) == (20, 0, 0)
    assert second.snapshot_id[7:] == first.snapshot_id[7:]
    assert sum(embedded) == 20


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
    assert library.check() == ["facets.columns", "graph.hnsw", "photos.columns", "vectors.npy"]
    path = library.folder / "snapshots" / name / "vectors.npy"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(DataError, match=r"vectors\.npy"):
        library.check()


def test_check_of_an_empty_library_says_that_nothing_was_indexed(library):
    with pytest.raises(NotFoundError, match="searchlab index"):
        library.check()


# The folder itself


def test_a_folder_without_a_library_is_not_found_and_the_remedy_named(tmp_path):
    with pytest.raises(NotFoundError, match="searchlab index"):
        open_library(tmp_path)
    with pytest.raises(NotFoundError, match="searchlab index"):
        open_library(tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b"7", b"\xff", b'{"format": 99}', b'{"format": "1"}']
)
def test_a_library_file_of_any_bytes_or_of_another_format_is_a_data_error(library, content):
    (library.folder / "library.json").write_bytes(content)
    with pytest.raises(DataError, match=r"library\.json"):
        open_library(library.folder)
    with pytest.raises(DataError, match=r"library\.json"):
        create_library(library.folder)


def test_a_file_in_place_of_the_folder_is_an_error_of_ours(tmp_path):
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises((DataError, InputError), match="file"):
        open_library(tmp_path / "file")
    with pytest.raises((DataError, InputError), match="file"):
        create_library(tmp_path / "file")
    with pytest.raises((DataError, InputError), match="file"):
        create_library(tmp_path / "file/below")


def test_a_missing_secret_is_told_and_made_anew_by_indexing(put, index, library):
    put("a.png", 1)
    index()
    (library.folder / "secret.key").unlink()
    with pytest.raises(DataError, match=r"secret\.key"):
        open_library(library.folder)
    assert list(found(create_library(library.folder))) == ["a.png"]


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 33])
def test_a_secret_of_another_length_is_a_data_error(library, content):
    (library.folder / "secret.key").write_bytes(content)
    with pytest.raises(DataError, match=r"secret\.key.*delete it"):
        open_library(library.folder)


def test_the_secret_is_for_its_owner_only_and_different_in_every_library(library, tmp_path):
    assert (library.folder / "secret.key").stat().st_mode & 0o077 == 0
    other = create_library(tmp_path / "other")
    assert (library.folder / "secret.key").read_bytes() != (
        other.folder / "secret.key"
    ).read_bytes()


def test_making_a_library_again_opens_it(put, index, library):
    put("a.png", 1)
    index()
    before = state_of(library), (library.folder / "secret.key").read_bytes()
    again = create_library(str(library.folder))
    assert (state_of(again), (again.folder / "secret.key").read_bytes()) == before


# Configurations and models


def test_publishing_another_configuration_serves_the_same_photos_under_it(put, index, library):
    for i in range(20):
        put(f"{i}.png", i)
    first = index().snapshot_id
    before = ranked(library, Query(text="red"))
    second = library.publish(GRAPH)
    assert second != first
    assert library.engine.config == replace(GRAPH, model_id=load_model("palette").model_id)
    assert ranked(library, Query(text="red")) == before
    assert index_photos(library).snapshot_id == second


def test_publishing_the_configuration_in_force_changes_nothing(put, index, library):
    put("a.png", 1)
    name = index().snapshot_id
    before = state_of(library)
    assert library.publish(PALETTE) == name
    assert state_of(library) == before


def test_publishing_in_an_empty_library_says_to_index_first(library):
    with pytest.raises(NotFoundError, match="index"):
        library.publish(PALETTE)


def test_publishing_another_model_embeds_once_and_going_back_embeds_nothing(
    put, index, library, mean, embedded
):
    put("a.png", "red")
    put("b.png", "blue")
    index()
    before = ranked(library, Query(text="red"))
    library.publish(mean)
    assert ranked(library, Query(text="anything"))[0] == "b.png"
    library.publish(PALETTE)
    assert ranked(library, Query(text="red")) == before
    assert sum(embedded) == 2


def test_a_file_edited_since_indexing_never_lends_its_looks_to_the_old_content(
    put, index, library, mean
):
    path = put("a.png", "red")
    put("b.png", "green")
    index()
    content = path.read_bytes()
    put("a.png", "blue")
    with pytest.raises((InputError, NotFoundError, DataError), match=r"a\.png"):
        library.publish(mean)
    path.write_bytes(content)
    index_photos(library, config=mean)
    red = library.search(Query(image=Image.new("RGB", (9, 9), "red"))).hits[0]
    assert red.photo.file == str(path)
    assert red.relevance_score > 0.9


def test_another_model_over_a_photo_that_cannot_be_read_names_it_and_leaves_the_state(
    put, index, library, mean
):
    path = put("a.png", 1)
    put("b.png", 2)
    index()
    before = state_of(library)
    path.unlink()
    for change in (library.publish, library.engine_for):
        with pytest.raises((InputError, NotFoundError), match=r"a\.png"):
            change(mean)
    assert state_of(library) == before


def test_another_model_over_a_missing_root_names_it_and_leaves_the_state(
    put, index, library, photos, mean
):
    put("near/a.png", 1)
    put("far/b.png", 2)
    index(check_root(photos / "near"), check_root(photos / "far"))
    before = state_of(library)
    shutil.rmtree(photos / "far")
    with pytest.raises((InputError, NotFoundError), match="far"):
        index_photos(library, config=mean)
    assert state_of(library) == before


def test_an_engine_under_another_configuration_leaves_the_library_as_it_is(put, index, library):
    for i in range(20):
        put(f"{i}.png", i)
    index()
    before = state_of(library)
    engine = library.engine_for(GRAPH)
    assert engine.config == replace(GRAPH, model_id=load_model("palette").model_id)
    rows = engine.rank(Query(text="red"), 5).rows
    assert rows.tolist() == library.engine.rank(Query(text="red"), 5).rows.tolist()
    assert state_of(library) == before
    assert library.engine.config.index == "exact"


def test_a_cursor_of_such_an_engine_is_told_apart(put, index, library):
    for i in range(5):
        put(f"{i}.png", i)
    index()
    page = library.engine_for(GRAPH).search(Query(text="red"), per_page=2)
    with pytest.raises(CursorError, match="cursor must be"):
        library.search(cursor=page.next_cursor)


def test_a_model_that_has_changed_is_refused_with_the_remedy_and_indexing_mends_it(
    put, index, library, monkeypatch, embedded
):
    put("a.png", "red")
    put("b.png", "blue")
    index()
    before = ranked(library, Query(text="red"))
    monkeypatch.setattr(load_model("palette"), "model_id", "palette-ffffffffffff")
    changed = open_library(library.folder)
    with pytest.raises(MismatchError, match=r"palette-ffffffffffff.*index.*again"):
        changed.search(Query(text="red"))
    report = index_photos(changed)
    assert (report.added, report.removed) == (0, 0)
    assert sum(embedded) == 4
    assert ranked(changed, Query(text="red")) == before


def test_words_count_through_a_hybrid_and_an_edited_caption_embeds_no_picture(
    put, index, library, photos, embedded
):
    put("a.png", "gray")
    put("b.png", "gray")
    put("c.png", "gray")
    put("b.png", "#818181")
    put("c.png", "#7f7f7f")

    def say(text):
        (photos / "photos.jsonl").write_text(
            json.dumps({"file": "b.png", "source_description": text})
        )

    config = Config(model="hybrid:palette=0.5,captions=0.5")
    say("a steam locomotive")
    index(config=config)
    assert ranked(library, Query(text="steam locomotive"))[0] == "b.png"
    say("a bowl of soup")
    index_photos(library)
    assert ranked(library, Query(text="bowl of soup"))[0] == "b.png"
    assert sum(embedded) == 3


# Graphs that grow and shrink


def top(library, numbers, *, config=None):
    """The five photos nearest to some mosaics, by file name."""
    engine = library.engine if config is None else library.engine_for(config)
    answers = []
    for number in numbers:
        tiles = np.random.default_rng(number).integers(0, 256, (3, 4, 3), dtype=np.uint8)
        picture = Image.fromarray(tiles).resize((40, 30), Image.Resampling.NEAREST)
        ranking = engine.rank(Query(image=picture), 5)
        answers.append((engine.table.photo_ids(ranking.rows), ranking.scores.tolist()))
    return answers


def changed_at_random(photos, put, rng):
    """Adds, copies, renames, edits or deletes a picture."""
    names = sorted(path.name for path in photos.iterdir())
    number, name = int(rng.integers(1_000_000)), str(rng.choice(names))
    match rng.choice(["add", "add", "add", "copy", "rename", "edit", "delete"]):
        case "add":
            put(f"{number}.png", number)
        case "copy":
            shutil.copy(photos / name, photos / f"{number}.png")
        case "rename":
            (photos / name).rename(photos / f"{number}.png")
        case "edit":
            put(name, number)
        case "delete" if len(names) > 30:
            (photos / name).unlink()


@pytest.mark.parametrize("seed", [1, 2])
def test_any_changes_end_in_the_library_that_is_built_anew(
    put, index, library, photos, tmp_path, embedded, seed
):
    rng = np.random.default_rng(seed)
    for i in range(40):
        put(f"{i}.png", i)
    for step in range(6):
        index(config=GRAPH)
        for _ in range(3 * step):
            changed_at_random(photos, put, rng)
    index_photos(library)
    count = sum(embedded)
    fresh = create_library(tmp_path / "fresh")
    index_photos(fresh, [check_root(photos)], config=GRAPH)
    assert found(library) == found(fresh)
    # Only the pictures of now are in the fresh library, and those that left were embedded too.
    assert sum(embedded) - count == len(found(fresh)) <= count
    ours, theirs = library.snapshot(), fresh.snapshot()
    assert ours.index.vectors.tolist() == theirs.index.vectors.tolist()
    assert len(set(ours.table.labels.tolist())) == len(ours.table)
    assert top(library, range(0, 60, 4)) == top(fresh, range(0, 60, 4))
    assert top(library, range(0, 60, 4)) == top(library, range(0, 60, 4), config=PALETTE)


@pytest.mark.parametrize("dropped", [5, 40])
def test_a_graph_that_grew_and_shrank_answers_as_one_built_anew_and_as_exact_search(
    put, index, library, photos, tmp_path, dropped
):
    for i in range(60):
        put(f"{i}.png", i)
    index(config=GRAPH)
    for i in range(dropped):
        (photos / f"{i}.png").unlink()
    index_photos(library)
    for i in range(60, 100):
        put(f"{i}.png", i)
    index_photos(library)
    fresh = create_library(tmp_path / "fresh")
    index_photos(fresh, [check_root(photos)], config=GRAPH)
    queries = range(0, 130, 3)
    reopened = open_library(library.folder)
    assert reopened.engine.plan(Query(text="red")).mode == "graph"
    answers = top(reopened, queries)
    assert answers == top(fresh, queries)
    assert answers == top(library, queries, config=PALETTE)


def test_deleted_photos_never_come_back(put, index, library, photos):
    for i in range(60):
        put(f"{i}.png", i)
    index(config=GRAPH)
    for step in range(6):
        for i in range(4 * step, 4 * step + 4):
            (photos / f"{i}.png").unlink()
        put(f"new-{step}.png", 1_000 + step)
        index_photos(library)
        here = {path.name for path in photos.iterdir()}
        reopened = open_library(library.folder)
        assert set(found(reopened)) == here
        for number in range(4 * step + 4):
            tiles = np.random.default_rng(number).integers(0, 256, (3, 4, 3), dtype=np.uint8)
            picture = Image.fromarray(tiles).resize((40, 30), Image.Resampling.NEAREST)
            hits = reopened.search(Query(image=picture), per_page=5)
            assert {hit.photo.file.rpartition("/")[2] for hit in hits} <= here


def test_a_photo_that_was_deleted_and_put_back_is_found_again(put, index, library, photos):
    for i in range(60):
        put(f"{i}.png", i)
    index(config=GRAPH)
    before = top(library, [7])
    for _ in range(3):
        (photos / "7.png").unlink()
        index_photos(library)
        assert top(library, [7]) != before
        put("7.png", 7)
        index_photos(library)
        assert top(library, [7]) == before
    labels = library.snapshot().table.labels
    assert len(set(labels.tolist())) == 60


def test_a_label_is_never_given_twice(put, index, library, photos):
    seen = {}
    for i in range(30):
        put(f"{i}.png", i)
    for step in range(5):
        index(config=GRAPH)
        found_here = library.snapshot()
        for photo_id, label in zip(
            found_here.table.texts("photo_id"), found_here.table.labels.tolist(), strict=True
        ):
            assert seen.setdefault(label, photo_id) == photo_id
        assert found_here.next_label > max(seen)
        (photos / f"{step}.png").unlink()
        put(f"x{step}.png", 500 + step)


# Several readers and writers


def test_a_second_writer_is_refused_while_reading_goes_on(put, index, library, photos):
    put("a.png", 1)
    index()
    put("b.png", 2)
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, time\n"
            "from searchlab.library import open_library\n"
            "with open_library(sys.argv[1]).writing():\n"
            "    print('held', flush=True)\n"
            "    time.sleep(60)\n",
            str(library.folder),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(ConflictError, match=r"wait"):
            index_photos(library)
        with pytest.raises(ConflictError, match=str(library.folder)):
            library.publish(GRAPH)
        with pytest.raises(ConflictError):
            prune(library)
        assert list(found(open_library(library.folder))) == ["a.png"]
        holder.send_signal(signal.SIGKILL)
    assert index_photos(library).n_photos == 2


def test_a_second_writer_in_the_same_process_is_refused(put, index, library):
    put("a.png", 1)
    index()
    with library.writing(), pytest.raises(ConflictError):
        index_photos(open_library(library.folder))
    assert index_photos(library).n_photos == 1


def test_a_failed_run_lets_the_next_writer_in(put, index, photos):
    with pytest.raises(InputError):
        index()
    put("a.png", 1)
    assert index().n_photos == 1


def test_a_reader_keeps_its_state_while_new_ones_are_published(put, index, library):
    for i in range(10):
        put(f"{i}.png", i)
    index()
    engine = library.engine
    before = [hit.photo.photo_id for hit in engine.search(Query(text="red"))]
    for i in range(10, 10 + 2 * KEPT):
        put(f"{i}.png", i)
        index_photos(library)
    assert [hit.photo.photo_id for hit in engine.search(Query(text="red"))] == before
    assert len(library.engine.table) == 10 + 2 * KEPT


def test_a_reader_in_another_object_sees_the_new_state(put, index, library):
    put("a.png", 1)
    index()
    reader = open_library(library.folder)
    assert list(found(reader)) == ["a.png"]
    put("b.png", 2)
    index()
    assert sorted(found(reader)) == ["a.png", "b.png"]


def test_threads_that_search_while_a_writer_publishes_never_fail(put, index, library):
    for i in range(10):
        put(f"{i}.png", i)
    index()
    failures, done = [], threading.Event()

    def read():
        while not done.is_set():
            try:
                page = library.search(Query(text="red"), per_page=5)
                with contextlib.suppress(CursorError):  # three states may have come since
                    library.search(cursor=page.next_cursor)
            except Exception as error:
                failures.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for i in range(10, 16):
        put(f"{i}.png", i)
        index_photos(library)
    done.set()
    for reader in readers:
        reader.join()
    assert failures == []


# Cursors


def names_of(page):
    return [hit.photo.photo_id for hit in page]


def test_a_cursor_goes_on_in_its_own_state_while_that_is_kept(put, index, library):
    for i in range(9):
        put(f"{i}.png", i)
    index()
    whole = names_of(library.search(Query(text="red"), per_page=100))
    first = library.search(Query(text="red"), per_page=4)
    for i in range(9, 9 + KEPT - 1):
        put(f"{i}.png", i)
        index()
    reopened = open_library(library.folder)
    second = reopened.search(cursor=first.next_cursor)
    third = reopened.search(cursor=second.next_cursor)
    assert names_of(first) + names_of(second) + names_of(third) == whole
    assert third.next_cursor is None
    assert names_of(reopened.search(cursor=first.next_cursor)) == names_of(second)


@pytest.mark.parametrize("reopen", [False, True])
def test_a_cursor_of_a_state_that_is_gone_says_to_search_again(put, index, library, reopen):
    for i in range(9):
        put(f"{i}.png", i)
    index()
    cursor = library.search(Query(text="red"), per_page=4).next_cursor
    for i in range(9, 9 + KEPT):
        put(f"{i}.png", i)
        index()
    reader = open_library(library.folder) if reopen else library
    with pytest.raises(CursorError, match="search again"):
        reader.search(cursor=cursor)


def test_a_cursor_into_a_half_removed_state_says_to_search_again(put, index, library):
    for i in range(9):
        put(f"{i}.png", i)
    name = index().snapshot_id
    cursor = library.search(Query(text="red"), per_page=4).next_cursor
    put("more.png", 77)
    index()
    shutil.rmtree(library.folder / "snapshots" / name)
    with pytest.raises(CursorError, match="search again"):
        open_library(library.folder).search(cursor=cursor)


def test_a_cursor_survives_a_rebuild_that_gives_the_state_another_name(put, index, library):
    for i in range(9):
        put(f"{i}.png", i)
    index()
    whole = names_of(library.search(Query(text="red"), per_page=100))
    first = library.search(Query(text="red"), per_page=5)
    index(rebuild=True)
    assert names_of(open_library(library.folder).search(cursor=first.next_cursor)) == whole[5:]


def test_a_cursor_of_another_library_is_refused(put, index, library, photos, tmp_path):
    for i in range(5):
        put(f"{i}.png", i)
    index()
    other = create_library(tmp_path / "other")
    index_photos(other, [check_root(photos)], config=PALETTE)
    cursor = other.search(Query(text="red"), per_page=2).next_cursor
    with pytest.raises(CursorError, match="next_cursor"):
        library.search(cursor=cursor)


def test_a_cursor_of_an_image_query_needs_no_image_again(put, index, library):
    for i in range(9):
        put(f"{i}.png", i)
    index()
    query = Query(image=Image.new("RGB", (9, 9), "teal"))
    whole = names_of(library.search(query, per_page=100))
    first = library.search(query, per_page=5)
    assert names_of(open_library(library.folder).search(cursor=first.next_cursor)) == whole[5:]


_PAGES = """
import json, sys
from searchlab.library import open_library
from searchlab.queries import Query

library = open_library(sys.argv[1])
pages, page = [], library.search(Query(text="dark red"), per_page=4)
while True:
    hits = [(hit.photo.photo_id, hit.relevance_score) for hit in page]
    pages.append([hits, page.next_cursor])
    if page.next_cursor is None:
        break
    page = library.search(cursor=page.next_cursor)
print(json.dumps(pages))
"""


@pytest.mark.parametrize("config", [PALETTE, GRAPH], ids=["exact", "hnsw"])
def test_pages_and_cursors_are_the_same_in_every_process(put, index, library, config):
    for i in range(30):
        put(f"{i}.png", i)
    index(config=config)
    outputs = [
        subprocess.run(
            [sys.executable, "-c", _PAGES, str(library.folder)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for _ in range(2)
    ]
    assert outputs[0] == outputs[1]
    first = library.search(Query(text="dark red"), per_page=4)
    hits, cursor = json.loads(outputs[0])[0]
    assert hits == [[hit.photo.photo_id, hit.relevance_score] for hit in first]
    assert cursor == first.next_cursor
    second = library.search(cursor=cursor)
    assert json.loads(outputs[0])[1][0] == [
        [hit.photo.photo_id, hit.relevance_score] for hit in second
    ]


# Pruning


def test_pruning_drops_what_no_state_has_and_costs_no_embedding(
    put, index, library, photos, embedded
):
    for i in range(10):
        put(f"{i}.png", i)
    index()
    for i in range(5):
        (photos / f"{i}.png").unlink()
    for i in range(KEPT):
        put(f"x{i}.png", 100 + i)
        index()
    prune(library)
    assert len(list((library.folder / "thumbnails").glob("*/*.webp"))) == 5 + KEPT
    count = sum(embedded)
    index()
    index(rebuild=True)
    assert sum(embedded) == count
    put("0.png", 0)
    index()
    assert sum(embedded) == count + 1


def test_pruning_keeps_what_an_older_kept_state_has(put, index, library, photos):
    for i in range(6):
        put(f"{i}.png", i)
    index()
    cursor = library.search(Query(text="red"), per_page=3).next_cursor
    for i in range(3):
        (photos / f"{i}.png").unlink()
    index()
    prune(library)
    page = open_library(library.folder).search(cursor=cursor)
    assert all(hit.thumbnail.exists() for hit in page)


def test_pruning_passes_over_a_damaged_older_state(put, index, library):
    put("a.png", 1)
    name = index().snapshot_id
    put("b.png", 2)
    index()
    (library.folder / "snapshots" / name / "photos.columns").unlink()
    prune(library)
    assert sorted(found(library)) == ["a.png", "b.png"]


def test_a_model_that_embeds_its_canaries_otherwise_is_refused_at_the_first_query(
    put, index, library, photos, monkeypatch
):
    put("a.png", 1)
    index()
    palette = load_model("palette")
    embed = type(palette).encode_texts
    monkeypatch.setattr(type(palette), "encode_texts", lambda self, texts: -embed(self, texts))
    with pytest.raises(MismatchError, match="text tower of palette"):
        open_library(library.folder).search(Query(text="blue"))


def test_a_picture_tower_is_checked_too(put, index, library, photos, monkeypatch):
    picture = put("a.png", 1)
    index()
    palette = load_model("palette")
    embed = type(palette).encode_images
    monkeypatch.setattr(
        type(palette), "encode_images", lambda self, images: embed(self, images)[:, ::-1].copy()
    )
    reopened = open_library(library.folder)
    assert len(reopened.search(Query(text="blue"))) == 1
    with pytest.raises(MismatchError, match="image tower of palette"):
        reopened.search(Query(image=picture))


# What need not be read again, and what must not be taken for another


def graph_of(library):
    return library.folder / "snapshots" / library.snapshot().snapshot_id / "graph.hnsw"


@pytest.mark.parametrize("change", ["publish", "engine_for"])
def test_a_missing_thumbnail_of_an_absent_photo_stops_nothing_where_its_vector_is_known(
    put, index, library, photos, change, tmp_path
):
    put("a.png", 1)
    put("b.png", 2)
    index()
    before = ranked(library, Query(text="red"))
    photos.rename(tmp_path / "unplugged")
    shutil.rmtree(library.thumbnails)
    if change == "publish":
        library.publish(replace(PALETTE, steering=0.5))
        assert ranked(library, Query(text="red")) == before
    else:
        page = library.engine_for(GRAPH).search(Query(text="red"))
        assert [hit.photo.file.rpartition("/")[2] for hit in page] == before
    report = index_photos(library)
    assert (report.n_photos, report.missing) == (2, [photos])


@pytest.mark.parametrize(
    "change",
    [
        {"calibration": replace(UNCALIBRATED, source="another")},
        {"ef_search": 50},
        {"depth": 9, "step_rows": 3},
        {"steering": 0.7},
    ],
    ids=lambda change: next(iter(change)),
)
def test_publishing_what_is_not_in_the_graph_builds_no_graph(
    put, index, library, monkeypatch, change
):
    for i in range(40):
        put(f"{i}.png", i)
    index(config=GRAPH)
    before = graph_of(library).read_bytes()
    wanted = library.engine_for(replace(GRAPH, **change)).rank(Query(text="red"), 5)

    def built(self):
        pytest.fail("a graph was built")

    monkeypatch.setattr(HnswIndex, "_new_graph", built)
    name = library.publish(replace(GRAPH, **change))
    assert name == library.snapshot().snapshot_id
    assert graph_of(library).read_bytes() == before
    engine = open_library(library.folder).engine
    assert engine.config == replace(GRAPH, model_id=engine.model.model_id, **change)
    assert engine.index.ef_search == engine.config.ef_search
    found = engine.rank(Query(text="red"), 5)
    assert (found.rows.tolist(), found.scores.tolist()) == (
        wanted.rows.tolist(),
        wanted.scores.tolist(),
    )


@pytest.mark.parametrize("links", [True, False])
def test_another_configuration_of_the_same_index_takes_its_files_over(
    put, index, library, monkeypatch, links
):
    def no_links(*_):
        raise OSError

    put("a.png", 1)
    old = index(config=GRAPH).snapshot_id
    if not links:
        monkeypatch.setattr("searchlab.snapshots.os.link", no_links)
    new = library.publish(replace(GRAPH, depth=9))
    assert new != old
    places = [library.folder / "snapshots" / name for name in (old, new)]
    names = [sorted(path.name for path in place.iterdir()) for place in places]
    assert names[0] == names[1]
    for name in set(names[0]) - {"manifest.json"}:
        one, other = ((place / name).stat().st_ino for place in places)
        assert (one == other) == links
    assert open_library(library.folder).check() == sorted(set(names[0]) - {"manifest.json"})
    # The one goes and the other stays.
    shutil.rmtree(places[0])
    assert open_library(library.folder).engine.config.depth == 9
    assert len(open_library(library.folder).search("red")) == 1


def test_publishing_what_is_in_force_changes_nothing(put, index, library):
    put("a.png", 1)
    before = index(config=GRAPH).snapshot_id
    assert library.publish(library.engine.config) == before
    assert not list((library.folder / "snapshots").glob(".*"))


@pytest.mark.parametrize("change", [{"M": 8}, {"ef_construction": 90}, {"seed": 5}])
def test_publishing_what_is_in_the_graph_builds_it_anew(put, index, library, monkeypatch, change):
    for i in range(40):
        put(f"{i}.png", i)
    index(config=GRAPH)
    built, new_graph = [], HnswIndex._new_graph
    monkeypatch.setattr(
        HnswIndex, "_new_graph", lambda self: built.append(len(self)) or new_graph(self)
    )
    library.publish(replace(GRAPH, **change))
    assert built == [40]


@pytest.mark.parametrize("change", ["publish", "engine_for"])
def test_a_configuration_that_was_measured_with_other_weights_is_refused(
    put, index, library, change
):
    put("a.png", 1)
    index()
    before = state_of(library)
    other = replace(PALETTE, model_id="palette-000000000000")
    with pytest.raises(MismatchError, match=r"palette-000000000000.*measure again"):
        getattr(library, change)(other)
    assert state_of(library) == before
    getattr(library, change)(replace(PALETTE, model_id=load_model("palette").model_id))


@pytest.mark.parametrize("spec", ["palette", "mini"])
def test_the_file_of_a_photo_is_the_photo_itself_as_a_query(photos, library, spec):
    rng = np.random.default_rng(8)
    for i, kind in enumerate(("jpg", "png")):
        tiles = Image.fromarray(rng.integers(0, 256, (14, 20, 3), dtype=np.uint8))
        tiles.resize((1_000, 700), Image.Resampling.BICUBIC).save(photos / f"{i}.{kind}")
    index_photos(library, [photos], model=spec)
    engine = library.engine
    for row, file in enumerate(engine.table.texts("file")):
        with Image.open(file) as opened:
            pictures = [Path(file), Path(file).read_bytes(), opened.copy()]
        for picture in pictures[:2]:
            vector = engine.reference_vector(Query(image=picture))
            assert float(vector @ engine.index.vectors[row]) > 0.9999
        # A picture that was decoded whole is scaled from more pixels than a reduced decode has.
        vector = engine.reference_vector(Query(image=pictures[2]))
        assert float(vector @ engine.index.vectors[row]) > 0.995


# Engines that open, states that go


def test_a_search_on_an_open_engine_does_not_wait_while_another_is_opened(
    put, index, library, monkeypatch
):
    for i in range(9):
        put(f"{i}.png", i)
    index()
    first = library.search(Query(text="red"), per_page=4)
    put("new.png", 99)
    index()
    started, go_on, open_it = threading.Event(), threading.Event(), library_module.open_snapshot

    def slowly(*place):
        started.set()
        assert go_on.wait(20)
        return open_it(*place)

    monkeypatch.setattr(library_module, "open_snapshot", slowly)
    pages = []
    new = threading.Thread(target=lambda: pages.append(library.search(Query(text="red"))))
    old = threading.Thread(
        target=lambda: pages.append(library.search(cursor=first.next_cursor)), daemon=True
    )
    new.start()
    assert started.wait(20)
    old.start()
    old.join(5)
    waited = old.is_alive()
    go_on.set()
    new.join(20)
    old.join(20)
    assert not waited
    assert [len(page) for page in pages] == [4, 10]


def test_many_readers_open_a_new_state_once(put, index, library, monkeypatch):
    put("a.png", 1)
    index()
    opened, open_it = [], library_module.open_snapshot
    monkeypatch.setattr(
        library_module, "open_snapshot", lambda *place: opened.append(place) or open_it(*place)
    )
    gate = threading.Barrier(6)

    def read():
        gate.wait()
        library.search("red")

    readers = [threading.Thread(target=read) for _ in range(6)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert len(opened) == 1


@pytest.mark.parametrize("gone", [True, False])
def test_a_state_that_is_dropped_while_a_cursor_opens_it_says_to_search_again(
    put, index, library, monkeypatch, gone
):
    for i in range(9):
        put(f"{i}.png", i)
    name = index().snapshot_id
    cursor = library.search(Query(text="red"), per_page=4).next_cursor
    place, open_it = library.folder / "snapshots" / name, library_module.open_snapshot

    def dropped(*where):
        if gone:
            shutil.rmtree(place)
        else:
            (place / "vectors.npy").unlink()
        return open_it(*where)

    monkeypatch.setattr(library_module, "open_snapshot", dropped)
    with pytest.raises(CursorError if gone else DataError, match="search again" if gone else "npy"):
        open_library(library.folder).search(cursor=cursor)


def test_a_library_is_searched_by_words_alone_and_page_2_starts_at_its_place(put, index, library):
    for i in range(9):
        put(f"{i}.png", i)
    index()
    first = library.search("red", per_page=4)
    assert names_of(first) == names_of(library.search(Query(text="red"), per_page=4))
    assert str(first.plan) == first.plan.explain()
    second = library.search(cursor=first.next_cursor)
    assert (first.start, second.start) == (1, 5)
