"""Suggesting photographers: from an index of names, beside the text index that has them too.

    SEARCHLAB_DATASETS=../shared/data python -m benchmarks.words.bench_photographers
    python -m benchmarks.words.bench_photographers --smoke --out "$(mktemp -d)"

Writes results/words/<dataset>/photographers.json. The photos are those of `bench_words`, by
photographers with made names and usernames, one for sixteen photos; parts of names are drawn from
these. The text index is asked in two ways: for words, forms of words and misspelt ones, as a search
does; and for every term that has the part in it, read one after the other, since a part of a name
is no word. `share right` is that of parts for which a way finds as many photographers as have it in
their name or username, case and accents apart, ten at most, and no others.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.again import data_wanted, only
from benchmarks.common.recording import bench_parser, on_record, record
from benchmarks.words.bench_words import root
from benchmarks.words.texts import described_photos
from searchlab.evaluation.provenance.manifest import make_manifest, models_of
from searchlab.photos.table import PhotoTable
from searchlab.search.filters.photographers import Photographers
from searchlab.search.words.fields import FIELDS
from searchlab.search.words.index import WordIndex
from searchlab.search.words.terms import fold, words_of
from searchlab.studies.vectors.spliced import read_captions

NAME = "photographers"
KINDS = (
    "a word",
    "how a word begins",
    "within a word",
    "over a space",
    "of a username",
    "a whole name",
)
Lines: TypeAlias = dict[str, tuple[str, str]]
"""Username -> username and full name, folded."""

_FIRST = ("Ann", "Bo", "Chidi", "Dana", "Emre", "Fatou", "Goran", "Zoë", "Inês", "Jun")
_PHOTOS_EACH = 16
_ASKED = 10
_BIT = 1 << [field.name for field in FIELDS].index("photographer")


def measure(captions: list[str], n: int, n_parts: int, seed: int) -> dict[str, Any]:
    """Build both and ask for parts of names."""
    table = with_photographers(described_photos(captions, n, seed), captions, seed)
    started = time.perf_counter()
    photographers = Photographers(table)
    build_s = time.perf_counter() - started
    started = time.perf_counter()
    words = WordIndex.build(table)
    words_s = time.perf_counter() - started
    usernames = table.codes("photographer_username")
    counts = np.bincount(usernames.rows, minlength=len(usernames.values))
    full_names = dict(
        zip(
            (usernames.values[code] for code in usernames.rows.tolist()),
            table.texts("photographer_full_name"),
            strict=True,
        )
    )
    lines = {name: (fold(name), fold(full_names[name])) for name in full_names}
    terms = terms_of_names(lines)

    def photographers_of(rows: NDArray[np.int64]) -> list[str]:
        codes = np.unique(usernames.rows[rows])
        return [usernames.values[code] for code in codes[np.argsort(-counts[codes], kind="stable")]]

    def by_names(part: str) -> list[str]:
        return [one.username for one in photographers.suggest(part, _ASKED)]

    def by_words(part: str) -> list[str]:
        words.found_before.forget()
        return photographers_of(words.match(part, read=_BIT).rows)[:_ASKED]

    def by_terms(part: str) -> list[str]:
        return photographers_of(rows_with(words, terms, fold(part)))[:_ASKED]

    rows = []
    for kind, parts in draw_parts(lines, n_parts, seed).items():
        for way, find in (("names", by_names), ("words", by_words), ("terms", by_terms)):
            rows.append({"part": kind, "way": way, **ask(find, parts, lines)})
    return {
        "metrics": {
            "photographers": len(photographers),
            "index of names, build s": round(build_s, 3),
            "text index, build s": round(words_s, 3),
        },
        "rows": rows,
    }


def with_photographers(table: PhotoTable, captions: list[str], seed: int) -> PhotoTable:
    """Give photos made photographers."""
    rng = np.random.default_rng([seed, 2])
    surnames = sorted({word for text in captions for word in words_of(text) if len(word) > 3})
    people = []
    for number in range(max(2, len(table) // _PHOTOS_EACH)):
        first = _FIRST[int(rng.integers(len(_FIRST)))]
        last = surnames[int(rng.integers(len(surnames)))]
        people.append((f"{first} {last.capitalize()}", f"{fold(first)}_{last}{number}"))
    rows = []
    for row, person in enumerate(rng.integers(len(people), size=len(table)).tolist()):
        full_name, username = people[person]
        names = {"photographer_full_name": full_name, "photographer_username": username}
        rows.append(table.row(row) | names)
    return PhotoTable.from_rows([rows])


def terms_of_names(lines: Lines) -> str:
    """Return all terms of all names, each once, one a line."""
    terms = {term for texts in lines.values() for text in texts for term in words_of(text)}
    return "\n".join(["", *sorted(terms), ""])


def rows_with(words: WordIndex, terms: str, part: str) -> NDArray[np.int64]:
    """Return the photos whose photographer's terms have a part in one of them."""
    rows = [np.zeros(0, dtype=np.int64)]
    found = dict[str, None]()
    place = terms.find(part)
    while place >= 0:
        found[terms[terms.rindex("\n", 0, place) + 1 : terms.index("\n", place)]] = None
        place = terms.find(part, place + 1)
    for segment, of_doc in zip(words.segments, words.doc_rows, strict=True):
        for term in found:
            number = segment.term(term)
            if number is not None:
                docs = of_doc[segment.documents(number, _BIT)]
                rows.append(docs[docs >= 0].astype(np.int64))
    return np.unique(np.concatenate(rows))


