"""Embedding models behind one protocol, and the one function that loads any of them.

A model is named by a spec. Nothing is downloaded, except where the spec names weights of
open_clip that are not on this machine yet:

    mini                                    the default; ships with searchlab
    palette                                 colours only
    captions                                the descriptions of the photos, not their pixels
    openclip:ViT-B-32/laion2b_s34b_b79k     open_clip with pretrained weights (extra `clip`)
    openclip:hf-hub:ORGANISATION/MODEL      the same, from the Hugging Face hub
    openclip:ViT-B-32/path/to/weights.pt    the same, from a file
    openclip:ViT-B-32/random-7              the same, untrained, from seed 7; for tests and timings
    openclip:ViT-B-32/TAG:bf16              the same, its image tower in bfloat16 (`:fp16`)
    onnx:FOLDER                             what `searchlab.models.onnx.export.export_onnx` wrote
    onnx:FOLDER:fp32                        the same in float32 (`:int8` in eight bits)
    adapted:FOLDER                          with heads of one's own: `searchlab models adapt`
    migrated:FOLDER                         vectors of another model, mapped: `models migrate`
    hybrid:mini=0.7,captions=0.3            several of these, weighted
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from searchlab.errors import DataError, InputError, quote
from searchlab.models.protocol import Embedder, Embeddings, unit_rows

__all__ = ["MODELS", "Embedder", "Embeddings", "load_model", "unit_rows"]


def _adapted(rest: str) -> Embedder:
    from searchlab.models.adapted import load_adapted

    return load_adapted(rest, load_model)


def _migrated(rest: str) -> Embedder:
    from searchlab.models.migrated import load_migrated

    return load_migrated(rest, load_model)


def _mini(rest: str) -> Embedder:
    from searchlab.models.mini.embedder import MiniEmbedder

    _refuse_rest("mini", rest)
    model = MiniEmbedder()
    if model.model_id != model.recorded_id:
        msg = (
            f"the files in {model.folder} must be those of {model.recorded_id}, "
            f"got {model.model_id}; install searchlab again"
        )
        raise DataError(msg)
    return model


def _captions(rest: str) -> Embedder:
    from searchlab.models.captions import CaptionsEmbedder

    _refuse_rest("captions", rest)
    load_model("mini")  # whose files it reads, and which checks them
    return CaptionsEmbedder()


def _palette(rest: str) -> Embedder:
    from searchlab.models.palette.embedder import PaletteEmbedder

    _refuse_rest("palette", rest)
    return PaletteEmbedder()


def _openclip(rest: str, device: str | None = None) -> Embedder:
    from searchlab.models.openclip.embedder import OpenClipEmbedder

    return OpenClipEmbedder(rest, device=device)


def _onnx(rest: str) -> Embedder:
    from searchlab.models.onnx.embedder import OnnxEmbedder

    folder, colon, precision = rest.rpartition(":")
    if colon and precision in ("fp32", "int8"):
        return OnnxEmbedder(folder, precision=precision)
    return OnnxEmbedder(rest)


def _hybrid(rest: str) -> Embedder:
    from searchlab.models.hybrid import HybridEmbedder, parse_weights

    return HybridEmbedder([(load_model(part), weight) for part, weight in parse_weights(rest)])


def _refuse_rest(head: str, rest: str) -> None:
    if rest:
        msg = f"{head!r} must stand alone in a model spec, got {head + ':' + rest!r}"
        raise InputError(msg)


MODELS: dict[str, Callable[[str], Embedder]] = {
    "adapted": _adapted,
    "captions": _captions,
    "hybrid": _hybrid,
    "migrated": _migrated,
    "mini": _mini,
    "onnx": _onnx,
    "openclip": _openclip,
    "palette": _palette,
}
"""Head of a spec -> constructor, which is given what follows the head's colon."""

# Built of others at little cost, and a folder may be replaced: what they stand on is shared.
_STACKED = ("adapted", "hybrid", "migrated")

_loaded: dict[str, Embedder] = {}
_loading = threading.RLock()  # re-entrant: `captions` checks the files of `mini`


def load_model(spec: str, *, device: str | None = None) -> Embedder:
    """Load the model that a spec names; the table at the head of this module lists the specs.

    A plain model is loaded once a process and shared, so hybrids of the same parts cost no memory.

    Args:
        spec: Such as `"mini"` or `"hybrid:mini=0.7,captions=0.3"`.
        device: Where torch computes, for an `openclip:` spec: `"cpu"`, `"cuda"`, `"mps"`, `"auto"`.
            Left out, the variable `SEARCHLAB_DEVICE` says it, also for parts of other models.

    Raises:
        InputError: No model has such a spec, or there is no such device for it.
        NotFoundError: Weights, a file or a folder that the spec names cannot be had.
        MissingExtraError: The model needs an optional dependency.
        DataError: A file of the model is damaged.
        MismatchError: The model does not reproduce the vectors recorded for it.
    """
    head, _, rest = spec.partition(":")
    constructor = MODELS.get(head)
    if constructor is None:
        msg = (
            f"a model spec must begin with one of {', '.join(sorted(MODELS))}, got {quote(spec)}; "
            "for example 'mini', 'openclip:ViT-B-32/laion2b_s34b_b79k' or "
            "'hybrid:mini=0.7,captions=0.3'"
        )
        raise InputError(msg)
    if device is not None and head != "openclip":
        msg = (
            f"a device can be chosen for models of openclip, got {device!r} for {quote(spec)}; "
            "SEARCHLAB_DEVICE chooses it for those that other models stand on"
        )
        raise InputError(msg)
    if head in _STACKED:
        return constructor(rest)
    with _loading:
        name = spec if device is None else f"{spec} on {device}"
        model = _loaded.get(name)
        if model is None:
            made = constructor(rest) if device is None else _openclip(rest, device)
            model = _loaded[name] = made
    return model
