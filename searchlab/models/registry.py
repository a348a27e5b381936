"""The registry of models, and the one function that loads any of them."""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Callable
from typing import TypeAlias

from searchlab.errors import ConflictError, InputError, MismatchError, quote
from searchlab.models.protocol import Embedder
from searchlab.models.remembered import find_class, remember, remembered, split_module_spec
from searchlab.models.soundness import refuse_unsound
from searchlab.plugins import load_plugin, plugin_names

Constructor: TypeAlias = Callable[..., Embedder]
"""Makes a model from what follows the colon in a spec; no argument where nothing may follow."""

MODELS: dict[str, Constructor] = {}
"""Head of a spec -> constructor; `searchlab.models` fills in those that ship."""

PLUGINS = "searchlab.models"
"""Entry points by which other packages add models."""

_loaded: dict[tuple[str, str | None], Embedder] = {}  # by spec and device
_registered: set[str] = set()  # heads that `register_model` added, which nobody has tested
_loading = threading.RLock()  # re-entrant: a hybrid loads its parts


def register_model(name: str, constructor: Constructor, *, keep: bool = False) -> None:
    """Add a model, so that its name is a spec wherever a model is named.

    It is tried on a few inputs when it is first loaded: rows that are not of length 1, or change
    with their neighbours, are refused before anything is measured with them.

    Args:
        name: Lower-case word; a spec is the name, or the name, a colon and what the model is made
            of.
        constructor: A class or function that makes the model. If it has a positional parameter, it
            is given what follows the colon (`""` where nothing does); a keyword-only `device` is
            what `load_model` was given.

        keep: Whether to remember the model for other processes, such as the command line. Its
            class must then stand in a file of its own; see `searchlab.models.remembered`.

    Raises:
        InputError: The name is no such word, or a class to keep stands in no file.
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
        _registered.add(name)
        # A hybrid and others that are made of models name them in their specs.
        for key in [key for key in _loaded if re.search(rf"\b{name}\b", key[0])]:
            del _loaded[key]
    if keep:
        remember(name, constructor)


def _full_name(constructor: Constructor) -> tuple[str, str]:
    return constructor.__module__, constructor.__qualname__


def model_names() -> list[str]:
    """List the heads of specs: models that ship, that were registered or kept, and of plugins."""
    kept = (name for name in remembered() if ":" not in name)
    return sorted({*MODELS, *plugin_names(PLUGINS), *kept})


def constructor_of(head: str) -> Constructor | None:
    """Return the constructor of a spec's head, also of a plugin's; None for an unknown head.

    Raises:
        MismatchError: The plugin, or the class that was kept, cannot be imported.
    """
    constructor = MODELS.get(head) or load_plugin(PLUGINS, head)
    if constructor is None and (kept := remembered().get(head)):
        constructor = find_class(kept["at"], folder=kept["folder"])
        if constructor is None:
            msg = (
                f"the model {head!r} must be {kept['at']} in {kept['folder']}, got no such module; "
                "register it again with keep=True"
            )
            raise MismatchError(msg)
    return constructor


def _class_of(spec: str) -> tuple[Constructor | None, str]:
    """Find the class of a spec `module:Class`, and what follows it."""
    split = split_module_spec(spec)
    if split is None:
        return None, ""
    at = f"{split[0]}:{split[1]}"
    return find_class(at, folder=remembered().get(at, {}).get("folder")), split[2]


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
        model = _loaded.get((spec, device))
        if model is None:
            model = construct_model(spec, device=device)
            if getattr(model, "shared", True):
                _loaded[spec, device] = model
    return model


def construct_model(spec: str, *, device: str | None = None, trusted: bool = False) -> Embedder:
    """Make the model of a spec, unshared; errors are those of `load_model`.

    Args:
        spec: As `load_model` takes it.
        device: As `load_model` takes it.
        trusted: Whether a model that did not come with searchlab is taken untried.
    """
    head, _, rest = spec.partition(":")
    constructor = constructor_of(head)
    is_class = constructor is None
    if constructor is None:
        constructor, rest = _class_of(spec)
    if constructor is None:
        msg = (
            f"a model spec must begin with one of {', '.join(model_names())}, got {quote(spec)}; "
            "for example 'mini', 'openclip:ViT-B-32/laion2b_s34b_b79k', "
            "'hybrid:mini=0.7,captions=0.3' or a class of your own, 'my_package.module:Class'"
        )
        raise InputError(msg)
    model = _construct(constructor, spec, head, rest, device)
    if not trusted and (head in _registered or head not in MODELS):
        refuse_unsound(spec, model)
    if is_class and model.name != spec:
        model.name = spec  # what its snapshots and results name must be what loads it
    return model


def _construct(
    constructor: Constructor, spec: str, head: str, rest: str, device: str | None
) -> Embedder:
    parameters = inspect.signature(constructor).parameters
    options = {} if device is None else {"device": device}
    if not options.keys() <= parameters.keys():
        with_device = sorted(name for name, made_by in MODELS.items() if _has_device(made_by))
        msg = (
            f"a device can be chosen for models of {', '.join(with_device)}, got {device!r} "
            f"for {quote(spec)}; SEARCHLAB_DEVICE chooses it for those that other models stand on"
        )
        raise InputError(msg)
    # A class without a constructor of its own has that of a protocol, which takes `*args`.
    if any(
        one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in parameters.values()
    ):
        return constructor(rest, **options)
    if rest:
        msg = f"{head!r} must stand alone in a model spec, got {quote(spec)}"
        raise InputError(msg)
    return constructor(**options)


def _has_device(constructor: Constructor) -> bool:
    return "device" in inspect.signature(constructor).parameters
