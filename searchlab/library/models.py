"""The model of a library, found again where it lies within it and the library was moved."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from searchlab.config import Config
from searchlab.errors import SearchlabError
from searchlab.models import load_model
from searchlab.models.protocol import Embedder

MODELS_FOLDER: Final = "models"
_WITHIN: Final = re.compile(rf"(?<=:)(?P<folder>[^,:]*)/{MODELS_FOLDER}/(?P<name>[^,=:/]+)")


def load_model_of(folder: Path, config: Config) -> Embedder:
    """Load the model of a library's configuration.

    `searchlab models adapt` and `migrate` write models into the library, and a configuration names
    them by their path of then. Where the library lies elsewhere now, as a backup put back or a
    folder that was renamed, the model of that name here is taken if it is the same one.

    Args:
        folder: The library.
        config: Says the model, and its `model_id` if that was decided.

    Raises:
        InputError: No model has such a spec.
        NotFoundError: Weights, a file or a folder that the spec names cannot be had.
        MissingExtraError: The model needs an optional dependency.
        DataError: A file of the model is damaged.
        MismatchError: The model does not reproduce the vectors recorded for it.
    """
    here = spec_within(folder, config.model)
    if here != config.model:
        # Another model of that name, or a damaged one: what the configuration names decides.
        with suppress(SearchlabError):
            model = load_model(here)
            if model.model_id == config.model_id:
                return model
    return load_model(config.model)


def spec_within(folder: Path, spec: str) -> str:
    """Return a spec with the paths of models that lie in a library as they are now."""

    def place_here(found: re.Match[str]) -> str:
        here = folder / MODELS_FOLDER / found["name"]
        return str(here) if here.is_dir() else found[0]

    return _WITHIN.sub(place_here, spec)


def model_files(folder: Path, spec: str) -> Iterator[Path]:
    """Give the files of the models of a spec that lie in a library, relative to its folder."""
    for found in _WITHIN.finditer(spec):
        place, named = folder / MODELS_FOLDER / found["name"], Path(found[0])
        # One that is there under its recorded path is another library's.
        if named == place or not named.exists():
            for path in sorted(place.rglob("*")):
                if path.is_file():
                    yield path.relative_to(folder)
