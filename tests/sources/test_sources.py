"""Upstream libraries: a record of each becomes one in searchlab's words, with links and credit."""

import html

import pytest

from searchlab.errors import InputError
from searchlab.evaluation.datasets import bundled_root
from searchlab.photos.licenses import license_label
from searchlab.photos.photo import PHOTO_FIELDS, URL_SIZES, web_url
from searchlab.sources import SOURCES, find_source
from searchlab.sources.markup import first_link, plain_text
from searchlab.sources.merge import merge
from searchlab.sources.record import RawRecord, five_links
from tests.support.source_fields import fields_table, origin_of
from tests.support.upstream import (
    FLICKR,
    RECORDS,
    changed,
)


def read(name, record=None):
    """Read the first picture of a record, the library's own full one if none is given."""
    source = SOURCES[name]
    return source.record(source.entries(RECORDS[name] if record is None else record)[0])


@pytest.fixture(params=sorted(SOURCES))
def name(request):
    return request.param


# -- every library ----------------------------------------------------------------------------


def test_every_library_has_a_record_to_be_tested_with():
    assert set(RECORDS) == set(SOURCES)


def test_a_record_has_what_every_photo_needs(name):
    record = read(name)
    assert record.source == name
    assert record.source_photo_id
    assert list(record.urls) == list(URL_SIZES)
    assert all(web_url(url) for url in (*record.urls.values(), record.image_url))
    assert web_url(record.source_image_url)
    assert record.license_type
    assert web_url(record.license_url)
    assert record.links[0][1] == record.source_image_url


def test_a_record_tells_exactly_the_fields_that_the_table_says(name):
    record = read(name)
    for field in PHOTO_FIELDS:
        if hasattr(record, field) and field not in ("source", "license_type", "photo_id"):
            from_record = origin_of(SOURCES[name], field) == "record"
            assert bool(getattr(record, field)) == from_record, field


def test_the_credit_names_the_photographer_and_says_the_same_in_both_forms(name):
    record = read(name)
    assert plain_text(record.attribution["html"]) == record.attribution["plain"]
    assert record.photographer_full_name in record.attribution["plain"]
    assert record.source_image_url or web_url(first_link(record.attribution["html"]))


def test_the_credit_names_photographer_and_licence_once_with_their_links(name):
    record = read(name)
    credit = record.attribution["html"]
    assert record.attribution["plain"].count(record.photographer_full_name) == 1
    # Rawpixel and the museum ask for credits of their own wording.
    if record.photographer_url and name not in ("rawpixel", "met"):
        linked = f'" rel="noopener">{html.escape(record.photographer_full_name)}</a>'
        before, _, _ = credit.partition(linked)
        address = html.unescape(before.rpartition('href="')[2])
        assert address.startswith(record.photographer_url)
    if record.license_url in html.unescape(credit):
        link = f'<a href="{record.license_url}" rel="noopener">'
        assert f"{link}{license_label(record.license_type)}</a>" in credit


def test_a_record_without_an_id_or_without_a_picture_is_refused(name):
    with pytest.raises(InputError, match=f"a record of {name} must"):
        read(name, {})


def test_what_is_no_object_is_refused(name):
    for value in ("text", 7, None, [1]):
        with pytest.raises(InputError, match="JSON object"):
            SOURCES[name].record(value)


def test_an_answer_of_the_api_holds_the_same_records_as_a_list_and_as_one(name):
    source, entry = SOURCES[name], RECORDS[name]
    answer = [entry, entry]
    for key in reversed(source.records_at):
        answer = {key: answer}
    one = source.entries(entry)
    assert source.entries(answer) == one * 2
    assert source.entries([entry]) == one


def test_an_unknown_library_is_named_with_those_that_there_are():
    with pytest.raises(InputError, match=r"unsplash, pexels, .*got 'shutterstock'"):
        find_source("shutterstock")


# -- small parts ------------------------------------------------------------------------------


def test_a_size_that_a_library_lacks_is_the_next_larger_one_or_else_the_next_smaller():
    assert five_links(small="s", large="l") == {
        "thumb": "s",
        "small": "s",
        "regular": "l",
        "large": "l",
        "full": "l",
    }


@pytest.mark.parametrize(
    ("value", "day"),
    [
        ("2021-03-04T23:06:07Z", "2021-03-04"),
        ("1581318235", "2020-02-10"),
        (1581318235, "2020-02-10"),
        (1560080912594, "2019-06-09"),
        (946684800000, "2000-01-01"),  # in milliseconds, as all that is too late in seconds
        ("20190704", "2019-07-04"),
        (20190704, "2019-07-04"),
        ("20191340", ""),
        ("2021-13-40", ""),
        ("late 17th century", ""),
        (10**30, ""),
        pytest.param(10**5000, "", id="more digits than are written"),
        (True, ""),
        (None, ""),
    ],
)
def test_days_of_times(value, day):
    assert RawRecord({"at": value}).day("at") == day


@pytest.mark.parametrize(
    ("value", "text"), [(10**30 - 1, "9" * 30), (-(10**30) + 1, "-" + "9" * 30), (10**30, "")]
)
def test_numbers_of_up_to_thirty_digits_are_read_as_texts(value, text):
    assert RawRecord({"at": value}).text("at") == text


def test_deep_markup_is_read_without_harm():
    assert plain_text("<b>" * 5_000 + "x") == "x"


# -- one photo by several ways ----------------------------------------------------------------


def test_the_library_that_published_a_photo_speaks_for_it_whatever_came_first():
    for order in (("flickr", "openverse"), ("openverse", "flickr")):
        merged = merge(map(read, order))
        assert (merged.source, merged.source_photo_id) == ("flickr", "50000000001")
        assert merged.attribution["plain"].startswith("“Tram <28>” by Ines Duarte, CC BY 2.0")
        assert merged.attribution["plain"].endswith("; also at Openverse")
        assert [library for library, _ in merged.links] == ["flickr", "openverse"]


def test_what_the_origin_does_not_tell_is_filled_from_the_others():
    merged = merge(
        [read("flickr", changed(FLICKR, dateupload=None, ownername="")), read("openverse")]
    )
    assert merged.uploaded_on == "2022-08-27"


def test_the_later_of_two_records_of_one_library_counts():
    merged = merge([read("flickr"), read("flickr", changed(FLICKR, title="Renamed"))])
    assert merged.title == "Renamed"


def test_the_licence_at_the_origin_counts_not_the_one_that_was_passed_on():
    merged = merge([read("openverse"), read("flickr", changed(FLICKR, license="0"))])
    assert merged.license_type == "all-rights-reserved"


# -- the table --------------------------------------------------------------------------------


def test_the_table_has_a_line_a_field_and_a_column_a_library():
    lines = fields_table().splitlines()
    assert [line.split("`")[1] for line in lines[2 : 2 + len(PHOTO_FIELDS)]] == list(PHOTO_FIELDS)
    assert all(title.title in lines[0] for title in SOURCES.values())


def test_the_table_of_the_photo_libraries_is_the_generated_one():
    text = (bundled_root() / "SOURCES.md").read_text(encoding="utf-8")
    assert fields_table() in text
