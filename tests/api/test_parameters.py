"""Reading query parameters and bodies: what passes, and what is said of what does not."""

import asyncio
import json
from types import SimpleNamespace
from typing import Annotated
from urllib.parse import parse_qsl, quote, urlencode

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from litestar import Request
from msgspec import Meta

from searchlab.api.wire import parameters
from searchlab.api.wire.errors import HttpProblem, Invalid
from searchlab.api.wire.parameters import (
    MAX_BODY_BYTES,
    fields_of,
    query_pairs,
    query_value,
    read,
    read_body,
    read_path,
)
from searchlab.api.wire.requests import ImageSearch, NewCollection, OneCollection, TextSearch


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    word: Annotated[str, Meta(max_length=3)] | None = None
    count: Annotated[int, Meta(ge=1, le=100)] = 20
    share: Annotated[float, Meta(ge=0, le=1)] | None = None
    kinds: tuple[Annotated[str, Meta(max_length=5)], ...] = ()


class Required(msgspec.Struct, frozen=True, kw_only=True):
    q: Annotated[str, Meta(min_length=1, max_length=4)]


def ask(query, body=b"", content_type="application/json"):
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive():
        return next(messages)

    query = query if isinstance(query, bytes) else query.encode()
    headers = [(b"content-type", content_type.encode())] if content_type else []
    unbounded = SimpleNamespace(resolve_request_max_body_size=lambda: None)
    scope = {"type": "http", "query_string": query, "headers": headers, "state": {}}
    scope |= {"route_handler": unbounded}
    return Request(scope, receive=receive)


def errors(query, struct=Asked):
    with pytest.raises(Invalid) as caught:
        read(struct, ask(query))
    return [(detail.loc, detail.type) for detail in caught.value.details]


def test_what_is_left_out_has_its_default():
    assert read(Asked, ask("")) == Asked(word=None, count=20, share=None, kinds=())


def test_values_are_converted_and_repeated_ones_kept_in_order():
    values = read(Asked, ask("word=%C3%A4b&count=100&share=1e-1&kinds=b&kinds=a&other=1"))
    assert values == Asked(word="äb", count=100, share=0.1, kinds=("b", "a"))


def test_all_that_is_wrong_is_said_at_once():
    assert errors("word=abcd&count=0&share=nan&kinds=abcdef") == [
        (("query", "word"), "out_of_range"),
        (("query", "count"), "out_of_range"),
        (("query", "share"), "float_parsing"),
        (("query", "kinds"), "out_of_range"),
    ]


@pytest.mark.parametrize("text", ["", " 5", "5 ", "5.0", "0x5", "five", "1_0", "١", "+", "true"])
def test_what_is_no_integer_is_refused(text):
    assert errors(urlencode({"count": text})) == [(("query", "count"), "int_parsing")]


@pytest.mark.parametrize("text", ["0", "101", "-1", "9" * 30, "-" + "9" * 3999])
def test_an_integer_of_any_size_is_compared_with_the_range(text):
    assert errors(f"count={text}") == [(("query", "count"), "out_of_range")]


@pytest.mark.parametrize(("text", "value"), [("1", 1), ("100", 100), ("%2B7", 7), ("007", 7)])
def test_integers_in_range_pass(text, value):
    assert read(Asked, ask(f"count={text}")).count == value


@pytest.mark.parametrize("text", ["", "nan", "inf", "-inf", "1e999", "0x1", "1_0", "0,5", " 1"])
def test_what_is_no_finite_number_is_refused(text):
    assert errors(urlencode({"share": text})) == [(("query", "share"), "float_parsing")]


@pytest.mark.parametrize(
    ("text", "value"), [("0", 0), ("1", 1), (".5", 0.5), ("1.", 1), ("5e-1", 0.5)]
)
def test_finite_numbers_in_range_pass(text, value):
    assert read(Asked, ask(f"share={text}")).share == value


def test_a_single_value_given_twice_is_refused():
    assert errors("count=1&count=1") == [(("query", "count"), "repeated")]


def test_lengths_count_code_points():
    assert read(Asked, ask("word=" + quote("😀😀😀"))).word == "😀😀😀"
    assert errors("word=" + quote("😀😀😀😀")) == [(("query", "word"), "out_of_range")]


