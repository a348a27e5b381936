"""Nothing of one account is seen, changed or counted by another: every operation, two accounts."""

import base64
import re

import httpx
import pytest

from tests.support.independent_client import (
    SEARCH,
    check_failure,
    check_invalid,
    check_page,
    check_success,
)
from tests.support.spec_server import corpus

NOBODYS = "999999999"
# What an operation may have to do with an account. The last two have nothing to hide: what they
# answer is the same for everybody.
CURSORS = {"searchPhotosByText", "searchPhotosByImage", "similarPhotos"}
COLLECTIONS = {
    "listCollections",
    "createCollection",
    "getCollection",
    "deleteCollection",
    "addCollectionPhoto",
    "removeCollectionPhoto",
}
USAGE = {"getUsage", "getMonthlyUsage", "getDailyUsage", "getUsageByKey"}
SHARED = {
    "getPhoto",
    "listColors",
    "listSources",
    "listOrientations",
    "listLicenses",
    "suggestPhotographers",
    "getPhotographer",
}


@pytest.fixture(scope="module")
def known():
    return corpus()


@pytest.fixture(scope="module")
def anna(known):
    return known.new_account("isolated anna", name="anna's secret laptop", plan="growth")


@pytest.fixture(scope="module")
def bert(known):
    return known.new_account("isolated bert", name="bert's", plan="free")


@pytest.fixture(scope="module")
def photo_id(known):
    return known.plain(0)["photo_id"]


@pytest.fixture
def private(anna, photo_id):
    """A private collection of Anna's, with a photo."""
    made = check_success(anna.post("/collections", {"name": "Anna's secret"}))["data"]["id"]
    entry = {"photo_id": photo_id, "photo_photographer": "Anna's secret friend"}
    check_success(anna.post(f"/collections/{made}/photos", entry))
    return made


def test_no_operation_is_left_out_of_these_tests(known):
    document = httpx.get(f"{known.base_url}/openapi.json").json()
    operations = {
        operation["operationId"]
        for path, methods in document["paths"].items()
        for operation in methods.values()
        if path.startswith("/api/")
    }
    assert operations == CURSORS | COLLECTIONS | USAGE | SHARED


def text_without_meta(answer):
    """Return what an answer says, without what differs at each request."""
    return re.sub(r'"meta":\{[^}]*\}', "", answer.text)


# -- collections -------------------------------------------------------------------------------


def requests_on(collection_id, photo_id):
    path, other = f"/collections/{collection_id}", "00000000-0000-4000-8000-000000000000"
    return [
        ("GET", path, None),
        ("DELETE", path, None),
        ("POST", f"{path}/photos", {"photo_id": photo_id}),
        ("POST", f"{path}/photos", {"photo_id": other}),
        ("DELETE", f"{path}/photos/{photo_id}", None),
        ("DELETE", f"{path}/photos/{other}", None),
    ]


def test_a_private_collection_is_to_others_as_one_that_does_not_exist(
    anna, bert, private, photo_id
):
    before = anna.data(f"/collections/{private}")
    theirs, nobodys = requests_on(private, photo_id), requests_on(NOBODYS, photo_id)
    for (method, path, body), (_, nowhere, _) in zip(theirs, nobodys, strict=True):
        answer = bert.http.request(method, path, json=body)
        check_failure(answer, 404, "NOT_FOUND")
        unknown = bert.http.request(method, nowhere, json=body)
        # A number alone: the id of a photo has digits, too.
        said = re.sub(rf"(?<![\w-]){private}(?![\w-])", NOBODYS, text_without_meta(answer))
        assert said == text_without_meta(unknown)
    assert anna.data(f"/collections/{private}") == before


def test_a_public_collection_is_read_by_others_and_changed_by_none(anna, bert, photo_id):
    made = check_success(anna.post("/collections", {"name": "shown", "is_public": True}))["data"]
    check_success(anna.post(f"/collections/{made['id']}/photos", {"photo_id": photo_id}))
    before = anna.data(f"/collections/{made['id']}")
    assert bert.data(f"/collections/{made['id']}") == before
    read, *changes = requests_on(made["id"], photo_id)
    assert read[0] == "GET"
    for method, path, body in changes:
        answer = bert.http.request(method, path, json=body)
        assert answer.status_code in {403, 404}
        check_failure(answer, answer.status_code)
    assert anna.data(f"/collections/{made['id']}") == before
    assert made["id"] not in [each["id"] for each in bert.data("/collections")]


def test_the_list_is_the_accounts_own(anna, bert, private):
    assert "secret" not in bert.get("/collections").text
    assert private in [each["id"] for each in anna.data("/collections")]


def test_what_is_made_belongs_to_who_makes_it_whatever_the_body_says(anna, bert):
    body = {"name": "bert's", "id": 1, "account_id": 1, "account": "isolated anna", "owner": 1}
    made = check_success(bert.post("/collections", body))["data"]["id"]
    check_success(bert.get(f"/collections/{made}"))
    check_failure(anna.get(f"/collections/{made}"), 404)


# -- idempotency keys --------------------------------------------------------------------------


