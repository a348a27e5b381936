import dataclasses
import re
import string

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from searchlab.errors import InputError
from searchlab.search.cursors import Cursor, CursorError, check_reached
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.queries import Query
from tests.support.examples import examples

KEY = b"a key of this library"
ALPHABET = string.ascii_letters + string.digits + "-_"
PICTURE = Image.new("RGB", (1, 1))
VECTOR = np.linspace(-1, 1, 8, dtype=np.float32)


def cursor(query, **changes):
    values = {
        "vector": None,
        "position": 20,
        "per_page": 20,
        "snapshot_id": "000001-abcdef01",
        "config_id": "0123456789ab",
        "audience": "account 7:search",
    }
    return Cursor(query=query, **values | changes)


def unseal(token, *, key=KEY, audience="account 7:search"):
    return Cursor.unseal(token, key, audience=audience)


TEXT = cursor(Query(text="dunes at noon", filter=PhotoFilter(source="nasa"), limit=50))
TOKENS = {
    "text": TEXT.seal(KEY),
    "image": cursor(Query(image=PICTURE, text="night"), vector=VECTOR).seal(KEY),
    "long enough to be packed": cursor(Query(text="dunes " * 80)).seal(KEY),
}


# -- round trips ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        Query(text="a"),
        Query(text="  spaces stay  "),
        Query(text="dunes", text_alpha=0, limit=100, score_threshold=1, sort_by="newest"),
        Query(text="dunes", score_threshold=0.1 + 0.2, text_alpha=5e-324),
        Query(photo_id="00000000-0000-4000-8000-000000000001"),
        Query(photo_id="p", text="at night", text_alpha=10),
        Query(text="dunes", min_recall=0.99),
        Query(filter=PhotoFilter(color_name="teal", color_tolerance=0)),
        Query(
            filter=PhotoFilter(
                color_hex="#1F6f8b",
                color_tolerance=255,
                orientation=("square", "landscape"),
                source=("nasa", "Ünsplash"),
                license_type=("free", "public domain"),
                photographer="",
                after_date="0001-01-01",
                before_date="9999-12-31",
            )
        ),
    ],
)
def test_a_cursor_comes_back_as_it_went_in(query):
    here = cursor(query, position=10**12, per_page=1)
    assert unseal(here.seal(KEY)) == here


@pytest.mark.parametrize(
    "text",
    [
        "写真の砂丘",
        "🏜️" * 250,
        "\U0010ffff" * 500,
        "\u202eكثبان\u2028",
        "e\u0301 é",
        '"\\/\x01\x7f',
        "{}",
    ],
)
def test_texts_in_any_script_survive(text):
    here = cursor(Query(text=text, filter=PhotoFilter(photographer=text)))
    assert unseal(here.seal(KEY)) == here


@settings(max_examples=examples(80), deadline=None)
@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    st.floats(0, 10),
    st.none() | st.floats(0, 1),
    st.none() | st.integers(1, 100),
    st.sampled_from(["relevance", "newest"]),
    st.integers(0, 2**60),
)
def test_any_query_survives(text, photographer, alpha, threshold, limit, order, position):
    query = Query(
        text=text,
        text_alpha=alpha,
        filter=PhotoFilter(photographer=photographer, orientation="square"),
        sort_by=order,
        score_threshold=threshold,
        limit=limit,
    )
    here = cursor(query, position=position)
    assert unseal(here.seal(KEY)) == here


FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)


@settings(max_examples=examples(60), deadline=None)
@given(arrays(np.float32, st.integers(1, 64), elements=FINITE))
def test_a_picture_s_vector_survives_bit_for_bit(vector):
    here = unseal(cursor(Query(image=PICTURE), vector=vector).seal(KEY))
    assert here.vector.dtype == np.float32
    assert here.vector.tobytes() == vector.tobytes()


@pytest.mark.parametrize("text", [None, "at night"])
def test_a_picture_is_left_behind_and_its_kind_of_query_is_not(text):
    query = Query(image=Image.new("RGB", (2_000, 2_000)), text=text)
    token = cursor(query, vector=VECTOR).seal(KEY)
    assert len(token) < 500
    again = unseal(token).query
    assert (again.kind, again.has_reference, again.text) == (query.kind, True, text)
    assert again.photo_id is None


