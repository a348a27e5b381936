"""What the readers of foreign datasets return: texts, judgments and where pictures should lie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias

from searchlab.errors import InputError, quote

PICTURES: Final = (".jpg", ".jpeg", ".png", ".webp", ".avif", ".gif", ".bmp", ".tif", ".tiff")
"""How names of pictures end."""


@dataclass
class ForeignParts:
    """What a file says, before pictures are looked for.

    Attributes:
        source: Name of the collection, for ids.
        pictures: Id of a picture -> the path that the file gives; may be empty.
        texts: Query -> (text, language).
        qrels: Query -> id of a picture -> grade.
    """

    source: str
    pictures: dict[str, str] = field(default_factory=dict)
    texts: dict[str, tuple[str, str]] = field(default_factory=dict)
    qrels: dict[str, dict[str, int]] = field(default_factory=dict)

    def add_caption(self, query_id: str, text: Any, lang: str, picture: str) -> None:
        """Add a query that looks for one picture; a caption without words is none."""
        words = " ".join(str(text).split())  # some captions of COCO end with a line break
        if words:
            self.add_query(query_id, words, lang)
            self.judge(query_id, picture, 1)
            if len(self.qrels[query_id]) > 1:
                self._refuse_another("caption", query_id)

    def add_query(self, query_id: str, text: str, lang: str) -> None:
        """Add a query.

        Raises:
            InputError: Another one has its id.
        """
        if self.texts.setdefault(query_id, (text, lang)) != (text, lang):
            self._refuse_another("query", query_id)

    def judge(self, query_id: str, picture: str, grade: int) -> None:
        """Add a judgment.

        Raises:
            InputError: The pair has another grade already.
        """
        if self.qrels.setdefault(query_id, {}).setdefault(picture, grade) != grade:
            self._refuse_another(f"judgment of {quote(picture)} for the query", query_id)

    def _refuse_another(self, what: str, query_id: str) -> NoReturn:
        msg = f"{self.source} must give each {what} once, got another one of {quote(query_id)}"
        raise InputError(msg)


def whole_grade(value: Any) -> int:
    """Read a grade; -1 where it is no whole number.

    TREC marks spam by grades below 0, which is not relevant.
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        return -1
    return max(0, int(number)) if number.is_integer() else -1


Recognise: TypeAlias = Callable[[Path], bool]
"""Whether a folder holds a dataset of a format."""

Read: TypeAlias = Callable[[Path, str | None, str], ForeignParts]
"""Reads a folder, one part of it (`"test"` if None), the language where the files do not say."""
