import sqlite3

import numpy as np
import pytest

from searchlab.errors import ConflictError, DataError, SearchlabError
from searchlab.library.cache import ContentCache, Facts

FOX = Facts(640, 480, 0xFF8800, (("#ff8800", 0.75), ("#ffffff", 0.25)), "LKO2?U%2Tw=w]~RBVZRi", "")
RED = np.array([[1, 0, 0]], dtype=np.float32)
TWO = np.array([[0, 1, 0], [0, 0.6, 0.8]], dtype=np.float32)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cache.db"


@pytest.fixture
def cache(path):
    with ContentCache(path) as opened:
        yield opened


def test_an_unchanged_file_is_known_by_path_size_and_time(cache):
    cache.keep_files([("/p/a.png", 10, 123, "d1"), ("/p/b.png", 10, 123, "d2")])
    assert cache.known_file("/p/a.png", 10, 123) == "d1"
    assert cache.known_file("/p/b.png", 10, 123) == "d2"


@pytest.mark.parametrize(
    ("name", "size", "mtime_ns"),
    [("/p/c.png", 10, 123), ("/p/a.png", 11, 123), ("/p/a.png", 10, 124), ("/P/A.PNG", 10, 123)],
)
def test_a_file_that_differs_in_anything_is_not_known(cache, name, size, mtime_ns):
    cache.keep_files([("/p/a.png", 10, 123, "d1")])
    assert cache.known_file(name, size, mtime_ns) is None


def test_a_file_that_was_read_again_is_known_by_its_new_digest(cache):
    cache.keep_files([("/p/a.png", 10, 123, "d1")])
    cache.keep_files([("/p/a.png", 12, 200, "d2")])
    assert cache.known_file("/p/a.png", 12, 200) == "d2"
    assert cache.known_file("/p/a.png", 10, 123) is None


def test_sizes_and_times_of_64_bits_survive(cache):
    cache.keep_files([("/p/a.png", 2**62, 2**63 - 1, "d1"), ("/p/old.png", 1, -(2**40), "d2")])
    assert cache.known_file("/p/a.png", 2**62, 2**63 - 1) == "d1"
    assert cache.known_file("/p/old.png", 1, -(2**40)) == "d2"


def test_facts_come_back_as_they_were_kept(cache):
    damaged = Facts(problem="damaged")
    cache.keep({"d1": FOX, "d2": damaged})
    assert cache.facts(["d2", "d1", "d3"]) == {"d1": FOX, "d2": damaged}


def test_vectors_come_back_bit_by_bit_in_the_order_of_the_keys(cache):
    cache.keep(vectors=[("m1", ["a", "b"], TWO), ("m2", ["a"], RED)])
    assert cache.vectors("m1", ["b", "a", "b"], 3).tolist() == TWO[[1, 0, 1]].tolist()
    assert cache.vectors("m2", ["a"], 3).tolist() == RED.tolist()
    assert cache.vectors("m1", ["a"], 3).dtype == np.float32


def test_vectors_of_one_model_are_not_those_of_another(cache):
    cache.keep(vectors=[("m1", ["a", "b"], TWO)])
    assert cache.known_vectors("m1", ["a", "c"]) == {"a"}
    assert cache.known_vectors("m2", ["a", "b"]) == set()
    with pytest.raises(DataError, match="m2"):
        cache.vectors("m2", ["a"], 3)


def test_a_missing_vector_or_one_of_another_length_is_a_data_error_with_the_remedy(cache, path):
    cache.keep(vectors=[("m1", ["a", "b"], TWO)])
    with pytest.raises(DataError, match=r"cache\.db.*index again"):
        cache.vectors("m1", ["a", "nowhere"], 3)
    with pytest.raises(DataError, match=r"cache\.db.*index again"):
        cache.vectors("m1", ["a"], 4)


def test_nothing_is_asked_for_nothing(cache):
    assert cache.facts([]) == {}
    assert cache.known_vectors("m1", []) == set()
    assert cache.vectors("m1", [], 3).shape == (0, 3)
    cache.keep()
    cache.keep_files([])


def test_more_keys_than_one_statement_takes(cache):
    keys = [f"{i:05d}" for i in range(1_501)]
    rows = np.arange(1_501 * 2, dtype=np.float32).reshape(-1, 2)
    cache.keep(dict.fromkeys(keys, FOX), [("m1", keys, rows)])
    assert len(cache.facts(keys)) == 1_501
    assert cache.known_vectors("m1", keys) == set(keys)
    assert cache.vectors("m1", keys[::-1], 2).tolist() == rows[::-1].tolist()


