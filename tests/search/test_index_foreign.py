"""Engines elsewhere: addresses, tables that come and go, and what is promised over them."""

import gc
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.api.wire.errors import problem_of
from searchlab.config import Config
from searchlab.config.indexes import ENGINES
from searchlab.errors import (
    DataError,
    InputError,
    MismatchError,
    MissingExtraError,
    UnavailableError,
)
from searchlab.evaluation.metrics import recall_at_k
from searchlab.library.ingest import index_photos
from searchlab.library.library import open_library
from searchlab.library.roots import check_root
from searchlab.search.indexes import ExactIndex, build_index, open_index
from searchlab.search.indexes.foreign.tables import Table, save_name
from tests.support import index_kinds, library_world
from tests.support.databases import psql
from tests.support.examples import examples
from tests.support.index_kinds import N, param
from tests.support.neighbor_checks import check_answers, check_same
from tests.support.tables_in_memory import TablesInMemory

vectors = index_kinds.vectors
queries = index_kinds.queries
library = library_world.library
photos = library_world.photos
put = library_world.put


@pytest.fixture(scope="module", params=[param(kind, kind, kind) for kind in ENGINES])
def config(request):
    return Config(index=index_kinds.named(request.param))


@pytest.fixture(scope="module")
def index(config, vectors):
    return build_index(vectors, config)


END = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'searchlab'"


def snapshot(tmp_path, number):
    folder = tmp_path / "snapshots" / str(number)
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize(
    "name",
    [
        "pgvector:postgresql://me:hunter2@host/photos",
        "pgvector:postgresql://host/photos?password=hunter2",
        "milvus:http://me:hunter2@host:19530",
        "milvus:http://host:19530?token=hunter2",
    ],
)
def test_an_address_with_a_password_is_refused_and_not_repeated(name):
    with pytest.raises(InputError, match=r"must hold no password, .* put it into") as told:
        Config(index=name)
    assert "hunter2" not in str(told.value)


@pytest.mark.parametrize(
    "name",
    [
        *("pgvector", "pgvector:", "pgvector:mysql://h/d", "pgvector:postgresql://h/a b"),
        *("pgvector:http://[", "milvus:here", "milvus:http://", "exact:postgresql://h/d"),
    ],
)
def test_an_address_that_is_none_is_refused(name):
    with pytest.raises(InputError, match="must"):
        Config(index=name)


def test_a_config_with_an_engine_is_the_same_when_read_again():
    config = Config(index="pgvector:postgresql://me@host:5433/photos?sslmode=require")
    assert Config.from_dict(config.to_dict()) == config
    assert config.index_id != Config(index="pgvector:postgresql://host/photos").index_id


@pytest.mark.parametrize(("kind", "module"), [("pgvector", "psycopg"), ("milvus", "pymilvus")])
def test_a_missing_client_is_named_with_its_extra(monkeypatch, vectors, kind, module):
    monkeypatch.setitem(sys.modules, module, None)
    address = {"pgvector": "pgvector:postgresql://h/d", "milvus": "milvus:x.db"}[kind]
    with pytest.raises(MissingExtraError, match="pip install 'searchlab"):
        build_index(vectors, Config(index=address))


def test_rows_longer_than_a_graph_takes_are_refused():
    with pytest.raises(InputError, match="at most 2,000 with pgvector, got 2,001"):
        build_index(np.eye(2, 2_001, dtype=np.float32), Config(index="pgvector:postgresql://h/d"))


@pytest.mark.slow
def test_a_server_that_is_not_there_is_unavailable(vectors):
    config = Config(index="pgvector:postgresql://me@127.0.0.1:1/photos")
    with pytest.raises(UnavailableError, match="must answer"):
        build_index(vectors, config)


def test_it_is_mostly_as_good_as_exact(index, vectors, queries):
    assert recall_at_k(index.search(queries, 10), ExactIndex(vectors).search(queries, 10)) >= 0.95


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    share=st.floats(0, 1),
    k=st.integers(1, 300),
    against=st.booleans(),
)
def test_no_filter_makes_a_page_short_or_lets_another_row_in(
    index, vectors, seed, share, k, against
):
    rng = np.random.default_rng(seed)
    query = vectors[rng.integers(N)][np.newaxis]
    allowed = rng.random(N) < share
    if against:  # only rows far from the query
        products = vectors @ query[0]
        allowed = products < np.quantile(products, share)
    check_answers(index.search(query, k, allowed=allowed), vectors, query, k, allowed)
    exact = ExactIndex(vectors).search(query, k, allowed=allowed)
    check_same(index.search(query, k, allowed=allowed, recall=1), exact)