def test_an_idempotency_key_of_one_account_replays_nothing_to_another(anna, bert, photo_id):
    headers = {"idempotency-key": "the-same-key"}
    body = {"name": "Anna's or bert's"}
    first = anna.http.post("/collections", json=body, headers=headers)
    second = bert.http.post("/collections", json=body, headers=headers)
    assert "idempotency-replayed" not in second.headers
    mine, theirs = (check_success(each)["data"]["id"] for each in (first, second))
    assert mine != theirs
    check_failure(bert.get(f"/collections/{mine}"), 404)
    path = f"/collections/{mine}/photos"
    check_success(anna.http.post(path, json={"photo_id": photo_id}, headers=headers))
    check_failure(bert.http.post(path, json={"photo_id": photo_id}, headers=headers), 404)
    params = {"photo_id": photo_id, "per_page": 2}
    pages = [api.http.post(SEARCH, params=params, headers=headers) for api in (anna, bert)]
    assert "idempotency-replayed" not in pages[1].headers
    # One page is all that the plan free sees of photos like one.
    assert [check_page(each)["pagination"]["has_more"] for each in pages] == [True, False]
    # With another body it is no conflict: nobody learns that the key was used.
    headers = {"idempotency-key": "another-key"}
    check_success(anna.http.post("/collections", json={"name": "1"}, headers=headers))
    check_success(bert.http.post("/collections", json={"name": "2"}, headers=headers))


# -- cursors -----------------------------------------------------------------------------------


def test_a_cursor_of_one_account_is_no_cursor_to_another(known, anna, bert, photo_id):
    picture = (known.photos / "plain-00.png").read_bytes()
    first_pages = {
        ("GET", SEARCH): anna.page(q="sea", per_page=2),
        ("POST", SEARCH): check_page(anna.upload(picture, kind="image/png", per_page=2)),
        ("GET", f"/photos/{photo_id}/similar"): check_page(
            anna.get(f"/photos/{photo_id}/similar", per_page=2)
        ),
    }
    for (method, path), page in first_pages.items():
        cursor = page["pagination"]["next_cursor"]
        before = bert.data("/usage")["requests"]["used"]
        answer = bert.http.request(method, path, params={"cursor": cursor})
        check_invalid(answer, "query", "cursor")
        nonsense = bert.http.request(method, path, params={"cursor": "nonsense"})
        assert text_without_meta(answer) == text_without_meta(nonsense)
        assert bert.data("/usage")["requests"]["used"] == before
        check_page(anna.http.request(method, path, params={"cursor": cursor}))


def test_a_cursor_says_nothing_of_its_account_and_key(anna):
    cursor = anna.page(q="sea", per_page=2)["pagination"]["next_cursor"]
    (key,) = anna.data("/usage/by-key")["keys"]
    plain = cursor + "".join(
        base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)).decode("latin-1")
        for part in cursor.split(".")
        if part
    )
    for secret in (anna.key, key["key_id"], "isolated anna", "secret laptop"):
        assert secret not in plain


# -- usage -------------------------------------------------------------------------------------

RECORDS = ("/usage", "/usage/monthly", "/usage/daily", "/usage/by-key")


def test_searches_of_one_account_count_for_no_other(known, anna):
    carla = known.new_account("isolated carla", name="carla's", plan="free")
    before = [carla.data(path) for path in RECORDS[:3]]
    used = anna.data("/usage")["requests"]["used"]
    for _ in range(3):
        anna.search(q="sea")
    assert anna.data("/usage")["requests"]["used"] == used + 3
    assert [carla.data(path) for path in RECORDS[:3]] == before
    assert before[0]["requests"] == {"used": 0, "limit": 5_000, "remaining": 5_000}
    assert {month["requests"] for month in before[1]["records"]} == {0}
    assert {day["requests"] for day in before[2]["records"]} == {0}
    (key,) = carla.data("/usage/by-key")["keys"]
    assert (key["name"], key["requests_this_month"]) == ("carla's", 0)


@pytest.mark.parametrize("name", ["account", "account_id", "key_id", "x-api-key", "user"])
@pytest.mark.parametrize("path", RECORDS)
def test_no_parameter_leads_to_the_records_of_another(known, anna, bert, path, name):
    (key,) = anna.data("/usage/by-key")["keys"]
    for value in ("1", "isolated anna", key["key_id"], anna.key):
        answer = bert.get(path, **{name: value})
        check_success(answer)
        assert "secret laptop" not in answer.text
        assert key["key_id"] not in answer.text


def test_headers_tell_of_the_callers_own_quota(anna, bert):
    policies = [api.get("/facets/colors").headers["ratelimit-policy"] for api in (anna, bert)]
    assert ["q=100000;" in policies[0], "q=5000;" in policies[1]] == [True, True]


# -- what is the same for everybody ------------------------------------------------------------


def test_photos_and_facets_are_the_same_for_everybody_and_hold_nothing_of_anybody(
    anna, bert, private, photo_id
):
    paths = [
        f"/photos/{photo_id}",
        "/facets/colors",
        "/facets/sources",
        "/facets/orientations",
        "/facets/licenses",
        "/facets/photographers/suggest?q=ann",
        "/facets/photographers/ann",
    ]
    assert len(paths) == len(SHARED)
    for path in paths:
        first, second = anna.get(path), bert.get(path)
        assert check_success(first)["data"] == check_success(second)["data"]
        assert first.headers["etag"] == second.headers["etag"]
        # A cache between may keep it for the caller alone: the key is asked for each time.
        assert "public" not in first.headers["cache-control"]
        assert "secret" not in second.text


def test_searches_find_photos_and_nothing_that_accounts_wrote(bert, private):
    page = bert.page(q="Anna's secret friend", per_page=100)
    assert "secret" not in str(page["data"])
    assert bert.data("/facets/photographers/suggest", q="Anna's secret") == []
