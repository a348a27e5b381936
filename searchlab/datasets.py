"""Datasets: photos with labelled queries and the judgments between them.

`load_dataset("demo")` ships with searchlab. The others are read from the folder that the
environment variable SEARCHLAB_DATASETS names, because their photos may not be passed on.
Files of judgments and runs are read and written by `searchlab.judgments`.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from searchlab.errors import DataError, InputError, NotFoundError
from searchlab.judgments import read_qrels
from searchlab.photos import photo_id_of

ENVIRONMENT = "SEARCHLAB_DATASETS"

# Photo fields that queries of a kind were taken from: a model that reads them knows the answer.
WITHHELD = {
    "label": frozenset({"source_description", "title"}),
    "title": frozenset({"source_description", "title"}),
    "alt": frozenset({"alt_description"}),
    "graded": frozenset[str](),
    "caption": frozenset[str](),
}
_SCRIPTS = {"latin": "Latn", "ijekavian": "ijekavsk", "ijekavianlatin": "Latn-ijekavsk"}


@dataclass(frozen=True, slots=True)
class LabelledQuery:
    """A query whose relevant photos are known.

    Attributes:
        query_id: Unique in its dataset.
        lang: BCP 47 tag such as `pt-BR` or `sr-Latn`.
        kind: Where the text comes from, one of `WITHHELD`.
        text: What is searched for.
    """

    query_id: str
    lang: str
    kind: str
    text: str


@dataclass(frozen=True)
class Dataset:
    """Photos, queries and judgments that fit together, checked when it is made.

    Attributes:
        name: The name that `load_dataset` knows.
        revision: 12 hex digits of the hash over photos, queries and judgments.
        folder: Where it lies on disk.
        photos: The JSONL sidecar that `searchlab index` reads; None where there is only `records`.
        queries: In the order of the file.
        qrels: query_id -> photo_id -> grade; 1 and above is relevant, what is missing is unjudged.
        records: One for each photo to search, the fields of the sidecar, `file` made absolute.

    Raises:
        InputError: No query or no judgment, a query_id twice, a query without a relevant photo, or
            judgments of photos or queries that are not in the dataset.
    """

    name: str
    revision: str
    folder: Path
    photos: Path | None
    queries: tuple[LabelledQuery, ...]
    qrels: dict[str, dict[str, int]]
    records: tuple[Mapping[str, str | None], ...] = field(repr=False)

    def __post_init__(self) -> None:
        if not self.queries or not self.qrels:
            msg = f"dataset {self.name!r} must have queries and qrels, got none"
            raise InputError(msg)
        counts = Counter(query.query_id for query in self.queries)
        self._refuse("have every query_id once", (i for i, n in counts.items() if n > 1))
        self._refuse("judge known queries only", self.qrels.keys() - counts.keys())
        judged = {photo_id for grades in self.qrels.values() for photo_id in grades}
        self._refuse("judge known photos only", judged - self.photo_ids)
        answered = {i for i, grades in self.qrels.items() if any(g >= 1 for g in grades.values())}
        self._refuse("have a relevant photo for every query", counts.keys() - answered)
        unknown = {query.kind for query in self.queries} - WITHHELD.keys()
        self._refuse(f"have queries of the kinds {', '.join(WITHHELD)}", unknown)

    def _refuse(self, rule: str, offending: Iterable[str]) -> None:
        ids = sorted(offending)
        if ids:
            more = f" and {len(ids) - 5} more" if len(ids) > 5 else ""
            msg = f"dataset {self.name!r} must {rule}, got {', '.join(map(repr, ids[:5]))}{more}"
            raise InputError(msg)

    @cached_property
    def photo_ids(self) -> frozenset[str]:
        """The photos to search; where a library holds more, search these alone."""
        return frozenset(
            photo_id_of(record["source"] or "", record["source_photo_id"] or "")
            for record in self.records
        )

    @property
    def withheld(self) -> frozenset[str]:
        """Photo fields that the queries were taken from, for an evaluation to withhold."""
        return frozenset[str]().union(*(WITHHELD[query.kind] for query in self.queries))

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages of the queries, sorted."""
        return tuple(sorted({query.lang for query in self.queries}))

    def select(
        self, *, languages: Sequence[str] | None = None, kinds: Collection[str] | None = None
    ) -> Dataset:
        """Keep the queries of some languages and kinds, all photos and nothing else.

        Raises:
            InputError: No query is left.
        """
        langs = self.languages if languages is None else languages
        kinds = WITHHELD if kinds is None else kinds
        return self._keep(q for q in self.queries if q.lang in langs and q.kind in kinds)

    def sample(self, languages: Sequence[str], per_language: int, seed: int) -> Dataset:
        """Keep a few queries of each language, for a quick evaluation.

        Queries are drawn by the hash of seed and query_id, so a larger sample holds the smaller.

        Args:
            languages: Tags, such as `["en", "zh-CN"]`.
            per_language: How many at most, 1 or more; a language that has fewer gives all.
            seed: Another seed, another sample.

        Raises:
            InputError: A language has no query, or `per_language` is below 1.
        """
        if per_language < 1:
            msg = f"per_language must be at least 1, got {per_language}"
            raise InputError(msg)
        missing = sorted(set(languages) - set(self.languages))
        if missing or not languages:
            msg = f"languages must be among {', '.join(self.languages)}, got {missing}"
            raise InputError(msg)
        kept: set[str] = set()
        for language in set(languages):
            ids = [query.query_id for query in self.queries if query.lang == language]
            kept |= set(sorted(ids, key=lambda i: _sha256(f"{seed}:{i}".encode()))[:per_language])
        return self._keep(query for query in self.queries if query.query_id in kept)

    def _keep(self, queries: Iterable[LabelledQuery]) -> Dataset:
        kept = tuple(queries)
        qrels = {query.query_id: self.qrels[query.query_id] for query in kept}
        revision = _sha256(f"{self.revision}{[query.query_id for query in kept]}".encode())[:12]
        return replace(self, queries=kept, qrels=qrels, revision=revision)


