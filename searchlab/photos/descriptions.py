"""Generated descriptions: what the models see in a photo, in plain English, marked as generated.

Photos arrive with poor captions or none. A label that the model is sure of is stated; else the kind
of thing that several near labels share, "a musical instrument" of an oboe and a cello; else nothing
but colours and shape. The nearest labels are listed as such, which makes no claim, so that they can
be searched for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

# What share of what is stated from these values on is right with `mini` is measured by
# benchmarks/descriptions/bench_descriptions.py.
SURE = 0.65  # cosine of a label and a photo
SURE_KIND = 0.7  # share of a kind among all labels
NEAR = 0.45  # cosine from which on a label is listed
_MARK = "(generated)."
_WORDS_FOR = {"landscape": "A wide photo", "portrait": "A tall photo", "square": "A square photo"}


class Sight(NamedTuple):
    """What a model sees in a photo.

    Attributes:
        labels: Nearest English labels with their cosines, nearest first.
        kinds: Plain names of the kinds that these and other labels are of, with the share of each
            among all labels, 0 to 1; those of fewest labels first.
    """

    labels: tuple[tuple[str, float], ...] = ()
    kinds: tuple[tuple[str, float], ...] = ()


def describe(sight: Sight, *, colors: Sequence[str], orientation: str) -> tuple[str, str]:
    """Write a long and a short description of a photo.

    Args:
        sight: What a model sees; empty for a model that names nothing.
        colors: Colour families of the palette, largest share first.
        orientation: `landscape`, `portrait` or `square`.

    Returns:
        The long description, and the short one for people who cannot see the photo.

    >>> sight = Sight((("oboe", 0.5), ("cello", 0.48)), (("a musical instrument", 0.9),))
    >>> describe(sight, colors=["brown"], orientation="portrait")[1]
    'Photo of a musical instrument, mostly brown (generated).'
    """
    subject = name_subject(sight)
    colors = list(dict.fromkeys(colors))[:3]
    hue = " and ".join(colors[:2])
    shown, of = (f" showing {subject}", f" of {subject}") if subject else ("", "")
    sentences = [f"{_WORDS_FOR[orientation]}{shown}."]
    near = dict.fromkeys(label for label, cosine in sight.labels if cosine >= NEAR)
    listed = [label for label in near if _with_article(label) != subject]
    if listed:
        sentences.append(f"Nearest labels: {', '.join(listed)}.")
    if colors:
        are = "colour is" if len(colors) == 1 else "colours are"
        sentences.append(f"Its main {are} {_list_names(colors)}.")
    sentences.append("Generated description.")
    shades = f", mostly {hue}" if hue else ""
    return " ".join(sentences), f"Photo{of}{shades} {_MARK}"


def name_subject(sight: Sight) -> str:
    """Name what a photo surely shows, with its article: a label, else a kind; empty if neither."""
    if sight.labels and sight.labels[0][1] >= SURE:
        return _with_article(sight.labels[0][0])
    return next((kind for kind, share in sight.kinds if share >= SURE_KIND), "")


def is_generated(text: str) -> bool:
    """Say whether a short description is one of `describe`, not of a person."""
    return text.endswith(_MARK)


# Words that do not sound as their first letter suggests, and labels that take no article.
_AN = ("hour", "honest", "heir", "x-ray")
_A = ("uni", "use", "ukulele", "euro", "ewe", "one-", "us ")
_PLURALS = (
    *("binoculars", "clogs", "glasses", "goggles", "jeans", "knickers", "mashed potatoes"),
    *("pajamas", "pants", "parallel bars", "scissors", "shorts", "sunglasses", "tights"),
    *("trousers", "maracas", "swim trunks"),
)
_MASSES = (
    *("hay", "lotion", "perfume", "hair spray", "guacamole", "espresso"),
    *("lightning", "fog", "rain", "bread", "food on a plate", "fresh fruit"),
)
# Beginnings of phrases that need no article: "two dogs playing", "people on the beach".
_COMPLETE = (
    *("a ", "an ", "the ", "two ", "people", "children ", "runners ", "boxers ", "workers "),
    *("cars ", "birds ", "cows ", "sheep ", "fish ", "autumn ", "waves ", "fireworks", "flowers "),
    *("vegetables", "books", "tools"),
)


def _with_article(label: str) -> str:
    word = label.lower()
    if word.startswith(_COMPLETE):
        return label
    if word.endswith(_PLURALS) or word in _MASSES:
        return label
    vowel = word.startswith(_AN) or (word[:1] in "aeiou" and not word.startswith(_A))
    return f"{'an' if vowel else 'a'} {label}"


def _list_names(words: Sequence[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last
