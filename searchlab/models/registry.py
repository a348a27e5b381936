"""The registry of models, and the one function that loads any of them."""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Callable
from typing import TypeAlias

from searchlab.errors import ConflictError, InputError, quote
from searchlab.models.protocol import Embedder
from searchlab.plugins import load_plugin, plugin_names

Constructor: TypeAlias = Callable[..., Embedder]
"""Makes a model from what follows the colon in a spec; no argument where nothing may follow."""

MODELS: dict[str, Constructor] = {}
"""Head of a spec -> constructor; `searchlab.models` fills in those that ship."""

PLUGINS = "searchlab.models"
"""Entry points by which other packages add models."""

_loaded: dict[str, Embedder] = {}
_loading = threading.RLock()  # re-entrant: a hybrid loads its parts


def register_model(name: str, constructor: Constructor) -> None:
    """Add a model, so that its name is a spec wherever a model is named.

    Args:
        name: Lower-case word; a spec is the name, or the name, a colon and what the model is made
            of.
        constructor: A class or function that makes the model. If it has a positional parameter, it
            is given what follows the colon (`""` where nothing does); a keyword-only `device` is
            what `load_model` was given.

    Raises:
        InputError: The name is no such word.
        ConflictError: Another model has the name.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_-]*", name):
        msg = f"the name of a model must be a lower-case word, got {quote(name)}"
        raise InputError(msg)
    registered = MODELS.get(name)
    # The same class once more is a notebook's cell that was run again.
    if registered is not None and _full_name(registered) != _full_name(constructor):
        msg = f"the name of a model must be free, got {name!r}; choose another"
        raise ConflictError(msg)
    with _loading:
        MODELS[name] = constructor
        for spec in [spec for spec in _loaded if spec.partition(":")[0] == name]:
            del _loaded[spec]


def _full_name(constructor: Constructor) -> tuple[str, str]:
    return constructor.__module__, constructor.__qualname__


def model_names() -> list[str]:
    """List the heads of specs: models that ship, that were registered, and of plugins."""
    return sorted({*MODELS, *plugin_names(PLUGINS)})


def constructor_of(head: str) -> Constructor | None:
    """Return the constructor of a spec's head, also of a plugin's; None for an unknown head.

    Raises:
        MismatchError: The plugin cannot be imported.
    """
    return MODELS.get(head) or load_plugin(PLUGINS, head)


def load_model(spec: str, *, device: str | None = None) -> Embedder:
    """Load the model that a spec names; the docstring of `searchlab.models` lists the specs.

    A process loads a model once and shares it, so hybrids of the same parts cost no memory. A class
    with `shared = False` is made anew each time.

    Args:
        spec: Such as `"mini"` or `"hybrid:mini=0.7,captions=0.3"`.
        device: Where torch computes, for an `openclip:` spec: `"cpu"`, `"cuda"`, `"mps"`, `"auto"`.
            If left out, the variable `SEARCHLAB_DEVICE` decides, also for parts of other models.

    Raises:
        InputError: No model has such a spec, or there is no such device for it.
        NotFoundError: Weights, a file or a folder that the spec names cannot be had.
        MissingExtraError: The model needs an optional dependency.
        DataError: A file of the model is damaged.
        MismatchError: The model does not reproduce the vectors recorded for it, or belongs to a
            plugin that cannot be imported.
    """
    with _loading:
        key = spec if device is None else f"{spec} on {device}"
        model = _loaded.get(key)
        if model is None:
            model = construct_model(spec, device=device)
            if getattr(model, "shared", True):
                _loaded[key] = model
    return model


def construct_model(spec: str, *, device: str | None = None) -> Embedder:
    """Make the model of a spec, unshared; arguments and errors are those of `load_model`."""
    head, _, rest = spec.partition(":")
    constructor = constructor_of(head)
    if constructor is None:
        msg = (
            f"a model spec must begin with one of {', '.join(model_names())}, got {quote(spec)}; "
            "for example 'mini', 'openclip:ViT-B-32/laion2b_s34b_b79k' or "
            "'hybrid:mini=0.7,captions=0.3'"
        )
        raise InputError(msg)
    parameters = inspect.signature(constructor).parameters
    options = {} if device is None else {"device": device}
    if not options.keys() <= parameters.keys():
        with_device = sorted(name for name, made_by in MODELS.items() if _has_device(made_by))
        msg = (
            f"a device can be chosen for models of {', '.join(with_device)}, got {device!r} "
            f"for {quote(spec)}; SEARCHLAB_DEVICE chooses it for those that other models stand on"
        )
        raise InputError(msg)
    if any(one.kind is not one.KEYWORD_ONLY for one in parameters.values()):
        return constructor(rest, **options)
    if rest:
        msg = f"{head!r} must stand alone in a model spec, got {quote(spec)}"
        raise InputError(msg)
    return constructor(**options)


def _has_device(constructor: Constructor) -> bool:
    return "device" in inspect.signature(constructor).parameters
