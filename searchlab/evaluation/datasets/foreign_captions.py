"""Captions in many languages, one set of pictures: Crossmodal-3600 and XTD10."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from searchlab.errors import InputError, NotFoundError
from searchlab.evaluation.datasets.foreign_parts import ForeignParts

_NAMES_OF_XTD: Final = "test_image_names.txt"
_CAPTIONS_OF_XTD: Final = "test_1kcaptions_"
_LANGUAGES_OF_XTD: Final = {"jp": "ja"}


def is_crossmodal(folder: Path) -> bool:
    """Tell whether a folder holds Crossmodal-3600: a line a picture, with a key `image/key`."""
    path = folder / "captions.jsonl"
    if not path.is_file():
        return False
    with path.open(encoding="utf-8", errors="replace") as lines:
        return '"image/key"' in lines.readline()


def read_crossmodal(folder: Path, split: str | None, lang: str) -> ForeignParts:
    """Read Crossmodal-3600: every caption is a query in its language; `split` names one language.

    Raises:
        NotFoundError: There is no such language.
        InputError: A line has no key.
    """
    parts = ForeignParts("crossmodal-3600")
    langs = set()
    lines = (folder / "captions.jsonl").read_text(encoding="utf-8-sig").split("\n")
    for line in filter(str.strip, lines):
        values = json.loads(line)
        picture = str(values["image/key"])
        parts.pictures[picture] = f"{picture}.jpg"
        for one, told in values.items():
            if isinstance(told, dict) and "caption" in told:
                langs.add(one)
                for number, caption in enumerate(told["caption"] if split in (None, one) else ()):
                    parts.add_caption(f"{picture}-{one}-{number}", caption, one, picture)
    if not parts.texts:
        msg = f"the language must be one of {', '.join(sorted(langs)) or 'none'}, got {split!r}"
        raise NotFoundError(msg)
    return parts


def is_xtd(folder: Path) -> bool:
    """Tell whether a folder holds XTD10: a list of pictures, and a file of captions a language."""
    return (folder / _NAMES_OF_XTD).is_file() and any(folder.rglob(f"{_CAPTIONS_OF_XTD}*.txt"))


def read_xtd(folder: Path, split: str | None, lang: str) -> ForeignParts:
    """Read XTD10: line n of every file of captions belongs to picture n; `split` names a language.

    Raises:
        NotFoundError: There is no such language.
        InputError: A file of captions has another number of lines.
    """
    parts = ForeignParts("coco")
    names = _lines(folder / _NAMES_OF_XTD)
    parts.pictures = {Path(name).stem: name for name in names}
    langs = []
    for path in sorted(folder.rglob(f"{_CAPTIONS_OF_XTD}*.txt")):
        written = path.stem.removeprefix(_CAPTIONS_OF_XTD)
        one = _LANGUAGES_OF_XTD.get(written, written)
        langs.append(one)
        captions = _lines(path)
        if len(captions) != len(names):
            msg = f"{path} must have a caption for each of {len(names)} pictures: {len(captions)}"
            raise InputError(msg)
        if split in (None, one, written):
            for name, caption in zip(names, captions, strict=True):
                picture = Path(name).stem
                parts.add_caption(f"{picture}-{one}", caption, one, picture)
    if not parts.texts:
        msg = f"the language must be one of {', '.join(langs)}, got {split!r}"
        raise NotFoundError(msg)
    return parts


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8-sig").rstrip("\n").split("\n")
