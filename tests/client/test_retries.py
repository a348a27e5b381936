"""What the clients try again: how often, after which wait, and what only once."""

import datetime

import httpx
import pytest

from searchlab import errors
from searchlab.client import ApiError, LimitError, ServerError, UnfinishedError, UnreachableError
from tests.support import client_world
from tests.support.client_world import COLLECTION, ENTRY, Server, failure, page, success

connect = client_world.connect
slept = client_world.slept


# -- waiting ------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_server_is_asked_again(connect, slept, status):
    server = Server(failure(status), failure(status), success([]))
    assert connect(server).colors() == []
    assert server.sent == 3
    assert 0.125 <= slept[0] <= 0.25
    assert 0.25 <= slept[1] <= 0.5


def test_waits_double_and_end_at_the_most(connect, slept):
    server = Server(failure(503))
    with pytest.raises(ServerError):
        connect(server, retries=9, max_wait=2.0).colors()
    assert server.sent == 10
    assert slept[2] <= 1.0 <= 2 * slept[2]
    assert max(slept) == 2.0


@pytest.mark.parametrize("value", ["3", " 3 "])
def test_what_the_server_asks_to_wait_is_waited(connect, slept, value):
    server = Server(failure(429, headers={"Retry-After": value}), success([]))
    connect(server).colors()
    assert slept == [3.0]


def test_a_date_to_wait_for_is_understood(connect, slept):
    later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=20)
    words = later.strftime("%a, %d %b %Y %H:%M:%S GMT")
    server = Server(failure(503, headers={"Retry-After": words}), success([]))
    connect(server).colors()
    assert 10 < slept[0] <= 20


@pytest.mark.parametrize(
    "value", ["Wed, 21 Oct 2015 07:28:00 GMT", "Wed, 21 Oct 2015 07:28:00 -0000", "0"]
)
def test_a_moment_that_has_passed_is_no_wait(connect, slept, value):
    server = Server(failure(503, headers={"Retry-After": value}), success([]))
    connect(server).colors()
    assert slept == [0.0]


@pytest.mark.parametrize("value", ["soon", "-1", "1.5", "", "٣"])
def test_a_wait_that_is_none_is_passed_over(connect, slept, value):
    headers = {b"retry-after": value.encode()}
    server = Server(failure(503, headers=headers), success([]))
    connect(server).colors()
    assert 0.125 <= slept[0] <= 0.25


def test_a_server_that_asks_to_wait_too_long_is_not_waited_for(connect, slept):
    server = Server(failure(429, "QUOTA_EXCEEDED", headers={"Retry-After": "86400"}))
    with pytest.raises(LimitError) as caught:
        connect(server).search("x")
    assert (server.sent, slept) == (1, [])
    assert caught.value.retry_after == 86400.0
    assert caught.value.code == "QUOTA_EXCEEDED"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 413, 415, 422, 500])
def test_other_failures_are_final(connect, slept, status):
    server = Server(failure(status))
    with pytest.raises(ApiError):
        connect(server).search("x")
    assert (server.sent, slept) == (1, [])


# -- sent again, or once ------------------------------------------------------------------------


LOST = [
    httpx.ConnectError("refused"),
    httpx.ConnectTimeout("slow"),
    httpx.ReadTimeout("slow"),
    httpx.ReadError("reset"),
    httpx.RemoteProtocolError("closed"),
]


@pytest.mark.parametrize("lost", LOST, ids=lambda error: type(error).__name__)
def test_a_lost_connection_is_tried_again(connect, lost):
    server = Server(lost, success([]))
    assert connect(server).colors() == []
    assert server.sent == 2


@pytest.mark.parametrize("name", ["create_collection", "add_photo"])
def test_a_post_is_sent_again_with_the_same_key_and_body(connect, name):
    calls = {
        "create_collection": (("Dunes",), success(COLLECTION)),
        "add_photo": ((7, "p1"), success(ENTRY)),
    }
    args, answer = calls[name]
    server = Server(httpx.ReadTimeout("slow"), failure(503), answer)
    client = connect(server)
    getattr(client, name)(*args)
    keys = {request.headers["idempotency-key"] for request in server.requests}
    assert server.sent == 3
    assert len(keys) == 1
    assert len({request.content for request in server.requests}) == 1
    getattr(client, name)(*args)
    assert server.last.headers["idempotency-key"] not in keys


def test_a_search_by_picture_is_sent_again_with_a_key_only_if_one_was_given(connect):
    server = Server(httpx.ReadTimeout("slow"), failure(503), page())
    client = connect(server)
    client.search_by_image(b"picture")
    assert server.sent == 3
    assert not any("idempotency-key" in request.headers for request in server.requests)
    assert len({request.content for request in server.requests}) == 1
    server = Server(httpx.ReadTimeout("slow"), page())
    connect(server).search_by_image(b"picture", idempotency_key="mine")
    assert [request.headers["idempotency-key"] for request in server.requests] == ["mine", "mine"]


def test_a_post_that_is_still_being_answered_is_nothing_that_is_there_already(connect):
    busy = failure(409, "REQUEST_IN_FLIGHT", headers={"Retry-After": "1"})
    with pytest.raises(UnfinishedError) as caught:
        connect(Server(busy), retries=0).create_collection("Dunes")
    assert not isinstance(caught.value, errors.ConflictError)
    assert (caught.value.status, caught.value.retry_after) == (409, 1.0)


def test_a_post_that_is_still_being_answered_is_asked_for_again(connect, slept):
    busy = failure(409, "REQUEST_IN_FLIGHT", headers={"Retry-After": "1"})
    server = Server(httpx.ReadTimeout("slow"), busy, success(COLLECTION))
    assert connect(server).create_collection("Dunes").id == 7
    assert slept[1] == 1.0


def test_a_delete_that_may_be_done_is_not_sent_again(connect):
    server = Server(httpx.ReadTimeout("slow"))
    with pytest.raises(UnreachableError, match="asked once: slow"):
        connect(server).delete_collection(7)
    assert server.sent == 1


@pytest.mark.parametrize("before", [httpx.ConnectError("refused"), failure(503), failure(429)])
def test_a_delete_that_was_surely_not_done_is_sent_again(connect, before):
    server = Server(before, success({"deleted": True}))
    assert connect(server).delete_collection(7).deleted
    assert server.sent == 2


def test_a_gateway_that_does_not_know_ends_a_delete(connect):
    server = Server(failure(502))
    with pytest.raises(ServerError):
        connect(server).remove_photo(7, "p1")
    assert server.sent == 1


def test_a_server_that_cannot_be_reached_is_named(connect):
    server = Server(httpx.ConnectError("connection refused"))
    with pytest.raises(UnreachableError) as caught:
        connect(server, retries=2).colors()
    assert str(caught.value) == (
        "http://photos.example.org/ must answer, asked 3 times: connection refused"
    )
    assert isinstance(caught.value.__cause__, httpx.ConnectError)
    assert caught.value.status == 0


def test_an_error_without_words_is_named_by_its_kind(connect):
    with pytest.raises(UnreachableError, match="asked once: ReadError"):
        connect(Server(httpx.ReadError("")), retries=0).colors()


def test_a_request_that_http_does_not_allow_is_sent_once(connect, slept):
    server = Server(httpx.LocalProtocolError("illegal header value"))
    with pytest.raises(UnreachableError, match="illegal header value"):
        connect(server).colors()
    assert (server.sent, slept) == (1, [])
