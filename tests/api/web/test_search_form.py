"""The form of the search page sends again what the address asks for."""

import re
from html.parser import HTMLParser
from urllib.parse import parse_qsl, urlsplit

import pytest

from searchlab.api.web.search_state import SearchState
from tests.support.apis import api
from tests.support.pages import tiny_library


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with api(tiny_library(tmp_path_factory.mktemp("form")), visitors="guests") as server:
        yield server


class _Fields(HTMLParser):
    def __init__(self):
        super().__init__()
        self.pairs = []

    def handle_starttag(self, tag, attrs):
        names = dict(attrs)
        if tag != "input" or names.get("name") != "palette" or names.get("form") != "search":
            return
        if names["type"] == "hidden" or "checked" in names:
            self.pairs.append(("palette", names["value"]))


def palette_fields(page):
    """List what the form sends of the colours in the photo, as the page stands."""
    parser = _Fields()
    parser.feed(page)
    (share,) = re.findall(r'<select id="f-share".*?<option value="(\d*)" selected', page, re.DOTALL)
    return [*parser.pairs, ("palette_share", share)]


@pytest.mark.parametrize(
    "palette",
    [
        ("#1f6f8b",),
        ("red:30", "blue:5", "#1f6f8b:10"),
        ("red", "blue"),
        ("red:30", "blue:30"),
        ("red:7",),
        (),
    ],
)
def test_the_form_keeps_every_colour_in_the_photo_that_the_address_asks_for(served, palette):
    asked = SearchState(q="red", palette=palette)
    fields = [*palette_fields(served.anonymous.get(asked.address).text), ("q", "green")]
    again = served.anonymous.get("/", params=[pair for pair in fields if pair[1]])
    again = served.anonymous.get(again.headers["location"]) if again.is_redirect else again
    pairs = parse_qsl(urlsplit(str(again.url)).query)
    kept = SearchState(palette=tuple(value for name, value in pairs if name == "palette"))
    assert set(kept.filter.palette_colors) == set(asked.filter.palette_colors)
