"""Photographers: any part of a name, folded; exact usernames; the order of the answers."""

import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from searchlab.errors import InputError
from searchlab.search.filters.photographers import Photographer, Photographers
from searchlab.search.filters.photographers.blocks import BlockFilter
from searchlab.search.filters.photographers.names import Names
from searchlab.search.words.terms import fold
from tests.support.examples import examples


def one_photo(username, full_name="", source="unsplash", **changes):
    return {
        "photographer_username": username,
        "photographer_full_name": full_name,
        "source": source,
        **changes,
    }


def usernames(photographers):
    return [one.username for one in photographers]


@pytest.fixture
def people(make_table):
    return Photographers(
        make_table(
            one_photo("annlee", "Ann Lee"),
            one_photo("annlee", "Ann Lee", "pexels"),
            one_photo("annlee", "Ann Lee", "pexels"),
            one_photo("søren-k", "Søren Kierkegård"),
            one_photo("joanne", "Joanne O’Neil"),
            one_photo("joanne", "Joanne O’Neil"),
            one_photo("joanne", "Joanne O’Neil"),
            one_photo("ann", "Zoë Łęcka"),
            one_photo("100%_real", "Иван Ёлкин"),
            one_photo("", "Nobody Known"),
            one_photo(" ", "Blank Space"),
        )
    )


# -- what is found ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("joan", ["joanne"]),
        ("SOREN", ["søren-k"]),
        ("kierkegard", ["søren-k"]),
        ("kierkegår", ["søren-k"]),
        ("neil", ["joanne"]),
        ("o'n", ["joanne"]),
        ("zoe lecka", ["ann"]),
        ("zoe   lecka ", ["ann"]),
        ("ИВАН ел", ["100%_real"]),
        ("%", ["100%_real"]),
        ("%_", ["100%_real"]),
        ("_", ["100%_real"]),
        ("n_", []),
        ("a%n", []),
        ("nobody", []),
        ("blank", []),
        ("lee\nann", []),
        ("kann", []),
        ("n-k", ["søren-k"]),
        ("k søren", []),
    ],
)
def test_a_part_of_a_username_or_of_a_full_name_finds_the_photographer(people, part, expected):
    assert usernames(people.suggest(part)) == expected


def test_a_profile_at_each_source_is_a_photographer_with_its_own_count(people):
    assert people.suggest("ann lee") == [
        Photographer(
            username="annlee",
            full_name="Ann Lee",
            source="pexels",
            url="https://example.org/ann",
            photos_count=2,
        ),
        Photographer(
            username="annlee",
            full_name="Ann Lee",
            source="unsplash",
            url="https://example.org/ann",
            photos_count=1,
        ),
    ]


def test_what_folds_to_nothing_is_part_of_everybody(people):
    everybody = ["joanne", "annlee", "100%_real", "ann", "annlee", "søren-k"]
    assert usernames(people.suggest("  ")) == everybody
    assert usernames(people.suggest("\N{COMBINING ACUTE ACCENT}")) == everybody


def test_the_limit_cuts_the_same_order(people):
    everybody = people.suggest(" ", 50)
    assert [people.suggest(" ", limit) for limit in (1, 2, 5)] == [
        everybody[:1],
        everybody[:2],
        everybody[:5],
    ]


def test_photos_without_a_username_have_no_photographer(people, make_table):
    assert len(people) == 6
    nobody = Photographers(make_table(one_photo("", "Ann Lee")))
    assert (len(nobody), nobody.suggest("ann"), nobody.find("")) == (0, [], [])


def test_a_library_without_photos_has_no_photographers(make_table):
    assert Photographers(make_table()).suggest("a") == []


@pytest.mark.parametrize(
    ("part", "limit"), [("", 10), ("x" * 101, 10), (None, 10), ("a", 0), ("a", 51), ("a", True)]
)
def test_a_part_or_a_limit_out_of_range_is_refused(people, part, limit):
    with pytest.raises(InputError):
        people.suggest(part, limit)


def test_a_hundred_code_points_are_a_part_and_may_be_any(people):
    assert people.suggest("é" * 100) == []
    assert people.suggest("\ufdfa" * 100) == []
    assert people.suggest("\ud800") == []
    assert people.suggest("\0") == people.suggest(" ")


# -- order ------------------------------------------------------------------------------------


def test_a_whole_name_comes_first_then_beginnings_of_words_then_the_rest(make_table):
    people = Photographers(
        make_table(
            *[one_photo("hanna", "H")] * 4,
            *[one_photo("anna-b", "B")] * 3,
            *[one_photo("x", "Bea Anna")] * 2,
            one_photo("ann", "C"),
            one_photo("y", "Ann"),
        )
    )
    assert usernames(people.suggest("ann")) == ["ann", "y", "anna-b", "x", "hanna"]


