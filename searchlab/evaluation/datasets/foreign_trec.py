"""TREC: topics, judgments of four columns, and pictures that are named by document number.

    topics.txt    <top> blocks, as TREC and ImageCLEF write them; or lines of number, tab, text
    qrels.txt     number of the topic, 0, document, grade
    images/       DOCUMENT.jpg, in folders of any kind

Every picture is a photo of the dataset, judged or not.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from searchlab.errors import InputError, NotFoundError, quote
from searchlab.evaluation.datasets.foreign_parts import PICTURES, ForeignParts, whole_grade
from searchlab.evaluation.datasets.judgments import is_grade

_ENDINGS: Final = ("", ".txt", ".tsv", ".trec", ".xml", ".qrel", ".qrels")
_BLOCK: Final = re.compile(r"<top>(.*?)</top>", re.DOTALL | re.IGNORECASE)
_NUMBER: Final = re.compile(r"<num>\s*(?:number:)?\s*([^\s<]+)", re.IGNORECASE)
_GRADE: Final = re.compile(r"-?[0-9]{1,9}")
_TITLE: Final = re.compile(r"<title>\s*(?:topic:)?\s*([^<]+)", re.IGNORECASE)


def is_trec(folder: Path) -> bool:
    """Tell whether a folder holds a file of topics and one of judgments."""
    return bool(_files(folder, "topics") and _files(folder, "qrels"))


def read_trec(folder: Path, split: str | None, lang: str) -> ForeignParts:
    """Read topics and judgments; a topic without a relevant picture is left out.

    Raises:
        NotFoundError: A split is named, and there are none.
        InputError: There are several files of one kind, a line or block has another form, or
            judges a topic that there is not.
    """
    if split is not None:
        msg = f"{folder} has no splits, got {split!r}; leave it out, or use a folder each"
        raise NotFoundError(msg)
    parts = ForeignParts(folder.resolve().name)
    by_name: dict[str, str] = {}  # as some judgments name documents, with the file's ending
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in PICTURES and path.is_file():
            place = path.relative_to(folder).as_posix()
            other = parts.pictures.setdefault(path.stem, place)
            if other != place:
                msg = f"{folder} must hold one picture of each name, got {other} and {place}"
                raise InputError(msg)
            by_name[path.name] = path.stem
    topics, qrels = _only_file(folder, "topics"), _only_file(folder, "qrels")
    for topic, text in _topics(topics):
        if topic in parts.texts:
            msg = f"{topics} must hold each topic once, got {quote(topic)} again"
            raise InputError(msg)
        parts.texts[topic] = (" ".join(text.split()), lang)
    for topic, document, grade in _judgments(qrels):
        if topic not in parts.texts:
            msg = f"{qrels} must judge topics of {topics.name}, got {quote(topic)}"
            raise InputError(msg)
        if document not in parts.pictures:
            # One that is no picture here is missed when pictures are looked for.
            document = by_name.get(document, document)
            parts.pictures.setdefault(document, "")
        parts.judge(topic, document, grade)
    parts.qrels = {topic: grades for topic, grades in parts.qrels.items() if any(grades.values())}
    return parts


def _files(folder: Path, name: str) -> list[Path]:
    return [
        path
        for path in sorted(folder.glob(f"{name}*"))
        if path.suffix.lower() in _ENDINGS and path.is_file()
    ]


def _only_file(folder: Path, name: str) -> Path:
    paths = _files(folder, name)
    if len(paths) > 1:
        names = ", ".join(path.name for path in paths)
        msg = f"{folder} must hold one file of {name}, got {names}; use a folder each"
        raise InputError(msg)
    return paths[0]


def _topics(path: Path) -> Iterator[tuple[str, str]]:
    text = path.read_text(encoding="utf-8-sig")
    if "<top>" in text.lower():
        for number, block in enumerate(_BLOCK.findall(text), start=1):
            named, title = _NUMBER.search(block), _TITLE.search(block)
            if named is None or title is None or not title[1].strip():
                msg = f"{path}: block {number} must have <num> and <title>, got {quote(block)}"
                raise InputError(msg)
            yield named[1], html.unescape(title[1])
        return
    for number, line in enumerate(text.split("\n"), start=1):
        topic, tab, words = line.partition("\t")
        if line.strip():
            if not (tab and topic.strip() and words.strip()):
                msg = f"{path}:{number} must be a number, a tab and a text, got {quote(line)}"
                raise InputError(msg)
            yield topic.strip(), words


def _judgments(path: Path) -> Iterator[tuple[str, str, int]]:
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), start=1):
        cells = line.split()
        if not cells:
            continue
        grade = whole_grade(cells[-1]) if _GRADE.fullmatch(cells[-1]) else -1
        if len(cells) != 4 or not is_grade(grade):
            msg = f"{path}:{number} must be topic, 0, document, grade, got {quote(line)}"
            raise InputError(msg)
        yield cells[0], cells[2], grade
