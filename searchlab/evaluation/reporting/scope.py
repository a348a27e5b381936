"""Scope: the words that must stand beside a figure, taken from the record that holds it.

A number may agree with its record and still flatter where the sentence leaves out what it was
measured on. So each claim carries its scope: whether vectors were made or real, how many queries a
peer's time is a median of, which server answered, what an average covers, and what has to be at
hand to measure it again. `needs_of` reads these from the record; `searchlab.evaluation.reporting.
claims` looks for them in the sentence of the number, or in the part that it stands in: its list
item, or everything from its heading on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from searchlab.errors import SearchlabError
from searchlab.evaluation.reporting.lookup import Results, pick

Place: TypeAlias = Literal["sentence", "part", "section"]

_FILE = re.compile(r"(?P<file>\S+?\.json)(?P<where>\[[^]]*])?(?:\s+(?P<path>.*))?")
_MADE_VECTORS = ("clustered-", "smooth-", "scenes-", "spliced-")
_MADE_RECORDS = ("drawn", "synthetic-")
_PARTLY_REAL: Final = {"spliced-": ("real text vectors",), "mixed-": ("mixed of two real ones",)}
_SEARCHED = (
    "scale",
    "stopping",
    "deep_pages",
    "shards",
)  # Benchmarks that search the vectors of such texts and photos.
_OUTSIDE = (
    "flickr8k", "coco-judge", "web-judge", "web-photos", "sentences-judge", "photos-mini", "stamps",
    "report", "vivid", "judges", "spliced-", "mixed-",
)  # fmt: skip
_NAMES: Final = {
    "flickr8k": ("flickr8k", "Flickr8k"),
    "coco-judge": ("coco-judge", "COCO"),
    "web-judge": ("web-judge",),
    "stamps": ("stamps", "Stamps", "cut-outs"),
    "demo": ("bundled", "demo"),
}
_HOME = ("flickr8k", "web-judge", "web-photos")
_TIME = re.compile(r"(?P<setting>one setting: )?p\d\d_ms (?P<kind>image|text) (?P<filter>.+)")
_MEDIAN = re.compile(r"p50[ _]ms")
_RATIO = re.compile(r"(?P<peer>[\w-]+) / [\w-]+ p\d\d_ms(?P<more>.*)")
_HTTP = re.compile(r"metrics\.(?P<server>.+)\.(?P<connections>\d+)\.(?P<what>\w+)")
_EMBEDDED: Final = {
    "photos": ("photo.", "pictures", "found"),
    "texts": ("text.", "tokenise_ms", "found"),
}  # What a table of embedding shows, by the beginnings of its columns.
_SENTENCE_END = re.compile(r"(?<=[.!?])[*_)]*\s+(?=[*`(\[]*[A-Z`])")
_ITEM = re.compile(r"^(?:[-*] |\d+\. )", re.MULTILINE)
_HEADING = re.compile(r"^#+ ", re.MULTILINE)


@dataclass(frozen=True)
class Need:
    """Words that must stand beside a figure.

    Attributes:
        words: Any of them is enough.
        place: How near: in the same sentence; in the same list item or, outside of lists, the same
            section; or in the same section.
        why: What they say, for messages.
    """

    words: tuple[str, ...]
    place: Place
    why: str

    def is_met(self, text: str, at: int) -> bool:
        """Tell whether the words stand near an offset of a text."""
        near = " ".join(_near(text, at, self.place).split())
        return any(word in near for word in self.words)

    def __str__(self) -> str:
        words = " or ".join(repr(word) for word in self.words)
        return f"{words} must stand in its {self.place}: {self.why}"


def needs_of(source: str, results: Results) -> list[Need]:
    """Read what must stand beside a figure from its record.

    Args:
        source: Reference as in `searchlab.evaluation.reporting.claims`, without its verb.
        results: The results that it names a record of.

    Returns:
        What is needed; nothing for files that are no records.
    """
    parts = _FILE.match(source)
    if parts is None:
        return []
    try:
        path = results.file(parts["file"], (parts["where"] or "")[1:-1])
        values = results.values(path)
    except SearchlabError:
        return []  # `claims` says that there is no such file
    if not isinstance(values, Mapping) or "benchmark" not in values:
        return []
    key = re.sub(r" x\d[\d.]*\Z", "", parts["path"] or "")
    return list(_needs(values, path, key, results))


def section_needs(values: Any, columns: Sequence[str] = ()) -> list[Need]:
    """Read what must stand above a table that is made of a record.

    Args:
        values: The record.
        columns: Keys of its rows that the table shows.
    """
    if not isinstance(values, Mapping) or "benchmark" not in values:
        return []
    needs = list(_grounds(values))
    if values["benchmark"] == "scale":
        needs += [_queries(min(counts), max(counts)) for counts in _asked(values, columns)]
    if values["benchmark"] == "words" and any(map(_MEDIAN.search, columns)):
        needs += _word_needs(values)
    if values["benchmark"] == "embedding":
        needs += _embedding_needs(values["parameters"], columns)
    if values["benchmark"] == "http" and "rounds" in values["parameters"]:
        needs += _round_needs(values["parameters"], columns)
    return [Need(need.words, "section", need.why) for need in needs]


def _asked(values: Mapping[str, Any], columns: Sequence[str]) -> list[list[int]]:
    """List for each peer of how many queries the times in its rows of a table are medians."""
    of = ("system", "n_photos", "queries", "filter", "p50_ms")
    count_of = {tuple(p[key] for key in of): int(p["n_queries"]) for p in values["filters"]}
    times = [time for column in columns if (time := _TIME.fullmatch(column))]
    asked: dict[str, list[int]] = {}
    for row in values["rows"]:
        for time in times:
            key = (row["system"], row["n_photos"], time["kind"], time["filter"], row.get(time[0]))
            if not row["system"].startswith("searchlab") and key in count_of:
                asked.setdefault(row["system"], []).append(count_of[key])
    return list(asked.values())


def where_of(dataset: str) -> str:
    """Say whether `mini` was taught on such photos.

    Args:
        dataset: Name of a data set, or of a task that begins with it.

    Returns:
        `home` or `abroad`.
    """
    return "home" if dataset.startswith(_HOME) else "abroad"


def _needs(values: Mapping[str, Any], path: Path, key: str, results: Results) -> Iterator[Need]:
    if not key.startswith("bytes."):
        yield from _grounds(values)
    benchmark = values["benchmark"]
    if benchmark == "scale":
        yield from _scale_needs(values, key)
    if benchmark == "index":
        yield from _index_needs(values, key)
    if ratio := _RATIO.search(key):
        yield from _ratio_needs(ratio, path, results)
    if benchmark == "http" and (http := _HTTP.search(key)):
        yield from _http_needs(values, http)
    if benchmark == "relevance" and "left_out[" in key:
        yield Need(("left out",), "sentence", "the curve did not see what it is measured on")
    if benchmark == "calibration" and re.search(r"\bece(?:_plain)?\.", key):
        words = ("fitted again on the same", "refitted on the same")
        yield Need(words, "sentence", "this curve is not the one that ships")
    if benchmark == "embedding" and "1920 px" in key:
        yield Need(("drawn",), "sentence", "the large pictures are no photos")
    model = str(values.get("config", {}).get("model", ""))
    on_demo = benchmark == "search_quality" and str(values["dataset"]).startswith("demo")
    if on_demo and "captions" in model:
        yield Need(("`mini` wrote",), "part", "`captions` reads no texts of people here")


def _grounds(values: Mapping[str, Any]) -> Iterator[Need]:
    """Say what was measured on, and what has to be at hand for it."""
    dataset = str(values.get("dataset", ""))
    partly_real = [words for start, words in _PARTLY_REAL.items() if dataset.startswith(start)]
    if partly_real and values["benchmark"] in _SEARCHED:
        yield Need(partly_real[0], "part", "it says what of the vectors is real")
    elif dataset.startswith(_MADE_VECTORS):
        yield Need(("made vectors",), "sentence", "the vectors are no embeddings of photos")
    elif dataset.startswith(_MADE_RECORDS):
        words = ("made records", "made photos", "made library")
        yield Need(words, "sentence", "the records are drawn at random")
    elif dataset == "photos-mini":
        yield Need(("real photos", "real vectors"), "part", "it was measured on real ones")
    for start, names in _NAMES.items():
        if dataset.startswith(start):
            yield Need(names, "part", "the data set is named")
    if dataset.startswith(_OUTSIDE):
        yield Need(("SEARCHLAB_DATASETS",), "section", "its data does not ship")


def _scale_needs(values: Mapping[str, Any], key: str) -> Iterator[Need]:
    system = re.search(r"system=([\w-]+)", key)
    n_photos = re.search(r"n_photos=(\d+)", key)
    figure = key.rpartition("].")[2]
    time = _TIME.fullmatch(figure)
    if system is None or n_photos is None:
        return
    if time is not None:
        if time["setting"]:
            yield Need(("one setting",), "part", "the effort was not chosen for this query")
        else:
            why = "each system has the least effort that finds enough"
            yield Need(("the least effort",), "part", why)
    if time is not None and not system[1].startswith("searchlab"):
        measured = pick(values, key)
        for row in values["filters"]:
            of = (row["system"], row["n_photos"], row["queries"], row["filter"], row["p50_ms"])
            if of == (system[1], int(n_photos[1]), time["kind"], time["filter"], measured):
                yield _queries(row["n_queries"], row["n_queries"])
    if figure == "memory_mib" and float(pick(values, key.rpartition(".")[0])["rows_mib"]):
        yield Need(("mapped",), "sentence", "rows that are mapped are memory too")


def _word_needs(values: Mapping[str, Any]) -> Iterator[Need]:
    n_queries = values["parameters"].get("queries")
    if n_queries is not None and not str(values["name"]).startswith("searchlab"):
        yield _queries(n_queries, n_queries)


def _embedding_needs(parameters: Mapping[str, Any], columns: Sequence[str]) -> Iterator[Need]:
    """Say how many photos and texts were embedded, and how often, above a table of their times."""
    for what, starts in _EMBEDDED.items():
        if any(column.startswith(starts) for column in columns):
            words = f"{parameters['runs']} runs over {parameters[what]} {what}"
            yield Need((words,), "section", "a median of how many")


def _round_needs(parameters: Mapping[str, Any], columns: Sequence[str]) -> Iterator[Need]:
    if any(column.startswith(("cpu_", "p99_", "measured")) for column in columns):
        words = f"{parameters['rounds']} rounds of {parameters['seconds']:g} s"
        yield Need((words,), "section", "a median of how many")


def _index_needs(values: Mapping[str, Any], key: str) -> Iterator[Need]:
    row, _, figure = key.rpartition("].")
    if re.match(r"p\d\d_ms ", figure):
        yield Need(("the least effort",), "part", "each system has the least effort")
        values = pick(values, f"{row}]")
        if not str(values["system"]).startswith("searchlab"):
            yield _queries(values["n_queries"], values["n_queries"])


def _ratio_needs(ratio: re.Match[str], path: Path, results: Results) -> Iterator[Need]:
    """Say what an average of a peer's times covers, and how many queries each is a median of."""
    beside = path.parent / f"{ratio['peer']}.json"
    if ratio["peer"].startswith("searchlab") or not beside.exists():
        return
    cells = results.values(beside)["cells"]
    if not ratio["more"]:
        least = min(cell["share"] for cell in cells)
        yield Need((f"{least:.2%}".replace("%", " %"),), "part", "how far down the mean goes")
        yield Need(("geometric mean",), "part", "it is a mean over kinds of filters")
    counts = [cell["n_queries"] for cell in cells]
    yield _queries(min(counts), max(counts))


