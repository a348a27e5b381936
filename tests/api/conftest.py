"""What tests of what is stored share: a database of each kind, and a clock of their own."""

import pytest
from PIL import Image

from searchlab.api.accounts.administration import create_account
from searchlab.api.accounts.issuing import create_code, redeem_code, refresh
from searchlab.api.accounts.meter import Meter
from searchlab.api.oauth.tokens import Tokens
from searchlab.config import Config
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library
from searchlab.library.roots import check_root
from tests.support.databases import BACKENDS, Clock, empty_url, fresh_database
from tests.support.grants import ASKED, CLIENT, RESOURCE, VERIFIER, consent


@pytest.fixture(params=BACKENDS)
def database(request, tmp_path):
    with fresh_database(request.param, tmp_path) as database:
        yield database


@pytest.fixture(params=BACKENDS)
def url(request, tmp_path):
    with empty_url(request.param, tmp_path) as url:
        yield url


@pytest.fixture
def clock():
    return Clock(2024, 2, 29, 12)


@pytest.fixture
def meter(database, clock):
    meter = Meter(database, clock=clock)
    yield meter
    meter.close()


@pytest.fixture(scope="module")
def five_photos(tmp_path_factory):
    """The folder of a library of five photos, each of one colour."""
    place = tmp_path_factory.mktemp("five")
    (place / "photos").mkdir()
    for number, color in enumerate(("red", "green", "blue", "white", "orange")):
        picture = Image.new("RGB", (40, 30 + number), color)
        picture.save(place / "photos" / f"{color}.png")
    library = create_library(place / "library")
    index_photos(library, [check_root(place / "photos")], config=Config(model="palette"))
    return place / "library"


@pytest.fixture
def acme(database, clock):
    return create_account(database, "acme", plan="growth", clock=clock).account_id


@pytest.fixture
def tokens(database, clock):
    tokens = Tokens(database, clock=clock)
    yield tokens
    tokens.close()


@pytest.fixture
def connect(database, clock, acme):
    """Makes a grant as a client does, and returns its first tokens."""

    def make(**options):
        code = create_code(database, consent(acme, **options), clock=clock)
        asked = ASKED | {"client_id": options.get("client", CLIENT)}
        return redeem_code(database, code, verifier=VERIFIER, clock=clock, **asked)

    return make


@pytest.fixture
def renew(database, clock):
    def make(token, **options):
        asked = {"client_id": CLIENT, "resource": RESOURCE, **options}
        return refresh(database, token, clock=clock, **asked)

    return make