def bundled_root() -> Path:
    """Return the folder of the datasets that ship with searchlab.

    Raises:
        NotFoundError: The installation lacks them.
    """
    package = Path(__file__).parent
    for root in (package / "_datasets", package.parent / "datasets"):
        if (root / "demo/photos.jsonl").is_file():
            return root
    msg = f"the bundled datasets must lie in {package / '_datasets'}; install searchlab again"
    raise NotFoundError(msg)


def external_root() -> Path | None:
    """Return the folder that SEARCHLAB_DATASETS names, None where it is not set."""
    value = os.environ.get(ENVIRONMENT, "")
    return Path(value).expanduser() if value else None


def load_dataset(name: str) -> Dataset:
    """Load a dataset by its name.

    Args:
        name: `demo`; with SEARCHLAB_DATASETS set also `stamps`, `flickr8k` (graded judgments of
            the 1,000 test photos) and `flickr8k-captions` (each caption finds its own photo).

    Raises:
        NotFoundError: There is no such dataset, or its files are not here.
        DataError: A file of it is damaged, a picture is missing, or its parts do not fit together.
    """
    if name not in DATASETS:
        msg = f"a dataset must be one of {', '.join(sorted(DATASETS))}, got {name!r}"
        raise NotFoundError(msg)
    try:
        return DATASETS[name]()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, csv.Error) as error:
        why = f"{type(error).__name__}: {error}"
        msg = f"the files of dataset {name!r} are damaged, got {why}; fetch them again"
        raise DataError(msg) from error


def language_tag(locale: str) -> str:
    """Return the BCP 47 tag of a POSIX locale name.

    >>> language_tag("zh_CN"), language_tag("sr@latin"), language_tag("ca@valencia")
    ('zh-CN', 'sr-Latn', 'ca-valencia')
    """
    name, _, modifier = locale.partition("@")
    tag = name.replace("_", "-")
    return f"{tag}-{_SCRIPTS.get(modifier, modifier)}" if modifier else tag


def _demo() -> Dataset:
    folder = bundled_root() / "demo"
    photos = folder / "photos.jsonl"
    records = []
    for line in photos.read_text("utf-8").splitlines():
        values = json.loads(line)
        records.append({**values, "file": str(folder / values["file"])})
    queries = [
        LabelledQuery(row["query_id"], row["lang"], row["kind"], row["text"])
        for row in _rows(folder / "queries.tsv")
    ]
    qrels = read_qrels(folder / "qrels.tsv")
    return _dataset("demo", folder, queries, qrels, records, photos=photos)


def _stamps() -> Dataset:
    folder = _external("stamps")
    records = [
        _record(folder, row, "tuxpaint-stamps", "gpl-2.0", row["label_en"])
        for row in _rows(folder / "photos.tsv")
    ]
    queries = [
        LabelledQuery(row["query_id"], language_tag(row["lang"]), "label", row["text"])
        for row in _rows(folder / "queries.tsv")
    ]
    qrels = _judgments(folder / "qrels.tsv", "tuxpaint-stamps")
    return _dataset("stamps", folder, queries, qrels, records)


