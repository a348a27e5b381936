"""Clients that ask a server without pause, and compare each answer with one machine's."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from searchlab.library.library import open_library
from searchlab.search.queries import Query

PER_PAGE = 20
_TEXTS = ("a red boat", "children in the snow", "old castle at night", "market", "a dog", "rain")
# A threshold asks for every photo that reaches it, so that no index may miss one.
QUERIES = tuple({"q": text, "score_threshold": 0.05, "per_page": PER_PAGE} for text in _TEXTS)
_SNAPSHOT = "X-Searchlab-Snapshot"
_WAIT_S = 60.0
_PAUSE_S = 0.05  # after an error, as a client that is told to try again would make

Photos = list[tuple[str, float]]


@dataclass(frozen=True)
class Answer:
    """What came of a request.

    Attributes:
        asked: The query, or a cursor.
        began: By `time.monotonic`.
        took_s: Seconds until the whole answer was there.
        status: Of HTTP; 0 where the connection broke.
        snapshot: The snapshot that was answered from.
        photos: Id and score of each photo.
        cursor: Of the next page.
    """

    asked: Mapping[str, Any]
    began: float
    took_s: float
    status: int
    snapshot: str = ""
    photos: Photos | None = None
    cursor: str = ""

    @property
    def ended(self) -> float:
        """When it was there, by `time.monotonic`."""
        return self.began + self.took_s


class Client:
    """One kept connection."""

    def __init__(self, base_url: str, key: str) -> None:
        self._host, self._key = base_url.rpartition("/")[2], key
        self._connection = http.client.HTTPConnection(self._host, timeout=_WAIT_S)

    def get(self, path: str) -> tuple[int, Mapping[str, str], bytes]:
        """Ask for a path; status 0 where the connection breaks."""
        try:
            self._connection.request("GET", path, headers={"x-api-key": self._key})
            answer = self._connection.getresponse()
            return answer.status, answer.headers, answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return 0, {}, b""

    def search(self, asked: Mapping[str, Any]) -> Answer:
        """Ask a query."""
        began = time.monotonic()
        status, headers, body = self.get(f"/api/v1/search/photos?{urlencode(asked)}")
        took_s = time.monotonic() - began
        if status != 200:
            return Answer(asked, began, took_s, status)
        page = json.loads(body)
        photos = [(photo["photo_id"], photo["relevance_score"]) for photo in page["data"]]
        cursor = page["pagination"]["next_cursor"] or ""
        return Answer(asked, began, took_s, status, headers[_SNAPSHOT], photos, cursor)

    def replicas(self) -> list[int]:
        """Return how many replicas of each shard answer, as the server has it."""
        lines = self.get("/metrics")[2].decode().splitlines()
        return [
            int(float(line.split()[1]))
            for line in lines
            if line.startswith("searchlab_shard_replicas{")
        ]

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class OneMachine:
    """What one machine answers, from each snapshot that was in force."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pages: dict[str, dict[str, tuple[Photos, Photos]]] = {}

    def learn(self) -> str:
        """Ask every query of the snapshot in force for two pages; returns its name."""
        library = open_library(self._folder, for_others=True)
        snapshot_id = library.engine.snapshot_id
        pages = {}
        for asked in QUERIES:
            query = Query(text=asked["q"], score_threshold=asked["score_threshold"])
            hits = library.search(query, per_page=2 * PER_PAGE).hits
            photos = [(hit.photo.photo_id, hit.relevance_score) for hit in hits]
            pages[asked["q"]] = photos[:PER_PAGE], photos[PER_PAGE:]
        self._pages[snapshot_id] = pages
        return snapshot_id

    def page(self, snapshot_id: str, text: str, number: int) -> Photos:
        """Return a page, the first or the second."""
        return self._pages[snapshot_id][text][number]

    def is_right(self, answer: Answer) -> bool:
        """Say whether a first page is what one machine answers from that snapshot."""
        return answer.photos == self.page(answer.snapshot, answer.asked["q"], 0)


@contextmanager
def asking(base_url: str, key: str, *, clients: int = 4) -> Iterator[list[Answer]]:
    """Ask in several threads; yields the answers, which are complete when it is left."""
    answers: list[Answer] = []
    stop = threading.Event()

    def ask(number: int) -> None:
        with closing(Client(base_url, key)) as client:
            while not stop.is_set():
                answer = client.search(QUERIES[number % len(QUERIES)])
                answers.append(answer)
                number += 1
                if answer.status != 200:
                    stop.wait(_PAUSE_S)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def went_back(answers: Sequence[Answer], old: str) -> int:
    """Count answers from a snapshot that were asked for after one came from another."""
    after = min((one.ended for one in answers if one.snapshot not in ("", old)), default=None)
    return sum(after is not None and one.began > after and one.snapshot == old for one in answers)
