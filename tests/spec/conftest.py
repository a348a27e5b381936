"""What the specification's tests share: a served library of known photos, and its clients."""

import pytest

from tests.support.independent_client import create_collection
from tests.support.spec_server import corpus


@pytest.fixture(scope="module")
def known():
    return corpus()


@pytest.fixture(scope="module")
def api(known):
    return known.api()


@pytest.fixture(scope="module")
def photos(known):
    return [known.plain(number) for number in range(4)]


@pytest.fixture(scope="module")
def picture(known):
    """Bytes of a bundled photograph, and its photo_id."""
    photo = next(each for each in known.everything if each["source"] == "scikit-image")
    file = known.record_of[photo["photo_id"]]["file"]
    return (known.photos / file).read_bytes(), photo["photo_id"]


@pytest.fixture(scope="module")
def photo_id(picture):
    return picture[1]


@pytest.fixture
def mine(api):
    return create_collection(api)["id"]
