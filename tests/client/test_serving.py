"""serve_locally: a server for the length of a block that leaves no trace."""

import os

import pytest
from PIL import Image

from searchlab.client import Client, UnreachableError
from searchlab.client.serving import serve_locally
from searchlab.config import Config
from searchlab.errors import DataError, InputError
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library, open_library
from searchlab.library.roots import check_root

pytestmark = pytest.mark.slow


@pytest.fixture
def library(tmp_path):
    (tmp_path / "photos").mkdir()
    for color in ("red", "blue"):
        Image.new("RGB", (40, 30), color).save(tmp_path / "photos" / f"{color}.png")
    create_library(tmp_path / "library")
    library = open_library(tmp_path / "library")
    index_photos(library, [check_root(tmp_path / "photos")], config=Config(model="palette"))
    return tmp_path / "library"


@pytest.fixture
def environment(monkeypatch):
    """Settings of somebody's own server, which must not be touched."""
    monkeypatch.setenv("SEARCHLAB_DATABASE_URL", "postgresql://user@localhost:1/production")
    monkeypatch.setenv("SEARCHLAB_PORT", "1")
    monkeypatch.setenv("SEARCHLAB_DATA", "/nowhere")


def test_a_library_is_served_for_a_block_and_left_as_it_was(library, environment):
    before = sorted(path.name for path in library.iterdir())
    with serve_locally(library, "--rate", "50", plan="free") as client:
        assert len(client.search("red").photos) == 2
        assert client.usage().requests.limit == 5_000
        address, key = client.base_url, client._http.headers["x-api-key"]
    assert sorted(path.name for path in library.iterdir()) == before
    assert "SEARCHLAB_PORT" in os.environ
    with Client(address, key, retries=0) as late, pytest.raises(UnreachableError):
        late.usage()


def test_a_library_that_is_none_is_told_in_the_servers_words(tmp_path):
    with pytest.raises(DataError, match="a library must hold"), serve_locally(tmp_path):
        raise AssertionError


def test_a_plan_that_there_is_not_starts_no_server(tmp_path):
    with pytest.raises(InputError, match="plan must be one of"), serve_locally(tmp_path, plan="x"):
        raise AssertionError