@pytest.mark.parametrize("text", ["'; DROP TABLE files; --", "a?b", "ü/🦒.png", "a\nb", ""])
def test_paths_and_keys_of_any_text(cache, text):
    cache.keep_files([(text, 1, 2, text)])
    cache.keep({text: FOX}, [(text, [text], RED)])
    assert cache.known_file(text, 1, 2) == text
    assert cache.facts([text]) == {text: FOX}
    assert cache.vectors(text, [text], 3).tolist() == RED.tolist()


def test_a_batch_is_written_whole_or_not_at_all(cache, path):
    def vectors():
        yield "m1", ["a"], RED
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.keep({"d1": FOX}, vectors())
    assert cache.facts(["d1"]) == {}
    assert cache.known_vectors("m1", ["a"]) == set()


def test_rows_that_are_not_as_many_as_keys_are_refused_and_nothing_is_kept(cache):
    with pytest.raises(ValueError, match=r"zip|as many"):
        cache.keep({"d1": FOX}, [("m1", ["a", "b", "c"], TWO)])
    assert cache.facts(["d1"]) == {}
    assert cache.known_vectors("m1", ["a", "b", "c"]) == set()


def test_everything_is_there_when_opened_again(path):
    with ContentCache(path) as first:
        first.keep_files([("/p/a.png", 10, 123, "d1")])
        first.keep({"d1": FOX}, [("m1", ["d1"], RED)])
    with ContentCache(path) as second:
        assert second.known_file("/p/a.png", 10, 123) == "d1"
        assert second.facts(["d1"]) == {"d1": FOX}
        assert second.vectors("m1", ["d1"], 3).tolist() == RED.tolist()


def test_what_another_connection_has_committed_is_seen(path):
    with ContentCache(path) as writer, ContentCache(path) as reader:
        writer.keep({"d1": FOX})
        assert reader.facts(["d1"]) == {"d1": FOX}


def test_prune_keeps_what_it_is_told_and_forgets_the_rest(cache):
    cache.keep_files([("/p/a.png", 1, 1, "d1"), ("/p/b.png", 1, 1, "d2")])
    cache.keep({"d1": FOX, "d2": FOX}, [("m1", ["d1", "d2"], TWO), ("m2", ["t1"], RED)])
    cache.prune({"d1"}, {"d1", "t1"})
    assert cache.known_file("/p/a.png", 1, 1) == "d1"
    assert cache.known_file("/p/b.png", 1, 1) is None
    assert set(cache.facts(["d1", "d2"])) == {"d1"}
    assert cache.known_vectors("m1", ["d1", "d2"]) == {"d1"}
    assert cache.known_vectors("m2", ["t1"]) == {"t1"}


def test_prune_gives_the_space_back(path):
    keys = [f"{i:05d}" for i in range(500)]
    with ContentCache(path) as cache:
        cache.keep(vectors=[("m1", keys, np.ones((500, 512), dtype=np.float32))])
        cache.prune(set(), set())
    assert path.stat().st_size < 100_000


@pytest.mark.parametrize(
    "content", [b"not a database at all" * 100, b"SQLite format 3\0" + b"\xff" * 4_000]
)
def test_a_file_that_is_no_database_is_a_data_error_with_file_and_remedy(path, content):
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"cache\.db.*delete it and index again"):
        ContentCache(path)


def test_a_cache_of_a_newer_version_is_a_data_error(path):
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version=99")
    db.close()
    with pytest.raises(DataError, match="99"):
        ContentCache(path)


def test_a_folder_in_its_place_is_a_data_error(path):
    path.mkdir()
    with pytest.raises(DataError, match=r"cache\.db"):
        ContentCache(path)


def test_a_database_with_other_tables_is_a_data_error(path):
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE files (unrelated TEXT)")
    db.close()
    with pytest.raises(DataError, match=r"cache\.db"), ContentCache(path) as cache:
        cache.keep_files([("/p/a.png", 1, 1, "d1")])


def test_damage_behind_the_first_page_is_a_data_error_with_file_and_remedy(path):
    keys = [f"{i:05d}" for i in range(300)]
    with ContentCache(path) as cache:
        cache.keep(dict.fromkeys(keys, FOX), [("m1", keys, np.ones((300, 64), dtype=np.float32))])
    content = bytearray(path.read_bytes())
    content[4_096:] = bytes(byte ^ 0xFF for byte in content[4_096:])
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"cache\.db.*index again"), ContentCache(path) as cache:
        cache.known_vectors("m1", keys)


def test_facts_that_cannot_be_read_are_a_data_error_with_file_and_remedy(path):
    with ContentCache(path) as cache:
        cache.keep({"d1": FOX})
    db = sqlite3.connect(path)
    with db:
        db.execute("UPDATE contents SET facts='{\"width\": 1'")
    db.close()
    with pytest.raises(DataError, match=r"cache\.db.*index again"), ContentCache(path) as cache:
        cache.facts(["d1"])


