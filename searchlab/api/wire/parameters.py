"""Reading requests: one msgspec Struct per operation defines, checks and documents its parameters.

Every field is converted and checked by itself, so that one answer names all problems at once.
"""

from __future__ import annotations

import math
import re
import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec
from litestar import Request
from litestar.connection import ASGIConnection

from searchlab.api.accounts.plans import Plan
from searchlab.api.http.bodies import JSON_S, check_content, read_whole
from searchlab.api.wire.errors import HttpProblem, Invalid, invalid
from searchlab.api.wire.schema import Detail
from searchlab.errors import quote

Parameters = TypeVar("Parameters", bound=msgspec.Struct)

MAX_BODY_BYTES = 64 * 1024
_MAX_PAIRS = 500
_QUERY = "searchlab.query"
_INTEGER = re.compile(r"[+-]?[0-9]{1,4000}", re.ASCII)
_PATH_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,3999}", re.ASCII)  # so that a thing has one address
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?", re.ASCII)
_BEYOND = 2**63  # msgspec compares 64-bit integers; larger ones are out of every range anyway


class DeclaredParameter(typing.NamedTuple):
    """One parameter.

    Attributes:
        name: Name in the specification.
        kind: `str`, `int`, `float` or `bool`.
        annotation: Type of one value, with its `msgspec.Meta`.
        repeatable: Whether it may come several times.
        nullable: Whether a JSON null is allowed.
        required: Whether it must come.
    """

    name: str
    kind: type
    annotation: Any
    repeatable: bool
    nullable: bool
    required: bool


@cache
def fields_of(struct: type[msgspec.Struct]) -> tuple[DeclaredParameter, ...]:
    """Return the parameters that a Struct declares."""
    fields = []
    hints = typing.get_type_hints(struct, include_extras=True)
    for declared in msgspec.structs.fields(struct):
        annotation = hints[declared.name]
        inner, nullable, repeatable = _plain(annotation), False, False
        if isinstance(inner, types.UnionType) or typing.get_origin(inner) is typing.Union:
            nullable = True
            (annotation,) = [a for a in typing.get_args(inner) if a is not types.NoneType]
            inner = _plain(annotation)
        if typing.get_origin(inner) is tuple:
            repeatable = True
            annotation = typing.get_args(inner)[0]
            inner = _plain(annotation)
        required = declared.required
        fields.append(
            DeclaredParameter(
                declared.encode_name, inner, annotation, repeatable, nullable, required
            )
        )
    return tuple(fields)


@cache
def _fields_by_name(struct: type[msgspec.Struct]) -> dict[str, DeclaredParameter]:
    return {field.name: field for field in fields_of(struct)}


def _plain(annotation: Any) -> Any:
    is_annotated = typing.get_origin(annotation) is typing.Annotated
    return typing.get_args(annotation)[0] if is_annotated else annotation


def _split(query: bytes) -> list[tuple[str, str]]:
    try:
        # Many programs leave letters as they are; percent-encoded or not, they are UTF-8.
        text = query.decode()
        if "%" not in text and text.count("&") < _MAX_PAIRS:
            # The same pairs as below, without looking for what is encoded.
            parts = (part.partition("=") for part in text.replace("+", " ").split("&") if part)
            return [(name, value) for name, _, value in parts]
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MAX_PAIRS)
    except UnicodeDecodeError:
        raise invalid(("query",), "the query must be UTF-8, got other bytes", "utf8") from None
    except ValueError:
        msg = f"the query must have at most {_MAX_PAIRS} parameters, got more"
        raise invalid(("query",), msg, "too_many") from None


def query_pairs(request: Request[Any, Any, Any]) -> list[tuple[str, str]]:
    """Split the query string.

    Raises:
        Invalid: It is not UTF-8, holds NUL, or has too many parameters.
    """
    pairs = _split(request.scope["query_string"])
    for name, value in pairs:
        if "\0" in value or "\0" in name:
            msg = "a parameter must be text without NUL, got one with it"
            raise invalid(("query", name.replace("\0", "")), msg, "string_unicode")
    return pairs


