"""A model out of a wheel that `searchlab models pack` made: loaded by the wheel's own name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from searchlab.errors import DataError
from searchlab.models.canaries import CanaryCheck
from searchlab.models.protocol import Embedder, towers_of
from searchlab.models.registry import construct_model

PACKED_FILE: Final = "packed.json"
FOLDER: Final = "model"


def open_packed(name: str, place: Path) -> Embedder:
    """Load the model of an installed wheel; the entry point of such a wheel calls it.

    The vectors of two probes must be those that were recorded when the wheel was made.

    Args:
        name: The entry point's name, which becomes the model's.
        place: Folder of the wheel's package.

    Raises:
        DataError: A file is damaged.
        MismatchError: The model embeds its probes otherwise than when it was packed.
    """
    try:
        values = json.loads((place / PACKED_FILE).read_text(encoding="utf-8"))
        kind, model_id, canaries = values["kind"], values["model_id"], values["canaries"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        msg = f"{place} must hold the model {name!r} as it was packed, got: {error}; reinstall it"
        raise DataError(msg) from error
    model = construct_model(f"{kind}:{place / FOLDER}")
    if model.model_id != model_id:
        msg = f"{place} must hold {model_id}, got {model.model_id}; reinstall {name}"
        raise DataError(msg)
    check = CanaryCheck(canaries)
    for tower in towers_of(model):
        check.check(model, tower)
    model.name = name  # what snapshots and results name must be what loads it
    return model
