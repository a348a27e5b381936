"""Code version: a hash of the code that a measurement really runs, and of no other code.

It covers every module of searchlab that imports reach from the entry points of the measurement. It
hashes statements, not files: moving, renaming, splitting or joining modules does not change it, nor
do comments, docstrings, layout and imports for types alone. Renaming a function, changing a number
or swapping two lines within a function does change it.

To parse the package takes seconds, so that versions are kept in the user's cache for as long as no
file of it changes.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from searchlab import __version__
from searchlab.errors import InputError
from searchlab.evaluation.caches import cache_folder
from searchlab.files import write_atomically

_PACKAGE = Path(__file__).parents[2]
_MODULE_NAME = re.compile(r"\bsearchlab(\.\w+)+")
_REGISTERED = re.compile(r"(searchlab(?:\.\w+)+):\w+")  # a registry's entry, imported when used
_ONLY_TYPES = ("__future__", "collections.abc", "typing")
_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


def code_version(*entries: str) -> str:
    """Return the version and 12 hex digits of the hash over the code that some modules reach.

    Args:
        entries: Dotted names of modules or packages of searchlab.

    Raises:
        InputError: There is no such module.
    """
    return _kept_version(entries)


@cache
def _kept_version(entries: tuple[str, ...]) -> str:
    """Return a version out of the user's cache, or compute it and keep it there."""
    state, name = _state_of(_PACKAGE), " ".join(entries)
    file = cache_folder() / "code.json"
    kept = _read_kept(file, state)
    if name not in kept:
        kept[name] = _version_below(_PACKAGE, entries)
        with suppress(OSError):  # it is computed each time where nothing can be written
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, json.dumps({"state": state, "versions": kept}).encode())
    return kept[name]


@cache
def _state_of(package: Path) -> str:
    """Hash the bytes of all that a version depends on, and what unparses them."""
    digest = hashlib.sha256(f"{__version__} {sys.version_info[:2]}".encode())
    for name, path in modules_below(package).items():
        digest.update(f"\0{name}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _read_kept(file: Path, state: str) -> dict[str, str]:
    """Read the versions of a state by their entries; none if there are none, or of another."""
    try:
        kept = json.loads(file.read_bytes())
        return dict(kept["versions"]) if kept["state"] == state else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _version_below(package: Path, entries: tuple[str, ...]) -> str:
    modules = modules_below(package)
    names = import_closure(modules, entries)
    statements = set().union(*(_statements(package, name) for name in names))
    digest = hashlib.sha256("\0".join(sorted(statements)).encode())
    return f"{__version__}+{digest.hexdigest()[:12]}"


@cache
def modules_below(package: Path) -> dict[str, Path]:
    """Return the file of every module by its dotted name, which has no `__init__`."""
    files = {
        ".".join(path.relative_to(package.parent).with_suffix("").parts): path
        for path in sorted(package.rglob("*.py"))
    }
    return {name.removesuffix(".__init__"): path for name, path in files.items()}


def import_closure(modules: dict[str, Path], entries: tuple[str, ...]) -> list[str]:
    """List every module that imports reach, also imports within functions.

    The package itself is left out, since it only says where its public names are.

    Raises:
        InputError: An entry is none of the modules.
    """
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
        ahead += [name.rpartition(".")[0], *_read(modules[name]).imports]
    return sorted(reached)


class _Module(NamedTuple):
    tree: ast.Module  # without what is imported for types alone
    imports: list[str]  # all that it may import, both modules and names


@cache
def _read(path: Path) -> _Module:
    tree = ast.parse(path.read_bytes())
    tree.body = [node for node in tree.body if not _is_for_types(node)]
    return _Module(tree, _imports(tree))


def _is_for_types(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _imports(tree: ast.Module) -> list[str]:
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            names += [match[1] for match in [_REGISTERED.fullmatch(node.value)] if match]
    return names


@cache
def _statements(package: Path, name: str) -> frozenset[str]:
    """Return the statements at the top of a module, and what it imports, as plain text."""
    modules = modules_below(package)
    tree = _read(modules[name]).tree  # which is changed below, and of no further use
    imported = {
        f"import {alias.name} as {alias.asname}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if _counts(node, alias, modules)
    }
    stripped = _Stripped(tree, modules).visit(tree)
    return frozenset(imported | {ast.unparse(node) for node in stripped.body})


def _counts(node: ast.Import | ast.ImportFrom, alias: ast.alias, modules: dict[str, Path]) -> bool:
    """Tell whether an import matters: of another package, or under another name."""
    if isinstance(node, ast.ImportFrom) and node.module in _ONLY_TYPES:
        return False
    from_here = isinstance(node, ast.ImportFrom) and node.module in modules
    return not _names_module(node, alias, modules) and (not from_here or alias.asname is not None)


def _names_module(
    node: ast.Import | ast.ImportFrom, alias: ast.alias, modules: dict[str, Path]
) -> bool:
    below = f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
    return below in modules


class _Stripped(ast.NodeTransformer):
    """Removes imports, docstrings and names of modules."""

    def __init__(self, tree: ast.Module, modules: dict[str, Path]) -> None:
        self._aliases = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if _names_module(node, alias, modules)
        }

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if hasattr(node, "body") and isinstance(node.body, list):
            documented = isinstance(node, ast.Module | ast.ClassDef | _FUNCTION)
            node.body = _without_doc(node.body) if documented else node.body
            if not node.body and not isinstance(node, ast.Module):
                node.body = [ast.Pass()]
        return node

    def visit_Import(self, node: ast.Import) -> None:
        return None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        return None

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name("module", node.ctx) if node.id in self._aliases else node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str):
            return ast.Constant(_MODULE_NAME.sub("searchlab", node.value))
        return node


def _without_doc(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0] if body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        return body[1:] if isinstance(first.value.value, str) else body
    return body
