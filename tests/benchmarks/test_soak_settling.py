"""The end of a soak: usage by key and on pages must be what was acknowledged."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from benchmarks.soak import settling
from benchmarks.soak.ledger import Ledger
from tests.support import served_pages
from tests.support.people import person

served = served_pages.served


class InProcess:
    """As much of `World` as settling needs, over a server in this process."""

    def __init__(self, served):
        self._served, self.database, self.ledger = served, served.database, Ledger()

    @asynccontextmanager
    async def client_of(self, key):
        yield key

    async def request(self, key, _account, _method, path):
        return self._served.client.get(path, headers={"x-api-key": key})


@pytest.mark.parametrize(("acknowledged", "is_right"), [(3, True), (2, False)])
def test_searches_with_keys_and_on_pages_are_what_was_acknowledged(
    served, monkeypatch, acknowledged, is_right
):
    account = f"acknowledged {acknowledged}"
    monkeypatch.setattr(settling, "ACCOUNTS", {account: "scale"})
    browser = person(served, account)
    assert [browser.get("/", params={"q": q}).status_code for q in ("red", "blue")] == [200, 200]
    client = served.make_client(account)
    assert client.get("/api/v1/search/photos", params={"q": "red"}).status_code == 200
    world = InProcess(served)
    world.ledger.acknowledged[account] = acknowledged
    asyncio.run(settling.settle(world))
    assert world.ledger.events["searches counted"] == 3
    assert (world.ledger.broken == []) == is_right