def _queries(low: int, high: int) -> Need:
    count = f"{low}" if low == high else f"{low} to {high}"
    return Need((f"{count} queries",), "sentence", "a median of how many")


def _http_needs(values: Mapping[str, Any], http: re.Match[str]) -> Iterator[Need]:
    server = http["server"]
    if "the API without searches" in server:
        words = ("without its search", "without the search")
        yield Need(words, "part", "one answer stands for all searches")
    elif "Litestar" in server or "no framework" in server:
        yield Need(("stub",), "sentence", "it returns bytes that were encoded before")
    if http["what"].endswith("_ratio"):
        base = str(values["parameters"]["base"])
        word = "FastAPI" if "FastAPI" in base else base
        yield Need((word,), "part", "what it is compared with")
    n = int(http["connections"])
    words = ("one connection", "a lone connection") if n == 1 else (f"{n} connections", f"at {n}")
    yield Need(words, "sentence", "over how many connections")


def _near(text: str, at: int, place: Place) -> str:
    start = max((match.start() for match in _HEADING.finditer(text, 0, at)), default=0)
    following = _HEADING.search(text, at)
    end = following.start() if following else len(text)
    if place == "section":
        return text[start:end]
    block_start, block_end = _block(text, at, start, end)
    in_table = text[block_start:at].lstrip().startswith("|")
    if place == "part":
        if in_table or not _ITEM.match(text[block_start:].lstrip("\n")):
            return text[start:end]
        return text[block_start:block_end]
    if in_table:
        return text[start:block_end]
    for stop in _SENTENCE_END.finditer(text, block_start, block_end):
        if stop.end() > at:
            return text[block_start : stop.start()]
        block_start = stop.end()
    return text[block_start:block_end]


def _block(text: str, at: int, start: int, end: int) -> tuple[int, int]:
    """Find the paragraph or list item around an offset."""
    edges = [match.end() for match in re.finditer(r"\n[ \t]*\n", text[start:end])]
    edges += [match.start() for match in _ITEM.finditer(text[start:end])]
    before = [start + edge for edge in edges if start + edge <= at]
    after = [start + edge for edge in edges if start + edge > at]
    return max(before, default=start), min(after, default=end)
