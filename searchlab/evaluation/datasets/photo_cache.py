"""Where photos of datasets are kept that were embedded to be evaluated, unless a folder is named.

SEARCHLAB_CACHE names the folder; else it is `searchlab` in the user's folder of caches. All of it
can be deleted at any time.
"""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from searchlab.errors import InputError
from searchlab.files import digest_of

if TYPE_CHECKING:
    from searchlab.evaluation.datasets import Dataset

ENVIRONMENT: Final = "SEARCHLAB_CACHE"


class Cache(Enum):
    """Which cache is meant where no folder is named."""

    OF_THE_USER = "of the user"


def cache_folder() -> Path:
    """Return the user's folder of caches for searchlab; it may not be there yet."""
    if named := os.environ.get(ENVIRONMENT):
        return Path(named).expanduser()
    caches = os.environ.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path.home() / ".cache") / "searchlab"


def photo_cache(dataset: Dataset, *, code: str, model_id: str) -> Path:
    """Return the folder that keeps a library of a dataset's photos, and make it.

    Another one for other code, other weights and other records of the photos: whatever the figures
    depend on is then as it would be in a library made anew.

    Args:
        dataset: The dataset.
        code: Version and hash of the code that measures.
        model_id: Of the model that describes the photos.

    Raises:
        InputError: The folder cannot be made.
    """
    records = digest_of({"records": [dict(record) for record in dataset.records]})
    folder = cache_folder() / "evaluated" / f"{code}-{model_id}" / records
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = (
            f"the cache of photos must be a folder that can be written, got {folder}: "
            f"{error.strerror}; name another as {ENVIRONMENT} or `cache`, or none (`cache=None`)"
        )
        raise InputError(msg) from error
    return folder
