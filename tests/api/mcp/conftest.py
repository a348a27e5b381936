"""A server with tools, and the official SDK's client at it in both families of the protocol."""

import pytest

from tests.support.apis import api
from tests.support.served_pages import make_library
from tests.support.tool_clients import BASE_URL, MODES, ToolClient, connect


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    library = make_library(tmp_path_factory.mktemp("tools"), photographer_username="annlee")
    with api(library, base_url=BASE_URL, rate_burst=10**6) as server:
        yield server


@pytest.fixture(scope="module")
def token(server):
    return connect(server.database, "tests")


@pytest.fixture(scope="module", params=MODES)
def tools(request, server, token):
    return ToolClient(server, token, request.param)


@pytest.fixture(scope="module")
def modern(server, token):
    return ToolClient(server, token)