def test_equals_are_ordered_by_photos_then_username_then_source(make_table):
    people = Photographers(
        make_table(
            one_photo("b", "Same"),
            one_photo("a", "Same", "unsplash"),
            one_photo("a", "Same", "pexels"),
            one_photo("c", "Same"),
            one_photo("c", "Same"),
        )
    )
    suggested = [(one.username, one.source) for one in people.suggest("same")]
    assert suggested == [("c", "unsplash"), ("a", "pexels"), ("a", "unsplash"), ("b", "unsplash")]


# -- exact usernames --------------------------------------------------------------------------


def test_a_username_names_all_its_profiles_and_nobody_else(people):
    assert [(one.source, one.photos_count) for one in people.find("annlee")] == [
        ("pexels", 2),
        ("unsplash", 1),
    ]
    assert usernames(people.find("ann")) == ["ann"]


@pytest.mark.parametrize("username", ["", " ", "Ann", "ann ", "soren-k", "zzz", "an", "\ud800"])
def test_an_unknown_username_has_no_profile(people, username):
    assert people.find(username) == []


def test_the_name_and_the_page_are_those_of_the_newest_photo_that_tells_them(make_table):
    people = Photographers(
        make_table(
            one_photo("ann", "Ann Lee", uploaded_on="2020-01-01"),
            one_photo("ann", "", uploaded_on="2024-01-01", photographer_url=""),
            one_photo("ann", "Ann Li", uploaded_on="2022-01-01", photographer_url=""),
            one_photo("bob", "", photographer_url=""),
        )
    )
    (ann,) = people.find("ann")
    assert (ann.full_name, ann.url, ann.photos_count) == ("Ann Li", "https://example.org/ann", 3)
    (bob,) = people.find("bob")
    assert (bob.full_name, bob.url) == ("", "")
    assert usernames(people.suggest("lee")) == []


# -- against an oracle ------------------------------------------------------------------------

SCRIPTS = st.text(
    st.one_of(
        st.sampled_from("aAbnN -_.'%\n\x01"),
        st.sampled_from("éÉøØłßÆ’ıİ\u0301ǆ"),
        st.sampled_from("Иийёсσς가각漢字अकीमंחשָׁמُد๏ก้"),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=8,
)
WORD_BEGINS = r"(?:(?<=[\x00-/:-@\[-`{-\x7f])|^)(?=[0-9a-z\x80-\U0010ffff])"


def rank_of(lines, part):
    """0 for a line that is the part, 1 for a word that begins with it, 2 for any place, or None."""
    if part in lines:
        return 0
    begins_word = any(re.search(WORD_BEGINS + re.escape(part), line) for line in lines)
    if begins_word:
        return 1
    return 2 if any(part in line for line in lines) else None


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.tuples(SCRIPTS, SCRIPTS), max_size=12), SCRIPTS, st.integers(1, 5))
@example([("ab", "b a"), ("b", ""), ("", "")], "b", 5)
@example([("-a", "b"), ("a-", "-a")], "-a", 5)
@example([("a", "b")], "a\nb", 5)
def test_names_are_found_as_by_a_list_comprehension(entries, part, limit):
    names = Names([[line for entry in entries for line in entry]])
    folded = [[fold(line) for line in entry] for entry in entries]
    folded_part = fold(part)
    if folded_part:
        ranks = [(rank_of(lines, folded_part), at) for at, lines in enumerate(folded)]
        expected = [at for rank, at in sorted((r, at) for r, at in ranks if r is not None)]
    else:
        expected = list(range(len(entries)))
    assert names.find(part, limit) == expected[:limit]


@pytest.mark.slow
def test_many_names_over_many_blocks_are_found_as_by_a_list_comprehension():
    rng = np.random.default_rng(0)
    parts = ["an", "be", "ng", "lee", "ø", "漢", "k", " ", "-", "qu", "sch"]
    lines = ["".join(parts[i] for i in rng.integers(len(parts), size=6)) for _ in range(8_000)]
    names = Names([lines[:3_000], lines[3_000:]])
    entries = [[fold(line) for line in pair] for pair in zip(lines[::2], lines[1::2], strict=True)]
    for part in ("an", "ngng", "quø漢", "schsch-k", "zz", "a", "lee an", lines[7_777], "bebebebe"):
        folded_part = fold(part)
        ranks = [(rank_of(entry, folded_part), at) for at, entry in enumerate(entries)]
        expected = [at for rank, at in sorted((r, at) for r, at in ranks if r is not None)]
        assert names.find(part, 30) == expected[:30]


@example(b"\na\nb\n", 0, 4)
@example(b"\na\n\nb\n", 1, 4)
@given(
    st.binary(max_size=40).map(lambda middle: b"\n" + middle + b"\n"),
    st.integers(0, 45),
    st.integers(1, 45),
)
def test_a_block_that_has_a_pattern_is_never_passed_over(text, start, length):
    pattern = text[start : start + length] or b"\n"
    place = text.find(pattern)
    stretches = BlockFilter(np.frombuffer(text, dtype=np.uint8)).stretches(pattern)
    assert any(first <= place < stop for first, stop in stretches)
