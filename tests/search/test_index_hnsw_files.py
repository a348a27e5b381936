"""Damaged and foreign files of a graph: named, with the remedy told."""

import numpy as np
import pytest

from searchlab.config import Config
from searchlab.errors import DataError
from searchlab.search.indexes import HnswIndex
from tests.support.disks import full_disk


@pytest.fixture(scope="module")
def many(unit_vectors):
    return unit_vectors(4_000, 32, clusters=50)


# -- damaged and foreign graphs ---------------------------------------------------------


@pytest.fixture(scope="module")
def graph_file(tmp_path_factory, many):
    folder = tmp_path_factory.mktemp("graph")
    HnswIndex(many[:500]).save(folder)
    (path,) = folder.iterdir()
    return path


def open_bytes(folder, graph_file, content, vectors, labels=None):
    path = folder / graph_file.name
    path.write_bytes(content)
    labels = np.arange(len(vectors)) if labels is None else labels
    return HnswIndex.open(folder, vectors, Config(), labels=labels)


@pytest.mark.parametrize("share", [0.0, 0.0001, 0.001, 0.5, 0.999])
def test_a_graph_cut_short_is_named_and_the_remedy_told(tmp_path, graph_file, many, share):
    whole = graph_file.read_bytes()
    with pytest.raises(DataError, match=rf"{graph_file.name} .*(index .*again|--rebuild)"):
        open_bytes(tmp_path, graph_file, whole[: int(share * len(whole))], many[:500])


@pytest.mark.parametrize("content", [b"{}", b"\0" * 5_000, b"\xff" * 5_000, b"hnsw" * 999])
def test_garbage_is_no_graph(tmp_path, graph_file, many, content):
    with pytest.raises(DataError, match=graph_file.name):
        open_bytes(tmp_path, graph_file, content, many[:500])


def test_a_longer_file_is_no_graph(tmp_path, graph_file, many):
    with pytest.raises(DataError, match=graph_file.name):
        open_bytes(tmp_path, graph_file, graph_file.read_bytes() + b"\0", many[:500])


def test_a_graph_that_there_is_no_room_for_is_told_when_it_is_saved(tmp_path, many):
    index = HnswIndex(many[:500])
    with full_disk(room=5_000), pytest.raises(OSError, match="No space left"):
        index.save(tmp_path)
    index.save(tmp_path)
    HnswIndex.open(tmp_path, many[:500], Config(), labels=np.arange(500))


def test_a_missing_graph_is_named(tmp_path, graph_file, many):
    with pytest.raises(DataError, match=graph_file.name):
        HnswIndex.open(tmp_path, many[:500], Config(), labels=np.arange(500))


@pytest.mark.parametrize(
    "labels",
    [
        np.arange(1, 501),
        np.arange(501),
        np.arange(499),
        np.arange(100),
        np.append(np.arange(498), 499),
        np.arange(500)[::-1],
        np.arange(0),
    ],
    ids=["shifted", "one more", "one fewer", "many fewer", "one left out", "turned round", "none"],
)
def test_a_graph_of_other_photos_is_refused(graph_file, many, labels):
    with pytest.raises(DataError, match=graph_file.name):
        HnswIndex.open(graph_file.parent, many[: len(labels)], Config(), labels=labels)


def test_a_graph_of_other_vectors_is_refused(graph_file, many, unit_vectors):
    for others in (many[500:1_000], unit_vectors(500, 16), unit_vectors(500, 48)):
        with pytest.raises(DataError, match=graph_file.name):
            HnswIndex.open(graph_file.parent, others, Config(), labels=np.arange(500))
