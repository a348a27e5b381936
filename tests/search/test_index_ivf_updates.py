"""The clustered index over time: changed libraries, and files that are whole or refused."""

import dataclasses

import numpy as np
import pytest

from searchlab.config import Config
from searchlab.errors import DataError
from searchlab.evaluation.metrics import recall_at_k
from searchlab.models.protocol import unit_rows
from searchlab.photos.columns import open_columns, save_columns
from searchlab.search.indexes import ExactIndex
from searchlab.search.indexes.ivf.index import IvfIndex
from searchlab.search.indexes.ivf.lists import choose_n_lists
from searchlab.studies.vectors.made import clustered
from tests.support import ivf_world
from tests.support.heads import check_heads
from tests.support.ivf_world import DIM, N, check_equal

all_vectors, vectors, members = ivf_world.all_vectors, ivf_world.vectors, ivf_world.members
queries, index, exact = ivf_world.queries, ivf_world.index, ivf_world.exact


# -- changed libraries ------------------------------------------------------------------------


def changed(vectors, *, gone, new):
    """Drop every `gone`-th row and put new ones between the others."""
    labels = np.arange(len(vectors))
    kept_labels = labels[labels % gone != 0]
    rows = np.concatenate([vectors[kept_labels], new])
    numbers = np.concatenate([kept_labels, len(vectors) + np.arange(len(new))])
    order = np.random.default_rng(6).permutation(len(numbers))
    return np.ascontiguousarray(rows[order]), numbers[order]


def test_an_update_index_is_that_of_the_changed_library(index, all_vectors, queries):
    vectors, labels = changed(all_vectors[:N], gone=7, new=near_rows(all_vectors, 500))
    updated = index.update(vectors, labels)
    exact = ExactIndex(vectors)
    assert updated._lists.centres is index._lists.centres
    assert sorted(updated._lists.rows.tolist()) == list(range(len(vectors)))
    for query in queries["image"][:10]:
        check_equal(updated.nearest(query, 30), exact.nearest(query, 30))
        check_equal(updated.nearest(query, N, at_least=0.5), exact.nearest(query, N, at_least=0.5))
    for kind in queries.values():
        assert recall_at_k(updated.search(kind, 20), exact.search(kind, 20)) >= 0.98


def test_heads_of_an_updated_index_are_of_its_rows(index, all_vectors):
    """Around the same centres and along the same axes, those that stay and those that are new."""
    vectors, labels = changed(all_vectors[:N], gone=7, new=near_rows(all_vectors, 500))
    lists = index.update(vectors, labels)._lists
    assert lists.axes is index._lists.axes
    members = lists.find_lists(np.arange(len(vectors)))
    assert np.bincount(members, minlength=len(lists.sizes)).tolist() == lists.sizes.tolist()
    check_heads(lists.heads, vectors, members, lists.positions, lists.centres)
    # Those of rows that stay are not made anew.
    stays = np.flatnonzero(labels < N)
    before = index._lists.head_codes[index._lists.positions[labels[stays]]]
    assert lists.head_codes[lists.positions[stays]].tobytes() == before.tobytes()


def near_rows(all_vectors, count):
    noise = np.random.default_rng(11).standard_normal((count, DIM))
    return unit_rows(all_vectors[:count] + 0.05 * noise)


@pytest.mark.slow
def test_the_index_before_stays_as_it_was(vectors, queries):
    index = IvfIndex(vectors)
    before = index.search(queries["image"], 5)
    index.update(*changed(vectors, gone=2, new=vectors[:0]))
    check_equal(index.search(queries["image"], 5), before)


def test_updates_upon_updates_are_exact(index, vectors, queries):
    updated, labels = index, np.arange(N)
    for step in range(3):
        kept_labels = labels[np.arange(len(labels)) % 5 != step]
        vectors = vectors[np.arange(len(labels)) % 5 != step]
        labels = kept_labels
        updated = updated.update(np.ascontiguousarray(vectors), labels)
    query = queries["image"][0]
    check_equal(updated.nearest(query, 50), ExactIndex(vectors).nearest(query, 50))


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 1, 100])
def test_a_library_that_shrinks_or_grows_much_gets_new_clusters(index, vectors, queries, count):
    few = index.update(vectors[:count].copy(), np.arange(count))
    assert few.n_lists == choose_n_lists(count) if count else few.n_lists == 0
    again = few.update(vectors, np.arange(N))
    assert again.n_lists == index.n_lists
    assert len(again.search(queries["image"], 5).rows) == len(queries["image"])


@pytest.mark.slow
def test_photos_of_a_kind_that_was_not_there_get_clusters_of_their_own(index, vectors):
    strange, _ = clustered(4_000, DIM, clusters=10, seed=77)
    updated = index.update(np.concatenate([vectors, strange]), np.arange(N + 4_000))
    assert updated._lists.centres is not index._lists.centres
    assert updated._lists.spread < 1.1 * index._lists.spread


# -- on disk ----------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path, index):
    index.save(tmp_path)
    return tmp_path


