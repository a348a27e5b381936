"""`searchlab backup` and `restore`: whole copies, taken and put back while a server runs."""

import json
import shutil
import sqlite3
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner
from PIL import Image

from searchlab.cli import searchlab
from searchlab.config import Config
from searchlab.errors import DataError, InputError, NotFoundError
from searchlab.library.backup import back_up, read_backup
from searchlab.library.backup import restore as restore_library
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library, open_library
from searchlab.library.retention import Retention, read_retention, write_retention
from searchlab.library.roots import check_root
from tests.support.apis import api
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

COLLECTIONS = "/api/v1/collections"
SEARCH = "/api/v1/search/photos"


def put(place, *names):
    (place / "photos").mkdir(exist_ok=True)
    for number, name in enumerate(names):
        color = (40 * number, 255 - 40 * number, sum(map(ord, name)) % 256)
        Image.new("RGB", (40, 30), color).save(place / "photos" / f"{name}.png")
    library = create_library(place / "library")
    index_photos(library, [check_root(place / "photos")], config=Config(model="palette"))
    return library


@pytest.fixture
def library(tmp_path):
    return put(tmp_path, "a", "b")


def call(*arguments):
    done = CliRunner().invoke(searchlab, [*map(str, arguments)], catch_exceptions=True)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


def data_of(answer):
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def names(client):
    return [one["name"] for one in data_of(client.get(COLLECTIONS))]


def test_a_server_goes_on_with_what_is_restored_and_refuses_what_came_since(library, tmp_path):
    with api(library.folder, poll_s=0.02) as server:
        data_of(server.client.post(COLLECTIONS, json={"name": "kept"}))
        n_photos = len(data_of(server.client.get(SEARCH, params={"q": "red"})))
        call("backup", tmp_path / "copy", "--data", library.folder)
        data_of(server.client.post(COLLECTIONS, json={"name": "later"}))
        later = server.make_client(account="later")
        assert names(later) == []
        put(tmp_path, "a", "b", "c")
        told = call("restore", tmp_path / "copy", "--data", library.folder, "--replace")
        assert "is as it was at" in told
        assert names(server.client) == ["kept"]
        assert later.get(COLLECTIONS).status_code == 401
        wait_until(lambda: len(data_of(server.client.get(SEARCH, params={"q": "red"}))) == n_photos)
        data_of(server.client.post(COLLECTIONS, json={"name": "after"}))
        assert names(server.client) == ["kept", "after"]
    library.check()


def test_a_database_that_was_deleted_while_it_was_served_is_put_back_into_service(
    library, tmp_path
):
    with api(library.folder) as server:
        data_of(server.client.post(COLLECTIONS, json={"name": "kept"}))
        call("backup", tmp_path / "copy", "--data", library.folder)
        (library.folder / "api.db").unlink()
        answer = server.client.post(COLLECTIONS, json={"name": "lost"})
        assert answer.status_code == 503
        assert "retry-after" in answer.headers
        assert server.anonymous.get("/ready").status_code == 503
        call("restore", tmp_path / "copy", "--data", library.folder, "--replace")
        # What it found out stands for a second.
        wait_until(lambda: server.anonymous.get("/ready").status_code == 200)
        assert names(server.client) == ["kept"]
        data_of(server.client.post(COLLECTIONS, json={"name": "after"}))
    with api(library.folder) as again:
        assert names(again.client) == ["kept", "after"]


def test_a_backup_is_taken_whole_while_others_write(library, tmp_path):
    with api(library.folder) as server:
        made, stop = [], threading.Event()

        def create():
            while not stop.is_set():
                made.append(data_of(server.client.post(COLLECTIONS, json={"name": str(len(made))})))

        thread = threading.Thread(target=create)
        thread.start()
        wait_until(lambda: len(made) > 3)
        n_before = len(made)
        call("backup", tmp_path / "copy", "--data", library.folder)
        wait_until(lambda: len(made) > n_before)
        stop.set()
        thread.join()
    call("restore", tmp_path / "copy", "--data", tmp_path / "new")
    database = sqlite3.connect(tmp_path / "new" / "api.db")
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    stored = [int(row[0]) for row in database.execute("SELECT name FROM collections ORDER BY id")]
    database.close()
    assert stored == list(range(len(stored)))
    assert n_before <= len(stored)


def test_a_restored_library_answers_as_the_one_before_and_is_indexed_further(library, tmp_path):
    before = library.search("red", per_page=1)
    back_up(library, tmp_path / "copy")
    shutil.rmtree(library.folder)
    again = restore_library(read_backup(tmp_path / "copy"), library.folder)
    assert [hit.photo for hit in again.search("red", per_page=1)] == [hit.photo for hit in before]
    rest = again.search(cursor=before.next_cursor)
    assert len(rest) == 1
    assert rest[0].thumbnail is not None
    assert index_photos(again).added == 0
    assert open_library(tmp_path / "copy").search("red")[0].photo == before[0].photo
    assert not [*library.folder.rglob("*.part")]


