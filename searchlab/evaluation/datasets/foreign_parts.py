"""What the readers of foreign datasets return: texts, judgments and where pictures should lie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

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
            self.texts[query_id] = (words, lang)
            self.qrels[query_id] = {picture: 1}


Recognise: TypeAlias = Callable[[Path], bool]
"""Whether a folder holds a dataset of a format."""

Read: TypeAlias = Callable[[Path, str | None, str], ForeignParts]
"""Reads a folder, one part of it (`"test"` if None), the language where the files do not say."""
