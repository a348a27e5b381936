"""The calibration that ships for a model, and the file that it lies in.

A `relevance_score` is the probability that a photo of a collection like the fitted one is relevant,
given its cosine. It is a logistic curve (Platt scaling), so a ranking stays what it was, and 0.5
means the same whatever the model. `searchlab.evaluation.calibration.fit` fits the curves.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from importlib import resources
from pathlib import Path

from searchlab.config import Config
from searchlab.config.calibration import UNCALIBRATED, Calibration
from searchlab.errors import DataError
from searchlab.models import load_model


def default_calibration(model_id: str) -> Calibration:
    """Return the calibration that ships for a model; `UNCALIBRATED` where there is none.

    Raises:
        DataError: The file that ships is damaged.
    """
    file = resources.files(__package__) / _file_name(model_id)
    if not file.is_file():
        return UNCALIBRATED
    try:
        values = json.loads(file.read_text(encoding="utf-8")).get(model_id)
        return UNCALIBRATED if values is None else Calibration.from_dict(values)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        msg = f"{file} must hold calibrations as JSON, got: {error}; install searchlab again"
        raise DataError(msg) from error


def calibrate(config: Config) -> Config:
    """Return a configuration with its model's id and the calibration that goes with that model.

    An adapted model brings its own; of another one the curves that ship are taken.
    """
    model = load_model(config.model)
    own: Calibration | None = getattr(model, "calibration", None)
    fitted_for: str = getattr(model, "calibrated_as", model.model_id)
    calibration = own or default_calibration(fitted_for)
    return replace(config, model=model.name, model_id=model.model_id, calibration=calibration)


def save_calibration(calibration: Calibration, model_id: str, folder: Path) -> Path:
    """Write a calibration where `default_calibration` finds it, beside those of other model_ids."""
    path = folder / _file_name(model_id)
    calibrations = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    calibrations[model_id] = calibration.to_dict()
    path.write_text(json.dumps(calibrations, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return path


def _file_name(model_id: str) -> str:
    short = model_id.rpartition("-")[0] or model_id
    return re.sub(r"[^A-Za-z0-9._-]+", "_", short).lstrip(".") + ".json"