def test_the_plan_says_what_the_engine_does_not_promise(index):
    index_of_many = index.estimate(Config(depth=20), N)
    assert not index_of_many[0]
    assert "costs less than asking" in index_of_many[1]
    pays, reason = index.estimate(Config(depth=20, step_rows=0), 10**6)
    assert pays
    assert "it promises no recall" in reason


def test_a_saved_table_is_opened_and_those_of_no_snapshot_are_dropped(
    tmp_path, config, vectors, queries
):
    first, second = build_index(vectors, config), build_index(vectors[:600], config)
    old, new = snapshot(tmp_path, 1), snapshot(tmp_path, 2)
    first.save(old)
    second.save(new)
    opened = open_index(old, vectors, config, labels=np.arange(N))
    check_same(opened.search(queries, 10), first.search(queries, 10))
    (old / "engine.json").unlink()
    third = build_index(vectors[:500], config)
    third.save(snapshot(tmp_path, 3))
    names = first.engine.list_tables()
    assert first.table.name not in names
    assert {second.table.name, third.table.name} <= set(names)
    with pytest.raises(DataError, match=r"must hold .*--rebuild"):
        first.search(queries, 10)


def test_tables_of_a_library_that_was_moved_or_copied_are_its_own(tmp_path, config, vectors):
    """Whatever takes its place, or is a copy of it, drops none; and it still drops its old ones."""
    moved, new = tmp_path / "moved", tmp_path / "library"
    first, second = build_index(vectors[:300], config), build_index(vectors[:310], config)
    first.save(snapshot(new, 1))
    new.rename(moved)
    second.save(snapshot(new, 1))
    copied = tmp_path / "copied"
    shutil.copytree(moved, copied)
    (copied / "snapshots/1/engine.json").unlink()
    third = build_index(vectors[:320], config)
    third.save(snapshot(copied, 2))
    names = {one.table.name for one in (first, second, third)}
    assert names <= set(first.engine.list_tables())
    (moved / "snapshots/1/engine.json").unlink()
    build_index(vectors[:330], config).save(snapshot(moved, 2))
    assert names - set(first.engine.list_tables()) == {first.table.name}


@pytest.fixture
def two_tables(vectors):
    """An engine in this process with two tables."""
    engine, tables = TablesInMemory("pgvector"), [Table.of(vectors[:3]), Table.of(vectors[:4])]
    for table in tables:
        engine.write(table, vectors[: table.n_rows])
    return engine, *tables


def test_a_table_that_is_saved_while_another_is_stays(tmp_path, two_tables, monkeypatch):
    engine, one, other = two_tables
    beside = snapshot(tmp_path, 2)

    def list_late():
        monkeypatch.undo()
        save_name(engine, other, beside)
        return engine.list_tables()

    monkeypatch.setattr(engine, "list_tables", list_late)
    save_name(engine, one, snapshot(tmp_path, 1))
    assert set(engine.list_tables()) == {one.name, other.name}


def test_a_table_whose_folder_is_renamed_while_another_is_saved_stays(
    tmp_path, two_tables, monkeypatch
):
    engine, one, other = two_tables
    unfinished = snapshot(tmp_path, ".unfinished")
    save_name(engine, other, unfinished)
    glob = Path.glob

    def glob_early(folder, pattern):
        paths = list(glob(folder, pattern))
        if unfinished.exists():
            unfinished.rename(unfinished.with_name("2"))
        return paths

    monkeypatch.setattr(Path, "glob", glob_early)
    save_name(engine, one, snapshot(tmp_path, 1))
    assert set(engine.list_tables()) == {one.name, other.name}


def test_an_index_that_is_not_saved_leaves_no_table(config, vectors):
    index = build_index(vectors[:300], config)
    engine, name = index.engine, index.table.name
    assert name in engine.list_tables()
    del index
    gc.collect()
    assert name not in engine.list_tables()


