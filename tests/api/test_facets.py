"""Facets: the lists that filters accept, photographers by part and by name, tags and 304."""

from types import SimpleNamespace
from urllib.parse import quote

import pytest
from litestar import Litestar, Response
from litestar.datastructures import State
from litestar.testing import TestClient

from searchlab.api.http.context import RequestContext, attach, context_of
from searchlab.api.routes import facets
from searchlab.api.snapshots.facet_lists import FacetLists
from searchlab.api.snapshots.lazy import Lazy
from searchlab.api.wire.envelope import encode_failure
from searchlab.api.wire.errors import problem_of
from searchlab.api.wire.license_links import LIBRARIES, LICENSES, NOT_EVALUATED, license_url
from searchlab.photos.colors import FAMILIES
from searchlab.search.filters.photographers import Photographers

FACETS = "/api/v1/facets"
JOANNE = {"photographer_username": "joanne", "photographer_full_name": "Joanne O"}
ODD_NAMES = (
    "søren/k",
    "a b",
    "..",
    ".",
    "50%",
    "a%2Fb",
    "漢字",
    "?q=1",
    "#tag",
    "a//b",
    "/a/",
    "suggest/x",
    "+plus+",
)


def _refuse(request, error):
    status, body = encode_failure(context_of(request), problem_of(error))
    return Response(body, status_code=status, media_type="application/json")


def _made(table):
    photographers = Lazy(lambda: Photographers(table))
    photographers.get()
    return photographers


class Stage:
    """The routes of the facets over any table, without keys and limits."""

    def __init__(self, table):
        self.shown = SimpleNamespace(facets=FacetLists(table), photographers=_made(table))
        services = SimpleNamespace(live_library=SimpleNamespace(current=self.shown))
        self.app = Litestar(
            facets.ROUTES,
            exception_handlers={Exception: _refuse},
            state=State({"services": services}),
            openapi_config=None,
        )

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http":
            attach(scope, RequestContext())
        await self.app(scope, receive, send)


@pytest.fixture(scope="module")
def client(make_table):
    people = [
        {"photographer_username": name, "photographer_full_name": f"Name {number}"}
        for number, name in enumerate(ODD_NAMES)
    ]
    table = make_table(
        {"photographer_username": "annlee", "photographer_full_name": "Ann Lee"},
        {"photographer_username": "annlee", "source": "pexels", "license_type": "free"},
        {**JOANNE, "source": "attic", "license_type": "cc-by-4.0"},
        {**JOANNE, "source": "attic", "license_type": "cc-by-4.0"},
        {"photographer_username": "", "source": "attic", "license_type": "my own"},
        {"photographer_username": "", "source": "cellar", "license_type": "unknown"},
        *people,
    )
    with TestClient(Stage(table)) as client:
        yield client


def data_of(answer):
    assert answer.status_code == 200
    body = answer.json()
    assert sorted(body) == ["data", "error", "meta", "pagination", "success"]
    assert (body["success"], body["error"], body["pagination"]) == (True, None, None)
    return body["data"]


# -- lists ------------------------------------------------------------------------------------


def test_colors_are_the_families_each_with_six_digits_and_no_hash(client):
    colors = data_of(client.get(f"{FACETS}/colors"))
    assert len(colors) == 13
    assert colors[0] == {"name": "black", "hex": "000000"}
    assert {one["name"]: f"#{one['hex']}" for one in colors} == FAMILIES


def test_orientations_are_the_three(client):
    assert data_of(client.get(f"{FACETS}/orientations")) == [
        {"name": "landscape"},
        {"name": "portrait"},
        {"name": "square"},
    ]


def test_licenses_are_those_of_the_photos_and_free(client, make_table):
    licenses = data_of(client.get(f"{FACETS}/licenses"))
    names = ["cc-by-4.0", "cc0", "free", "my own", "unknown"]
    assert licenses == [{"name": name} for name in names]
    with TestClient(Stage(make_table({"license_type": "cc0"}))) as plain:
        assert data_of(plain.get(f"{FACETS}/licenses")) == [{"name": "cc0"}, {"name": "free"}]


def test_sources_name_where_their_terms_stand(client):
    assert data_of(client.get(f"{FACETS}/sources")) == [
        {"name": "attic", "license_url": "https://creativecommons.org/licenses/by/4.0/"},
        {"name": "cellar", "license_url": NOT_EVALUATED},
        {"name": "pexels", "license_url": "https://www.pexels.com/license/"},
        {"name": "unsplash", "license_url": "https://unsplash.com/license"},
    ]


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("CC BY-NC-ND 2.5", "https://creativecommons.org/licenses/by-nc-nd/2.5/"),
        ("by-sa", "https://creativecommons.org/licenses/by-sa/4.0/"),
        ("cc_zero", "https://creativecommons.org/publicdomain/zero/1.0/"),
        ("pdm", "https://creativecommons.org/publicdomain/mark/1.0/"),
        ("gpl-2.0-or-later", "https://www.gnu.org/licenses/old-licenses/gpl-2.0.html"),
        ("free", ""),
        ("cc-by-9.9", ""),
        ("", ""),
    ],
)
def test_a_licence_is_known_by_the_ways_people_write_it(name, url):
    assert license_url(name) == url


