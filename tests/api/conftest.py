"""What tests of what is stored share: a database of each kind, and a clock of their own."""

import pytest

from tests.support.databases import BACKENDS, Clock, fresh_database


@pytest.fixture(params=BACKENDS)
def database(request, tmp_path):
    with fresh_database(request.param, tmp_path) as database:
        yield database


@pytest.fixture
def clock():
    return Clock(2024, 2, 29, 12)
