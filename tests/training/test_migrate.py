"""Migrating: a library changes models without embedding all photos again, and says the loss."""

import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

import searchlab
from searchlab.config import Config
from searchlab.errors import DataError, InputError, MismatchError, NotFoundError
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library, open_library
from searchlab.library.prune import prune
from searchlab.models import load_model
from searchlab.models.adapted import MODEL_FILE
from searchlab.models.migrated import MAP_FILE, LinearMap, MigratedEmbedder
from searchlab.models.protocol import unit_rows
from searchlab.models.shipped_calibration import calibrate
from searchlab.search.queries import Query
from searchlab.search.query_reading import check_reader, curve_of
from searchlab.training.migrate.maps import (
    fit_procrustes,
    fit_ridge,
    learn_map,
    neighbour_recall,
    refit,
)
from searchlab.training.migrate.migration import _calibration, _embed_sample, migrate

pytestmark = pytest.mark.slow

OLD, NEW = "tiles:1", "tiles:2"


@pytest.fixture
def library(indexed, tmp_path, tiles_models, tiles_photos):
    """240 pictures, indexed by the old model, of which the new one is a rotation."""
    if not indexed.exists():
        index_photos(create_library(indexed), [tiles_photos], model=OLD)
    return open_library(shutil.copytree(indexed, tmp_path / "library"))


# -- maps -------------------------------------------------------------------------------------


def rows_of(n, dim, seed):
    return unit_rows(np.random.default_rng(seed).normal(size=(n, dim)))


def test_a_rotation_is_found_again():
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(8, 8)))[0]
    old = rows_of(300, 8, 0)
    new = unit_rows(old @ turn)
    for mapping in (fit_procrustes(old[:200], new[:200]), fit_ridge(old[:200], new[:200], 1e-6)):
        np.testing.assert_allclose(mapping(old[200:]), new[200:], atol=1e-3)


def test_dimensions_may_differ_either_way():
    wide, narrow = rows_of(200, 12, 0), rows_of(200, 5, 1)
    for kind in ("ridge 3", "procrustes"):
        assert refit(kind, wide, narrow)(wide).shape == (200, 5)
        assert refit(kind, narrow, wide)(narrow).shape == (200, 12)
        mapped = refit(kind, wide, narrow)(np.zeros((2, 12), dtype=np.float32))
        assert not mapped.any()


def test_few_photos_are_mapped_by_fewer_numbers_than_many():
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(24, 24)))[0]
    old = rows_of(2_000, 24, 0)
    new = unit_rows(old @ turn + 0.1 * rng.normal(size=(2_000, 24)))
    few = learn_map(old[:30], new[:30], old[1_000:], new[1_000:])
    assert few.kind == "procrustes"
    many = learn_map(old[:1_000], new[:1_000], old[1_000:], new[1_000:])
    assert many.recall > few.recall


def test_recall_of_neighbours_is_that_of_a_plain_count():
    true, mapped = rows_of(60, 4, 0), rows_of(60, 4, 1)
    recalls = neighbour_recall(true, mapped, true)
    for row in range(60):
        others = np.delete(np.arange(60), row)
        true_nearest = others[np.argsort(-(true[others] @ true[row]))[:10]]
        mapped_nearest = others[np.argsort(-(mapped[others] @ true[row]))[:10]]
        assert recalls[row] == pytest.approx(len(set(true_nearest) & set(mapped_nearest)) / 10)
    assert (neighbour_recall(true, true, true) == 1).all()
    assert (neighbour_recall(true[:7], true, true, own=False) == 1).all()


# -- the whole --------------------------------------------------------------------------------


