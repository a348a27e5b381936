"""An authorization server, and clients with somebody at their browsers."""

import itertools

import pytest

from tests.support.apis import api
from tests.support.oauth_clients import Pretender
from tests.support.oauth_server import SETTINGS
from tests.support.people import person


@pytest.fixture(scope="module")
def server(five_photos):
    with api(five_photos, **SETTINGS) as server:
        yield server


@pytest.fixture(scope="module")
def make(server):
    """Makes a client, each from an address of its own, and somebody at its browser."""
    senders = itertools.count(1)

    def make(account="ann", **options):
        program = server.make_browser()
        program.headers = {"x-sender": f"192.0.2.{next(senders)}"}
        return Pretender(program, person(server, account), **options)

    return make
