"""Objects at an address: whole or not at all, never stale, checked when they are copied."""

import hashlib
import sys

import pytest

from searchlab.errors import (
    DataError,
    InputError,
    MissingExtraError,
    NotFoundError,
    SearchlabError,
)

fsspec = pytest.importorskip("fsspec", reason="fsspec: pip install 'searchlab[cluster]'")

from searchlab.cluster.storage import Store  # noqa: E402


def sealed(content):
    return {"sha256": hashlib.sha256(content).hexdigest(), "n_bytes": len(content)}


def test_what_is_written_is_read_by_others(store, new_store):
    store.write("a/b.json", b"one")
    assert new_store().read("a/b.json") == b"one"
    assert new_store().size("a/b.json") == 3


def test_nothing_stale_is_read(store, new_store):
    reader = new_store()
    assert reader.size("a") is None
    store.write("a", b"one")
    assert (reader.read("a"), reader.size("a")) == (b"one", 3)
    store.write("a", b"other")
    assert (reader.read("a"), reader.size("a")) == (b"other", 5)
    store.delete("a")
    assert reader.size("a") is None


def test_a_listing_hides_nothing_that_others_write_later(store, new_store):
    reader = new_store()
    store.write("a", b"one")
    reader._system.ls(reader._root)
    store.write("a", b"other")
    store.write("b", b"new")
    assert (reader.size("a"), reader.size("b")) == (5, 3)
    store.delete("a")
    assert reader.size("a") is None


def test_an_object_that_is_not_there_is_told_by_its_address(store, tmp_path):
    with pytest.raises(NotFoundError, match=r"lost/one must be there, got no such object"):
        store.read("lost/one")
    with pytest.raises(NotFoundError, match=r"lost/one must be there"):
        store.download("lost/one", tmp_path / "copy", **sealed(b""))
    store.delete("lost/one")


def test_a_file_goes_up_and_comes_down(store, new_store, tmp_path):
    content = bytes(range(256)) * 1000
    (tmp_path / "here").write_bytes(content)
    store.upload(tmp_path / "here", "objects/one")
    new_store().download("objects/one", tmp_path / "there", **sealed(content))
    assert (tmp_path / "there").read_bytes() == content


@pytest.mark.parametrize("there", [b"partial", b"different"])
def test_a_copy_of_another_size_or_content_is_refused_and_deleted(store, tmp_path, there):
    store.write("one", there)
    with pytest.raises(DataError, match="one must be as it was written, got: "):
        store.download("one", tmp_path / "copy", **sealed(b"the whole"))
    assert not (tmp_path / "copy").exists()


def test_an_interrupted_write_leaves_what_was_there(tmp_path, monkeypatch):
    store = Store(tmp_path / "store")
    store.write("one", b"before")

    def half(path, data, **_):
        with open(path, "wb") as file:  # noqa: PTH123
            file.write(data[:3])
        raise ConnectionResetError("cut off")  # noqa: EM101

    monkeypatch.setattr(store._system, "pipe_file", half)
    with pytest.raises(SearchlabError, match="one must be written, got: cut off"):
        store.write("one", b"after!")
    assert store.read("one") == b"before"
    assert [path.name for path in (tmp_path / "store").iterdir()] == ["one"]


def test_a_protocol_that_takes_no_options_of_listings_will_do(tmp_path):
    """As those of SFTP and WebHDFS, of which the first gives every option to its client."""
    local = pytest.importorskip("fsspec.implementations.local")

    class Plain(local.LocalFileSystem):
        protocol = "plain"

        def __init__(self):
            super().__init__()

        def info(self, path):
            return super().info(path)

    fsspec.register_implementation("plain", Plain, clobber=True)
    store = Store(f"plain://{tmp_path}/store")
    assert store.size("a") is None
    store.write("a", b"one")
    assert (store.read("a"), store.size("a")) == (b"one", 3)


def test_an_address_of_no_protocol_is_refused():
    with pytest.raises(InputError, match="must be a folder or an address that fsspec knows"):
        Store("nonsense://a/b")


@pytest.mark.parametrize(
    ("address", "got"), [("", "none"), ("s3://", "'s3://'"), ("memory:///", "'memory:///'")]
)
def test_an_address_that_names_no_place_is_refused(address, got):
    with pytest.raises(InputError, match=rf"must be a folder or a URL such as .*, got {got}$"):
        Store(address)


def test_a_protocol_whose_package_is_missing_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, "s3", raising=False)
    with pytest.raises(MissingExtraError, match=r"s3://a/b must be of a protocol .* s3fs"):
        Store("s3://a/b")


def test_without_fsspec_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'searchlab\[cluster\]'"):
        Store(tmp_path)


def test_a_server_that_is_not_there_is_told_by_the_address(monkeypatch):
    pytest.importorskip("s3fs", reason="s3fs is not installed: pip install 'searchlab[cluster]'")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    store = Store(
        "s3://photos/none",
        key="any",
        secret="any",
        endpoint_url="http://127.0.0.1:9",
        config_kwargs={"connect_timeout": 1, "retries": {"max_attempts": 0}},
    )
    with pytest.raises(SearchlabError, match=r"s3://photos/none/one must be read, got: "):
        store.read("one")