def test_a_required_value_that_is_missing_is_named():
    assert errors("", Required) == [(("query", "q"), "missing")]
    assert errors("q=", Required) == [(("query", "q"), "out_of_range")]


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        *((b"q=%FF", "utf8"), (b"q=%ED%A0%80", "utf8"), (b"q=a%00b", "string_unicode")),
        *((b"q=\xe9", "utf8"), (b"q=%C3\xa9", "utf8")),
    ],
)
def test_bytes_that_are_no_text_are_refused(query, kind):
    ((_, error_kind),) = errors(query, Required)
    assert error_kind == kind


def test_letters_that_are_not_percent_encoded_are_utf_8():
    assert read(Required, ask("q=café")) == Required(q="café")
    page = ask("judge=Zoë&judge=b&x=%C3%AB")
    assert [query_value(page, name) for name in ("judge", "x", "y")] == ["Zoë", "ë", ""]
    with pytest.raises(Invalid, match="the query must be UTF-8"):
        query_value(ask(b"judge=Zo\xeb"), "judge")


def test_too_many_parameters_are_refused():
    for part in ("x=1", "x=%31", ""):
        assert errors("&".join([part] * 501)) == [(("query",), "too_many")]
        assert read(Asked, ask("&".join([part] * 500))) == Asked()


QUERIES = st.text("ab=&+%01fé;# \0", max_size=30).map(str.encode) | st.binary(max_size=20)


@given(QUERIES)
def test_a_query_has_the_pairs_that_the_standard_library_finds(query):
    try:
        expected = parse_qsl(query.decode(), keep_blank_values=True, errors="strict")
        if any("\0" in name + value for name, value in expected):
            expected = "string_unicode"
    except UnicodeDecodeError:
        expected = "utf8"
    try:
        pairs = query_pairs(ask(query))
    except Invalid as error:
        pairs = error.details[0].type
    assert pairs == expected


VALUES = st.sampled_from(["", "a", "abcd", "abcdef", "0", "1", "7", "101", "9" * 30, ".5", "nan"])
NAMES = st.sampled_from(["word", "count", "share", "kinds", "q", "n", "other"])


class Anything(msgspec.Struct, frozen=True, kw_only=True):
    n: int = 0
    q: str


def _read_one_by_one(struct, request):
    by_name = {}
    for name, value in query_pairs(request):
        by_name.setdefault(name, []).append(value)
    return parameters._read_each(struct, by_name)


@given(st.lists(st.tuples(NAMES, VALUES), max_size=6))
def test_values_read_at_once_are_those_that_are_read_one_by_one(pairs):
    query = ask(urlencode(pairs))
    for struct in (Asked, Required, Anything):
        results = []
        for reader in (read, _read_one_by_one):
            try:
                results.append(reader(struct, query))
            except Invalid as error:
                results.append(error.details)
        assert results[0] == results[1]


@given(st.binary(max_size=60))
def test_any_query_is_read_or_refused_cleanly(query):
    for struct in (Asked, Required, TextSearch, ImageSearch):
        refused = []
        try:
            read(struct, ask(query.replace(b"#", b"")))
        except Invalid as error:
            refused = error.details
        assert all(detail.loc[0] == "query" and detail.msg for detail in refused)


def test_messages_say_what_must_hold_and_what_came():
    with pytest.raises(Invalid, match=r"count must be an integer, got 'x'"):
        read(Asked, ask("count=x"))
    with pytest.raises(Invalid, match=r"count must be .*<= 100.*, got 101"):
        read(Asked, ask("count=101"))


# Bodies


def body_of(struct, body, content_type="application/json"):
    return asyncio.run(read_body(struct, ask("", body, content_type)))


def body_errors(body):
    with pytest.raises(Invalid) as caught:
        body_of(NewCollection, body)
    return [(detail.loc, detail.type) for detail in caught.value.details]


