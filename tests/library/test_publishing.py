"""Publishing another configuration: the same photos, and only what must be is made anew."""

import shutil
from dataclasses import replace

import pytest

from searchlab.config.calibration import UNCALIBRATED
from searchlab.errors import NotFoundError
from searchlab.library.ingest import index_photos
from searchlab.library.library import open_library
from searchlab.models import load_model
from searchlab.search.cursors import CursorError
from searchlab.search.indexes import HnswIndex
from searchlab.search.queries import Query
from tests.support import library_world
from tests.support.library_world import GRAPH, PALETTE, ranked, state_of

pytestmark = pytest.mark.slow

index = library_world.index
library = library_world.library
photos = library_world.photos
put = library_world.put


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


# -- what need not be read again, and what must not be taken for another ------------------------


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
    expected = library.engine_for(replace(GRAPH, **change)).rank(Query(text="red"), 5)

    def built(self):
        pytest.fail("a graph was built")

    monkeypatch.setattr(HnswIndex, "_new_graph", built)
    name = library.publish(replace(GRAPH, **change))
    assert name == library.snapshot().snapshot_id
    assert graph_of(library).read_bytes() == before
    engine = open_library(library.folder).engine
    assert engine.config == replace(GRAPH, model_id=engine.model.model_id, **change)
    assert engine.index.ef_search == engine.config.ef_search
    ranking = engine.rank(Query(text="red"), 5)
    assert (ranking.rows.tolist(), ranking.scores.tolist()) == (
        expected.rows.tolist(),
        expected.scores.tolist(),
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
        monkeypatch.setattr("searchlab.library.snapshots.os.link", no_links)
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
