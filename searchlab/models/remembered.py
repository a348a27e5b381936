"""Models that somebody named once, so that other processes know them: classes of their own modules.

A spec `module:Class` is loaded where Python finds the module. One that lies in a folder of its own
is found because it is remembered: by `register_model(..., keep=True)` in a notebook, or by naming
it on the command line. What is remembered stands in `models.json` under SEARCHLAB_HOME, else in the
user's folder of settings. A library or a model's folder may come from a stranger: a class that only
such a file names is not imported.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final

from searchlab.errors import DataError, InputError, MismatchError, shell_word
from searchlab.files import write_atomically

_SPEC: Final = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)(?::(.*))?", re.DOTALL)
_NEEDED: Final = ("encode_texts", "encode_images")

_read_from: ContextVar[str] = ContextVar("read_from", default="")
_named: set[str] = set()  # classes that somebody named in this process


@contextmanager
def named_by(file: object) -> Iterator[None]:
    """Load within only classes that somebody named before, for the spec was read from a file."""
    token = _read_from.set(str(file))
    try:
        yield
    finally:
        _read_from.reset(token)


def split_module_spec(spec: str) -> tuple[str, str, str] | None:
    """Split `package.module:Class:rest`; None for a spec of another form.

    >>> split_module_spec("toys.models:Toy"), split_module_spec("hybrid:mini=1")
    (('toys.models', 'Toy', ''), None)
    """
    match = _SPEC.fullmatch(spec)
    return None if match is None else (match[1], match[2], match[3] or "")


def settings_file() -> Path:
    """Return the file that remembers models."""
    home = os.environ.get("SEARCHLAB_HOME")
    if home:
        return Path(home) / "models.json"
    settings = os.environ.get("XDG_CONFIG_HOME")
    return (Path(settings) if settings else Path.home() / ".config") / "searchlab" / "models.json"


def remembered() -> dict[str, dict[str, str]]:
    """Read what is remembered: name or `module:Class` -> `at` and `folder`.

    Raises:
        DataError: The file is damaged.
    """
    path = settings_file()
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        return {
            str(name): {"at": str(v["at"]), "folder": str(v["folder"])}
            for name, v in values.items()
        }
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        msg = f"{path} must list models as it was written, got: {error}; delete it"
        raise DataError(msg) from error


def remember(name: str, constructor: Any) -> None:
    """Remember a class or function of a module under a name.

    Raises:
        InputError: It stands in a notebook or in a function, where no other process finds it.
    """
    module, qualified = constructor.__module__, constructor.__qualname__
    file = getattr(sys.modules.get(module), "__file__", None)
    if module == "__main__" or not qualified.isidentifier() or file is None:
        msg = (
            f"a model that is kept must be a class in a file of its own, got {module}.{qualified}; "
            "write the cell with %%writefile my_model.py and import it from there"
        )
        raise InputError(msg)
    depth = module.count(".") + (Path(file).name == "__init__.py")
    write(name, f"{module}:{qualified}", Path(file).resolve().parents[depth])


def write(name: str, at: str, folder: Path | None) -> None:
    """Remember that a name is `module:Class`, and the module's folder unless it is installed."""
    path = settings_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    values = remembered() | {name: {"at": at, "folder": str(folder or "")}}
    write_atomically(path, json.dumps(values, indent=2, sort_keys=True).encode() + b"\n")


def remember_named(spec: str, folder: Path) -> None:
    """Remember the classes of a spec, which somebody named on the command line.

    Args:
        spec: Such as `my_model:Mine`, or a hybrid of it.
        folder: Where the command was called; modules that lie in it are found there again.
    """
    for part in spec.removeprefix("hybrid:").split(","):
        name, equals, _ = part.rpartition("=")
        split = split_module_spec(name if equals else part)
        if split is None:
            continue
        at, top = f"{split[0]}:{split[1]}", split[0].partition(".")[0]
        known = remembered().get(at)
        if (folder / f"{top}.py").is_file() or (folder / top / "__init__.py").is_file():
            if known is None or known["folder"] != str(folder):
                write(at, at, folder)
        elif known is None and importlib.util.find_spec(top) is not None:
            write(at, at, None)


def find_class(at: str, *, folder: str | None = None) -> Any | None:
    """Import a class that embeds; None where there is no such module.

    Args:
        at: `module:Class`.
        folder: Where the module lies, if Python would not find it.

    Raises:
        MismatchError: The module cannot be imported, or holds no such class, or only a file names
            it.
    """
    split = split_module_spec(at)
    if split is None:
        return None
    module_name, class_name, _ = split
    file = _read_from.get()
    if not file:
        _named.add(at)
    elif folder is None and at not in _named and module_name not in sys.modules:
        msg = (
            f"{file} must name a model that you named before, got {at}, whose code would be run; "
            f"if you trust it, name it once: `searchlab models check {shell_word(at)}`"
        )
        raise MismatchError(msg)
    if folder and folder not in sys.path:
        sys.path.append(folder)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            return None
        raise _broken(at, error) from error
    except Exception as error:  # a stranger's code, which may raise anything
        raise _broken(at, error) from error
    constructor = getattr(module, class_name, None)
    # Anything else that can be called, such as os:system, must not be: specs stand in libraries.
    if not (isinstance(constructor, type) and all(hasattr(constructor, n) for n in _NEEDED)):
        what = "no such name" if constructor is None else repr(constructor)[:60]
        msg = f"{at} must be a class with {' and '.join(_NEEDED)}, got {what}"
        raise MismatchError(msg)
    return constructor


def _broken(at: str, error: Exception) -> MismatchError:
    return MismatchError(
        f"{at} must be a class that can be imported, got {type(error).__name__}: {error}"
    )
