"""Tool: what a language model is told about an operation, and what runs when it calls it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from searchlab.api.mcp.answers import ToolAnswer
from searchlab.api.mcp.calls import Calls
from searchlab.api.wire.errors import Invalid
from searchlab.api.wire.schema import Detail
from searchlab.errors import quote


class ToolCall(NamedTuple):
    """One call of a tool: its arguments as they came in JSON, and the API to ask."""

    arguments: dict[str, Any]
    api: Calls


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool.

    Attributes:
        name: As clients call it.
        title: As people read it.
        description: What it does and when to use it, for the model.
        scope: What the client must be allowed to do.
        arguments: JSON schema of the arguments.
        answer: JSON schema of the structured content.
        run: Answers a call.
        reads_only: Whether it changes nothing.
        destroys: Whether what it changes is lost.
        repeatable: Whether a second call with the same arguments changes nothing more.
    """

    name: str
    title: str
    description: str
    scope: str
    arguments: dict[str, Any]
    answer: dict[str, Any]
    run: Callable[[ToolCall], Awaitable[ToolAnswer]]
    reads_only: bool = True
    destroys: bool = False
    repeatable: bool = True

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Check that the arguments are ones that the tool has, and that none is missing.

        Their values are checked by the operation that they reach.

        Returns:
            Those that are not null, nor an empty text for an argument that may be left out: models
            fill what they need not with one.

        Raises:
            Invalid: Some are unknown or missing; lists all of them.
        """
        known, required = self.arguments["properties"], self.arguments["required"]
        wrong = []
        for name in arguments:
            if name not in known:
                msg = f"an argument must be one of {', '.join(known)}, got {quote(name)}"
                wrong.append(Detail(("arguments", name), msg, "unknown"))
        for name in required:
            if arguments.get(name) is None:
                msg = f"{name} must be given, got none"
                wrong.append(Detail(("arguments", name), msg, "missing"))
        if wrong:
            raise Invalid(wrong)
        return {
            name: value
            for name, value in arguments.items()
            if value is not None and (value != "" or name in required)
        }


# -- schemas ----------------------------------------------------------------------------------

IdempotencyKey = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=255,
        description="Any text of your own, if you may have to repeat this call: with the same text "
        "within 24 hours nothing is done a second time.",
    ),
]


def arguments_of(
    *structs: type[msgspec.Struct], without: Iterable[str] = (), require: Iterable[str] = ()
) -> dict[str, Any]:
    """Make the schema of arguments from the Structs of the parameters that they become.

    Args:
        structs: Structs of the API's parameters and of the tool's own; later ones win.
        without: Parameters that are no arguments.
        require: Arguments that must be given, besides those that the Structs require.
    """
    properties: dict[str, Any] = {}
    required = [*require]
    for struct in structs:
        schema = schema_of(struct)
        properties |= schema.get("properties", {})
        required += schema.get("required", [])
    for name in without:
        properties.pop(name)
    return {
        "type": "object",
        "properties": {name: _plain(schema) for name, schema in properties.items()},
        "required": [name for name in properties if name in required],
        "additionalProperties": False,
    }


def schema_of(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """Make the schema of a Struct; other Structs in it are put in place."""
    (schema,), components = msgspec.json.schema_components([struct], ref_template="{name}")
    placed = _place(schema, components)
    if not isinstance(placed, dict):  # a Struct is always an object
        raise TypeError(placed)
    return placed


def _place(schema: Any, components: Mapping[str, Any]) -> Any:
    """Put the schemas that are referred to in place, since many clients follow no references."""
    if isinstance(schema, list):
        return [_place(one, components) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        # The docstrings of the Structs are for the people who read them.
        target = {k: v for k, v in components[schema["$ref"]].items() if k != "description"}
        return _place(target | {k: v for k, v in schema.items() if k != "$ref"}, components)
    return {name: _place(one, components) for name, one in schema.items() if name != "title"}


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """Leave out that an argument may be null: it may be left out, and models read less."""
    options: list[dict[str, Any]] = [
        one for one in schema.get("anyOf", []) if one != {"type": "null"}
    ]
    if len(options) != 1:
        return schema
    rest = {name: value for name, value in schema.items() if name not in {"anyOf", "default"}}
    return options[0] | rest