def query_value(request: ASGIConnection[Any, Any, Any, Any], name: str, default: str = "") -> str:
    """Return the first value of a parameter of a page, which may be any text.

    Litestar's `query_params` take bytes that are not UTF-8 for other letters.

    Raises:
        Invalid: The query is not UTF-8, or has too many parameters.
    """
    pairs = _split(request.scope["query_string"])
    return next((value for known, value in pairs if known == name), default)


def read(struct: type[Parameters], request: Request[Any, Any, Any]) -> Parameters:
    """Read the query parameters of a request; unknown names are ignored.

    Raises:
        Invalid: Values are missing, cannot be converted, or are out of range; lists all of them.
    """
    query = _values_by_name(request)
    declared = _fields_by_name(struct)
    try:
        # At once, which is quicker; if something is wrong, each by itself names all problems.
        values = {
            name: _parse_all(declared[name], texts)
            for name, texts in query.items()
            if name in declared
        }
        return msgspec.convert(values, struct)
    except (Invalid, msgspec.ValidationError):
        return _read_each(struct, query)


def _values_by_name(request: Request[Any, Any, Any]) -> dict[str, list[str]]:
    scope: Any = request.scope
    query: dict[str, list[str]] | None = scope.get(_QUERY)
    if query is None:
        query = {}
        for name, value in query_pairs(request):
            query.setdefault(name, []).append(value)
        scope[_QUERY] = query
    return query


def _parse_all(field: DeclaredParameter, texts: list[str]) -> Any:
    values = [_parse(field, text, ("query", field.name)) for text in texts]
    # A list where there may be one value is of a wrong type, and so refused.
    return values if field.repeatable or len(values) > 1 else values[0]


def _read_each(struct: type[Parameters], query: dict[str, list[str]]) -> Parameters:
    values: dict[str, Any] = {}
    wrong: list[Detail] = []
    for field in fields_of(struct):
        texts = query.get(field.name)
        loc = ("query", field.name)
        if texts is None:
            if field.required:
                wrong.append(Detail(loc, f"{field.name} must be given, got none", "missing"))
            continue
        if len(texts) > 1 and not field.repeatable:
            msg = f"{field.name} must be given once, got {len(texts)} times"
            wrong.append(Detail(loc, msg, "repeated"))
            continue
        parts = []
        for text in texts:
            try:
                parts.append(_check(field, _parse(field, text, loc), loc))
            except Invalid as error:
                wrong += error.details
        values[field.name] = tuple(parts) if field.repeatable else (parts or [None])[0]
    return _build(struct, values, wrong)


def read_path(struct: type[Parameters], request: Request[Any, Any, Any]) -> Parameters:
    """Read the parameters in the path of a request.

    Raises:
        Invalid: Values cannot be converted, or are out of range; lists all of them.
    """
    values: dict[str, Any] = {}
    wrong: list[Detail] = []
    for field in fields_of(struct):
        loc = ("path", field.name)
        try:
            text = request.path_params[field.name]
            values[field.name] = _check(field, _parse(field, text, loc, _PATH_INTEGER), loc)
        except Invalid as error:
            wrong += error.details
    return _build(struct, values, wrong)


def _parse(
    field: DeclaredParameter, text: str, loc: tuple[str, ...], integer: re.Pattern[str] = _INTEGER
) -> Any:
    if field.kind is int:
        if not integer.fullmatch(text):
            msg = f"{field.name} must be an integer, got {quote(text)}"
            raise invalid(loc, msg, "int_parsing")
        return int(text)
    if field.kind is float:
        number = float(text) if _NUMBER.fullmatch(text) else math.nan
        if not math.isfinite(number):
            msg = f"{field.name} must be a finite number, got {quote(text)}"
            raise invalid(loc, msg, "float_parsing")
        return number
    return text


