"""What a model reads: never too much of it, whatever strangers wrote, and nothing unseen in it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchlab.api.mcp.answers import (
    MOST_BYTES,
    cited,
    clean,
    count_bytes,
    fit_all,
    shorten,
    take_part,
)
from searchlab.api.mcp.photo_answers import FOUND_FIELDS, describe_linked, describe_photo

PLAIN = {
    "photo_id": "0f3d2c1b-5a4e-5c6d-8b7a-9f8e7d6c5b4a",
    "urls": {"regular": "https://photos.example.org/media/0f3d2c1b/regular?v=12345678"},
    "source_image_url": "https://example.org/photos/1",
    "width": 1920,
    "height": 1280,
    "orientation": "landscape",
    "color_name": "teal",
    "source": "unsplash",
    "license_type": "cc0",
    "photographer_username": "annlee",
    "photographer_full_name": "Ann Lee",
    "source_description": "Morning at the lake",
    "description": "A teal landscape photo.",
    "alt_description": "a lake",
    "relevance_score": 0.5,
    "uploaded_on": "2024-01-01",
    "attribution": {"plain": "Photo by Ann Lee (cc0)"},
}
TEXTS = [name for name in PLAIN if isinstance(PLAIN[name], str) and name.endswith(("tion", "name"))]
LONG = st.sampled_from(["x" * 5_000, "ལྷ་ས" * 900, "\U0001f600" * 2_000, '"\\' * 2_500, "", "short"])


def test_the_plain_record_is_one_of_a_list():
    assert tuple(PLAIN) == FOUND_FIELDS


@given(st.lists(st.tuples(LONG, LONG, LONG), min_size=1, max_size=20), st.booleans())
def test_a_page_of_photos_fits_however_long_their_texts_are(pages, linked):
    photos = [
        PLAIN
        | {name: text for name in TEXTS if name not in {"orientation", "color_name"}}
        | {"source": other, "license_type": other, "attribution": {"plain": credit}}
        | {"source_image_url": f"https://example.org/{'a' * len(other)}"}
        for text, other, credit in pages
    ]
    describe = describe_linked if linked else describe_photo
    part = fit_all(photos, describe, most=MOST_BYTES - 6_000)
    assert [photo["photo_id"] for photo in part.entries] == [PLAIN["photo_id"]] * len(photos)
    n_bytes = sum(map(count_bytes, part.entries)) + sum(len(line.encode()) for line in part.lines)
    assert n_bytes <= MOST_BYTES - 6_000


def test_what_may_be_done_with_a_photo_is_said_however_little_room_there_is():
    short = shorten(PLAIN | {"title": "x" * 500, "license_type": "cc-by-sa-4.0"}, 10)
    assert (short["title"], short["license_type"]) == ("", "cc-by-sa-4.0")
    assert short["source"] == PLAIN["source"]


def test_a_full_page_with_pictures_keeps_titles_and_credits():
    credit = "Photo by Maria Anna Barbara von Hohenlohe on Wikimedia Commons (CC BY-SA 4.0)"
    photo = PLAIN | {
        "source_description": "Morning mist over the lake below the old monastery",
        "description": "A teal landscape photo of a lake with mountains. " * 8,
        "attribution": {"plain": credit},
    }
    part = fit_all([photo] * 20, describe_linked, most=MOST_BYTES - 1_200)
    for entry in part.entries:
        assert entry["source_description"] == photo["source_description"]
        assert entry["attribution"]["plain"] == credit
        assert entry["urls"] == photo["urls"]


def test_the_longest_texts_of_a_page_are_cut_and_no_others():
    long = PLAIN | {"source_description": "x" * 5_000, "attribution": {"plain": "y" * 5_000}}
    part = fit_all([PLAIN, long, PLAIN, long], describe_photo, most=6_000)
    assert part.entries[0] == part.entries[2] == PLAIN
    assert 100 < len(part.entries[1]["source_description"]) < 5_000


def test_short_records_are_left_as_they_are():
    assert fit_all([PLAIN] * 9, describe_photo, most=20_000).entries == [PLAIN] * 9


@given(st.lists(LONG, min_size=1, max_size=60))
def test_a_list_is_read_in_parts_that_fit_and_leave_nothing_out(names):
    entries = [{"id": number, "name": name} for number, name in enumerate(names, 1)]
    start, seen = 1, []
    while start is not None:
        part = take_part(entries, lambda entry: cited(entry["name"]), start=start)
        n_bytes = sum(map(count_bytes, part.entries)) + sum(len(x.encode()) for x in part.lines)
        assert part.entries
        assert n_bytes <= MOST_BYTES
        seen += [entry["id"] for entry in part.entries]
        start = part.next_start
    assert seen == [entry["id"] for entry in entries]


def test_beyond_the_end_of_a_list_there_is_nothing():
    assert take_part([{"id": 1}], str, start=2) == ([], [], None)


@given(st.text())
def test_a_cited_text_is_one_line_of_json_without_unseen_characters(text):
    line = cited(clean(text), 10_000)
    assert len(line.splitlines()) == 1
    assert json.loads(line) == clean(text)
    assert clean(clean(text)) == clean(text)


@pytest.mark.parametrize(
    "unseen", ["\u202e", "\u2066", "\u200b", "\ufeff", "\U000e0061", "\U000e0100", "\x1b", "\u2028"]
)
def test_characters_that_nobody_sees_are_taken_out(unseen):
    assert clean({"a": [f"x{unseen}y"]}) == {"a": ["x y"]}


@pytest.mark.parametrize("text", ["نمی‌خواهم", "क्‍ष", "👩‍👧", "naïve – “so”"])
def test_what_scripts_need_stays(text):
    assert clean(text) == text
