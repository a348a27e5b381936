"""A name or a path in place of what it names is refused in one line, whatever takes it."""

from pathlib import Path

import pytest

import searchlab
from searchlab.errors import InputError


@pytest.mark.parametrize("name", ["photos", Path("photos")])
@pytest.mark.parametrize(
    "call",
    [
        searchlab.tune,
        searchlab.adapt,
        lambda name: searchlab.migrate(name, "mini", "palette"),
        searchlab.SearchBox,
        lambda name: searchlab.compare(name, name),
        lambda name: searchlab.promote(name, "chosen.json"),
        searchlab.recommend,
        lambda name: searchlab.evaluate(name, {}, ["ndcg@10"]),
    ],
)
def test_what_is_named_must_be_opened_first(call, name):
    with pytest.raises(InputError, match=r"must be no name or path, got .*; give "):
        call(name)
