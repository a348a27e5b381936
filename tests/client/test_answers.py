"""What comes back to the clients: typed records, or an exception that says all."""

import datetime
import json

import httpx
import msgspec
import pytest

from searchlab import errors
from searchlab.api.wire.schema import Attribution, Detail
from searchlab.client import (
    AlreadyThereError,
    ApiError,
    AuthenticationError,
    BadRequestError,
    LimitError,
    MissingError,
    PermissionDeniedError,
    Photo,
    ServerError,
    ValidationError,
)
from tests.support import client_world
from tests.support.client_world import (
    COLLECTION,
    ENTRY,
    META,
    OPERATIONS,
    PHOTO,
    Server,
    failure,
    success,
)

connect = client_world.connect
slept = client_world.slept


# -- records ------------------------------------------------------------------------------------


def test_a_photo_has_every_field_typed(connect):
    photo = connect(Server(success(PHOTO | {"field_of_tomorrow": 1}))).photo("p1")
    assert list(Photo.__struct_fields__) == list(PHOTO)
    assert photo.uploaded_on == datetime.date(2024, 2, 29)
    assert photo.urls.thumb == "https://example.org/1/thumb"
    assert photo.attribution == Attribution(html="<b>Ann</b>", plain="Ann Lee")
    assert json.loads(msgspec.json.encode(photo)) == PHOTO


def test_fields_that_were_not_asked_for_are_unset_and_false(connect):
    photo = connect(Server(success({"photo_id": "p1"}))).photo("p1", fields="photo_id")
    assert photo.width is msgspec.UNSET
    assert not photo.urls
    assert repr(photo) == "Photo(photo_id='p1')"
    assert msgspec.json.encode(photo) == b'{"photo_id":"p1"}'


def test_timestamps_have_their_offset(connect):
    collection = connect(Server(success(COLLECTION | {"photos": [ENTRY]}))).collection(7)
    assert collection.created_at == datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
    assert collection.photos[0].added_at.utcoffset() == datetime.timedelta(0)


def test_records_come_as_the_specification_names_them(connect):
    client = connect(Server(*[row[5] for row in OPERATIONS[-4:]], success({"deleted": True})))
    assert client.usage().requests.remaining == 4999
    assert client.monthly_usage().records[0].month == "2026-01"
    assert client.daily_usage().records[0].date == datetime.date(2026, 1, 31)
    assert client.usage_by_key().keys[0].last_used_at is None
    assert client.delete_collection(7).deleted is True


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b'{"success":true}', b"\xff", b'{"data": "\xff"}']
)
def test_a_success_that_is_none_of_the_apis_is_a_server_error(connect, body):
    with pytest.raises(ServerError, match=r"/facets/colors must be answered as version 1 is"):
        connect(Server(httpx.Response(200, content=body))).colors()


def test_a_page_without_pagination_is_a_server_error(connect):
    with pytest.raises(ServerError, match="with pagination, got none"):
        connect(Server(success([]))).search("x")


# -- failures -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind", "local"),
    [
        (302, ServerError, errors.SearchlabError),
        (400, BadRequestError, errors.InputError),
        (401, AuthenticationError, errors.SearchlabError),
        (403, PermissionDeniedError, errors.ForbiddenError),
        (404, MissingError, errors.NotFoundError),
        (409, AlreadyThereError, errors.ConflictError),
        (410, BadRequestError, errors.InputError),
        (413, BadRequestError, errors.InputError),
        (415, BadRequestError, errors.InputError),
        (422, ValidationError, errors.InputError),
        (429, LimitError, errors.QuotaError),
        (500, ServerError, errors.SearchlabError),
        (503, ServerError, errors.SearchlabError),
    ],
)
def test_each_status_is_an_exception_that_says_all(connect, status, kind, local):
    server = Server(failure(status, details={"accepted": ["urls"]}))
    with pytest.raises(local) as caught:
        connect(server, retries=0).search("x")
    error = caught.value
    assert type(error) is kind
    assert (error.status, error.code, error.message) == (status, "SOME_CODE", "it must be so")
    assert error.details == {"accepted": ["urls"]}
    assert error.request_id == META["request_id"]
    assert str(error) == (
        f"it must be so (SOME_CODE, HTTP {status}, request 11111111-1111-4111-8111-111111111111)"
    )


def test_a_failed_validation_says_where(connect):
    details = [
        {"loc": ["query", "per_page"], "msg": "must be 1 to 100", "type": "out_of_range"},
        {"loc": ["body", 0, "name"], "msg": "must be given", "type": "missing"},
    ]
    answer = httpx.Response(422, json={"detail": details}, headers={"X-Request-Id": "r1"})
    with pytest.raises(ValidationError) as caught:
        connect(Server(answer)).search(per_page=0)
    assert str(caught.value) == (
        "query.per_page: must be 1 to 100; body.0.name: must be given (HTTP 422, request r1)"
    )
    assert caught.value.errors[0] == Detail(
        loc=("query", "per_page"), msg="must be 1 to 100", type="out_of_range"
    )
    assert caught.value.details == details


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>Bad gateway</html>",
        b"[1]",
        b'"x"',
        b"\xff\xfe",
        b'{"error": "x", "meta": 7}',
        b'{"detail": "x"}',
        b'{"error": {"message": null}}',
    ],
)
@pytest.mark.parametrize(("status", "kind"), [(422, ValidationError), (502, ServerError)])
def test_a_failure_with_any_body_is_its_exception(connect, body, status, kind):
    with pytest.raises(kind) as caught:
        connect(Server(httpx.Response(status, content=body)), retries=0).colors()
    assert str(caught.value) == (
        f"/api/v1/facets/colors answered without saying what is wrong (HTTP {status})"
    )
    assert caught.value.request_id == ""


def test_the_tree_of_failures_is_drawn_at_the_head_of_its_module():
    from searchlab.client import failures

    for name, value in vars(failures).items():
        if isinstance(value, type) and issubclass(value, ApiError):
            assert name in failures.__doc__