def test_a_body_has_defaults_and_nulls():
    assert body_of(NewCollection, b'{"name": "a"}') == NewCollection(name="a")
    body = body_of(NewCollection, b'{"name": "a", "description": null, "x": 1}')
    assert body == NewCollection(name="a", description=None, is_public=False)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"nonsense", b"\xff", b"{'name': 'a'}", b'{"name": "\\ud800"}', b"[" * 50_000],
)
def test_what_is_no_json_is_refused(body):
    assert body_errors(body) in ([(("body",), "json")], [(("body", "name"), "string_unicode")])


@pytest.mark.parametrize("body", [b"[]", b"null", b'"a"', b"1"])
def test_json_that_is_no_object_is_refused(body):
    assert body_errors(body) == [(("body",), "json_object")]


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        ({}, [(("body", "name"), "missing")]),
        ({"name": ""}, [(("body", "name"), "out_of_range")]),
        ({"name": "x" * 256}, [(("body", "name"), "out_of_range")]),
        ({"name": None}, [(("body", "name"), "type_error")]),
        ({"name": 1}, [(("body", "name"), "type_error")]),
        ({"name": "a\0"}, [(("body", "name"), "string_unicode")]),
        ({"name": "a", "is_public": "true"}, [(("body", "is_public"), "type_error")]),
        ({"name": "a", "is_public": 1}, [(("body", "is_public"), "type_error")]),
        ({"name": "a", "is_public": None}, [(("body", "is_public"), "type_error")]),
        ({"name": "a", "description": "x" * 1001}, [(("body", "description"), "out_of_range")]),
        ({"description": 1, "is_public": 2}, None),
    ],
)
def test_a_body_is_not_bent_into_shape(values, wrong):
    error_places = body_errors(json.dumps(values).encode())
    assert error_places == wrong if wrong is not None else len(error_places) == 3


@pytest.mark.parametrize("kind", ["", "text/plain", "application/xml", "multipart/form-data"])
def test_a_body_of_another_type_is_refused(kind):
    with pytest.raises(HttpProblem) as caught:
        body_of(NewCollection, b'{"name": "a"}', kind)
    assert caught.value.kind.status == 415


def test_the_type_of_a_body_may_have_parameters():
    body_of(NewCollection, b'{"name": "a"}', "Application/JSON; charset=utf-8")


def in_path(text):
    request = ask("")
    request.scope["path_params"] = {"collection_id": text}
    return read_path(OneCollection, request).collection_id


@pytest.mark.parametrize(
    ("text", "value"), [("7", 7), ("0", 0), ("-1", -1), ("9" * 4_000, int("9" * 4_000))]
)
def test_a_parameter_in_the_path_is_converted(text, value):
    assert in_path(text) == value


@pytest.mark.parametrize(
    "text", ["", "x", "1.0", "1 ", "\u0661", "9" * 4_001, "01", "+1", "-0", "00"]
)
def test_a_parameter_in_the_path_that_cannot_be_converted_is_named(text):
    with pytest.raises(Invalid) as caught:
        in_path(text)
    (detail,) = caught.value.details
    assert (detail.loc, detail.type) == (("path", "collection_id"), "int_parsing")


def test_json_that_trickles_has_less_time_than_a_picture(monkeypatch):
    monkeypatch.setattr("searchlab.api.wire.parameters.JSON_S", 0.02)
    request = ask("", b"")

    async def receive():
        await asyncio.sleep(0.005)
        return {"type": "http.request", "body": b"{", "more_body": True}

    request.receive = receive
    with pytest.raises(Invalid) as caught:
        asyncio.run(read_body(NewCollection, request))
    assert [detail.type for detail in caught.value.details] == ["timeout"]


def test_a_body_beyond_the_limit_is_refused():
    with pytest.raises(HttpProblem) as caught:
        body_of(NewCollection, b" " * (MAX_BODY_BYTES + 1))
    assert caught.value.kind.status == 413


def test_the_declared_fields_are_those_of_the_specification():
    names = [field.name for field in fields_of(TextSearch)]
    assert sorted(names) == sorted(
        [
            *("q", "color_name", "color_hex", "color_tolerance", "orientation", "source"),
            *("license_type", "per_page", "limit", "score_threshold", "cursor", "fields"),
            *("after_date", "sort_by", "photographer"),
        ]
    )
    assert {f.name for f in fields_of(ImageSearch)} - set(names) == {"photo_id", "text_alpha"}
