"""What a library says it holds is what was put into it."""

import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest

from searchlab.errors import NotFoundError
from searchlab.library import info
from searchlab.library.info import describe_library
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library
from searchlab.library.roots import Root
from searchlab.photos.sidecar import Skipped

DAYS = ["2020-02-29", "2024-01-01", "2023-05-05"]


@pytest.fixture
def photos(tmp_path, make_picture):
    folder = tmp_path.resolve() / "photos"
    lines = []
    for number, color in enumerate(("#e50000", "#15b01a", "#0343df")):
        make_picture(folder / "in" / f"{number}.png", color)
        line = {"file": f"in/{number}.png", "uploaded_on": DAYS[number], "license_type": "cc0"}
        lines.append(line | ({"title": "The sea", "source": "nasa"} if number == 1 else {}))
    make_picture(folder / "4.png", "#ffff14")
    (folder / "broken.jpg").write_bytes(b"no picture")
    (folder / "photos.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return folder


@pytest.fixture
def library(photos, tmp_path):
    library = create_library(tmp_path / "data")
    index_photos(library, [photos, photos / "in"], model="palette")
    return library


def test_photos_are_counted_by_folder_source_licence_and_what_is_written(library, photos):
    info = describe_library(library)
    assert (info.n_photos, info.folder) == (4, str(library.folder))
    assert [(root.place, root.n_photos, root.is_there) for root in info.roots] == [
        (str(photos), 1, True),
        (str(photos / "in"), 3, True),
    ]
    assert info.sources == {"local": 3, "nasa": 1}
    assert info.licenses == {"cc0": 3, "unknown": 1}
    assert (info.written["title"], info.written["photographer"]) == (1, 0)
    assert info.first_day == "2020-02-29"
    assert info.languages == {"not told": 0.75, "english": 0.25}


def test_the_state_in_force_is_named(library):
    info, snapshot = describe_library(library), library.snapshot()
    assert (info.snapshot_id, info.config_id) == (snapshot.snapshot_id, snapshot.config.config_id)
    assert (info.model, info.index, info.snapshots) == ("palette", "exact", 1)
    assert info.model_id == snapshot.config.model_id


def test_what_the_last_indexing_skipped_is_told_until_it_is_mended(library, photos):
    [problem] = describe_library(library).problems
    assert problem.where == str(photos / "broken.jpg")
    (photos / "broken.jpg").unlink()
    index_photos(library)
    assert describe_library(library).problems == ()


def test_a_folder_that_has_gone_is_told(library, photos):
    photos.rename(photos.with_name("elsewhere"))
    assert [root.is_there for root in describe_library(library).roots] == [False, False]
    index_photos(library)
    info = describe_library(library)
    assert info.missing == (str(photos), str(photos / "in"))
    assert info.n_photos == 4


def test_sizes_are_those_of_the_files_each_once(library):
    index_photos(library, index="hnsw")
    info = describe_library(library)
    files = [p.lstat() for p in library.folder.rglob("*") if not p.is_dir()]
    once = {(stat.st_dev, stat.st_ino): stat.st_size for stat in files}
    assert info.sizes["total"] == sum(once.values())
    assert sum(info.sizes.values()) == 2 * info.sizes["total"]
    place = library.folder / "snapshots" / info.snapshot_id
    assert info.sizes["vectors"] == (place / "vectors.npy").stat().st_size
    assert info.sizes["earlier snapshots"] > 0


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"indexed_at": 1, "problems": [{}]}'])
def test_without_a_report_of_the_last_indexing_the_rest_is_told(library, text):
    whole = describe_library(library)
    report = library.folder / "indexed.json"
    report.unlink() if text is None else report.write_text(text)
    info = describe_library(library)
    assert (info.indexed_at, info.problems, info.missing) == ("", (), ())
    same = {"indexed_at": "", "problems": (), "missing": (), "sizes": info.sizes}
    assert info == dataclasses.replace(whole, **same)


def test_it_is_plain_values_for_json(library):
    record = describe_library(library).to_dict()
    assert json.loads(json.dumps(record))["roots"][1]["n_photos"] == 3
    assert Skipped(**record["problems"][0]).reason


def test_only_its_owner_may_read_which_files_were_skipped(library):
    assert (library.folder / "indexed.json").stat().st_mode & 0o777 == 0o600


def test_an_empty_library_says_what_to_do(tmp_path):
    with pytest.raises(NotFoundError, match="run `searchlab index --data"):
        describe_library(create_library(tmp_path / "empty"))


def test_two_dumps_in_one_folder_count_the_photos_of_their_own_source(tmp_path):
    dumps = [
        Root(tmp_path, tmp_path / f"{source}.jsonl", source, is_dump=True)
        for source in ("pexels", "unsplash")
    ]
    files = [str(tmp_path / name) for name in ("1.jpg", "2.jpg", "3.jpg", "4.jpg")]
    sources = SimpleNamespace(values=["local", "pexels", "unsplash"], rows=np.array([2, 1, 2, 0]))
    table = SimpleNamespace(texts=lambda _: iter(files), codes=lambda _: sources)
    assert [root.n_photos for root in info._describe_roots(table, dumps)] == [2, 2]


def test_files_that_go_while_they_are_counted_are_passed_over(library, monkeypatch):
    gone = library.folder / "gone.part"
    listed = info._files
    monkeypatch.setattr(info, "_files", lambda folder: [*listed(folder), gone])
    assert describe_library(library).n_photos == 4
