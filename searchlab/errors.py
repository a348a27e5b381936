"""The exceptions that searchlab raises.

    SearchlabError
    ├── InputError (ValueError)         what the caller gave cannot be used
    │   ├── CursorError                 a cursor that was changed, or is somebody else's
    │   │   └── ExpiredCursorError      one that outlived its snapshot
    │   └── ImageError                  a refused picture; `.reason` in a word or two
    ├── NotFoundError (LookupError)     a photo, library, model or dataset that is not there
    ├── ConflictError                   it exists already, or somebody else is writing
    ├── ForbiddenError                  it is there, and the caller may not change it
    ├── QuotaError                      the plan's requests are used up
    ├── UnavailableError                a part of a library elsewhere, or an engine, does not answer
    ├── MissingExtraError               an optional dependency; names the extra to install
    ├── MismatchError                   two things that do not belong together
    └── DataError                       a damaged file or one of another version; names the remedy

Messages say what must hold, what came and what to do.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

_FOLDER = "DIR"


class SearchlabError(Exception):
    """Base of every error that searchlab raises on purpose."""


class InputError(SearchlabError, ValueError):
    """What the caller gave cannot be used."""


class ImageError(InputError):
    """A picture that is refused.

    Attributes:
        reason: A word or two fit for a report, such as `"damaged"` or `"too many pixels"`.
    """

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class CursorError(InputError):
    """A cursor that was changed, belongs to somebody else, or outlived its snapshot."""


class ExpiredCursorError(CursorError):
    """A cursor of a snapshot that is no longer kept."""


class NotFoundError(SearchlabError, LookupError):
    """A photo, library, model or dataset that is not there."""


class ConflictError(SearchlabError):
    """Something exists already, or another process holds it."""


class ForbiddenError(SearchlabError):
    """Something is there, and the caller may not change it."""


class QuotaError(SearchlabError):
    """The requests that a plan allows are used up."""


class UnavailableError(SearchlabError):
    """A part of a library on other machines, or an engine elsewhere, does not answer in time."""


class MissingExtraError(SearchlabError, ImportError):
    """An optional dependency is missing; the message names the extra that brings it."""


class MismatchError(SearchlabError):
    """Two things that do not belong together, such as a model and another model's vectors."""


class DataError(SearchlabError):
    """A file on disk is damaged or of another version; the message names it and the remedy."""


def refuse_names(give: str, **values: object) -> None:
    """Refuse a name or a path where a thing itself is needed; on the command line names are given.

    Args:
        give: What to give instead.
        values: What came, by the names of the arguments.

    Raises:
        InputError: One of them is a text or a path.

    >>> refuse_names("open_library(folder)", library="photos")
    Traceback (most recent call last):
    ...
    searchlab.errors.InputError: library must be no name or path, got 'photos'; \
give open_library(folder)
    """
    for name, value in values.items():
        if isinstance(value, str | os.PathLike):
            msg = f"{name} must be no name or path, got {quote(value)}; give {give}"
            raise InputError(msg)


def shell_word(value: object) -> str:
    """Return a value as a word of a command that a message proposes.

    >>> print(shell_word("my photos"))
    'my photos'
    """
    return shlex.quote(str(value))


def rebuild_remedy(file: Path | None = None) -> str:
    """Say what mends a library with a damaged file.

    Args:
        file: The file. One in a snapshot, or the `CURRENT` beside them, tells the library's folder.

    >>> print(rebuild_remedy(Path("/my/photos/snapshots/000001-0123abcd/words.columns")))
    index again with `searchlab index --data /my/photos --rebuild`, nothing is embedded twice
    """
    library = _FOLDER
    if file is not None and file.name == "CURRENT":
        library = shell_word(file.parent)
    elif file is not None and file.parent.parent.name == "snapshots":
        library = shell_word(file.parent.parent.parent)
    command = f"`searchlab index --data {library} --rebuild`"
    return f"index again with {command}, nothing is embedded twice"


def with_folder(message: str, folder: Path) -> str:
    """Put a library's folder into the remedy that `rebuild_remedy` gives without a file."""
    command = "searchlab index --data"
    return message.replace(f"{command} {_FOLDER}", f"{command} {shell_word(folder)}")


def damaged_file(file: Path, must: str, problem: object) -> DataError:
    """Return the error on a damaged file of a library, which says what mends it once.

    >>> print(damaged_file(Path("words.columns"), "hold words", "none"))
    words.columns must hold words, got: none; index again with \
`searchlab index --data DIR --rebuild`, nothing is embedded twice
    """
    said, remedy = str(problem).removesuffix(f"; {rebuild_remedy()}"), rebuild_remedy(file)
    return DataError(f"{file} must {must}, got: {said}; {remedy}")


def quote(value: object) -> str:
    """Return a value's repr for a message, cut to a readable length; never fails.

    >>> quote("x" * 200)[-5:], quote(10**5000)
    ("x...'", 'a number of thousands of digits')
    """
    try:
        text = repr(value)
    except ValueError:  # Python does not print numbers of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= 80 else f"{text[:75]}...{text[-1]}"


def count(number: int, noun: str, nouns: str = "") -> str:
    """Write a number with its noun.

    >>> count(1, "photo"), count(2_000, "photo"), count(2, "query", "queries")
    ('1 photo', '2,000 photos', '2 queries')
    """
    return f"{number:,} {noun if number == 1 else nouns or f'{noun}s'}"
