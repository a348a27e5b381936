"""What tests of training share."""

import pytest


@pytest.fixture(scope="module")
def indexed(tmp_path_factory):
    """Where a file's first test indexes the library that each of its tests gets a copy of."""
    return tmp_path_factory.mktemp("indexed") / "library"
