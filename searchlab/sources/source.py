"""Source: what searchlab knows of one upstream library."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from searchlab.sources.record import SourceRecord

Values = Mapping[str, Any]


@dataclass(frozen=True)
class ApiRequest:
    """One request to a library's API, without the key.

    Attributes:
        url: Address without parameters.
        params: Parameters.
        begins_page: The first request of a page of results.
        has_records: The answer holds records, not only where to find them.
    """

    url: str
    params: Mapping[str, str] = field(default_factory=dict)
    begins_page: bool = True
    has_records: bool = True


Walk: TypeAlias = Generator[ApiRequest, Any, None]
"""Yields requests and is sent the JSON that each was answered with; ends with the results."""


@dataclass(frozen=True)
class Key:
    """How the user's key is sent to an API.

    Attributes:
        variable: Environment variable that holds it.
        where: Address at which users get one.
        header: Header that carries it; empty where a parameter does.
        before: What stands before the key in the header, such as `Bearer `.
        param: Parameter that carries it.
        needed: Whether the API refuses requests without a key.
    """

    variable: str
    where: str
    header: str = ""
    before: str = ""
    param: str = ""
    needed: bool = True


@dataclass(frozen=True, kw_only=True)
class Source:
    """One upstream library.

    Attributes:
        name: Name in lower case, as filters take it.
        title: Name as people write it.
        home: Its web address.
        record: Turns one of its records into searchlab's words.
        records_at: Keys that lead from an answer of its API to the list of records.
        record_fields: Photo fields that its records have, besides ids, links and credit, which all
            records have.
        one_license: Whether all its photos have the same licence, which their records leave out.
        terms_url: Page of the terms that hold for all its photos; empty where each has its own.
        search: Walks through the results of a query; None where there is no public API.
        key: How the user's key is sent; None where the API has no keys.
        split: Splits an entry with several pictures into one entry for each picture.
        pause_s: Least seconds between two requests.
    """

    name: str
    title: str
    home: str
    record: Callable[[Values], SourceRecord]
    records_at: tuple[str, ...]
    record_fields: tuple[str, ...]
    one_license: bool = False
    terms_url: str = ""
    search: Callable[[str], Walk] | None = None
    key: Key | None = None
    split: Callable[[Values], list[Values]] = lambda entry: [entry]
    pause_s: float = 1.0

    def entries(self, answer: Any) -> list[Any]:
        """Return the entries of an answer of the API, one for each picture.

        Args:
            answer: Parsed JSON: an answer with a list of entries, or a single entry.
        """
        value = answer
        for key in self.records_at:
            value = value[key] if isinstance(value, Mapping) and key in value else None
        if value is None:
            value = answer
        elif self.records_at and isinstance(value, Mapping):  # MediaWiki's older format: by page id
            value = list(value.values())
        listed = value if isinstance(value, list) else [value]
        return [
            one
            for entry in listed
            for one in (self.split(entry) if isinstance(entry, Mapping) else [entry])
        ]


def pages(
    url: str,
    params: Mapping[str, str],
    more: Callable[[Any, int], bool],
    *,
    page: str = "page",
) -> Walk:
    """Walk through numbered pages.

    Args:
        url: Address of the search.
        params: All parameters but the page.
        more: Given an answer and the number of its page, says whether another page follows.
        page: Name of the parameter for the page.
    """
    number = 1
    while True:
        answer = yield ApiRequest(url, {**params, page: str(number)})
        if not more(answer, number):
            return
        number += 1


def number_at(answer: Any, *path: str) -> int:
    """Return a count in an answer; 0 where there is none."""
    for key in path:
        answer = answer.get(key) if isinstance(answer, Mapping) else None
    try:
        return int(answer or 0)
    except (TypeError, ValueError, OverflowError):
        return 0


def with_params(url: str, **params: str | int) -> str:
    """Set parameters of an address and keep its others; an empty address stays empty.

    >>> with_params("https://example.org/a?b=1&w=2", w=3)
    'https://example.org/a?b=1&w=3'
    """
    if not url:
        return ""
    parts = urlsplit(url)
    query = parse_qsl(parts.query, keep_blank_values=True)
    others = [(name, value) for name, value in query if name not in params]
    return urlunsplit(parts._replace(query=urlencode([*others, *params.items()])))