def test_every_address_in_the_tables_is_one():
    addresses = [*LIBRARIES.values(), *LICENSES.values(), NOT_EVALUATED]
    assert [one for one in addresses if not one.startswith(("https://", "http://"))] == []


# -- photographers ----------------------------------------------------------------------------


def test_suggestions_are_photographers_with_all_their_fields(client):
    suggestions = data_of(client.get(f"{FACETS}/photographers/suggest", params={"q": "ANN LÉE"}))
    assert suggestions == [
        {
            "username": "annlee",
            "full_name": "Ann Lee",
            "source": source,
            "url": "https://example.org/ann",
            "photos_count": 1,
        }
        for source in ("pexels", "unsplash")
    ]


def test_ten_suggestions_come_unless_a_limit_is_named(client):
    ask = f"{FACETS}/photographers/suggest"
    assert len(data_of(client.get(ask, params={"q": "name"}))) == 10
    assert len(data_of(client.get(ask, params={"q": "name", "limit": "2"}))) == 2
    assert len(data_of(client.get(ask, params={"q": "name", "limit": "50"}))) == len(ODD_NAMES)


@pytest.mark.parametrize("q", ["x", "x" * 100, "é" * 100, "%", " "])
def test_a_part_of_1_to_100_code_points_is_taken(client, q):
    data_of(client.get(f"{FACETS}/photographers/suggest", params={"q": q}))


@pytest.mark.parametrize(
    ("params", "loc"),
    [
        ({}, ["query", "q"]),
        ({"q": ""}, ["query", "q"]),
        ({"q": "x" * 101}, ["query", "q"]),
        ({"q": ["a", "b"]}, ["query", "q"]),
        ({"q": "a", "limit": "0"}, ["query", "limit"]),
        ({"q": "a", "limit": "51"}, ["query", "limit"]),
        ({"q": "a", "limit": "1.0"}, ["query", "limit"]),
        ({"q": "a", "limit": ""}, ["query", "limit"]),
        ({"q": "a", "limit": "9" * 30}, ["query", "limit"]),
    ],
)
def test_a_part_or_limit_out_of_range_is_422_where_it_stands(client, params, loc):
    answer = client.get(f"{FACETS}/photographers/suggest", params=params)
    assert answer.status_code == 422
    assert [detail["loc"] for detail in answer.json()["detail"]] == [loc]


def test_a_username_lists_its_profiles(client):
    profiles = data_of(client.get(f"{FACETS}/photographers/annlee"))
    assert [(one["source"], one["photos_count"]) for one in profiles] == [
        ("pexels", 1),
        ("unsplash", 1),
    ]


@pytest.mark.parametrize("username", ["nobody", "ANNLEE", "annle", "ann lee", "annlee/", "%00"])
def test_an_unknown_username_is_an_empty_list(client, username):
    assert data_of(client.get(f"{FACETS}/photographers/{quote(username, safe='%/')}")) == []


@pytest.mark.parametrize("username", [name for name in ODD_NAMES if name not in {".", ".."}])
def test_a_username_of_any_characters_is_found_percent_encoded(client, username):
    profiles = data_of(client.get(f"{FACETS}/photographers/{quote(username, safe='')}"))
    assert [one["username"] for one in profiles] == [username]


def test_a_username_that_is_no_utf8_is_422(client):
    answer = client.get(f"{FACETS}/photographers/%ff")
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"] == ["path", "username"]


# -- tags -------------------------------------------------------------------------------------

CACHED = (
    f"{FACETS}/colors",
    f"{FACETS}/sources",
    f"{FACETS}/orientations",
    f"{FACETS}/licenses",
    f"{FACETS}/photographers/suggest?q=ann",
    f"{FACETS}/photographers/annlee",
)


@pytest.mark.parametrize("path", CACHED)
def test_what_did_not_change_is_not_sent_again(client, path):
    first = client.get(path)
    tag = first.headers["etag"]
    assert first.headers["cache-control"] == "private, max-age=60"
    assert client.get(path).headers["etag"] == tag
    for known in (tag, f'"other", {tag}', tag.removeprefix("W/"), "*"):
        again = client.get(path, headers={"If-None-Match": known})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == tag
        assert again.headers["cache-control"] == "private, max-age=60"
    assert client.get(path, headers={"If-None-Match": 'W/"other"'}).status_code == 200


def test_another_list_has_another_tag(client):
    assert len({client.get(path).headers["etag"] for path in CACHED}) == len(CACHED)
