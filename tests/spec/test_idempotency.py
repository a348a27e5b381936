"""Section 4.7: retrying a POST, asked as a stranger would."""

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.independent_client import (
    SEARCH,
    check_failure,
    check_invalid,
    check_page,
    check_refused,
    check_success,
)


@pytest.fixture
def key():
    return str(uuid.uuid4())


def create(api, key, name="Idem", **body):
    headers = {"idempotency-key": key}
    return api.http.post("/collections", json={"name": name} | body, headers=headers)


def collections(api):
    return len(api.data("/collections"))


def used(api):
    return api.data("/usage")["requests"]["used"]


def test_the_first_response_is_replayed(api, key):
    before = collections(api)
    first, second = create(api, key), create(api, key)
    check_success(first)
    assert (first.status_code, first.content) == (second.status_code, second.content)
    assert second.headers["idempotency-replayed"] == "true"
    assert "idempotency-replayed" not in first.headers
    assert second.headers["content-type"] == first.headers["content-type"]
    assert collections(api) == before + 1


def test_two_keys_are_refused_and_nothing_is_done(api, key):
    before = collections(api)
    headers = [("idempotency-key", key), ("idempotency-key", str(uuid.uuid4()))]
    check_invalid(api.http.post("/collections", json={"name": "twice"}, headers=headers))
    assert collections(api) == before


def test_without_the_header_the_action_is_done_again(api):
    first = api.post("/collections", {"name": "x"}).json()["data"]["id"]
    assert api.post("/collections", {"name": "x"}).json()["data"]["id"] != first


def test_another_key_is_another_action(api, key):
    assert create(api, key).json()["data"]["id"] != create(api, f"{key}2").json()["data"]["id"]


def test_adding_a_photo_is_replayed_and_no_conflict(known, api, key):
    made = check_success(api.post("/collections", {"name": "x"}))["data"]["id"]
    body, headers = {"photo_id": known.plain(0)["photo_id"]}, {"idempotency-key": key}
    path = f"/collections/{made}/photos"
    first = api.http.post(path, json=body, headers=headers)
    second = api.http.post(path, json=body, headers=headers)
    check_success(first)
    assert second.content == first.content
    check_failure(api.http.post(path, json=body), 409, "CONFLICT")


@pytest.mark.parametrize("by", ["picture", "photo_id", "cursor"])
def test_a_search_by_image_is_replayed_and_counted_once(known, key, by):
    api = known.new_account(f"replaying by {by}", plan="growth")
    photo_id = known.plain(0)["photo_id"]
    headers, params, picture = {"idempotency-key": key}, {"photo_id": photo_id}, None
    if by == "picture":
        params, picture = {}, {"image": (known.photos / "plain-00.png").read_bytes()}
    if by == "cursor":
        cursor = check_page(api.post(SEARCH, photo_id=photo_id))["pagination"]["next_cursor"]
        params = {"cursor": cursor}
    before = used(api)
    answers = [
        api.http.post(SEARCH, params=params, files=picture, headers=headers) for _ in range(3)
    ]
    check_page(answers[0])
    assert {answer.content for answer in answers} == {answers[0].content}
    assert used(api) == before + 1


def test_the_same_key_with_another_body_is_invalid(api, key):
    check_success(create(api, key))
    check_invalid(create(api, key, name="Other"))
    check_invalid(create(api, key, is_public=True))


def test_the_same_key_with_another_query_is_invalid(known, api, key):
    headers = {"idempotency-key": key}
    photo_id = known.plain(0)["photo_id"]
    check_page(api.http.post(SEARCH, params={"photo_id": photo_id}, headers=headers))
    params = {"photo_id": photo_id, "q": "sea"}
    check_invalid(api.http.post(SEARCH, params=params, headers=headers))


def test_the_same_key_with_another_picture_is_invalid(known, api, key):
    headers = {"idempotency-key": key}
    pictures = [(known.photos / f"plain-{n:02d}.png").read_bytes() for n in (0, 1)]
    check_page(api.http.post(SEARCH, files={"image": pictures[0]}, headers=headers))
    check_invalid(api.http.post(SEARCH, files={"image": pictures[1]}, headers=headers))


def test_the_same_key_means_nothing_to_another_account_or_path(known, api, key):
    first = create(api, key).json()["data"]["id"]
    other = check_success(create(known.api("other"), key))["data"]["id"]
    assert other != first
    photo_id = known.plain(0)["photo_id"]
    headers = {"idempotency-key": key}
    path = f"/collections/{first}/photos"
    check_success(api.http.post(path, json={"photo_id": photo_id}, headers=headers))
    check_page(api.http.post(SEARCH, params={"photo_id": photo_id}, headers=headers))


def test_another_key_of_the_account_gets_the_replay(known, api, key):
    second = known.new_account("paid", name="retrier")
    assert create(second, key).content == create(api, key).content


def test_an_action_that_failed_may_be_tried_again_with_its_key(known, api, key):
    headers = {"idempotency-key": key}
    check_invalid(create(api, key, name=""))
    check_success(create(api, key, name="better"))
    unknown = api.http.post(SEARCH, params={"photo_id": "unknown"}, headers=headers)
    check_failure(unknown, 404)
    params = {"photo_id": known.plain(0)["photo_id"]}
    check_page(api.http.post(SEARCH, params=params, headers=headers))


def test_many_at_once_are_one_action(api, key):
    before = collections(api)
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: create(api, key), range(16)))
    done = [answer for answer in answers if answer.status_code == 200]
    for answer in answers:
        if answer not in done:
            check_failure(answer, 409, "REQUEST_IN_FLIGHT")
            assert int(answer.headers["retry-after"]) >= 1
    assert len({answer.content for answer in done}) == 1
    assert collections(api) == before + 1
    assert create(api, key).content == done[0].content


@pytest.mark.parametrize("odd", ["x", "a b", "x" * 255, "!~/?", "ключ", "", "x" * 5000])
def test_any_key_is_honoured_or_refused(api, odd):
    before = collections(api)
    headers = {b"idempotency-key": odd.encode()}
    answers = [api.http.post("/collections", json={"name": odd[:9] or "e"}, headers=headers)
               for _ in range(2)]  # fmt: skip
    if answers[0].status_code == 200:
        assert answers[0].content == answers[1].content
        assert collections(api) == before + 1
    else:
        assert [bool(check_refused(answer)) for answer in answers] == [True, True]
        assert collections(api) == before


def test_a_get_has_no_use_for_a_key(api, key):
    headers = {"idempotency-key": key}
    ids = [api.http.get("/usage", headers=headers).json()["meta"]["request_id"] for _ in range(2)]
    assert ids[0] != ids[1]
