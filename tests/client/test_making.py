"""Making and closing a client: its address, its key, its environment, its block."""

import asyncio
import importlib
import sys

import httpx
import pytest

from searchlab import errors
from searchlab.client import AsyncClient, Client
from searchlab.errors import MissingExtraError
from tests.support import client_world
from tests.support.client_world import BASE, KEY, Server, page, success

slept = client_world.slept


@pytest.mark.parametrize(
    "address",
    ["", "photos.example.org", "ftp://a.org", "http://", "http://a.org?x=1", "http://a:b:c", "//a"],
)
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises(errors.InputError, match="base_url must be like"):
        Client(address, KEY)


@pytest.mark.parametrize("key", ["", "a b", "sl_1\n", "schlüssel", "a\0"])
def test_a_key_that_is_none_is_refused_and_not_repeated(key):
    with pytest.raises(errors.InputError, match="api_key must be the key") as caught:
        AsyncClient(BASE, key)
    assert not key or key not in str(caught.value)


def test_the_key_stays_out_of_every_repr():
    client = Client(BASE, KEY)
    assert repr(client) == "Client('http://photos.example.org')"
    page_of_photos = Client(BASE, KEY, transport=httpx.MockTransport(Server(page()))).search("x")
    assert KEY not in repr(page_of_photos)


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_client_of_the_environment(monkeypatch, kind):
    monkeypatch.setenv("SEARCHLAB_API_KEY", KEY)
    monkeypatch.delenv("SEARCHLAB_BASE_URL", raising=False)
    assert kind.from_env().base_url == "http://127.0.0.1:8000"
    monkeypatch.setenv("SEARCHLAB_BASE_URL", f"{BASE}/")
    assert kind.from_env(timeout=1).base_url == BASE


def test_an_environment_without_a_key_is_named(monkeypatch):
    monkeypatch.delenv("SEARCHLAB_API_KEY", raising=False)
    with pytest.raises(errors.InputError, match="SEARCHLAB_API_KEY must hold an API key"):
        Client.from_env()


def test_a_client_is_closed_where_its_block_ends():
    server = Server(success([]))
    with Client(BASE, KEY, transport=httpx.MockTransport(server)) as client:
        assert client.colors() == []
    with pytest.raises(RuntimeError, match="closed"):
        client.colors()


def test_an_async_client_is_closed_where_its_block_ends():
    async def use():
        transport = httpx.MockTransport(Server(success([])))
        async with AsyncClient(BASE, KEY, transport=transport) as client:
            assert await client.colors() == []
        await client.colors()

    with pytest.raises(RuntimeError, match="closed"):
        asyncio.run(use())


def test_without_its_extra_the_client_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("searchlab.client")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'searchlab\[client\]'"):
        importlib.import_module("searchlab.client")