@pytest.mark.parametrize(
    "old", ["json_remove(facts, '$.version')", "json_set(facts, '$.version', 1)"]
)
def test_facts_of_another_version_are_not_known_and_vectors_are(path, old):
    with ContentCache(path) as cache:
        cache.keep({"d1": FOX, "d2": FOX}, [("m1", ["d1"], RED)])
    db = sqlite3.connect(path)
    with db:
        db.execute(f"UPDATE contents SET facts={old} WHERE sha256='d1'")
    db.close()
    with ContentCache(path) as cache:
        assert cache.facts(["d1", "d2"]) == {"d2": FOX}
        assert cache.known_vectors("m1", ["d1"]) == {"d1"}
        cache.keep({"d1": FOX})
        assert cache.facts(["d1"]) == {"d1": FOX}


# -- a file in use, a full disk ---------------------------------------------------------------


@pytest.fixture
def impatient(monkeypatch):
    """Connections that wait for nobody."""
    connect = sqlite3.connect

    def connected(path, **_options):
        return connect(path, timeout=0)

    monkeypatch.setattr(sqlite3, "connect", connected)


@pytest.fixture
def write_locked(path):
    """Holds a cache against other writers."""
    with ContentCache(path):
        pass
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    yield db
    db.close()


def test_a_cache_that_another_process_writes_to_is_a_conflict_and_nothing_to_delete(
    impatient, write_locked, path
):
    with (
        pytest.raises(ConflictError, match=r"cache\.db is in use.*wait") as error,
        ContentCache(path) as cache,
    ):
        cache.keep({"d1": FOX})
    assert "delete" not in str(error.value)


def test_a_new_file_that_another_process_holds_is_a_conflict(impatient, path):
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(ConflictError, match=r"cache\.db is in use"):
            ContentCache(path)
    finally:
        db.close()


def test_reading_waits_for_no_writer(impatient, write_locked, path):
    with ContentCache(path) as cache:
        assert cache.facts(["d1"]) == {}


def test_a_full_disk_is_said_and_loses_nothing(path):
    keys = [f"{i:05d}" for i in range(300)]
    with ContentCache(path) as cache:
        cache.keep({"d1": FOX})

    def fill():
        with ContentCache(path) as cache:
            cache._db.execute("PRAGMA max_page_count=12")
            cache.keep(vectors=[("m1", keys, np.ones((300, 64), dtype=np.float32))])

    with pytest.raises(SearchlabError, match=r"cache\.db.*full") as error:
        fill()
    assert not isinstance(error.value, DataError)
    assert "delete" not in str(error.value)
    with ContentCache(path) as cache:
        assert cache.facts(["d1"]) == {"d1": FOX}
        assert cache.known_vectors("m1", keys) == set()


@pytest.mark.parametrize(
    ("code", "kind", "delete"),
    [
        (sqlite3.SQLITE_BUSY, ConflictError, False),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, ConflictError, False),
        (sqlite3.SQLITE_LOCKED, ConflictError, False),
        (sqlite3.SQLITE_FULL, SearchlabError, False),
        (sqlite3.SQLITE_IOERR, SearchlabError, False),
        (sqlite3.SQLITE_IOERR_WRITE, SearchlabError, False),
        (sqlite3.SQLITE_READONLY, SearchlabError, False),
        (sqlite3.SQLITE_READONLY_DBMOVED, SearchlabError, False),
        (sqlite3.SQLITE_CANTOPEN, SearchlabError, False),
        (sqlite3.SQLITE_PERM, SearchlabError, False),
        (sqlite3.SQLITE_PROTOCOL, SearchlabError, False),
        (sqlite3.SQLITE_CORRUPT, DataError, True),
        (sqlite3.SQLITE_CORRUPT_INDEX, DataError, True),
        (sqlite3.SQLITE_NOTADB, DataError, True),
    ],
)
@pytest.mark.parametrize("when", ["opening", "working"])
def test_only_a_damaged_file_is_to_be_deleted(path, monkeypatch, code, kind, delete, when):
    with ContentCache(path):
        pass
    error = sqlite3.OperationalError("what SQLite says")
    error.sqlite_errorcode = code

    def refuse(*_args, **_options):
        raise error

    def use():
        if when == "opening":
            monkeypatch.setattr(sqlite3, "connect", refuse)
        with ContentCache(path):
            refuse()

    with pytest.raises(kind) as caught:
        use()
    assert type(caught.value) is kind
    assert ("delete" in str(caught.value)) == delete
    assert str(path) in str(caught.value)


def test_a_file_that_cannot_be_made_is_said_without_advice_to_delete(tmp_path):
    with pytest.raises(SearchlabError, match="can be written") as error:
        ContentCache(tmp_path / "nowhere/cache.db")
    assert "delete" not in str(error.value)
