"""Records that nobody checked: whatever stands in them, they do no harm and stop nothing."""

import copy
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.errors import InputError
from searchlab.photos.photo import web_url
from searchlab.photos.sidecar import Skipped
from searchlab.sources import SOURCES
from searchlab.sources.dump import read_dump
from tests.support.examples import examples
from tests.support.upstream import RECORDS, UNSPLASH

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
HOSTILE = st.sampled_from(
    [
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "javascript:alert(1)",
        "data:text/html,<b>",
        "//evil.example/\"'><b>",
        "https://example.org/\"onmouseover='x'",
        "\u202egnp.exe",
        "\ud800\x00\x1b[31m",
        "x" * 20_000,
        "&lt;b&gt;&amp;",
    ]
)


def places(value, path=()):
    """List the paths to everything inside a record."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in inner:
        yield (*path, key)
        if isinstance(one, dict | list):
            yield from places(one, (*path, key))


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


def assert_harmless(record):
    tags = Tags()
    tags.feed(record.attribution["html"])
    for tag, attributes in tags.tags:
        assert tag == "a"
        assert set(attributes) == {"href", "rel"}
        assert web_url(attributes["href"])
    urls = (*record.urls.values(), record.image_url, record.source_image_url)
    assert all(not url or web_url(url) for url in (*urls, record.photographer_url))
    for form in record.attribution.values():
        form.encode()
        assert "\u202e" not in form
    record.source_description.encode()
    assert len(record.source_description) <= 40_000


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SOURCES))
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_no_value_at_any_place_of_a_record_does_harm_or_more_than_refuse_it(name, data):
    record = copy.deepcopy(RECORDS[name])
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from([*places(record)]))
        records_at = record
        for step in path[:-1]:
            records_at = records_at[step]
        records_at[path[-1]] = data.draw(HOSTILE | VALUES)
    for entry in SOURCES[name].entries(record):
        try:
            photo = SOURCES[name].record(entry)
        except InputError:
            continue
        assert_harmless(photo)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SOURCES))
@settings(max_examples=examples(40), deadline=None)
@given(answer=VALUES)
def test_any_json_is_an_answer_whose_records_are_refused_one_by_one(name, answer):
    for entry in SOURCES[name].entries(answer):
        with pytest.raises(InputError):
            SOURCES[name].record(entry)


def test_a_hostile_name_is_shown_as_the_text_that_it_is():
    user = {**UNSPLASH["user"], "name": '<img src=x onerror="alert(1)">'}
    credit = SOURCES["unsplash"].record({**UNSPLASH, "user": user}).attribution
    assert "&lt;img src=x onerror=&quot;alert(1)&quot;&gt;" in credit["html"]
    assert credit["plain"] == 'Photo by <img src=x onerror="alert(1)"> on Unsplash'


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".csv"])
@settings(max_examples=examples(60), deadline=None)
@given(
    content=st.binary(max_size=200)
    | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace"))
)
def test_a_file_of_anything_is_read_to_its_end(suffix, content, tmp_path_factory):
    path = tmp_path_factory.mktemp("any") / f"dump{suffix}"
    path.write_bytes(content)
    for entry in read_dump(path, SOURCES["flickr"]):
        assert isinstance(entry, Skipped)
