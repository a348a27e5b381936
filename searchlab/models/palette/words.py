"""Colour words of a text: which shades it names, in English and in thirty other languages.

English has the XKCD survey and CSS names (`colour_names.tsv`), the others their basic words
(`colour_words.tsv`). A basic word, such as "red" or "rouge", stands for all the shades that people
gave a name ending in it; a compound, such as "navy blue", for its own shade. Words that darken,
lighten or brighten change the shades of the colour beside them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from searchlab.photos.colors import srgb_to_oklab

Lab: TypeAlias = NDArray[np.float32]

# Endings that `~` stands for. A stem alone is too little: "белка" is no "белый".
_ENDINGS: dict[str, tuple[str, ...]] = {
    "cs": ("ý", "á", "é", "í", "ého", "ou", "ých", "ým"),
    "de": ("", "e", "er", "es", "en", "em"),
    "el": ("ος", "η", "ο", "οι", "ες", "α", "ου", "ων", "ους", "ης"),
    "fi": ("nen", "sen", "set", "sta", "sia", "seen", "sessa", "sten"),
    "pl": ("y", "i", "a", "e", "ą", "ego", "ej", "emu", "ym", "im", "ych", "ich", "ymi", "imi"),
    "ru": (
        "ый",
        "ий",
        "ой",
        "ая",
        "яя",
        "ое",
        "ее",
        "ые",
        "ие",
        "ого",
        "его",
        "ей",
        "ому",
        "ему",
        "ым",
        "им",
        "ом",
        "ем",
        "ую",
        "юю",
        "ых",
        "их",
        "ыми",
        "ими",
    ),
    "uk": (
        "ий",
        "ій",
        "а",
        "я",
        "е",
        "є",
        "і",
        "ого",
        "ої",
        "ому",
        "им",
        "ім",
        "у",
        "ю",
        "их",
        "іх",
        "ими",
        "іми",
        "ьої",
    ),
}
_PREFIXES = {"ar": "ال", "he": "ה"}
_UNSPACED = ("zh", "ja", "ko", "th")  # their words are looked for inside runs of letters
_CHANGE_FOLLOWS = ("ar", "es", "fa", "fr", "he", "id", "it", "pt", "ro", "vi")


# English words that mean a family; the family's shades are the survey's names that end in them.
_FAMILIES = {
    "red": ("red", "reds", "crimson", "scarlet"),
    "orange": ("orange",),
    "yellow": ("yellow",),
    "green": ("green", "greens"),
    "blue": ("blue", "blues"),
    "purple": ("purple", "violet"),
    "pink": ("pink",),
    "brown": ("brown",),
    "black": ("black",),
    "white": ("white",),
    "grey": ("grey", "gray"),
    "turquoise": ("turquoise", "teal", "cyan", "aqua"),
    "beige": ("beige", "tan", "cream"),
}
# The survey has few names for these: everybody agrees on black.
_EXTRA_SHADES = {
    "black": ("#000000", "#0a0a0a", "#141414", "#1c1c1e", "#161210", "#101418"),
    "white": ("#ffffff", "#fafafa", "#f4f4f4", "#fbf8f2", "#f3f6fa"),
    "grey": ("#808080", "#a0a0a0", "#606060", "#b8b8b8"),
}
_HEX = re.compile(r"#(?:[0-9a-f]{6}|[0-9a-f]{3})(?![0-9a-z])")
_LONGEST_NAME = 4


def _table(name: str) -> Iterator[list[str]]:
    text = files("searchlab.models.palette").joinpath(name).read_text(encoding="utf-8")
    return (line.split("\t") for line in text.splitlines() if not line.startswith("#"))


def _lab(hexes: list[str]) -> Lab:
    values = [[int(code[i : i + 2], 16) for i in (1, 3, 5)] for code in hexes]
    return srgb_to_oklab(np.array(values, dtype=np.uint8))


def _without_case(text: str) -> str:
    # Of the Turkish capital İ a dot is left, which "i" has already.
    return unicodedata.normalize("NFC", text).casefold().replace("i\u0307", "i")


def _without_accents(word: str) -> str:
    bare = unicodedata.normalize("NFD", word.replace("ı", "i").replace("ł", "l").replace("ø", "o"))
    return unicodedata.normalize("NFC", "".join(c for c in bare if not "\u0300" <= c <= "\u036f"))


def _forms(language: str, word: str) -> Iterator[str]:
    plain = _without_case(word.replace("_", " "))
    stem, inflected, _ = plain.partition("~")
    forms = [stem + ending for ending in _ENDINGS[language]] if inflected else [plain]
    if language in _PREFIXES:
        forms += [_PREFIXES[language] + form for form in forms]
    for form in forms:
        yield form
        # In Vietnamese and Hindi the marks are the word.
        if language not in ("vi", "hi"):
            yield _without_accents(form)


@dataclass(frozen=True)
class _Change:
    """How a word such as "dark" moves a shade in OKLab."""

    lightness: float
    towards_white: float
    chroma: float

    def __call__(self, shades: Lab) -> Lab:
        lightness = shades[:, :1] * self.lightness
        lightness = lightness + (1 - lightness) * self.towards_white
        return np.hstack([lightness, shades[:, 1:] * self.chroma]).astype(np.float32)


_CHANGES = {
    "dark": _Change(0.62, 0.0, 0.8),
    "deep": _Change(0.8, 0.0, 1.05),
    "light": _Change(1.0, 0.5, 0.7),
    "bright": _Change(1.0, 0.12, 1.2),
    "dull": _Change(0.95, 0.05, 0.5),
    "pastel": _Change(1.0, 0.55, 0.5),
}


class Vocabulary:
    """The two tables, ready to read texts with."""

    def __init__(self) -> None:
        self.names = dict(_table("colour_names.tsv"))
        self.words: dict[str, tuple[str, bool]] = {}  # word -> meaning, may follow its colour
        for meaning, language, words in _table("colour_words.tsv"):
            for word in words.split():
                for form in _forms(language, word):
                    self.words.setdefault(form, (meaning, language in _CHANGE_FOLLOWS))
        for family, heads in _FAMILIES.items():
            for head in heads:
                self.words[head] = (family, False)

    @cached_property
    def families(self) -> dict[str, Lab]:
        """Shades of each family, (n_shades, 3) float32 OKLab."""
        shades = {}
        for family, heads in _FAMILIES.items():
            codes = [code for name, code in self.names.items() if name.split()[-1] in heads]
            shades[family] = _lab(sorted(codes) + list(_EXTRA_SHADES.get(family, ())))
        return shades

    @cached_property
    def _unspaced(self) -> re.Pattern[str]:
        forms = {
            form
            for _, language, words in _table("colour_words.tsv")
            if language in _UNSPACED
            for word in words.split()
            for form in _forms(language, word)
        }
        return re.compile("|".join(sorted(map(re.escape, forms), key=lambda w: (-len(w), w))))

    @cached_property
    def _prefixes(self) -> dict[str, str]:
        """Word that may be joined to the front of a colour, as in "dunkelblau" -> its change."""
        changes = {"dunkel": "dark", "hell": "light", "donker": "dark", "licht": "light"}
        changes |= {"mörk": "dark", "ljus": "light", "mørk": "dark", "lys": "light"}
        return changes | {"tumman": "dark", "vaalean": "light", "sötét": "dark", "világos": "light"}

    def _tokens(self, text: str) -> list[str]:
        spaced = self._unspaced.sub(lambda match: f" {match[0]} ", text)
        letters = (c if unicodedata.category(c)[0] in "LMN\u200c" else " " for c in spaced)
        return "".join(letters).split()

    def _read(self, tokens: list[str]) -> Iterator[tuple[str, Lab | None, bool]]:
        """Yield (change or "", shades or None, may follow) for each word or group of words.

        "May follow" says that the change may stand behind its colour, as in "bleu clair".
        """
        start = 0
        while start < len(tokens):
            for length in range(min(_LONGEST_NAME, len(tokens) - start), 0, -1):
                phrase = " ".join(tokens[start : start + length])
                reading = self._phrase(phrase)
                if reading is not None:
                    yield reading
                    break
            else:
                yield "", None, False
                length = 1
            start += length

    def _phrase(self, phrase: str) -> tuple[str, Lab | None, bool] | None:
        meaning, follows = self.words.get(phrase, ("", False))
        if meaning in _CHANGES:  # a word that darkens, lightens or brightens
            return meaning, None, follows
        if meaning == "nothing":
            return "", None, False
        if meaning:
            return "", self.families[meaning], False
        first, _, rest = phrase.partition(" ")
        is_changed_family = first in self.words and rest in self.words
        if phrase in self.names and not is_changed_family:
            return "", _lab([self.names[phrase]]), False
        for prefix, change in self._prefixes.items():
            meaning, _ = self.words.get(phrase.removeprefix(prefix), ("", False))
            if phrase.startswith(prefix) and meaning in self.families:
                return "", _CHANGES[change](self.families[meaning]), False
        return None

    def shades(self, text: str) -> list[Lab]:
        """List the colours that a text names, each as its (n_shades, 3) float32 OKLab shades.

        A colour named twice is listed twice. A text without a colour word gives an empty list.
        """
        plain = _without_case(text)
        codes = _HEX.findall(plain)
        colours = [
            _lab([code if len(code) == 7 else "#" + "".join(c * 2 for c in code[1:])])
            for code in codes
        ]
        change = ""
        after_colour = False
        for word, shades, follows in self._read(self._tokens(_HEX.sub(" ", plain))):
            if word and follows and after_colour:
                colours[-1] = _CHANGES[word](colours[-1])
            elif word:
                change = word
            elif shades is not None:
                colours.append(_CHANGES[change](shades) if change else shades)
                change = ""
            else:
                colours += self._alone(change)
                change = ""
            after_colour = shades is not None
        return colours + self._alone(change)

    def _alone(self, change: str) -> list[Lab]:
        # "A dark forest" says something about colours; "a light breakfast" does not.
        lone = {
            "dark": ["#000000", "#121212", "#1e1a18", "#161c24"],
            "pastel": ["#ffd1dc", "#c1e1ec"],
        }
        return [_lab(lone[change])] if change in lone else []
