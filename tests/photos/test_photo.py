import json
import uuid
from html.parser import HTMLParser

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from searchlab.errors import InputError
from searchlab.photos.photo import (
    attribution_of,
    check_fields,
    orientation_of,
    photo_id_of,
    web_url,
)
from tests.support.examples import examples

SPECIFIED = [
    "photo_id",
    "source_photo_id",
    "image_url",
    "urls",
    "source_image_url",
    "width",
    "height",
    "orientation",
    "blur_hash",
    "color_name",
    "color_hex",
    "source",
    "license_type",
    "photographer_username",
    "photographer_full_name",
    "photographer_url",
    "source_description",
    "description",
    "alt_description",
    "relevance_score",
    "uploaded_on",
    "attribution",
]


class _Reader(HTMLParser):
    """Reads markup as a browser would: which tags, which links, which text."""

    def __init__(self, markup):
        super().__init__(convert_charrefs=True)
        self.tags, self.links, self.text = set(), [], ""
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        assert {name for name, _ in attrs} == {"href", "rel"}
        self.links.append(dict(attrs)["href"])

    def handle_data(self, data):
        self.text += data

    def handle_comment(self, data):
        self.tags.add("comment")

    def handle_decl(self, decl):
        self.tags.add("declaration")

    def handle_pi(self, data):
        self.tags.add("instruction")


def credit(**parts):
    empty = dict.fromkeys(
        ("title", "photographer", "license_type", "page", "profile", "license_url"), ""
    )
    return attribution_of(**empty | parts)


# -- the record -------------------------------------------------------------------------------


def test_a_record_has_the_specified_22_fields_in_their_order(make_photo):
    assert list(make_photo(1).to_dict(relevance_score=0.5)) == SPECIFIED


def test_a_record_has_five_urls_and_two_forms_of_attribution(make_photo):
    record = make_photo(1).to_dict(relevance_score=0.5)
    assert list(record["urls"]) == ["thumb", "small", "regular", "large", "full"]
    assert list(record["attribution"]) == ["html", "plain"]


def test_a_record_carries_the_values_of_the_photo_and_the_score(make_photo):
    record = make_photo(7, width=40, height=40, color_hex="#0343df").to_dict(relevance_score=0.25)
    assert record["photo_id"] == "00000000-0000-4000-8000-000000000007"
    assert (record["width"], record["height"], record["orientation"]) == (40, 40, "square")
    assert (record["color_hex"], record["color_name"]) == ("#0343df", "blue")
    assert record["relevance_score"] == 0.25


def test_a_record_tells_nothing_of_this_machine(make_photo):
    record = make_photo(1, file="/home/ann/secret.jpg", sha256="ab" * 32)
    assert "secret" not in json.dumps(record.to_dict(relevance_score=1.0))


def test_changing_a_record_leaves_the_photo_as_it_is(make_photo):
    photo = make_photo(1)
    record = photo.to_dict(relevance_score=1.0)
    record["urls"]["thumb"] = record["attribution"]["html"] = "changed"
    assert photo.urls["thumb"] == "https://example.org/1/thumb"
    assert "changed" not in photo.attribution["html"]


def test_a_photo_cannot_be_changed(make_photo):
    with pytest.raises(AttributeError):
        make_photo(1).width = 5


# -- ids and orientation ----------------------------------------------------------------------


def test_an_id_is_stable_and_uuid_shaped():
    first = photo_id_of("unsplash", "abc")
    assert first == photo_id_of("unsplash", "abc")
    assert str(uuid.UUID(first)) == first


@pytest.mark.parametrize(
    "other", [("unsplash", "abd"), ("pexels", "abc"), ("unsplash", "ABC"), ("unsplash", "")]
)
def test_another_library_or_another_id_there_is_another_photo(other):
    assert photo_id_of(*other) != photo_id_of("unsplash", "abc")


def test_a_colon_in_a_name_does_not_move_the_border_between_library_and_id():
    assert photo_id_of("a:b", "c") != photo_id_of("a", "b:c")


@pytest.mark.parametrize(
    ("width", "height", "orientation"),
    [
        (1, 1, "square"),
        (4000, 4000, "square"),
        (4001, 4000, "landscape"),
        (4000, 4001, "portrait"),
        (2, 1, "landscape"),
        (1, 100_000, "portrait"),
    ],
)
def test_only_equal_sides_are_square(width, height, orientation):
    assert orientation_of(width, height) == orientation


# -- attribution ------------------------------------------------------------------------------