def _flickr8k() -> Dataset:
    folder, records = _flickr8k_photos()
    path = folder / "graded_qrels.tsv"
    grades = _judgments(path, "flickr", query="judged_as", grade="grade")
    queries, qrels = [], {}
    for row in _rows(folder / "graded_queries.tsv"):
        lang = language_tag(row["lang"])
        queries.append(LabelledQuery(row["query_id"], lang, "graded", row["text"]))
        qrels[row["query_id"]] = grades[row["judged_as"]]
    return _dataset("flickr8k", folder, queries, qrels, records)


def _flickr8k_captions() -> Dataset:
    folder, records = _flickr8k_photos()
    tested = {record["source_photo_id"] for record in records}
    rows = [row for row in _rows(folder / "captions.tsv") if row["photo_id"] in tested]
    queries = [
        LabelledQuery(row["caption_id"], language_tag(row["lang"]), "caption", row["text"])
        for row in rows
    ]
    qrels = {row["caption_id"]: {photo_id_of("flickr", row["photo_id"]): 1} for row in rows}
    return _dataset("flickr8k-captions", folder, queries, qrels, records)


def _flickr8k_photos() -> tuple[Path, list[dict[str, str | None]]]:
    folder = _external("flickr8k")
    # Judgments cover the test photos alone; the others would count as misses without being any.
    return folder, [
        _record(folder, row, "flickr", "research-only", None)
        for row in _rows(folder / "photos.tsv")
        if row["split"] == "test"
    ]


DATASETS: dict[str, Callable[[], Dataset]] = {
    "demo": _demo,
    "flickr8k": _flickr8k,
    "flickr8k-captions": _flickr8k_captions,
    "stamps": _stamps,
}


def _external(name: str) -> Path:
    root = external_root()
    if root is None:
        msg = (
            f"dataset {name!r} does not ship with searchlab; set {ENVIRONMENT} to a folder that "
            f"holds {name}/"
        )
        raise NotFoundError(msg)
    if not (root / name / "photos.tsv").is_file():
        msg = f"{ENVIRONMENT} must be a folder that holds {name}/photos.tsv, got {root}"
        raise NotFoundError(msg)
    return root / name


def _record(
    folder: Path, row: Mapping[str, str], source: str, licence: str, title: str | None
) -> dict[str, str | None]:
    return {
        "file": str(folder / row["file"]),
        "source": source,
        "source_photo_id": row["photo_id"],
        "source_image_url": row.get("source_url"),
        "license_type": licence,
        "title": title,
        "source_description": title,
    }


def _dataset(
    name: str,
    folder: Path,
    queries: Sequence[LabelledQuery],
    qrels: dict[str, dict[str, int]],
    records: Sequence[Mapping[str, str | None]],
    *,
    photos: Path | None = None,
) -> Dataset:
    digest = hashlib.sha256()
    for record in records:
        path = Path(record["file"] or "")
        known = sorted((key, value) for key, value in record.items() if key != "file")
        digest.update(repr((path.name, known)).encode())
        digest.update(_sha256(path.read_bytes()).encode())
    for query in queries:
        digest.update(repr((query.query_id, query.lang, query.kind, query.text)).encode())
    for query_id, grades in sorted(qrels.items()):
        digest.update(repr((query_id, sorted(grades.items()))).encode())
    revision = digest.hexdigest()[:12]
    return Dataset(name, revision, folder, photos, tuple(queries), qrels, tuple(records))


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _judgments(
    path: Path, source: str, *, query: str = "query_id", grade: str = "relevance"
) -> dict[str, dict[str, int]]:
    """Read judgments of photos that are named as one source names them."""
    found: dict[str, dict[str, int]] = {}
    for row in _rows(path):
        found.setdefault(row[query], {})[photo_id_of(source, row["photo_id"])] = int(row[grade])
    return found


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as lines:
        head, *rows = list(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)) or [[]]
    if not head:
        msg = f"{path} has no header"
        raise ValueError(msg)
    for number, row in enumerate(rows, start=2):
        if len(row) != len(head):
            msg = f"{path}:{number} has {len(row)} columns, its header has {len(head)}"
            raise ValueError(msg)
    return [dict(zip(head, row, strict=True)) for row in rows]