def test_a_cursor_can_be_used_again_and_sealed_again():
    token = TOKENS["image"]
    first, second = unseal(token), unseal(token)
    assert first.vector.tobytes() == second.vector.tobytes()
    assert first.seal(KEY) == second.seal(KEY) == token
    following = dataclasses.replace(first, position=40)
    assert unseal(following.seal(KEY)).position == 40


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
def test_a_token_needs_no_quoting_in_a_url(token):
    assert re.fullmatch(r"[A-Za-z0-9_.-]+", token)


# -- every wrong character --------------------------------------------------------------------


def assert_refused(tokens):
    for token in tokens:
        with pytest.raises(CursorError, match="cursor must be the next_cursor of a page"):
            unseal(token)


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
def test_any_other_character_at_any_place_is_refused(token):
    for place, old in enumerate(token):
        neighbours = {ALPHABET[(ALPHABET.find(old) + step) % 64] for step in (1, 2, 3, 16)}
        for new in (neighbours | set("A_-.= é\0")) - {old}:
            assert_refused([token[:place] + new + token[place + 1 :]])


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
def test_the_last_character_of_either_part_has_one_spelling(token):
    # Four or sixteen letters stand for the same last byte in base64.
    payload, _, signature = token.rpartition(".")
    assert_refused(f"{payload}.{signature[:-1]}{c}" for c in ALPHABET if c != signature[-1])
    assert_refused(f"{payload[:-1]}{c}.{signature}" for c in ALPHABET if c != payload[-1])


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
def test_a_missing_or_an_additional_character_is_refused(token):
    for place in range(len(token)):
        assert_refused([token[:place] + token[place + 1 :]])
        if token[place : place + 1] != "A":
            assert_refused([token[:place] + "A" + token[place:]])
    assert_refused(token + more for more in "A.=-_ \n\t\r\0é")
    assert_refused(more + token for more in "A.=-_ \n\t\r\0é")
    assert_refused([token + "==", token + token, token.swapcase(), token.lower(), token[::-1]])


def test_parts_of_two_good_tokens_are_no_token():
    one, other = (token.rpartition(".") for token in (TOKENS["text"], TOKENS["image"]))
    assert_refused([f"{one[0]}.{other[2]}", f"{other[0]}.{one[2]}", one[0], one[2], f"{one[0]}."])


@pytest.mark.parametrize(
    "token",
    ["", ".", "..", "null", "e30.", ".e30", " ", "\ud800", "é" * 100, "A" * 1_000_000, "0"],
)
def test_what_is_no_token_is_refused(token):
    assert_refused([token])


@pytest.mark.parametrize("token", [None, 5, b"", b"token", [], {}])
def test_what_is_no_string_is_refused(token):
    assert_refused([token])


@settings(max_examples=examples(100), deadline=None)
@given(st.text(max_size=60) | st.text(ALPHABET + ".", max_size=200))
def test_no_text_is_a_token_by_chance(token):
    assert_refused([token])


# -- whose cursor it is -----------------------------------------------------------------------


def test_another_key_opens_nothing():
    for key in (b"another key", b"", KEY[:-1], KEY + b"\0", KEY.upper()):
        with pytest.raises(CursorError):
            unseal(TOKENS["text"], key=key)


@pytest.mark.parametrize(
    "audience", ["", "account 8:search", "account 7:similar", "account 7", "account 7:search "]
)
def test_a_cursor_of_somebody_else_or_of_another_operation_is_refused(audience):
    with pytest.raises(CursorError):
        unseal(TOKENS["text"], audience=audience)


@pytest.mark.parametrize("audience", ["", "a:b", "Ünïcode 🐈", "x" * 10_000])
def test_any_audience_opens_its_own(audience):
    here = dataclasses.replace(TEXT, audience=audience)
    assert unseal(here.seal(KEY), audience=audience) == here


def test_a_token_of_a_text_is_short():
    assert len(TOKENS["text"]) < 150


def test_a_cursor_error_is_the_caller_s_fault():
    assert issubclass(CursorError, InputError)


@pytest.mark.parametrize(
    ("total", "per_page", "last"),
    [(0, 10, 1), (1, 10, 1), (10, 10, 1), (11, 10, 2), (25, 10, 3), (30, 10, 3), (9, 1, 9)],
)
def test_a_ranking_has_as_many_pages_as_it_fills_and_the_first_in_any_case(total, per_page, last):
    check_reached(last, total, per_page)
    with pytest.raises(InputError, match=f"page must be at most {last}, .* {total} results"):
        check_reached(last + 1, total, per_page)
