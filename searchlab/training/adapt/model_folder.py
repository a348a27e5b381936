"""What adapting leaves on disk, and the calibration that goes with it."""

from __future__ import annotations

import datetime
import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchlab.config import Config
from searchlab.config.calibration import UNCALIBRATED, Calibration, Curve
from searchlab.errors import InputError
from searchlab.evaluation.calibration.curves import fit_curve
from searchlab.files import sync_folder, write_atomically
from searchlab.models.adapted import (
    CARD_FILE,
    FORMAT,
    HEADS_FILE,
    MODEL_FILE,
    AdaptedEmbedder,
    Head,
    record_canaries,
)
from searchlab.models.migrated import MAP_FILE, MigratedEmbedder
from searchlab.models.protocol import Embedder, Embeddings
from searchlab.models.shipped_calibration import calibrate
from searchlab.training.adapt.pairs import CaptionPairs
from searchlab.training.adapt.ranking import Queries, queries_of

_TOP = 10


def make_calibration(pairs: CaptionPairs, base: Embedder, image: Head, text: Head) -> Calibration:
    """Fit the curves from cosine to `relevance_score` on photos that were not trained on.

    The text curve is fitted on the ten nearest photos of each caption, of which those that carry
    the caption count as relevant. The image curve is the base's, carried over by the cosines that
    the same neighbours have in the two spaces; where the base has none, the text curve is used.

    Args:
        pairs: Held-out photos and captions, as the base embeds them.
        base: The model that was adapted.
        image: Head of the photo rows.
        text: Head of the text rows.

    Returns:
        The calibration; `UNCALIBRATED` where cosines say nothing about relevance.
    """
    photos = image(pairs.photos)
    queries = queries_of(pairs)
    try:
        text_side = _text_curve(queries, photos, text)
    except InputError:
        return UNCALIBRATED
    of_base = calibrate(Config(model=base.name)).calibration
    image_side = carry_over(of_base.image, pairs.photos, photos) if of_base.is_fitted else text_side
    both = Curve(
        (text_side.slope + image_side.slope) / 2,
        (text_side.intercept + image_side.intercept) / 2,
    )
    return Calibration(
        text=text_side,
        image=image_side,
        both=both,
        source=f"held-out captions@{pairs.fingerprint}",
    )


def _text_curve(queries: Queries, photos: Embeddings, head: Head) -> Curve:
    cosines = head(queries.texts) @ photos.T
    relevant = np.zeros(cosines.shape, dtype=bool)
    relevant[queries.query_of, queries.photo_of] = True
    nearest = _nearest(cosines)
    return fit_curve(
        np.take_along_axis(cosines, nearest, axis=1).ravel(),
        np.take_along_axis(relevant, nearest, axis=1).ravel(),
    )


def carry_over(curve: Curve, before: Embeddings, after: Embeddings) -> Curve:
    """Carry a curve over to another space, so that the same pairs get about the same scores.

    Args:
        curve: Fitted in the first space.
        before: (n_photos, dim) rows in the first space.
        after: (n_photos, dim) rows of the same photos in the second.

    Returns:
        The least-squares line from the new cosines to the old log-odds, over each photo's ten
        nearest; the curve itself where that would not rise.
    """
    cosines, old = after @ after.T, before @ before.T
    np.fill_diagonal(cosines, -np.inf)
    nearest = _nearest(cosines)[:, : max(1, len(after) - 1)]
    x = np.take_along_axis(cosines, nearest, axis=1).ravel().astype(np.float64)
    y = curve.slope * np.take_along_axis(old, nearest, axis=1).ravel() + curve.intercept
    centred = x - x.mean()
    slope = float(centred @ y) / max(float(centred @ centred), 1e-12)
    if slope <= 0:
        return curve
    return Curve(slope, float(y.mean() - slope * x.mean()))


def _nearest(cosines: NDArray[np.float32]) -> NDArray[np.int64]:
    k = min(_TOP, cosines.shape[1])
    return np.argpartition(-cosines, k - 1, axis=1)[:, :k]