def test_a_saved_index_is_opened_by_memory_map_and_answers_the_same(saved, index, vectors, queries):
    opened = IvfIndex.open(saved, vectors, Config(), labels=np.arange(N))
    assert not opened._lists.codes.flags.owndata
    assert not opened._lists.codes.flags.writeable
    for kind in queries.values():
        check_equal(opened.search(kind, 20), index.search(kind, 20))
    mask = np.random.default_rng(1).random(N) < 0.3
    check_equal(opened.search(kind, 20, allowed=mask), index.search(kind, 20, allowed=mask))
    check_equal(opened.nearest(kind[0], 20), index.nearest(kind[0], 20))


def test_an_opened_index_can_be_updated(saved, vectors, queries):
    opened = IvfIndex.open(saved, vectors, Config(), labels=np.arange(N))
    rows, labels = changed(vectors, gone=9, new=vectors[:0])
    updated = opened.update(rows, labels)
    check_equal(
        updated.nearest(queries["text"][0], 9), ExactIndex(rows).nearest(queries["text"][0], 9)
    )


def test_an_index_without_rows_is_saved_and_opened(tmp_path):
    nothing = np.zeros((0, 12), dtype=np.float32)
    IvfIndex(nothing).save(tmp_path)
    opened = IvfIndex.open(tmp_path, nothing, Config(), labels=np.arange(0))
    assert opened.search(np.ones((1, 12), dtype=np.float32), 3).rows.tolist() == [[-1] * 3]


def check_refused(folder, vectors, match):
    with pytest.raises(DataError, match=match) as refused:
        IvfIndex.open(folder, vectors, Config(), labels=np.arange(len(vectors)))
    assert "lists.columns" in str(refused.value)
    assert "index" in str(refused.value).split(";")[-1]


def test_a_missing_file_is_refused(tmp_path, vectors):
    check_refused(tmp_path, vectors, "No such file")


def test_a_file_cut_short_is_refused(saved, vectors):
    data = (saved / "lists.columns").read_bytes()
    (saved / "lists.columns").write_bytes(data[: len(data) // 2])
    check_refused(saved, vectors, "cut short")


def test_other_vectors_are_refused(saved, vectors, unit_vectors):
    check_refused(saved, vectors[:-1], "not")
    check_refused(saved, unit_vectors(N, dim=DIM - 1), "centres|codes")
    check_refused(saved, unit_vectors(N, dim=DIM, seed=4), "built from other vectors")
    check_refused(saved, np.roll(vectors, 1, axis=0), "built from other vectors")


def tampered(name, change):
    def _change(folder):
        columns = {
            key: column.copy() for key, column in open_columns(folder / "lists.columns").items()
        }
        change(columns)
        save_columns(folder / "lists.columns", columns)

    return pytest.param(_change, id=name)


def set_nan(columns):
    columns["radii"].view(np.float32)[3] = np.nan


@pytest.mark.parametrize(
    "change",
    [
        tampered("row twice", lambda c: c["rows"].__setitem__(0, c["rows"][1])),
        tampered("row beyond", lambda c: c["rows"].__setitem__(0, N)),
        tampered("row below", lambda c: c["rows"].__setitem__(0, -1)),
        tampered("list before", lambda c: c["offsets"].__setitem__(1, N + 1)),
        tampered("list end", lambda c: c["offsets"].__setitem__(-1, N - 1)),
        tampered("no number", set_nan),
        tampered("column gone", lambda c: c.pop("scales")),
        tampered("heads cut", lambda c: c.__setitem__("head_codes", c["head_codes"][:-32])),
        tampered("axes of more", lambda c: c.__setitem__("axes", np.tile(c["axes"], 2))),
        tampered("axes no number", lambda c: c["axes"].view(np.float32).__setitem__(5, np.inf)),
        tampered("centres far out", lambda c: c["centres"].view(np.float32).fill(3e38)),
        tampered("column cut", lambda c: c.__setitem__("errors", c["errors"][:-1])),
        tampered("another dtype", lambda c: c.__setitem__("offsets", c["offsets"].astype("<i4"))),
        tampered("tails cut", lambda c: c.__setitem__("stopping", c["stopping"][:-1])),
        tampered("no lists", lambda c: c.__setitem__("offsets", c["offsets"][:0])),
    ],
)
def test_a_damaged_file_is_refused(saved, vectors, change):
    change(saved)
    check_refused(saved, vectors, "must be this snapshot's lists")


def test_lists_that_were_saved_before_there_were_heads_are_refused(saved, vectors):
    columns = dict(open_columns(saved / "lists.columns"))
    del columns["axes"], columns["head_codes"]
    save_columns(saved / "lists.columns", {key: each.copy() for key, each in columns.items()})
    check_refused(
        saved,
        vectors,
        r"lists, got: it has no column 'axes'; index again with `searchlab index .*--rebuild`",
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda heads: heads.__setitem__((3, slice(28, 30)), 255), "not finite or below 0"),
        (lambda heads: heads.__setitem__(slice(None), heads[::-1].copy()), "of other vectors"),
    ],
)
def test_heads_that_say_something_else_are_refused(vectors, tmp_path, spoil, complaint):
    index = IvfIndex(vectors)
    heads = index._lists.head_codes.copy()
    spoil(heads)
    index._lists = dataclasses.replace(index._lists, head_codes=heads)
    index.save(tmp_path)
    with pytest.raises(DataError, match=complaint):
        IvfIndex.open(tmp_path, vectors, Config(index="clustered"), labels=index.labels)