def test_a_migrated_library_finds_what_a_new_one_would(library, tiles_models, tiles_photos):
    report = migrate(library, OLD, NEW, sample=120)
    assert report.picture_recall.mean > 0.95
    assert report.caption_recall.mean > 0.95
    assert report.quality.difference["success@10"].macro.mean == pytest.approx(0, abs=0.05)
    assert report.old_quality.n_photos == report.n_sample[2] == 30
    assert sum(report.n_sample) == 120
    assert tiles_models[NEW].n_pictures == 121  # the sample, and the witness of the snapshot
    engine = library.engine
    assert engine.config.model == report.model == f"migrated:{report.folder}"
    assert engine.config.model_id == load_model(report.model).model_id
    assert engine.config.model_id not in (load_model(OLD).model_id, load_model(NEW).model_id)
    words = next(engine.table.texts("source_description"))
    assert library.search(words, per_page=1).hits[0].photo.source_description == words


def test_where_nothing_changes_scores_are_those_of_the_new_model():
    mini = load_model("mini")
    own = calibrate(Config(model="mini")).calibration
    rows = rows_of(400, mini.dim, 0)
    carried = _calibration(mini, SimpleNamespace(true=rows, mapped=rows))
    alike = LinearMap(np.eye(mini.dim, dtype=np.float32), np.zeros(mini.dim, dtype=np.float32))
    migrated = MigratedEmbedder("migrated:x", mini, "old-0", alike, calibration=carried)
    check_reader(carried, migrated)
    for text in ("a dog", "xqzvw", "a boat on the water"):
        words = mini.encode_texts([text])[0]
        scores = [
            curve_of(Query(text=text), words, None, calibration, model)(np.array([0.2, 0.35]))
            for calibration, model in ((own, mini), (carried, migrated))
        ]
        assert scores[1] == pytest.approx(scores[0], rel=0.02)
    assert (carried.above_even, carried.written_reach) == (own.above_even, own.written_reach)


def test_the_sample_has_the_new_models_own_vectors(library):
    report = migrate(library, OLD, NEW, sample=120)
    table, vectors = library.engine.table, np.asarray(library.engine.index.vectors)
    with library.cache() as cache:
        digests = list(table.texts("sha256"))
        own = sorted(cache.known_vectors(load_model(NEW).model_id, digests))
        assert len(own) == sum(report.n_sample)
        expected = cache.vectors(load_model(NEW).model_id, own, 12)
    rows = [digests.index(digest) for digest in own]
    np.testing.assert_array_equal(vectors[rows], expected)


def test_photos_that_come_later_are_embedded_by_the_new_model(
    library, tiles_models, tiles_photos, tmp_path
):
    report = migrate(library, OLD, NEW, sample=120)
    before = np.asarray(library.engine.index.vectors)
    Image.new("RGB", (8, 8), "#e50000").save(tmp_path / "late.png")
    (tmp_path / "more").mkdir()
    (tmp_path / "late.png").rename(tmp_path / "more/late.png")
    tiles_models[NEW].n_pictures = 0
    assert index_photos(library, [tmp_path / "more"]).added == 1
    assert tiles_models[NEW].n_pictures == 1
    assert library.engine.config.model == report.model
    table = library.engine.table
    late = [row for row, file in enumerate(table.texts("file")) if file.endswith("late.png")]
    vectors = np.asarray(library.engine.index.vectors)
    own = load_model(NEW).encode_images([Image.new("RGB", (8, 8), "#e50000")])
    np.testing.assert_allclose(vectors[late], own, atol=1e-6)
    np.testing.assert_array_equal(np.delete(vectors, late, axis=0), before)


def test_indexing_with_the_new_model_makes_an_end_of_it(library, tiles_models):
    migrate(library, OLD, NEW, sample=120)
    tiles_models[NEW].n_pictures = 0
    index_photos(library, model=NEW)
    assert tiles_models[NEW].n_pictures == 121  # what the sample left out, and the witness
    assert library.engine.config.model_id == load_model(NEW).model_id


def test_pruning_keeps_the_mapped_vectors(library, tiles_models):
    migrate(library, OLD, NEW, sample=120)
    prune(library)
    before = np.asarray(library.engine.index.vectors)
    index_photos(library, rebuild=True)
    np.testing.assert_array_equal(np.asarray(library.engine.index.vectors), before)


