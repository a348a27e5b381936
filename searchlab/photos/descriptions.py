"""Generated descriptions: what the models see in a photo, in plain English, marked as generated.

Photos arrive with poor captions or none. The words come from the labels nearest to the photo's
vector and from its colours; what the model is unsure of is left out, or is said to be unsure.
"""

from __future__ import annotations

from collections.abc import Sequence

# Cosines of label and photo: from SURE on a label is stated, from UNSURE on as a possibility. What
# share of them is right with `mini` is measured by benchmarks/descriptions/bench_descriptions.py.
SURE = 0.6
UNSURE = 0.45
_MARK = "(generated)."
_WORDS_FOR = {"landscape": "A wide photo", "portrait": "A tall photo", "square": "A square photo"}


def describe(
    tags: Sequence[tuple[str, float]], *, colors: Sequence[str], orientation: str
) -> tuple[str, str]:
    """Write a long and a short description of a photo.

    Args:
        tags: (label, cosine) pairs, nearest first; empty for a model that names nothing.
        colors: Colour families of the palette, largest share first.
        orientation: `landscape`, `portrait` or `square`.

    Returns:
        The long description, and the short one for people who cannot see the photo.

    >>> describe([("red fox", 0.7), ("dingo", 0.45)], colors=["orange", "white"],
    ...          orientation="landscape")[1]
    'Photo of a red fox, mostly orange and white (generated).'
    """
    colors = list(dict.fromkeys(colors))[:3]
    hue = " and ".join(colors[:2])
    shades = f", mostly {hue}" if hue else ""
    near = list(dict.fromkeys(label for label, cosine in tags if cosine >= UNSURE))
    sure = near[:1] if tags and tags[0][1] >= SURE else []
    maybe = near[len(sure) : len(sure) + 3]
    if sure:
        subject = f"showing {_with_article(sure[0])}"
        short = f"Photo of {_with_article(sure[0])}{shades} {_MARK}"
    elif maybe:
        subject = f"that may show {_with_article(maybe.pop(0))}"
        short = f"Photo, {subject.removeprefix('that ')}{shades} {_MARK}"
    else:
        subject = ""
        short = f"Photo{shades} {_MARK}"
    sentences = [f"{_WORDS_FOR[orientation]} {subject}".strip() + "."]
    if maybe:
        sentences.append(
            f"It resembles {_list_names([_with_article(label) for label in maybe], 'or')}."
        )
    if colors:
        are = "colour is" if len(colors) == 1 else "colours are"
        sentences.append(f"Its main {are} {_list_names(colors, 'and')}.")
    sentences.append("Generated description.")
    return " ".join(sentences), short


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


def _list_names(words: Sequence[str], last: str) -> str:
    if len(words) == 1:
        return words[0]
    return f"{', '.join(words[:-1])} {last} {words[-1]}"
