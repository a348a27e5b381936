"""A first look at a model that did not come with searchlab, before anything is measured with it.

A wrapper that forgot to scale its rows, returns tensors, or pads a batch so that rows change, gives
plausible figures that are wrong. Each registered model is tried on a few small inputs when it is
first loaded; the whole contract is `searchlab.models.contract`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from searchlab.errors import MismatchError, SearchlabError
from searchlab.models.canaries import canary_image
from searchlab.models.protocol import Embedder, towers_of

_TEXTS: Final = ("a red car", "a photo of a dog that runs along a wide beach at sunset")
_ATTRIBUTES: Final = (
    *("name", "dim", "model_id", "reads", "input_size", "parts"),
    *("fingerprints", "encode_texts", "encode_images"),
)
_UNIT: Final = 1e-3
_SAME: Final = 1e-3
"""Largest difference of components that rounding in half precision explains."""


def refuse_unsound(spec: str, model: Any) -> None:
    """Refuse a model whose rows are not unit rows of float32 that depend on their input alone.

    Args:
        spec: What it was loaded by.
        model: What was loaded.

    Raises:
        MismatchError: One promise is broken; one line says which, and what is usually wrong.
    """
    missing = [name for name in _ATTRIBUTES if not hasattr(model, name)]
    if missing:
        _refuse(
            spec,
            f"have {', '.join(missing)}",
            type(model).__name__,
            "derive its class from searchlab.models.Embedder",
        )
    if model.reads not in ("image", "text"):
        _refuse(spec, "read 'image' or 'text'", repr(model.reads), "set `reads`")
    towers = towers_of(model)
    if "text" in towers:
        _check_tower(spec, model, "encode_texts", model.encode_texts, list(_TEXTS))
    if "image" in towers:
        pictures = [canary_image(5, size=48), canary_image(6, size=96).resize((96, 40))]
        _check_tower(spec, model, "encode_images", model.encode_images, pictures)


def _check_tower(
    spec: str, model: Embedder, name: str, encode: Callable[[Any], Any], inputs: Sequence[Any]
) -> None:
    try:
        rows = encode(inputs)
        alone = encode(inputs[:1])
    except SearchlabError:
        raise
    except Exception as error:  # a stranger's code, which may raise anything
        msg = f"the model {spec!r} must embed by {name}, got {type(error).__name__}: {error}"
        raise MismatchError(msg) from error
    if not isinstance(rows, np.ndarray) or rows.dtype != np.float32:
        got = f"{type(rows).__module__}.{type(rows).__name__}" + (
            f" of {rows.dtype}" if isinstance(rows, np.ndarray) else ""
        )
        _refuse(spec, f"give an array of float32 from {name}", got, "end with `unit_rows(rows)`")
    shape = (len(inputs), model.dim)
    if rows.shape != shape:
        _refuse(spec, f"give rows of shape {shape} from {name}", str(rows.shape), "set `dim`")
    if not np.isfinite(rows).all():
        _refuse(spec, f"give finite numbers from {name}", "NaN or infinity", "see its precision")
    lengths = np.linalg.norm(rows, axis=1)
    if not (np.abs(lengths - 1) <= _UNIT).all():
        got = " and ".join(f"{length:.4g}" for length in lengths)
        _refuse(
            spec,
            f"give rows of length 1 from {name}",
            f"lengths {got}",
            "end with `unit_rows(rows)`, without the logit scale",
        )
    apart = float(np.abs(rows[:1] - alone).max())
    if apart > _SAME:
        _refuse(
            spec,
            f"give the same row alone and beside others from {name}",
            f"{apart:.2g} apart",
            "mask its padding, and set it to evaluation mode (dropout, batch norm)",
        )
    if float(rows[0] @ rows[1]) > 1 - 1e-6:
        _refuse(spec, f"tell two inputs apart by {name}", "equal rows", "see what it reads")


def _refuse(spec: str, must: str, got: str, remedy: str) -> None:
    msg = f"the model {spec!r} must {must}, got {got}; {remedy}"
    raise MismatchError(msg)
