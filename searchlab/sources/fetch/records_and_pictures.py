"""Fetching: records of a library's API and their pictures into a folder that can be indexed.

    FOLDER/pexels.jsonl        the library's own records as they came; the last line counts
    FOLDER/pictures.jsonl      which picture belongs to which record
    FOLDER/pictures/           pictures by content
    FOLDER/responses/          answers of the API, reused for a day

After an interruption the same command goes on: answers and pictures on disk are not fetched again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from searchlab.errors import InputError, NotFoundError, SearchlabError
from searchlab.photos.licenses import refusal
from searchlab.photos.photo import URL_SIZES
from searchlab.photos.sidecar import Skipped
from searchlab.progress import Progress
from searchlab.sources.dump import DumpRecord, read_api_answer, read_dump
from searchlab.sources.fetch.client import PoliteClient
from searchlab.sources.fetch.downloads import Limits, RetryLaterError, download
from searchlab.sources.picture_store import PictureStore
from searchlab.sources.record import SourceRecord
from searchlab.sources.source import Source

_ATTEMPTS = 3
_NEAREST = ("regular", "large", "small", "full", "thumb")


@dataclass
class FetchReport:
    """What fetching did.

    Attributes:
        dump: The file of records, which can be indexed.
        records: Number of records that were read.
        new: Number of records among them that were not in the file before.
        fetched: Number of pictures that were downloaded.
        there: Number of pictures that were in the folder before.
        problems: Records and pictures that were left out, each with its reason.
    """

    dump: Path
    records: int = 0
    new: int = 0
    fetched: int = 0
    there: int = 0
    problems: list[Skipped] = field(default_factory=list)


def fetch(
    api: PoliteClient,
    pictures: httpx.Client,
    query: str,
    folder: Path,
    *,
    pages: int = 1,
    size: str | None = None,
    allowed: Collection[str] = (),
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> FetchReport:
    """Fetch the records of a query, and the pictures of those whose licence allows it.

    Args:
        api: The library's API.
        pictures: Client that downloads pictures.
        query: The query as the library's API takes it.
        folder: Folder for records and pictures; made if it is not there.
        pages: Most pages of results to fetch, 1 or more.
        size: Which of the five links to download, one of `URL_SIZES`; if left out, the size that
            suits the library.
        allowed: Words of `licenses.RESTRICTIONS` that keep no picture out.
        limits: What one download may take.
        progress: Told about every picture.

    Raises:
        InputError: The library has no public API, or an argument is out of range.
        QuotaError: The library wants a longer wait than is allowed.
        SearchlabError: The API fails.
    """
    progress = progress or Progress()
    _check(query, pages, size)
    report = FetchReport(folder / f"{api.source.name}.jsonl")
    folder.mkdir(parents=True, exist_ok=True)
    store, lines = PictureStore(folder), _RecordFile(report.dump, api.source)
    with progress.step(f"fetching from {api.source.title}", unit="photos") as step:
        for where, answer in _answers(api, query, pages, report.problems):
            for entry, item in read_api_answer(where, answer, api.source):
                if isinstance(item, Skipped):
                    report.problems.append(item)
                    continue
                report.records += 1
                report.new += lines.add(entry)
                _fetch_picture(api, pictures, item, store, report, size, allowed, limits)
                step.advance(1)
    return report


def fetch_pictures(
    api: PoliteClient,
    pictures: httpx.Client,
    dump: Path,
    folder: Path,
    *,
    size: str | None = None,
    allowed: Collection[str] = (),
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> FetchReport:
    """Fetch the pictures of the records in a dump.

    Args:
        api: The library's API, which waits where a server wants fewer requests.
        pictures: Client that downloads pictures.
        dump: File of records.
        folder: Folder for the pictures; made if it is not there.
        size: As for `fetch`.
        allowed: As for `fetch`.
        limits: As for `fetch`.
        progress: Told about every picture.

    Raises:
        InputError: The dump cannot be read, or `size` is none of the five.
        QuotaError: A server wants a longer wait than is allowed.
    """
    progress = progress or Progress()
    _check("dump", 1, size)
    report = FetchReport(dump)
    folder.mkdir(parents=True, exist_ok=True)
    store = PictureStore(folder)
    with progress.step(f"fetching from {api.source.title}", unit="photos") as step:
        for item in read_dump(dump, api.source):
            if isinstance(item, Skipped):
                report.problems.append(item)
                continue
            report.records += 1
            _fetch_picture(api, pictures, item, store, report, size, allowed, limits)
            step.advance(1)
    return report


def _check(query: str, pages: int, size: str | None) -> None:
    if not query.strip():
        msg = f"query must hold a word, got {query!r}"
        raise InputError(msg)
    if pages < 1:
        msg = f"pages must be 1 or more, got {pages}"
        raise InputError(msg)
    if size is not None and size not in URL_SIZES:
        msg = f"size must be one of {', '.join(URL_SIZES)}, got {size!r}"
        raise InputError(msg)


def _answers(
    api: PoliteClient, query: str, pages: int, problems: list[Skipped]
) -> Iterator[tuple[str, Any]]:
    if api.source.search is None:
        msg = f"{api.source.title} must have a public API to be fetched from, and has none"
        raise InputError(msg)
    walk, answer, page = api.source.search(query), None, 0
    while True:
        try:
            api_request = walk.send(answer)
        except StopIteration:
            return
        except InputError as error:
            problems.append(Skipped(f"{api.source.name}, page {page}", str(error)))
            return
        page += api_request.begins_page
        if page > pages:
            return
        where = f"{api.source.name}, page {page}"
        try:
            answer = api.answer(api_request)
        except NotFoundError as error:
            answer = {}
            problems.append(Skipped(where, str(error)))
            continue
        if api_request.has_records:
            yield where, answer


def _fetch_picture(
    api: PoliteClient,
    pictures: httpx.Client,
    item: DumpRecord,
    store: PictureStore,
    report: FetchReport,
    size: str | None,
    allowed: Collection[str],
    limits: Limits | None,
) -> None:
    record = item.record
    if why := refusal(record.license_type, allowed):
        report.problems.append(Skipped(item.where, why))
        return
    why, links = "", _links(record, size)
    if any(store.has(record, url) for url in (links[:1] if size else links)):
        report.there += 1
        return
    for url in links:
        try:
            file = _download(api, pictures, url, store.folder / "pictures", limits)
        except InputError as error:
            why = why or str(error)
            continue
        store.add(record, url, file)
        report.fetched += 1
        return
    report.problems.append(Skipped(item.where, f"{record.source_photo_id}: {why}"))


def _links(record: SourceRecord, size: str | None) -> list[str]:
    # Pictures that are shown from a copy must be large; the others are only for a model.
    first = size or ("large" if record.shown_from_copy else "regular")
    return list(dict.fromkeys(record.urls[name] for name in (first, *_NEAREST)))


def _download(
    api: PoliteClient, pictures: httpx.Client, url: str, folder: Path, limits: Limits | None
) -> Path:
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return download(pictures, url, folder, limits=limits)
        except RetryLaterError as error:
            if attempt < _ATTEMPTS:
                api.wait(error.response, attempt)
    msg = "the server keeps asking to come back later"
    raise InputError(msg)


class _RecordFile:
    """A JSONL file whose last line about a photo counts, to which lines are added that say more."""

    def __init__(self, path: Path, source: Source) -> None:
        self._path, self._source = path, source
        self._last: dict[str, bytes] = {}
        self._broken = False
        if path.is_file():
            with path.open("rb") as lines:
                for line in lines:
                    said = line.rstrip(b"\n")
                    self._last[self._photo_of(said)] = hashlib.sha256(said).digest()
                    self._broken = not line.endswith(b"\n")

    def add(self, entry: Any) -> bool:
        """Append an entry if the last one about its photo is another; return whether it was."""
        line = json.dumps(entry, ensure_ascii=True, sort_keys=True).encode()
        photo, digest = self._photo_of(line), hashlib.sha256(line).digest()
        if self._last.get(photo) == digest:
            return False
        with self._path.open("ab") as file:
            file.write((b"\n" if self._broken else b"") + line + b"\n")
        self._last[photo] = digest
        self._broken = False
        return True

    def _photo_of(self, line: bytes) -> str:
        try:
            return self._source.record(json.loads(line)).source_photo_id
        except (ValueError, SearchlabError, RecursionError):  # no record: known by all of it
            return hashlib.sha256(line).hexdigest()
