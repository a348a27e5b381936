"""Grids: combinations of models, indexes and calibrations, as the configurations to compare."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Any

from searchlab.config import Config
from searchlab.config.calibration import Calibration
from searchlab.config.indexes import index_names, load_index
from searchlab.errors import InputError
from searchlab.models.shipped_calibration import calibrate


def grid(
    models: Iterable[str] = ("mini",),
    indexes: Iterable[str] = ("exact",),
    calibrations: Iterable[Calibration | None] = (None,),
    **choices: Any,
) -> list[Config]:
    """Make every combination once, models outermost, so that each is loaded once.

    Args:
        models: Specs; a fusion is a model too, such as `"hybrid:mini=0.7,captions=0.3"`.
        indexes: Any of `"exact"`, `"hnsw"`, `"clustered"` and `"exact-on-device"`.
        calibrations: Calibrations to try; None is the one that goes with the model.
        choices: Further fields of `Config`, each one value or a list of them. Fields that have no
            effect with an index are left at their defaults.

    Returns:
        Configurations with their `model_id`, no two alike.

    Raises:
        InputError: `Config` has no such field, a value is out of range, or there is nothing to try.
        NotFoundError: There is no such model.

    Example:
        >>> configs = grid(models=["palette"], indexes=["exact", "hnsw"], ef_search=[50, 100])
        >>> [(config.index, config.ef_search) for config in configs]
        [('exact', 100), ('hnsw', 50), ('hnsw', 100)]
    """
    known = {field.name for field in fields(Config)} - {"model", "model_id", "index", "calibration"}
    if unknown := sorted(choices.keys() - known):
        msg = f"choices of a grid must be among {', '.join(sorted(known))}, got {unknown}"
        raise InputError(msg)
    values = {name: _values(value) for name, value in choices.items()}
    combined = [
        dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())
    ]
    configs: dict[str, Config] = {}
    for spec, calibration, index in itertools.product(
        _as_list("models", models),
        _as_list("calibrations", calibrations),
        _as_list("indexes", indexes),
    ):
        for chosen in combined:
            config = _config(spec, index, calibration, chosen)
            configs[config.config_id] = config
    if not configs:
        msg = f"a grid must have a value for each choice, got {choices}"
        raise InputError(msg)
    return list(configs.values())


def _config(
    spec: str, index: str, calibration: Calibration | None, chosen: dict[str, Any]
) -> Config:
    config = Config(model=spec, index=index, **chosen)  # checks the values of all fields
    # Fields without effect stay at their defaults, so that no configuration is tried twice.
    idle = load_index(index).idle_fields
    chosen = {name: value for name, value in chosen.items() if name not in idle}
    config = calibrate(Config(model=spec, index=index, **chosen))
    return config if calibration is None else replace(config, calibration=calibration)


def _values(value: Any) -> Sequence[Any]:
    return list(value) if isinstance(value, list | tuple | range) else [value]


def _as_list(name: str, values: Iterable[Any]) -> list[Any]:
    listed = list(values) if isinstance(values, Iterable) else []
    if isinstance(values, str) or not listed:
        known = f", such as {index_names()}" if name == "indexes" else ""
        msg = f"{name} of a grid must be a list of at least one{known}, got {values!r}"
        raise InputError(msg)
    return listed
