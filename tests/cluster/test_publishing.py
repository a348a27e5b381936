"""A snapshot pushed to an address and pulled from it: the same, or refused with a reason."""

import functools
import json
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from PIL import Image

pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'searchlab[cluster]'")

from searchlab.cluster.publishing import pull, push, read_published
from searchlab.cluster.storage import Store
from searchlab.errors import ConflictError, DataError, InputError, NotFoundError, SearchlabError
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library, open_library
from searchlab.library.snapshots import current_id
from tests.support.library_world import ALL, ranked, state_of

pytestmark = pytest.mark.slow


@pytest.fixture
def indexed(put, index, library):
    put("red.png", "#e50000")
    put("blue.png", "#0343df")
    index()
    return library


@pytest.fixture
def elsewhere(tmp_path):
    return create_library(tmp_path / "elsewhere")


@pytest.fixture
def one_store(tmp_path):
    """A store of one kind, for what depends on no kind: `test_storage` holds all kinds alike."""
    return Store(tmp_path / "published")


def snapshot_files(library):
    place = library.folder / "snapshots" / current_id(library.folder)
    return {path.name: path.read_bytes() for path in place.iterdir()}


def names_of(store, manifest):
    return {name: f"objects/{one['sha256']}" for name, one in manifest["files"].items()}


def test_a_pulled_library_is_the_pushed_one_to_the_last_byte(indexed, elsewhere, new_store):
    pushed = push(indexed, new_store())
    pulled = pull(new_store(), elsewhere)
    assert pulled.snapshot_id == pushed.snapshot_id == current_id(elsewhere.folder)
    assert pulled.n_copied == pushed.n_copied == pushed.n_files >= 5
    assert snapshot_files(elsewhere) == snapshot_files(indexed)
    assert ranked(elsewhere, ALL) == ranked(indexed, ALL)
    assert open_library(elsewhere.folder).check()