def write_adapted(folder: Path, model: AdaptedEmbedder, details: dict[str, Any], text: str) -> None:
    """Write an adapted model as a folder.

    Args:
        folder: Made anew; what is in it is removed first.
        model: The heads, their base and calibration.
        details: Data, training and gain, as plain values.
        text: The report, for the card.
    """
    heads = io.BytesIO()
    np.savez(
        heads,
        image_linear=model.image_head.linear,
        image_bias=model.image_head.bias,
        text_linear=model.text_head.linear,
        text_bias=model.text_head.bias,
    )
    values = {
        "kind": "adapted",
        "format": FORMAT,
        "model_id": model.model_id,
        "base": model.base.name,
        "base_model_id": model.base.model_id,
        "dim": model.dim,
        "calibration": model.calibration.to_dict(),
        "canaries": record_canaries(model),
        **details,
    }
    card = (
        f"# {model.model_id}\n\n"
        f"`{model.base.name}` ({model.base.model_id}) with two residual linear heads of "
        f"{model.dim} components, trained by `searchlab models adapt` on "
        f"{today()}. The base is not changed.\n\n```\n{text}\n```\n\n"
        "The heads were trained on the photos and captions of whoever made them, and know nothing "
        "else; on photos of another kind the base may be better. The test photos were set apart "
        "by the hash of their content, and were used neither to train nor to choose. Whether the "
        "base itself was once trained on them, its own card must say: if it was, the figures "
        "before adapting are too high.\n"
    )
    write_folder(folder, {HEADS_FILE: heads.getvalue(), CARD_FILE: card.encode()}, values)


def write_migrated(
    folder: Path, model: MigratedEmbedder, details: dict[str, Any], text: str
) -> None:
    """Write a migrated model as a folder.

    Args:
        folder: Made anew; what is in it is removed first.
        model: The map, the new model and the calibration.
        details: What is lost, as plain values.
        text: The report, for the card.
    """
    file = io.BytesIO()
    np.savez(file, linear=model.linear_map.linear, bias=model.linear_map.bias)
    values = {
        "kind": "migrated",
        "format": FORMAT,
        "model_id": model.model_id,
        "new": model.base.name,
        "new_model_id": model.base.model_id,
        "old_model_id": model.old_id,
        "calibration": model.calibration.to_dict(),
        "migration": details,
    }
    card = (
        f"# {model.model_id}\n\n"
        f"Vectors of {model.old_id}, mapped into the space of `{model.base.name}` "
        f"({model.base.model_id}) by `searchlab models migrate` on {today()}. Queries, and photos "
        "that came later, are embedded by that model itself. "
        f"`searchlab index --model {model.base.name}` embeds the others too, and so ends the loss "
        f"that was measured:\n\n```\n{text}\n```\n"
    )
    write_folder(folder, {MAP_FILE: file.getvalue(), CARD_FILE: card.encode()}, values)


def write_folder(folder: Path, files: dict[str, bytes], values: dict[str, Any]) -> None:
    """Write the files of a model, `model.json` last."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, content in files.items():
        write_atomically(folder / name, content)
    text = json.dumps(values, indent=1, ensure_ascii=False) + "\n"
    write_atomically(folder / MODEL_FILE, text.encode())


def is_model_folder(folder: Path) -> bool:
    """Say whether a folder holds an adapted model and nothing else, or nothing at all."""
    if not folder.is_dir():
        return False
    names = {path.name for path in folder.iterdir()}
    return not names or (MODEL_FILE in names and names <= {MODEL_FILE, HEADS_FILE, CARD_FILE})


def install(finished: Path, folder: Path) -> None:
    """Give a finished folder its name; a folder of that name is moved beside the finished one."""
    if folder.exists():
        folder.rename(finished.with_name("replaced"))
    finished.rename(folder)
    sync_folder(folder.parent)


def today() -> str:
    """Return today's date in UTC, such as "2026-03-31", for model cards."""
    return datetime.datetime.now(tz=datetime.UTC).date().isoformat()
