"""The OpenAPI document as people read it: sections of operations, with a field for each value.

The page is made of the same document that programs read, so the two cannot contradict each other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

Document = dict[str, Any]
Control = Literal["text", "number", "date", "choice", "choices", "lines", "file", "json"]

_CODE = re.compile(r"`([A-Z][A-Z_]+)`: ")
_NUMBERS: Final = {"integer": "numeric", "number": "decimal"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A value that a request may have.

    Attributes:
        name: As it is sent.
        place: Where it is sent: `path`, `query`, `header`, `body` or `form`.
        control: What people enter it with; `choices` and `lines` hold several values.
        kind: Type and limits in words.
        description: What it says, with code between backticks; empty if nothing.
        is_required: Whether no request goes without it.
        choices: All values there are; empty if any will do.
        example: A value, or several; empty if there is none.
        keyboard: The keys that a phone shows, as in the attribute `inputmode`.
    """

    name: str
    place: str
    control: Control
    kind: str
    description: str = ""
    is_required: bool = False
    choices: tuple[str, ...] = ()
    example: str = ""
    keyboard: str = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentedAnswer:
    """An answer: its status, in words, and the codes of errors or the name of the data's schema."""

    status: str
    description: str
    codes: tuple[str, ...] = ()
    schema: str = ""
    example: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentedOperation:
    """An operation."""

    name: str
    method: str
    path: str
    summary: str
    description: str
    needs_key: bool
    fields: tuple[Field, ...]
    answers: tuple[DocumentedAnswer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Operations that belong together."""

    name: str
    description: str
    operations: tuple[DocumentedOperation, ...]


def read_document(document: Document) -> list[Section]:
    """Read the sections of a document, in its order."""
    places = [
        (path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    return [
        Section(
            name=tag["name"],
            description=tag["description"],
            operations=tuple(
                _read_operation(document, path, method, operation)
                for path, method, operation in places
                if tag["name"] in operation["tags"]
            ),
        )
        for tag in document["tags"]
    ]


def read_schemas(document: Document) -> dict[str, tuple[str, list[Field]]]:
    """Read the objects in answers and bodies: what each is, and its fields."""
    return {
        name: (
            schema.get("description", ""),
            [
                Field(
                    name=field,
                    place="body",
                    control="text",
                    kind=_say_kind(kind),
                    description=_find(kind, "description") or "",
                    is_required=field in schema.get("required", ()),
                )
                for field, kind in schema.get("properties", {}).items()
            ],
        )
        for name, schema in document["components"]["schemas"].items()
    }


def _read_operation(
    document: Document, path: str, method: str, operation: Document
) -> DocumentedOperation:
    return DocumentedOperation(
        name=operation["operationId"],
        method=method.upper(),
        path=path,
        summary=operation["summary"],
        description=operation.get("description", ""),
        needs_key=operation.get("security") != [],
        fields=tuple(map(_read_parameter, operation.get("parameters", [])))
        + _read_body(operation.get("requestBody")),
        answers=tuple(
            _read_answer(document, status, answer)
            for status, answer in operation["responses"].items()
        ),
    )


def _read_parameter(parameter: Document) -> Field:
    schema, examples = parameter["schema"], list(parameter.get("examples", {}).values())
    example = examples[0]["value"] if examples else parameter.get("example", "")
    control: Control = "text"
    if schema.get("type") == "array":
        control = "choices" if "enum" in schema["items"] else "lines"
    elif "enum" in schema:
        control = "choice"
    elif schema.get("type") in _NUMBERS:
        control = "number"
    elif schema.get("format") == "date":
        control = "date"
    return Field(
        name=parameter["name"],
        place=parameter["in"],
        control=control,
        kind=_say_kind(schema),
        description=parameter.get("description", ""),
        is_required=parameter.get("required", False),
        choices=tuple(map(str, schema.get("items", schema).get("enum", ()))),
        example=" ".join(map(str, example)) if isinstance(example, list) else str(example),
        keyboard=_NUMBERS.get(schema.get("type", ""), "text"),
    )


def _read_body(body: Document | None) -> tuple[Field, ...]:
    if body is None:
        return ()
    ((media_type, content),) = body["content"].items()
    if media_type == "application/json":
        example = msgspec.json.format(msgspec.json.encode(content["example"])).decode()
        kind = f"JSON, {content['schema']['$ref'].rpartition('/')[2]}"
        return (
            Field(
                name="body",
                place="body",
                control="json",
                kind=kind,
                is_required=True,
                example=example,
            ),
        )
    return tuple(
        Field(
            name=name,
            place="form",
            control="file",
            kind="file",
            description=f"{body['description']} {schema['description']}",
        )
        for name, schema in content["schema"]["properties"].items()
    )


def _read_answer(document: Document, status: str, answer: Document) -> DocumentedAnswer:
    if "$ref" in answer:
        answer = document["components"]["responses"][answer["$ref"].rpartition("/")[2]]
    content = answer.get("content", {}).get("application/json", {})
    codes = tuple(_CODE.findall(answer["description"]))
    if status == "422":
        codes = ("422",)
    data = content.get("schema", {}).get("properties", {}).get("data", {})
    schema = "" if codes else data.get("items", data).get("$ref", "").rpartition("/")[2]
    example = "" if codes else content.get("example", "")
    return DocumentedAnswer(
        status=status,
        description=answer["description"],
        codes=codes,
        schema=schema,
        example=msgspec.json.format(msgspec.json.encode(example)).decode() if example else "",
    )


def _find(schema: Document, key: str) -> Any:
    return schema.get(key) or next(
        (kind[key] for kind in schema.get("anyOf", ()) if key in kind), None
    )


def _say_kind(schema: Document) -> str:
    """Say the type of a schema and its limits in words."""
    if "anyOf" in schema:
        return " or ".join(map(_say_kind, schema["anyOf"]))
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if schema.get("type") == "array":
        return f"several: {_say_kind(schema['items'])}"
    kind = str(schema.get("format") or schema.get("type") or "text").replace("string", "text")
    if "enum" in schema:
        kind = "one of " + ", ".join(map(str, schema["enum"]))
    lowest, highest = schema.get("minimum"), schema.get("maximum")
    if lowest is not None and highest is not None:
        kind += f", {lowest:g} to {highest:g}"
    elif lowest:
        kind += f", at least {lowest:g}"
    if "maxLength" in schema:
        kind += f", at most {schema['maxLength']:,} characters"
    if "default" in schema:
        kind += f", {schema['default']} if left out"
    return kind
