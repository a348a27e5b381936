"""A million photos with words: captions spliced from halves of real ones, and queries for them.

The halves are of captions that people and models wrote (`flickr8k-train`, `web-photos`), so their
words are as frequent as in real libraries; which half follows which is drawn at random. A third of
the photos have no words but the name of a file as a camera gives it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from searchlab.photos.columns import pack_texts
from searchlab.photos.table import CODED_COLUMNS, NUMBER_COLUMNS, TEXT_COLUMNS, Codes, PhotoTable
from searchlab.search.words.languages import UNTOLD, is_function_word
from searchlab.search.words.terms import words_of

_WITHOUT_WORDS = 1 / 3
_FIRST = ("Ann", "Bo", "Chidi", "Dana", "Emre", "Fatou", "Goran", "Hana", "Ines", "Jun")
_DAYS = 1_000  # of upload, so that conditions let any share of the photos through
_FREQUENT = 200  # words, without function words
KINDS = (
    "one word",
    "three words",
    "a caption",
    "a name",
    "a typing error",
    "a frequent word",
)


def described_photos(captions: list[str], n: int, seed: int) -> PhotoTable:
    """Make a table of n photos."""
    rng = np.random.default_rng(seed)
    numbers = {name: np.zeros(n, dtype=dtype) for name, dtype in NUMBER_COLUMNS.items()}
    numbers["label"] = np.arange(n)
    numbers["uploaded_day"] = np.random.default_rng([seed, 1]).integers(
        _DAYS, size=n, dtype=NUMBER_COLUMNS["uploaded_day"]
    )
    one = Codes(np.zeros(n, dtype=np.int32), ["local"])
    texts = dict.fromkeys(TEXT_COLUMNS, pack_texts([""] * n))
    texts["photo_id"] = pack_texts(f"photo-{row:09}" for row in range(n))
    texts["file"] = pack_texts(f"/photos/{row % 900}/IMG_{row:07}.jpg" for row in range(n))
    texts["photographer_full_name"] = pack_texts(_names(rng.integers(n // 16 + 1, size=n)))
    texts["title"] = pack_texts(_spliced(captions, rng, n))
    return PhotoTable(numbers, dict.fromkeys(CODED_COLUMNS, one), texts)


def _names(numbers: NDArray[np.int64]) -> Iterator[str]:
    return (f"{_FIRST[number % 10]} Photographer{number // 10}" for number in numbers.tolist())


def _spliced(captions: list[str], rng: np.random.Generator, n: int) -> Iterator[str]:
    halves = [caption.split() for caption in captions]
    pairs = rng.integers(len(captions), size=(n, 2)).tolist()
    for (one, other), has_words in zip(pairs, rng.random(n) >= _WITHOUT_WORDS, strict=True):
        first, second = halves[one], halves[other]
        words = first[: len(first) // 2] + second[len(second) // 2 :]
        yield " ".join(words) if has_words else ""


def after_date_of(share: float) -> str:
    """Return the `after_date` that lets a share of the photos through; `YYYY-MM-DD`."""
    return str(np.datetime64("1970-01-01", "D") + round(_DAYS * (1 - share)))


def make_queries(captions: list[str], n: int, seed: int) -> dict[str, list[str]]:
    """Draw n queries of each of `KINDS`."""
    rng = np.random.default_rng(seed)
    queries: dict[str, list[str]] = {kind: [] for kind in KINDS}
    frequent = _frequent_words(captions)
    for number in range(n):
        caption = captions[int(rng.integers(len(captions)))]
        words = [word.strip(".,") for word in caption.split() if len(word) > 4] or ["beach"]
        chosen = [words[int(place)] for place in rng.integers(len(words), size=3)]
        wrong = max(words, key=len)
        place = int(rng.integers(1, len(wrong) - 1))
        queries["one word"].append(chosen[0])
        queries["three words"].append(" ".join(chosen))
        queries["a caption"].append(caption)
        queries["a name"].append(f"{_FIRST[number % 10]} Photographer{number}")
        queries["a typing error"].append(wrong[:place] + wrong[place + 1 :])
        queries["a frequent word"].append(frequent[number % len(frequent)])
    return queries


def _frequent_words(captions: list[str]) -> list[str]:
    words = Counter(word for caption in captions for word in set(words_of(caption)))
    of_meaning = (word for word, _ in words.most_common() if not is_function_word(word, UNTOLD))
    return list(itertools.islice(of_meaning, _FREQUENT))
