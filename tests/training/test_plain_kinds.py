"""Labels are of the kinds that WordNet and the words of phrases say, under plain names."""

import pytest

pytestmark = pytest.mark.slow

pytest.importorskip("torch")

# These need torch, so they come after what skips the file where it is not installed.
from searchlab.training.mini.labels import Nouns  # noqa: E402
from searchlab.training.mini.phrases import PHRASES  # noqa: E402
from searchlab.training.mini.plain_kinds import (  # noqa: E402
    PLACES,
    SCENES,
    THINGS,
    find_plain_kinds,
)

NOUNS = Nouns(
    names={"02084071": "dog", "00015388": "animal", "1": "beagle", "2": "stone"},
    parents={"1": ["02084071"], "02084071": ["00015388"]},
)


def test_a_thing_is_of_every_kind_above_it_and_a_stone_of_none():
    kinds = find_plain_kinds(NOUNS, {"beagle": "1", "stone": "2"}, [])
    assert kinds == {"beagle": ["a dog", "an animal"], "stone": []}


@pytest.mark.parametrize(
    ("phrase", "kinds"),
    [
        ("a dog running on grass", {"a dog", "an animal"}),
        ("a person riding a horse", {"people"}),
        ("a horse in a field", {"a hoofed animal", "an animal", "a landscape"}),
        ("people playing soccer", {"people", "people doing sport"}),
        ("a mountain landscape", {"a landscape"}),
        ("an abstract pattern", set()),
        ("a parked car", {"a vehicle", "a car"}),
    ],
)
def test_a_phrase_is_of_the_kinds_of_its_words(phrase, kinds):
    assert set(find_plain_kinds(NOUNS, {}, [phrase])[phrase]) == kinds


def test_places_are_of_their_kinds_as_well():
    assert "a shore" in find_plain_kinds(NOUNS, {"sandbar": "2"}, [])["sandbar"]


def test_every_kind_has_a_label():
    named = {name: "2" for names in PLACES.values() for name in names}
    found = find_plain_kinds(NOUNS, named, PHRASES)
    of_words = {kind for kinds in found.values() for kind in kinds}
    assert of_words == {*SCENES, *PLACES}
    assert set(THINGS).isdisjoint({"people", "children", "the sky"})