def test_the_old_model_need_not_be_installed(library):
    model_id = library.snapshot().config.model_id
    load_model(OLD).model_id = "tiles-aaaaaaaaaaaa"  # its weights have changed
    report = migrate(library, model_id, NEW, sample=120)
    assert report.old_quality is None
    assert report.picture_recall.mean > 0.95
    assert library.engine.config.model == report.model


def test_a_dry_run_changes_nothing(run, library):
    before = library.snapshot().snapshot_id
    code, out, err = run(
        *("models", "migrate", OLD, NEW, "--data", library.folder, "--sample", 120, "--dry-run")
    )
    assert code == 0, err
    assert "recall@10 lost, neighbours of a picture" in out
    assert "nothing was changed" in out
    assert library.snapshot().snapshot_id == before
    assert not (library.folder / "models").exists()


def test_the_command_says_what_was_lost_and_how_to_get_it_back(run, library):
    code, out, err = run("models", "migrate", OLD, NEW, "--data", library.folder)
    assert code == 0, err
    assert "map from 180 photos, judged among 60 others" in out
    assert "captions that find their photo in the first 10" in out
    assert f"searchlab index --data {library.folder} --model {NEW}" in out
    code, out, err = run("search", "1 2 3 4 5 6 7 8 9 10 11 12", "--data", library.folder)
    assert code == 0, err


def test_a_sample_holds_the_smaller_one(library, tiles_models):
    migrate(library, OLD, NEW, sample=100, dry_run=True)
    tiles_models[NEW].n_pictures = 0
    migrate(library, OLD, NEW, sample=130, dry_run=True)
    assert tiles_models[NEW].n_pictures == 30


def test_what_cannot_be_migrated_is_refused(library, tmp_path):
    with pytest.raises(MismatchError, match="served with, tiles:1"):
        migrate(library, "mini", NEW)
    with pytest.raises(InputError, match="to another model"):
        migrate(library, OLD, OLD)
    with pytest.raises(InputError, match="searchlab index --model hybrid"):
        migrate(library, OLD, "hybrid:palette=0.5,tiles:2=0.5")
    with pytest.raises(InputError, match="at least 100 photos"):
        migrate(library, OLD, NEW, sample=99)
    with pytest.raises(NotFoundError, match="must hold photos"):
        migrate(create_library(tmp_path / "empty"), OLD, NEW)
    digests = [f"{number % 60:064x}" for number in range(120)]  # each photo under two ids
    twice = SimpleNamespace(table=SimpleNamespace(texts=lambda _name: ["x.jpg"] * 120))
    with pytest.raises(InputError, match="at least 100 photos, got 60"):
        _embed_sample(twice, digests, 2_000, load_model(NEW), None, None, None)
    report = migrate(library, OLD, NEW, sample=120)
    with pytest.raises(InputError, match="embeds pictures itself"):
        migrate(library, report.model, report.model)


def test_a_damaged_or_misplaced_model_is_refused(library, tiles_models):
    report = migrate(library, OLD, NEW, sample=120)
    path = report.folder / MODEL_FILE
    values = json.loads(path.read_text())
    path.write_text(json.dumps(values | {"new_model_id": "tiles-000000000000"}))
    with pytest.raises(MismatchError, match=r"index again with `--model tiles:2`"):
        load_model(report.model)
    path.write_text(json.dumps(values))
    (report.folder / MAP_FILE).write_bytes(b"PK")
    with pytest.raises(DataError, match="must be as it was written"):
        load_model(report.model)
    with pytest.raises(InputError, match="named by its folder"):
        load_model("migrated:")
    with pytest.raises(NotFoundError, match="searchlab models migrate"):
        load_model("migrated:/nowhere")


def test_it_is_a_public_name():
    assert searchlab.migrate is migrate
