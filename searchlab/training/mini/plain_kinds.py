"""What people call the kinds of thing that labels are of: a beagle is a dog, an oboe an instrument.

A generated description that is not sure of a label names its kind instead, in words that anyone
would use. Of things the kinds are WordNet's, under a plainer name; of what happens in a photo, and
of places, those of the phrases below.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from searchlab.training.mini.labels import Nouns

THINGS = {
    "a dog": ("02084071",),
    "a cat": ("02121808",),
    "a big cat": ("02127808",),
    "a bear": ("02131653",),
    "a monkey or an ape": ("02469914",),
    "a rodent": ("02329401",),
    "a hoofed animal": ("02370806",),
    "a bird": ("01503061",),
    "a butterfly": ("02274259",),
    "an insect": ("02159955",),
    "a spider": ("01772222",),
    "a crustacean": ("01974773",),
    "a snake": ("01726692",),
    "a lizard": ("01674464",),
    "a turtle": ("01662784",),
    "an animal": ("00015388",),
    "a musical instrument": ("03800933",),
    "fruit": ("07705931",),
    "vegetables": ("07707451",),
    "food": ("00021265", "07555863", "07705711"),
    "a car": ("02958343",),
    "a boat or ship": ("04530566",),
    "a vehicle": ("04524313",),
    "furniture": ("03405725",),
    "clothing": ("03051540", "03419014"),
    "a building": ("02913152",),
    "a clock": ("04437953",),
    "a mushroom": ("12992868",),
    "kitchenware": ("03621049",),
}
"""Offsets of WordNet's nouns of each kind."""

SCENES = {
    "people": (
        r"person|people|man|woman|men|women|child|children|couple|boy|girl|baby|runners|cyclist"
        r"|boxers|workers|gymnast|rider|performer|artist|skateboarder|snowboarder|band|wedding"
        r"|parade|party"
    ),
    "people doing sport": (
        r"playing (soccer|basketball|football|baseball|volleyball|tennis|hockey|rugby)|runners"
        r"|jogging|flip|gymnast|martial|boxers|cyclist|mountain bike|bicycle jump|motocross"
        r"|skateboarder|skates|skiing|snowboarder|climbing|surfing|wakeboard"
    ),
    "children": "child|children|baby|boy|girl",
    "a dog": "dog|dogs|puppy",
    "a cat": "cat|kitten",
    "a bird": "bird|birds",
    "a hoofed animal": "a horse in|cows|sheep",
    "a butterfly": "butterfly",
    "an insect": "butterfly|insect",
    "a monkey or an ape": "monkey",
    "an animal": (
        "dog|dogs|puppy|cat|kitten|bird|birds|a horse in|cows|sheep|butterfly|insect|fish|reptile"
        "|monkey|elephant"
    ),
    "a vehicle": "car|cars|motorcycle|motocross|airplane|train|bus|truck|sailing boat|ship",
    "a car": "car|cars",
    "a boat or ship": "boats|sailing boat|ship",
    "food": "food|fruit|vegetables|cake|bread|eating",
    "fruit": "fruit",
    "vegetables": "vegetables",
    "a building": "building|church|castle|house|tower|lighthouse",
    "a musical instrument": "instrument|guitar|drums",
    "a town": "city|street|traffic|old building|church|tower|bridge",
    "a landscape": (
        "landscape|forest|path|field|garden|tree|autumn|desert|countryside|mountain|mountains"
    ),
    "a shore": "coast|beach|waves|sea|lake|river",
    "the sky": "sunset|sunrise|sky",
    "a room": "room|bedroom|kitchen|office",
    "flowers": "flower|flowers",
}
"""Words of the phrases of each kind, as a pattern."""

PLACES = {
    "a landscape": ("valley", "volcano", "mountain", "cliff"),
    "a shore": ("seashore", "lakeshore", "sandbar", "beach", "promontory"),
    "a room": ("couch", "four-poster bed", "home theater", "entertainment center"),
    "flowers": ("daisy",),
}
"""Names of classes that are of such kinds as well."""


def find_plain_kinds(
    nouns: Nouns, classes: Mapping[str, str], phrases: Sequence[str]
) -> dict[str, list[str]]:
    """Find the plain kinds that labels are of.

    Args:
        nouns: WordNet.
        classes: Name of a class -> offset of its noun.
        phrases: The other labels.

    Returns:
        The kinds of each label; none for one of no kind.
    """
    kinds: dict[str, list[str]] = {}
    for name, synset in classes.items():
        above = nouns.find_above(synset).keys()
        kinds[name] = [kind for kind, offsets in THINGS.items() if not above.isdisjoint(offsets)]
        kinds[name] += [kind for kind, names in PLACES.items() if name in names]
    for phrase in phrases:
        kinds[phrase] = [
            kind for kind, words in SCENES.items() if re.search(rf"\b({words})\b", phrase)
        ]
    return kinds
