"""Section 5: keys and accounts, asked as a stranger would."""

from pathlib import Path

import pytest

from tests.support.independent_client import SEARCH, check_failure, check_page, check_success

OPERATIONS = [
    ("GET", "/search/photos?q=sea"),
    ("POST", "/search/photos"),
    ("GET", "/photos/{photo_id}"),
    ("GET", "/photos/{photo_id}/similar"),
    ("GET", "/facets/colors"),
    ("GET", "/facets/sources"),
    ("GET", "/facets/orientations"),
    ("GET", "/facets/licenses"),
    ("GET", "/facets/photographers/suggest?q=a"),
    ("GET", "/facets/photographers/ann"),
    ("GET", "/collections"),
    ("POST", "/collections"),
    ("GET", "/collections/1"),
    ("DELETE", "/collections/1"),
    ("POST", "/collections/1/photos"),
    ("DELETE", "/collections/1/photos/{photo_id}"),
    ("GET", "/usage"),
    ("GET", "/usage/monthly"),
    ("GET", "/usage/daily"),
    ("GET", "/usage/by-key"),
]


@pytest.fixture(scope="module")
def keyless(known):
    return known.client()


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_operation_requires_a_key(known, keyless, method, path):
    path = path.format(photo_id=known.plain(0)["photo_id"])
    check_failure(keyless.http.request(method, path), 401, "UNAUTHORIZED")


KEYS = ["", "sl_", "abc", "sl_" + "A" * 43, "x" * 5000, "'; --", "\xff\xfe", "null", "*"]


@pytest.mark.parametrize("key", KEYS)
def test_an_unknown_key_is_refused_in_the_same_words(keyless, key):
    missing = check_failure(keyless.get("/usage"), 401, "UNAUTHORIZED")
    headers = {b"x-api-key": key.encode("latin-1")}
    assert check_failure(keyless.http.get("/usage", headers=headers), 401) == missing


def test_a_key_is_checked_to_its_last_character(known, keyless):
    key = known.keys["paid"]
    for wrong in (key[:-1], key + "A", key[:-1] + ("A" if key[-1] != "A" else "B"), key.lower()):
        check_failure(keyless.http.get("/usage", headers={"x-api-key": wrong}), 401)


@pytest.mark.parametrize("name", ["x-api-key", "X-API-KEY", "X-Api-Key"])
def test_the_name_of_the_header_may_be_written_in_any_case(known, keyless, name):
    check_success(keyless.http.get("/usage", headers={name: known.keys["paid"]}))


def test_the_key_is_taken_from_its_header_alone(known, keyless):
    key = known.keys["paid"]
    check_failure(keyless.get("/usage", **{"x-api-key": key}), 401)
    check_failure(keyless.get("/usage", api_key=key), 401)
    check_failure(keyless.http.get("/usage", headers={"authorization": f"Bearer {key}"}), 401)
    check_failure(keyless.http.get("/usage", headers={"cookie": f"x-api-key={key}"}), 401)


def test_two_different_keys_are_none(known, keyless):
    headers = [("x-api-key", known.keys["paid"]), ("x-api-key", known.keys["other"])]
    check_failure(keyless.http.get("/usage", headers=headers), 401)


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/nowhere"), ("GET", "/search/photos?per_page=abc"), ("PUT", "/usage"),
     ("GET", "/photos/unknown"), ("GET", "/collections/abc"), ("POST", "/collections"),
     ("GET", "/search/photos?fields=nope&q=a"), ("GET", "/../v2"), ("PATCH", "/nowhere")],
)  # fmt: skip
def test_without_a_key_nothing_else_is_revealed(keyless, method, path):
    check_failure(keyless.http.request(method, path, content=b"{"), 401, "UNAUTHORIZED")


def test_a_new_key_works_at_once(known):
    check_page(known.new_account("made while it runs").get(SEARCH, q="sea"))


def test_a_revoked_key_is_refused_at_once(known):
    api = known.new_account("revoked", name="lost")
    (key,) = api.data("/usage/by-key")["keys"]
    known.key_command(f"revoke {key['key_id']}")
    check_failure(api.get("/usage"), 401, "UNAUTHORIZED")
    other_key = known.new_account("revoked", name="kept")
    check_success(other_key.get("/usage"))


def test_an_account_may_hold_several_named_keys(known):
    first = known.new_account("several", name="laptop")
    known.new_account("several", name="server")
    names = [key["name"] for key in first.data("/usage/by-key")["keys"]]
    assert sorted(names) == ["laptop", "server"]


def test_keys_of_one_account_share_its_quota(known):
    first = known.new_account("sharing", name="a")
    second = known.new_account("sharing", name="b")
    first.search(q="sea")
    second.search(q="sea")
    assert first.data("/usage") == second.data("/usage")
    assert first.data("/usage")["requests"]["used"] == 2


def test_another_plan_is_in_force_at_once(known):
    api = known.new_account("rising", plan="free")
    assert api.data("/usage")["requests"]["limit"] == 5_000
    known.create_key("rising", name="next", plan="growth")
    assert api.data("/usage")["requests"]["limit"] == 100_000


def test_no_key_is_in_the_log_nor_in_the_database(known):
    api = known.new_account("logged")
    api.search(q="sea")
    known.client("sl_wrong_key_of_a_stranger_0123456789").get("/usage")
    assert api.key not in known.server.log
    assert "sl_wrong_key_of_a_stranger_0123456789" not in known.server.log
    for file in filter(Path.is_file, known.data.glob("api.db*")):
        assert api.key.encode() not in file.read_bytes()
