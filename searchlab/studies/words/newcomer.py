"""The twenty queries of a newcomer in thirteen languages, and who answers them with what."""

from __future__ import annotations

from typing import Final, NamedTuple


class Everyday(NamedTuple):
    """A query that somebody types who does not know what there is.

    Attributes:
        lang: BCP 47 tag.
        text: The query.
        meaning: The same in English, for the judge.
    """

    lang: str
    text: str
    meaning: str


QUERIES: Final = (
    Everyday("en", "a dog", "a dog"),
    Everyday("en", "owl", "an owl"),
    Everyday("en", "sunset", "a sunset"),
    Everyday("en", "people at the beach", "people at the beach"),
    Everyday("en", "something red", "something red"),
    Everyday("en", "childrn playing", "children playing (misspelt)"),
    Everyday("de", "ein Schloss", "a castle or palace"),
    Everyday("de", "Vogel", "a bird"),
    Everyday("fr", "un bateau sur l'eau", "a boat on the water"),
    Everyday("fr", "des fleurs", "flowers"),
    Everyday("es", "una montaña nevada", "a snowy mountain"),
    Everyday("it", "un gatto", "a cat"),
    Everyday("pt", "um cavalo", "a horse"),
    Everyday("nl", "een brug", "a bridge"),
    Everyday("cs", "kolo", "a bicycle or wheel"),
    Everyday("pl", "samochód", "a car"),
    Everyday("ru", "рыба", "a fish"),
    Everyday("zh", "一座塔", "a tower"),
    Everyday("ja", "子供", "a child"),
    Everyday("ar", "شجرة", "a tree"),
)
"""Twenty queries in thirteen languages."""
