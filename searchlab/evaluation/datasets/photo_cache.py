"""Where photos that were embedded to be evaluated are kept, unless a folder is named."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from searchlab.errors import InputError
from searchlab.evaluation.caches import ENVIRONMENT, cache_folder
from searchlab.files import digest_of

if TYPE_CHECKING:
    from searchlab.evaluation.datasets import Dataset


class Cache(Enum):
    """Which cache is meant where no folder is named."""

    OF_THE_USER = "of the user"


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
