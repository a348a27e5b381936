"""Generated descriptions: what the models see in a photo, in plain English, marked as generated.

Photos arrive with poor captions or none. The words come from the labels nearest to the photo's
vector and from its colours; what the model is unsure of is said so or left out.
"""

from __future__ import annotations

from collections.abc import Sequence

# Cosines of label and photo: above the first a label is stated, above the second it is hedged.
SURE = 0.45
UNSURE = 0.25
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

    >>> describe([("red fox", 0.7), ("dingo", 0.4)], colors=["orange", "white"],
    ...          orientation="landscape")[1]
    'Photo of a red fox, mostly orange and white (generated).'
    """
    colors = list(dict.fromkeys(colors))[:3]
    hue = " and ".join(colors[:2])
    shades = f", mostly {hue}" if hue else ""
    sure = [label for label, cosine in tags if cosine >= SURE][:1]
    maybe = [label for label, cosine in tags if cosine >= UNSURE and label not in sure][:3]
    if sure:
        subject = f"showing {_with_article(sure[0])}"
        short = f"Photo of {_with_article(sure[0])}{shades} (generated)."
    elif maybe:
        subject = f"that may show {_with_article(maybe.pop(0))}"
        short = f"Photo, {subject.removeprefix('that ')}{shades} (generated)."
    else:
        subject = ""
        short = f"Photo{shades} (generated)."
    sentences = [f"{_WORDS_FOR[orientation]} {subject}".strip() + "."]
    if maybe:
        sentences.append(
            f"It resembles {_listed([_with_article(label) for label in maybe], 'or')}."
        )
    if colors:
        sentences.append(f"Its main colours are {_listed(colors, 'and')}.")
    sentences.append("Generated description.")
    return " ".join(sentences), short


def _with_article(label: str) -> str:
    return f"{'an' if label[:1].lower() in 'aeiou' else 'a'} {label}"


def _listed(words: Sequence[str], last: str) -> str:
    if len(words) == 1:
        return words[0]
    return f"{', '.join(words[:-1])} {last} {words[-1]}"
