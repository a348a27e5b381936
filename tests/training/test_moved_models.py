"""A library whose model lies within it: renamed, backed up and put back, pushed and pulled."""

import json
import shutil

import pytest
from PIL import Image

from searchlab.errors import DataError, MismatchError, NotFoundError
from searchlab.library.backup import back_up, read_backup, restore
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library, open_library
from searchlab.library.models import model_files, spec_within
from searchlab.library.prune import prune
from searchlab.models.adapted import MODEL_FILE
from searchlab.training.migrate.migration import migrate

pytestmark = pytest.mark.slow

OLD, NEW = "tiles:1", "tiles:2"


@pytest.fixture
def library(indexed, tmp_path, tiles_models, tiles_photos):
    """240 pictures under a model that lies in the library's folder."""
    if not indexed.exists():
        index_photos(create_library(indexed), [tiles_photos], model=OLD)
    migrated = open_library(shutil.copytree(indexed, tmp_path / "library"))
    migrate(migrated, OLD, NEW, sample=120)
    return open_library(migrated.folder)


def found(library):
    words = next(library.engine.table.texts("source_description"))
    return [
        (hit.photo.photo_id, hit.relevance_score) for hit in library.search(words, per_page=20).hits
    ]


def test_a_renamed_library_is_searched_and_indexed(library, tmp_path, tiles_photos):
    before, config_id = found(library), library.engine.config.config_id
    library.folder.rename(tmp_path / "renamed")
    moved = open_library(tmp_path / "renamed")
    assert found(moved) == before
    assert moved.engine.config.config_id == config_id
    Image.new("RGB", (40, 40), "#102030").save(tiles_photos / "later.png")
    report = index_photos(moved, [])
    (tiles_photos / "later.png").unlink()
    assert report.added == 1
    assert moved.engine.config.model_id == open_library(moved.folder).engine.config.model_id
    prune(moved)
    index_photos(moved, [])
    assert found(moved) == before


def test_a_backup_put_back_has_its_model(library, tmp_path):
    before = found(library)
    back_up(library, tmp_path / "backup")
    shutil.rmtree(library.folder)
    put_back = restore(read_backup(tmp_path / "backup"), tmp_path / "elsewhere")
    assert found(put_back) == before


def test_a_pulled_library_has_its_model(library, tmp_path):
    pytest.importorskip("fsspec", reason="pip install 'searchlab[cluster]'")
    from searchlab.cluster.publishing import pull, push
    from searchlab.cluster.storage import Store

    before = found(library)
    store = Store(tmp_path / "address")
    published = push(library, store)
    shutil.rmtree(library.folder)
    pulled = create_library(tmp_path / "elsewhere")
    pull(store, pulled)
    assert found(pulled) == before
    # What was lost or changed here comes again, as files of the snapshot do.
    (model,) = (pulled.folder / "models").iterdir()
    (model / MODEL_FILE).write_text("{}")
    pull(store, pulled)
    assert found(open_library(pulled.folder)) == before
    names = tmp_path / "address" / "snapshots" / published.snapshot_id / "models.json"
    listed = json.loads(names.read_text())
    for outside in ("models/../../x", "/etc/x", "other/x"):
        names.write_text(json.dumps({outside: next(iter(listed.values()))}))
        with pytest.raises(DataError, match="list files of models"):
            pull(store, pulled)
    lost = next(iter(listed.values()))["sha256"]
    names.write_text(json.dumps(listed))
    (tmp_path / "address" / "objects" / lost).unlink()
    with pytest.raises(DataError, match="--all"):
        pull(store, create_library(tmp_path / "third"))


def test_another_model_of_that_name_is_not_taken(library, tmp_path):
    before = found(library)
    shutil.copytree(library.folder, tmp_path / "copy")
    (model,) = (tmp_path / "copy" / "models").iterdir()
    values = json.loads((model / MODEL_FILE).read_text())
    (model / MODEL_FILE).write_text(json.dumps(values | {"model_id": "migrated-000000000000"}))
    assert found(open_library(tmp_path / "copy")) == before  # by the one that was recorded
    shutil.rmtree(library.folder)
    with pytest.raises((NotFoundError, MismatchError), match="migrated"):
        found(open_library(tmp_path / "copy"))


def test_paths_within_a_spec(tmp_path):
    here = tmp_path / "library"
    (here / "models" / "adapted").mkdir(parents=True)
    (here / "models" / "adapted" / "model.json").write_text("{}")
    own = f"{here}/models/adapted"
    assert spec_within(here, "adapted:/old/models/adapted") == f"adapted:{own}"
    weighted = spec_within(here, "hybrid:adapted:/old/models/adapted=0.7,captions=0.3")
    assert weighted == f"hybrid:adapted:{own}=0.7,captions=0.3"
    for other in ("mini", "adapted:/old/models/other", "adapted:/old/adapted", "openclip:a/b"):
        assert spec_within(here, other) == other
        assert not list(model_files(here, other))
    assert [str(path) for path in model_files(here, weighted)] == ["models/adapted/model.json"]
