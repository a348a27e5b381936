"""Code version: a hash of the code that a measurement really runs, and of no other code.

It covers every module of searchlab that imports reach from the entry points of the measurement. It
hashes statements, not files: moving, renaming, splitting or joining modules does not change it, nor
do comments, docstrings, layout and imports for types alone. Renaming a function, changing a number
or swapping two lines within a function does change it.

To read all modules takes seconds, so that what was read stays in the user's cache.
"""

from __future__ import annotations

import hashlib
import json
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

from searchlab import __version__
from searchlab.errors import InputError
from searchlab.evaluation.caches import cache_folder
from searchlab.evaluation.provenance import statements
from searchlab.evaluation.provenance.statements import ModuleCode, read_module
from searchlab.files import write_atomically

_PACKAGE = Path(__file__).parents[2]
_KEPT = "code.json"


def code_version(*entries: str) -> str:
    """Return the version and 12 hex digits of the hash over the code that some modules reach.

    Args:
        entries: Dotted names of modules or packages of searchlab.

    Raises:
        InputError: There is no such module.
    """
    return _version_below(_PACKAGE, entries)


@cache
def _version_below(package: Path, entries: tuple[str, ...]) -> str:
    modules = _modules_of(package)
    names = import_closure(package, entries)
    reached = set().union(*(modules.read(name).statements for name in names))
    modules.keep()
    digest = hashlib.sha256("\0".join(sorted(reached)).encode())
    return f"{__version__}+{digest.hexdigest()[:12]}"


@cache
def modules_below(package: Path) -> dict[str, Path]:
    """Return the file of every module by its dotted name, which has no `__init__`."""
    files = {
        ".".join(path.relative_to(package.parent).with_suffix("").parts): path
        for path in sorted(package.rglob("*.py"))
    }
    return {name.removesuffix(".__init__"): path for name, path in files.items()}


def import_closure(package: Path, entries: tuple[str, ...]) -> list[str]:
    """List every module that imports reach, also imports within functions.

    The package itself is left out, since it only says where its public names are.

    Args:
        package: Folder of the package.
        entries: Dotted names of modules or packages in it.

    Raises:
        InputError: An entry is none of the modules.
    """
    modules = modules_below(package)
    if unknown := [name for name in entries if name not in modules]:
        msg = f"code is hashed from modules of searchlab, got {', '.join(unknown)}; check the names"
        raise InputError(msg)
    reached: set[str] = set()
    ahead = [name for name in modules for entry in entries if f"{name}.".startswith(f"{entry}.")]
    while ahead:
        name = ahead.pop()
        if name in reached or name not in modules or "." not in name:
            continue
        reached.add(name)
        ahead += [name.rpartition(".")[0], *_modules_of(package).read(name).imports]
    return sorted(reached)


@cache
def _modules_of(package: Path) -> _Modules:
    return _Modules(modules_below(package))


class _Modules:
    """Modules that are read when they are asked for, or were by a process before this one."""

    def __init__(self, paths: dict[str, Path]) -> None:
        self._paths = paths
        reader = Path(statements.__file__).read_bytes()
        state = f"{sys.version_info[:2]} {sorted(paths)}".encode() + reader
        self._state = hashlib.sha256(state).hexdigest()
        self._kept = self._read_kept()
        self._read: dict[str, tuple[str, ModuleCode]] = {}

    def read(self, name: str) -> ModuleCode:
        """Return the code of a module."""
        if name not in self._read:
            source = self._paths[name].read_bytes()
            digest = hashlib.sha256(source).hexdigest()
            kept = self._kept.get(name)
            if kept is None or kept[0] != digest:
                kept = digest, read_module(source, self._paths)
            self._read[name] = kept
        return self._read[name][1]

    def keep(self) -> None:
        """Keep what was read for the next process; where nothing can be written, it reads again."""
        if all(self._kept.get(name) == read for name, read in self._read.items()):
            return
        self._kept = self._read_kept() | self._read
        kept = json.dumps({"state": self._state, "modules": self._kept})
        file = cache_folder() / _KEPT
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, kept.encode())

    def _read_kept(self) -> dict[str, tuple[str, ModuleCode]]:
        """Return what was kept of modules of these names: the digest of each file, and its code."""
        try:
            kept = json.loads((cache_folder() / _KEPT).read_bytes())
            if kept["state"] != self._state:
                return {}
            return {
                name: (str(digest), ModuleCode(*code))
                for name, (digest, code) in kept["modules"].items()
            }
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return {}