def draw_parts(lines: Lines, n: int, seed: int) -> dict[str, list[str]]:
    """Draw n parts of names of each kind."""
    rng = np.random.default_rng([seed, 3])
    drawn: dict[str, list[str]] = {kind: [] for kind in KINDS}
    names = sorted(lines)
    for _ in range(n):
        username, full_name = lines[names[int(rng.integers(len(names)))]]
        first, last = full_name.split(" ", 1)
        size = int(rng.integers(2, max(3, len(last))))
        drawn["a word"].append(last)
        drawn["how a word begins"].append(last[:size])
        drawn["within a word"].append(last[1 : 1 + size])
        drawn["over a space"].append(f"{first[-1]} {last[:size]}")
        drawn["of a username"].append(username[len(first) - 1 : len(first) + size])
        drawn["a whole name"].append(full_name)
    return drawn


def ask(find: Callable[[str], list[str]], parts: list[str], lines: Lines) -> dict[str, float]:
    """Return how often a way finds as many as it may, all of them right, and its time."""
    right, times = [], []
    for part in parts:
        have = {name for name, texts in lines.items() if any(part in text for text in texts)}
        started = time.perf_counter()
        answer = find(part)
        times.append(1000 * (time.perf_counter() - started))
        right.append(len(answer) == min(_ASKED, len(have)) and have.issuperset(answer))
    return {
        "share right": round(float(np.mean(right)), 4),
        "p50 ms": round(float(np.median(times)), 4),
        "p95 ms": round(float(np.percentile(times, 95)), 4),
    }


def recompute(measurement: dict[str, Any]) -> dict[str, Any]:
    """Ask for the parts of names again; without times.

    Raises:
        NotFoundError: SEARCHLAB_DATASETS does not hold the captions.
    """
    parameters, seed = measurement["parameters"], int(measurement["manifest"]["seed"])
    with data_wanted():
        captions = read_captions(root())
    again = measure(captions, int(parameters["n_photos"]), int(parameters["parts"]), seed)
    return {"rows": only(again["rows"], "part", "way", "share right")}


def main() -> None:
    """Measure, record, print."""
    parser = bench_parser(__doc__, dataset="spliced-100k")
    parser.add_argument("--parts", type=int, default=200, help="parts of each kind")
    options = parser.parse_args()
    if options.smoke:
        options.dataset, options.parts = "spliced-1k", 3
    values = on_record(options, "words", NAME)
    if values is None:
        n = 1_000 * int(options.dataset.removeprefix("spliced-").removesuffix("k"))
        captions = ["A dog runs on grass beside water"] if options.smoke else read_captions(root())
        values = measure(captions, n, options.parts, options.seed)
        values["parameters"] = {"n_photos": n, "parts": options.parts}
        values["manifest"] = make_manifest(
            "words", models=models_of(), seed=options.seed, threads=1
        )
        record(options, "words", NAME, values)
    for row in values["rows"]:
        sys.stdout.write(f"{row}\n")


if __name__ == "__main__":
    main()
