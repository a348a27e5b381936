"""The files that make up `mini`, what was recorded of them, and the id that they give."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from searchlab.errors import DataError
from searchlab.files import sha256_of

RECORD_FILE = "model.json"
FORMAT = 3
MINI_DATA = Path(__file__).with_name("data")


def read_record(folder: Path) -> dict[str, Any]:
    """Read `model.json`: dim, preprocessing, canaries, sources and measured numbers.

    Raises:
        DataError: The file is missing, damaged or of another format.
    """
    path = folder / RECORD_FILE
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        msg = f"{path} must be readable JSON, got {error}; reinstall searchlab"
        raise DataError(msg) from error
    if record.get("format") != FORMAT:
        msg = f"{path} must have format {FORMAT}, got {record.get('format')!r}; reinstall searchlab"
        raise DataError(msg)
    return record


def fingerprint(folder: Path, files: Iterable[str], description: object) -> str:
    """Hash the bytes of some files and what is done to their inputs.

    Args:
        folder: Where the files lie.
        files: Their names; the order counts.
        description: Anything JSON can hold, such as the preprocessing.

    Returns:
        12 hexadecimal digits of the SHA-256.

    Raises:
        DataError: A file is missing.
    """
    digest = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
    for name in files:
        try:
            digest.update(sha256_of(folder / name).encode())
        except OSError as error:
            msg = f"{folder / name} must be readable, got {error}; reinstall searchlab"
            raise DataError(msg) from error
    return digest.hexdigest()[:12]