@pytest.fixture
def web_server(tmp_path):
    """A folder, and the address at which a web server shows it."""
    pytest.importorskip("aiohttp", reason="aiohttp is not installed")
    folder = tmp_path / "shown"
    handler = functools.partial(SilentHandler, directory=folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class SilentHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def test_what_a_web_server_shows_is_pulled_again_and_again(
    indexed, elsewhere, web_server, put, index
):
    folder, address = web_server
    push(indexed, Store(folder))
    pull(Store(address), elsewhere)
    put("green.png", "#15b01a")
    index()
    push(indexed, Store(folder))
    pull(Store(address), elsewhere)
    assert current_id(elsewhere.folder) == current_id(indexed.folder)
    assert Store(address).size("CURRENT") == len((folder / "CURRENT").read_bytes())
    assert Store(address).size("none") is None


def test_only_what_is_new_is_copied(indexed, elsewhere, store, put, index):
    push(indexed, store)
    assert push(indexed, store).n_copied == 0
    pull(store, elsewhere)
    assert pull(store, elsewhere).n_copied == 0
    put("green.png", "#15b01a")
    index()
    assert push(indexed, store).n_copied > 0
    assert pull(store, elsewhere).snapshot_id == current_id(indexed.folder)
    assert len(ranked(elsewhere, ALL)) == 3


def test_an_upload_that_is_cut_off_anywhere_leaves_what_was_in_force_and_goes_on(
    indexed, elsewhere, new_store, put, index, monkeypatch
):
    first = push(indexed, new_store()).snapshot_id
    put("green.png", "#15b01a")
    index()
    n_writes = 0

    class CutError(BaseException):
        pass

    def counted(method, stop_at):
        def call(self, *args):
            nonlocal n_writes
            if n_writes == stop_at:
                raise CutError
            n_writes += 1
            return method(self, *args)

        return call

    upload, write = Store.upload, Store.write
    for stop_at in range(100):
        n_writes = 0
        with monkeypatch.context() as patch:
            patch.setattr(Store, "upload", counted(upload, stop_at))
            patch.setattr(Store, "write", counted(write, stop_at))
            try:
                push(indexed, new_store())
                break
            except CutError:
                pass
        assert pull(new_store(), elsewhere).snapshot_id == first
        # Each try brings one object more than the one before: nothing is copied twice.
        assert stop_at < 5
    assert pull(new_store(), elsewhere).snapshot_id == current_id(indexed.folder) != first


def test_every_lost_object_is_told_and_the_library_stays(indexed, elsewhere, store, put, index):
    push(indexed, store)
    pull(store, elsewhere)
    put("green.png", "#15b01a")
    index()
    pushed = push(indexed, store)
    before = state_of(elsewhere)
    manifest = read_published(store, pushed.snapshot_id)
    name = f"snapshots/{pushed.snapshot_id}/manifest.json"
    for lost in (*names_of(store, manifest).values(), name):
        content = store.read(lost)
        store.delete(lost)
        with pytest.raises(DataError, match=rf"{lost} must be there, .* push the library again"):
            pull(store, elsewhere)
        assert state_of(elsewhere) == before
        store.write(lost, content)
    assert pull(store, elsewhere).snapshot_id == pushed.snapshot_id


@pytest.mark.parametrize("damage", ["cut", "flipped", "emptied"])
def test_damaged_bytes_are_refused_and_mended_by_pushing_all(indexed, elsewhere, store, damage):
    pushed = push(indexed, store)
    manifest = read_published(store, pushed.snapshot_id)
    for damaged in (
        names_of(store, manifest)["vectors.npy"],
        f"snapshots/{pushed.snapshot_id}/manifest.json",
    ):
        content = store.read(damaged)
        flipped = content[:-2] + bytes([content[-2] ^ 1]) + content[-1:]
        store.write(damaged, {"cut": content[:-1], "flipped": flipped, "emptied": b""}[damage])
        with pytest.raises(DataError, match=f"{damaged} must be as it was written, got: "):
            pull(store, elsewhere)
        assert current_id(elsewhere.folder) is None
    push(indexed, store, everything=True)
    assert pull(store, elsewhere).snapshot_id == pushed.snapshot_id


def test_a_current_that_names_no_snapshot_is_refused(indexed, elsewhere, one_store):
    push(indexed, one_store)
    one_store.write("CURRENT", b"../../etc\n")
    with pytest.raises(DataError, match=r"CURRENT must name a snapshot, got '\.\./\.\./etc'"):
        pull(one_store, elsewhere)


def test_a_manifest_of_another_snapshot_is_refused(indexed, elsewhere, one_store, put, index):
    first = push(indexed, one_store).snapshot_id
    put("green.png", "#15b01a")
    index()
    second = push(indexed, one_store).snapshot_id
    stale = one_store.read(f"snapshots/{first}/manifest.json")
    one_store.write(f"snapshots/{second}/manifest.json", stale)
    with pytest.raises(DataError, match="another checksum than its folder's name"):
        pull(one_store, elsewhere)


def test_another_library_is_not_replaced_unless_asked(indexed, elsewhere, one_store):
    push(indexed, one_store)
    pull(one_store, elsewhere)
    with pytest.raises(ConflictError, match="hold this library, got another one"):
        push(elsewhere, one_store)
    push(elsewhere, one_store, replace=True)
    assert json.loads(one_store.read("library.json"))["format"] == 1


@pytest.mark.parametrize("replace", [False, True])
def test_a_library_in_use_is_never_replaced(indexed, elsewhere, replace):
    before = {path: path.read_bytes() for path in elsewhere.folder.glob("*.json")}
    with pytest.raises(ConflictError, match="got a library that is in use; name another"):
        push(indexed, Store(elsewhere.folder), replace=replace)
    assert {path: path.read_bytes() for path in elsewhere.folder.glob("*.json")} == before


def test_an_older_snapshot_does_not_replace_a_newer_one(indexed, one_store, put, index):
    older = current_id(indexed.folder)
    put("green.png", "#15b01a")
    index()
    push(indexed, one_store)
    (indexed.folder / "CURRENT").write_text(older)
    with pytest.raises(ConflictError, match="must hold an older snapshot than"):
        push(indexed, one_store)
    assert push(indexed, one_store, replace=True).snapshot_id == older


def test_a_damaged_library_is_not_pushed(indexed, one_store):
    path = indexed.folder / "snapshots" / current_id(indexed.folder) / "vectors.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    with pytest.raises(DataError, match=r"vectors.npy must be as it was written"):
        push(indexed, one_store)
    assert one_store.size("CURRENT") is None


def test_damage_here_is_mended_by_pulling_again(indexed, elsewhere, one_store):
    push(indexed, one_store)
    pull(one_store, elsewhere)
    path = elsewhere.folder / "snapshots" / current_id(elsewhere.folder) / "vectors.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    with pytest.raises(SearchlabError):
        elsewhere.check()
    assert pull(one_store, elsewhere).n_copied > 0
    assert elsewhere.check()
    assert current_id(elsewhere.folder) == current_id(indexed.folder)
    assert pull(one_store, elsewhere).n_copied == 0


def test_a_damaged_name_of_what_is_in_force_is_mended_too(indexed, elsewhere, one_store):
    push(indexed, one_store)
    pull(one_store, elsewhere)
    (elsewhere.folder / "CURRENT").write_bytes(b"\xff\xff")
    assert pull(one_store, elsewhere).snapshot_id == current_id(elsewhere.folder)


def test_a_pull_that_died_before_it_put_its_snapshot_in_force_is_gone_on_with(
    indexed, elsewhere, one_store, put, index
):
    push(indexed, one_store)
    first = pull(one_store, elsewhere).snapshot_id
    put("green.png", "#15b01a")
    index()
    second = push(indexed, one_store).snapshot_id
    pull(one_store, elsewhere)
    (elsewhere.folder / "CURRENT").write_text(f"{first}\n")
    done = pull(one_store, elsewhere)
    assert (done.snapshot_id, done.n_copied) == (second, 0)
    assert current_id(elsewhere.folder) == second
    assert pull(one_store, elsewhere).snapshot_id == second


def test_an_older_snapshot_that_is_published_again_is_pulled_under_its_name(
    indexed, elsewhere, one_store, put, index
):
    push(indexed, one_store)
    first = current_id(indexed.folder)
    pull(one_store, elsewhere)
    put("green.png", "#15b01a")
    index()
    push(indexed, one_store)
    pull(one_store, elsewhere)
    (indexed.folder / "CURRENT").write_text(f"{first}\n")
    push(indexed, one_store, replace=True)
    for _ in range(2):
        assert pull(one_store, elsewhere).snapshot_id == current_id(elsewhere.folder) == first


def test_nothing_to_push_and_nothing_to_pull(library, elsewhere, store):
    with pytest.raises(NotFoundError, match="must hold photos to be pushed"):
        push(library, store)
    with pytest.raises(NotFoundError, match="must hold a library, got none"):
        pull(store, elsewhere)


def test_the_commands_push_and_pull(indexed, tmp_path, run):
    address = tmp_path / "published"
    done = run("pull", address, "--data", tmp_path / "copy")
    assert (done.code, (tmp_path / "copy").exists()) == (2, False)
    done = run("push", address, "--data", indexed.folder)
    assert done.code == 0, done
    done = run("pull", address, "--data", tmp_path / "copy")
    assert done.code == 0, done
    assert current_id(indexed.folder) in done.out
    assert ranked(open_library(tmp_path / "copy"), ALL) == ranked(indexed, ALL)


def test_photos_of_ones_own_are_replaced_only_if_asked_to(indexed, store, tmp_path, run):
    push(indexed, store)
    (tmp_path / "own").mkdir()
    Image.new("RGB", (40, 30), "#0343df").save(tmp_path / "own" / "mine.png")
    own = create_library(tmp_path / "mine")
    index_photos(own, [tmp_path / "own"], model="palette")
    before = current_id(own.folder)
    with pytest.raises(ConflictError, match="which never was; pull into another folder"):
        pull(store, own)
    done = run("pull", store.address, "--data", own.folder)
    assert (done.code, current_id(own.folder)) == (1, before)
    done = run("pull", store.address, "--data", own.folder, "--replace")
    assert done.code == 0
    assert ranked(open_library(own.folder), ALL) == ranked(indexed, ALL)


def test_a_library_is_not_pushed_into_itself(indexed):
    for address in (indexed.folder, indexed.folder / "pushed"):
        with pytest.raises(InputError, match="outside of it"):
            push(indexed, Store(address))
    assert not (indexed.folder / "pushed").exists()