def test_folders_that_lie_on_another_disk_are_in_a_backup(library, tmp_path):
    elsewhere = tmp_path / "larger disk"
    shutil.move(library.folder / "thumbnails", elsewhere)
    (library.folder / "thumbnails").symlink_to(elsewhere)
    (elsewhere / "round").symlink_to(library.folder)  # leads back up
    (library.folder / "again").symlink_to(elsewhere)  # two names of one folder are two folders
    thumbnail = library.search("red")[0].thumbnail.relative_to(library.folder)
    back_up(library, tmp_path / "copy")
    assert (tmp_path / "copy" / thumbnail).read_bytes() == (library.folder / thumbnail).read_bytes()
    assert not (tmp_path / "copy" / "thumbnails" / "round").exists()
    again = Path("again") / thumbnail.relative_to("thumbnails")
    assert (tmp_path / "copy" / again).read_bytes() == (
        elsewhere / again.relative_to("again")
    ).read_bytes()


def test_cursors_go_on_where_a_library_is_replaced(library, tmp_path):
    back_up(library, tmp_path / "copy")
    put(tmp_path, "a", "b", "c")
    page = open_library(library.folder).search("red", per_page=2)
    restore_library(read_backup(tmp_path / "copy"), library.folder, replace=True)
    again = open_library(library.folder)
    assert len(again.search("red")) == 2
    assert len(again.search(cursor=page.next_cursor)) <= 1
    again.check()


def test_what_is_there_is_not_written_over(library, tmp_path):
    back_up(library, tmp_path / "copy")
    with pytest.raises(InputError, match="which exists"):
        back_up(library, tmp_path / "copy")
    with pytest.raises(InputError, match="outside of the library"):
        back_up(library, library.folder / "copy")
    backup = read_backup(tmp_path / "copy")
    with pytest.raises(InputError, match="--replace"):
        restore_library(backup, library.folder)
    with pytest.raises(InputError, match="other files"):
        restore_library(backup, tmp_path / "photos")
    with pytest.raises(NotFoundError, match=r"backup\.json"):
        read_backup(tmp_path / "photos")


def test_a_damaged_library_gives_no_backup(library, tmp_path):
    path = library.folder / "snapshots" / library.engine.snapshot_id / "vectors.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"\x55")
    with pytest.raises(DataError, match=r"vectors\.npy"):
        back_up(library, tmp_path / "copy")
    assert not [*tmp_path.glob("*copy*")]


def test_a_damaged_backup_is_refused_before_anything_is_replaced(library, tmp_path):
    back_up(library, tmp_path / "copy")
    before = library.engine.snapshot_id
    manifest = tmp_path / "copy" / "backup.json"
    sound = manifest.read_text()
    for name in json.loads(sound)["files"]:
        path = tmp_path / "copy" / name
        content = path.read_bytes()
        path.write_bytes(content + b"x")
        with pytest.raises(DataError, match="not as it was written"):
            read_backup(tmp_path / "copy")
        path.unlink()
        with pytest.raises(DataError, match="must be a whole backup"):
            read_backup(tmp_path / "copy")
        path.write_bytes(content)
    for text in ("", "[]", "{}", '{"format": 1}', sound.replace("library.json", "../../etc")):
        manifest.write_text(text)
        with pytest.raises(DataError, match="as it was written"):
            read_backup(tmp_path / "copy")
    assert open_library(library.folder).engine.snapshot_id == before


def test_a_backup_may_lie_beside_the_library_that_one_stands_in_and_never_in_it(
    library, tmp_path, monkeypatch
):
    monkeypatch.chdir(library.folder)
    assert back_up(library, Path("../backup")).folder == tmp_path.resolve() / "backup"
    (tmp_path / "link").symlink_to(library.folder, target_is_directory=True)
    for inside in (tmp_path / "other" / ".." / "library" / "b", tmp_path / "link" / "b"):
        with pytest.raises(InputError, match="must lie outside of the library"):
            back_up(library, inside)


@pytest.mark.parametrize(
    "words",
    [["index", "PHOTOS"], ["keys", "list"], ["serve", "--port", "0"]],
)
def test_nothing_is_written_into_a_backup(library, tmp_path, run, words):
    call("backup", tmp_path / "copy", "--data", library.folder)
    words = [str(tmp_path / "photos") if word == "PHOTOS" else word for word in words]
    refused = run(*words, "--data", tmp_path / "copy")
    assert refused.code in (1, 2)
    assert "a backup must stay as it was written" in refused.err
    call("restore", tmp_path / "copy", "--data", tmp_path / "restored")


def test_settings_come_back_with_a_backup(library, tmp_path):
    write_retention(library.folder, Retention(36_000, 5 * 10**9))
    backup = back_up(library, tmp_path / "backup")
    restored = restore_library(backup, tmp_path / "restored")
    assert read_retention(restored.folder) == Retention(36_000, 5 * 10**9)
