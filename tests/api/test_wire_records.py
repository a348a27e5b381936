"""Records: what the reference describes and what the client reads are the same, name for name."""

import datetime
import types
import typing

import msgspec
import pytest

from searchlab.api.wire import schema
from searchlab.client import records

# What only one side has: the client takes errors apart by hand, the reference writes out envelopes.
MINE_ALONE, THEIRS_ALONE = {"Envelope"}, {"Failure", "Refusal"}


def structs_of(module):
    return {
        name: found
        for name, found in vars(module).items()
        if isinstance(found, type)
        and issubclass(found, msgspec.Struct)
        and found.__module__ == module.__name__
    }


MINE, THEIRS = structs_of(records), structs_of(schema)


def plain(kind):
    """Bring a type into words that both sides have: dates are text, and ranges do not count."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return plain(inner[0])
    if origin in {types.UnionType, typing.Union}:
        return {plain(one) for one in inner}
    if origin in {list, tuple}:
        return "list of", str(plain(inner[0]))
    if kind in {datetime.datetime, datetime.date}:
        return "str"
    return getattr(kind, "__name__", str(kind))


def fields_of(struct):
    hints = typing.get_type_hints(struct, include_extras=True)
    return {name: plain(hints[name]) for name in struct.__struct_fields__}


def test_every_record_is_on_both_sides():
    assert set(MINE) - MINE_ALONE == set(THEIRS) - THEIRS_ALONE
    assert len(MINE) > 20


@pytest.mark.parametrize("name", sorted(set(MINE) - MINE_ALONE))
def test_a_record_has_the_same_fields_types_and_nulls_on_both_sides(name):
    assert list(fields_of(MINE[name]).items()) == list(fields_of(THEIRS[name]).items())