def _bounded(value: int) -> int:
    return max(-_BEYOND, min(value, _BEYOND - 1))


def _check(field: DeclaredParameter, value: Any, loc: tuple[str, ...]) -> Any:
    if field.kind is int and isinstance(value, float) and value.is_integer():
        value = int(value)  # JSON has one kind of numbers
    is_int = isinstance(value, int) and not isinstance(value, bool)
    try:
        converted = msgspec.convert(_bounded(value) if is_int else value, field.annotation)
        return value if is_int and field.kind is int else converted
    except msgspec.ValidationError as error:
        range_text = str(error).split(" - at ", maxsplit=1)[0].removeprefix("Expected ")
        range_text = range_text.replace("`str`", "a string").replace("`bool`", "true or false")
        range_text = range_text.replace("`int`", "an integer").replace("`float`", "a number")
        came = "" if ", got" in range_text else f", got {quote(value)}"
        msg = f"{field.name} must be {range_text}{came}"
        raise invalid(loc, msg, "type_error" if ", got" in range_text else "out_of_range") from None


async def read_body(struct: type[Parameters], request: Request[Any, Any, Any]) -> Parameters:
    """Read a JSON body; unknown names are ignored.

    Raises:
        Invalid: It is no JSON object, or values are missing, of a wrong type or out of range.
        HttpProblem: It has another content type or is compressed (415), or is too large (413).
    """
    check_content(request, "application/json", "application/json")
    body = await read_whole(request, MAX_BODY_BYTES, whole_s=JSON_S)
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise invalid(("body",), "the body must be JSON, got another text", "json") from None
    if not isinstance(document, dict):
        msg = f"the body must be a JSON object, got {quote(document)}"
        raise invalid(("body",), msg, "json_object")
    return convert(struct, document, "body")


def convert(struct: type[Parameters], document: Mapping[str, Any], where: str) -> Parameters:
    """Read the members of a JSON object; unknown names are ignored.

    Args:
        struct: What they become.
        document: The object.
        where: What it is called where a problem is placed.

    Raises:
        Invalid: Values are missing, of a wrong type or out of range; lists all of them.
    """
    values: dict[str, Any] = {}
    wrong: list[Detail] = []
    for field in fields_of(struct):
        loc = (where, field.name)
        if field.name not in document:
            if field.required:
                wrong.append(Detail(loc, f"{field.name} must be given, got none", "missing"))
            continue
        value = document[field.name]
        if value is None and field.nullable:
            values[field.name] = None
            continue
        try:
            if isinstance(value, str):
                _check_text(field.name, value, loc)
            values[field.name] = _check(field, value, loc)
        except Invalid as error:
            wrong += error.details
    return _build(struct, values, wrong)


def _check_text(name: str, value: str, loc: tuple[str, ...]) -> None:
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        msg = f"{name} must be Unicode without NUL and lone surrogates, got one of them"
        raise invalid(loc, msg, "string_unicode")


def _build(struct: type[Parameters], values: dict[str, Any], wrong: list[Detail]) -> Parameters:
    if wrong:
        raise Invalid(wrong)
    return struct(**values)


def select_fields(listed: str | None, plan: Plan) -> tuple[str, ...]:
    """Read the parameter `fields`.

    Args:
        listed: Comma-separated names; None for every field the plan allows.
        plan: Plan of the caller.

    Returns:
        The names in the specification's order, each once.

    Raises:
        HttpProblem: A name is no Photo field, or not one of the plan's; lists the accepted ones.
    """
    if listed is None:
        return plan.fields
    names = [name.strip() for name in listed.split(",")]
    unknown = sorted(set(names) - set(plan.fields))
    if unknown:
        accepted = ", ".join(plan.fields)
        came = ", ".join(repr(name) for name in unknown[:5])[:200]
        msg = f"fields must be names among {accepted}, got {came}"
        raise HttpProblem(msg, "INVALID_FIELDS", details={"accepted": list(plan.fields)})
    return tuple(name for name in plan.fields if name in set(names))