def test_rows_of_another_library_are_refused(tmp_path, config, vectors):
    folder = snapshot(tmp_path, 1)
    build_index(vectors, config).save(folder)
    with pytest.raises(DataError, match="must hold this snapshot's rows, got others"):
        open_index(folder, vectors[::-1].copy(), config, labels=np.arange(N))
    (folder / "engine.json").write_text("{}")
    with pytest.raises(DataError, match="must name this snapshot's table"):
        open_index(folder, vectors, config, labels=np.arange(N))


@pytest.mark.slow
def test_names_that_others_chose_for_their_tables_are_no_statements(tmp_path, vectors):
    """A role that may make tables could have ours run what it likes, when old ones are dropped."""
    forgotten = json.dumps({"fingerprint": "", "library": "", "made": 0})
    psql("CREATE TABLE invoices ()")
    for name in ("searchlab_x; DROP TABLE invoices; --", "searchlab_" + "A" * 32):
        psql(f'CREATE TABLE "{name}" ()')
        psql(f"COMMENT ON TABLE \"{name}\" IS '{forgotten}'")
    index = build_index(vectors[:300], Config(index=index_kinds.named("pgvector")))
    index.save(snapshot(tmp_path, 1))
    psql("DROP TABLE invoices")
    upper = "searchlab_" + "A" * 32
    index.engine.drop(upper)
    psql(f'CREATE TABLE "{upper}" ()')  # it was gone


def test_a_table_that_cannot_be_dropped_fails_no_save(tmp_path, config, vectors, monkeypatch):
    first, second = build_index(vectors[:300], config), build_index(vectors[:310], config)
    old = snapshot(tmp_path, 1)
    first.save(old)
    (old / "engine.json").unlink()

    def refuse(name):
        msg = "must be owner of table"
        raise MismatchError(msg)

    monkeypatch.setattr(second.engine, "drop", refuse)
    new = snapshot(tmp_path, 2)
    second.save(new)
    monkeypatch.undo()
    check_same(
        open_index(new, vectors[:310], config, labels=np.arange(310)).search(vectors[:3], 5),
        second.search(vectors[:3], 5),
    )


@pytest.mark.slow
def test_rows_that_somebody_deleted_are_noticed(tmp_path, vectors):
    config = Config(index=index_kinds.named("pgvector"))
    folder = snapshot(tmp_path, 1)
    index = build_index(vectors, config)
    index.save(folder)
    psql(f"DELETE FROM {index.table.name} WHERE row = 7")
    with pytest.raises(DataError, match="must hold 1,200 rows, got 1,199"):
        open_index(folder, vectors, config, labels=np.arange(N))


@pytest.mark.slow
def test_a_connection_that_ended_is_replaced_and_a_server_that_went_is_unavailable(
    monkeypatch, vectors, queries
):
    index = build_index(vectors, Config(index=index_kinds.named("pgvector")))
    before = index.search(queries[:3], 10)
    psql(END)
    check_same(index.search(queries[:3], 10), before)
    psql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name = 'searchlab'"
    )
    monkeypatch.setattr(index.engine, "_url", "postgresql://me@127.0.0.1:1/photos")
    with pytest.raises(UnavailableError, match="must answer"):
        index.search(queries[:1], 10)


@pytest.mark.slow
def test_a_library_lies_in_an_engine_is_changed_and_answers_503_without_it(
    config, library, photos, put, monkeypatch
):
    for number in range(12):
        put(f"{number}.png", number)
    asks = replace(config, model="palette", depth=4, ef_search=4, step_rows=0)
    monkeypatch.setattr("searchlab.search.indexes.foreign.foreign_index._CALL_ROWS", 0)
    index_photos(library, [check_root(photos)], config=asks)
    put("12.png", 12)
    index_photos(library, [check_root(photos)], config=asks)
    again = open_library(library.folder)
    page = again.search("red", per_page=3)
    assert len(page) == 3
    assert page.plan.mode == config.index.partition(":")[0]
    assert "it promises no recall" in page.plan.explain()
    assert len(again.search("red", per_page=100)) == 13

    def _fail(*_):
        msg = "it must answer"
        raise UnavailableError(msg)

    monkeypatch.setattr(again.engine.index.engine, "search", _fail)
    with pytest.raises(UnavailableError) as told:
        again.search("blue", per_page=3)
    assert problem_of(told.value).kind.status == 503
