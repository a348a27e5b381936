"""A million photos with words: captions spliced from halves of real ones, and queries for them.

The halves are of captions that people and models wrote (`flickr8k-train`, `web-photos`), so their
words are as frequent as in real libraries; which half follows which is drawn at random. A third of
the photos have no words but the name of a file as a camera gives it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from searchlab.photos.columns import pack_texts
from searchlab.photos.table import CODED_COLUMNS, NUMBER_COLUMNS, TEXT_COLUMNS, Codes, PhotoTable

CAPTIONS = ("flickr8k-train/captions.tsv", "web-photos/captions.tsv")
_WITHOUT_WORDS = 1 / 3
_FIRST = ("Ann", "Bo", "Chidi", "Dana", "Emre", "Fatou", "Goran", "Hana", "Ines", "Jun")
KINDS = ("one word", "three words", "a caption", "a name", "a typing error")


def read_captions(data: Path) -> list[str]:
    """Read the English captions."""
    captions = []
    for name in CAPTIONS:
        with (data / name).open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            captions += [row["text"] for row in rows if row["lang"] == "en"]
    return captions


def described_photos(captions: list[str], n: int, seed: int) -> PhotoTable:
    """Make a table of n photos."""
    rng = np.random.default_rng(seed)
    numbers = {name: np.zeros(n, dtype=dtype) for name, dtype in NUMBER_COLUMNS.items()}
    numbers["label"] = np.arange(n)
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


def make_queries(captions: list[str], n: int, seed: int) -> dict[str, list[str]]:
    """Draw n queries of each of `KINDS`."""
    rng = np.random.default_rng(seed)
    queries: dict[str, list[str]] = {kind: [] for kind in KINDS}
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
    return queries
