"""Graphs that grow and shrink with their library, and answer as ones built anew."""

import shutil

import numpy as np
import pytest
from PIL import Image

from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library, open_library
from searchlab.library.roots import check_root
from searchlab.search.queries import Query
from tests.support import library_world
from tests.support.library_world import GRAPH, PALETTE, ids_by_name

pytestmark = pytest.mark.slow

embedded = library_world.embedded
index = library_world.index
library = library_world.library
photos = library_world.photos
put = library_world.put


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
    assert ids_by_name(library) == ids_by_name(fresh)
    # Only the pictures of now are in the fresh library, and those that left were embedded too.
    assert sum(embedded) - count == len(ids_by_name(fresh)) <= count
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
        assert set(ids_by_name(reopened)) == here
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