def test_a_full_credit_links_photo_photographer_and_licence():
    attribution = attribution_of(
        title="Dunes at noon",
        photographer="Ann Lee",
        license_type="cc-by",
        page="https://example.org/p/1",
        profile="http://example.org/ann",
        license_url="https://example.org/by",
    )
    assert attribution["plain"] == "“Dunes at noon” by Ann Lee (cc-by)"
    assert attribution["html"] == (
        '<a href="https://example.org/p/1" rel="noopener">“Dunes at noon”</a> '
        'by <a href="http://example.org/ann" rel="noopener">Ann Lee</a> '
        '<a href="https://example.org/by" rel="noopener">(cc-by)</a>'
    )


@pytest.mark.parametrize(
    ("parts", "plain"),
    [
        ({}, ""),
        ({"photographer": "Ann Lee"}, "Photo by Ann Lee"),
        ({"title": "Dunes"}, "“Dunes”"),
        ({"license_type": "cc0"}, "Photo (cc0)"),
        ({"title": " \t ", "photographer": "\n"}, ""),
        ({"photographer": "Ann\nLee\t\r\n Jr"}, "Photo by Ann Lee Jr"),
    ],
)
def test_what_is_unknown_is_left_out_of_the_credit(parts, plain):
    assert credit(**parts) == {"html": plain, "plain": plain}


def test_a_url_without_its_text_is_left_out():
    assert "ann" not in credit(profile="https://example.org/ann")["html"]


@pytest.mark.parametrize(
    "name",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        '"><svg onload=alert(1)>',
        "'; alert(1); '",
        "</a><b>",
        "<!-- <a href='https://evil.example' rel=x>",
        "&lt;script&gt; &amp; &#60;",
        "مصوّر الصحراء",
        "Zoë 写真家 🐈‍⬛",
    ],
)
def test_a_hostile_name_is_shown_as_the_text_that_it_is(name):
    attribution = credit(title=name, photographer=name, license_type=name)
    read = _Reader(attribution["html"])
    assert read.tags == set()
    assert read.text == attribution["plain"] == f"“{name}” by {name} ({name})"


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "java\nscript:alert(1)",
        "\x01javascript:alert(1)",
        " javascript:alert(1)//https://example.org",
        "data:text/html,<script>alert(1)</script>",
        "vbscript:x",
        "file:///etc/passwd",
        "ftp://example.org/a",
        "//evil.example/a",
        "/photos/1",
        "example.org",
        "https:evil.example",
        "https:///path-only",
        "http://",
        "https://[broken",
        "https://exa\nmple.org/",
        "https://example.org/a b",
        " https://example.org/",
        "https://example.org/\0",
        "https://example.org/\t",
        "",
    ],
)
def test_what_is_no_plain_web_address_is_no_link(url):
    assert web_url(url) == ""
    assert credit(photographer="Ann", page=url, profile=url)["html"] == "Photo by Ann"


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org",
        "http://example.org:8080/a?b=1&c=2#d",
        "HTTPS://EXAMPLE.ORG/A",
        "https://müller.example/straße",
    ],
)
def test_a_web_address_stays_as_it_is(url):
    assert web_url(url) == url
    assert _Reader(credit(page=url)["html"]).links == [url]


def test_quotes_in_an_address_cannot_leave_the_attribute():
    url = """https://example.org/"onmouseover="alert(1)'><script>"""
    markup = credit(page=url)["html"]
    assert "<script" not in markup
    assert _Reader(markup).links in ([], [url])


@settings(max_examples=examples(150), deadline=None)
@given(*[st.text(max_size=30)] * 3, *[st.text(max_size=30).map("https://e.org/".__add__)] * 3)
@example("<", ">", "&amp;", "https://e.org/'", 'https://e.org/"', "https://e.org/<")
def test_the_markup_reads_as_the_plain_text_and_holds_nothing_but_web_links(
    title, photographer, license_type, page, profile, license_url
):
    attribution = attribution_of(
        title=title,
        photographer=photographer,
        license_type=license_type,
        page=page,
        profile=profile,
        license_url=license_url,
    )
    read = _Reader(attribution["html"])
    assert read.text == attribution["plain"]
    assert read.tags <= {"a"}
    assert all(link.startswith("https://e.org/") for link in read.links)
    assert "\n" not in attribution["html"] + attribution["plain"]


# -- selection of fields ----------------------------------------------------------------------


def test_selected_fields_come_once_and_in_the_order_of_the_specification():
    assert check_fields(["width", "photo_id", "width"]) == ("photo_id", "width")


def test_every_specified_field_can_be_selected():
    assert list(check_fields(sorted(SPECIFIED))) == SPECIFIED


@pytest.mark.parametrize("name", ["photographer", "file", "sha256", "score", "Width", "", " width"])
def test_an_unknown_field_is_answered_with_the_accepted_ones(name):
    with pytest.raises(InputError, match=r"photo_id, source_photo_id, .*attribution") as caught:
        check_fields(["width", name])
    assert repr(name) in str(caught.value)
