"""Code version: a hash of the code that a measurement really runs, and of no other code.

It covers every module of searchlab that imports reach from the entry points of the measurement. It
hashes statements, not files: moving, renaming, splitting or joining modules does not change it, nor
do comments, docstrings, layout and imports for types alone. Renaming a function, changing a number
or swapping two lines within a function does change it.
"""

from __future__ import annotations

import ast
import hashlib
import re
from functools import cache
from pathlib import Path

from searchlab import __version__
from searchlab.errors import InputError

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
    return _version_below(_PACKAGE, entries)


@cache
def _version_below(package: Path, entries: tuple[str, ...]) -> str:
    names = import_closure(modules_below(package), entries)
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
        ahead += [name.rpartition(".")[0], *_imports(modules[name])]
    return sorted(reached)


@cache
def _parse(path: Path) -> ast.Module:
    tree = ast.parse(path.read_bytes())
    tree.body = [node for node in tree.body if not _is_for_types(node)]
    return tree


def _is_for_types(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


@cache
def _imports(path: Path) -> list[str]:
    """List everything that a file may import, both modules and names."""
    names = []
    for node in ast.walk(_parse(path)):
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
    tree = ast.parse(ast.unparse(_parse(modules[name])))  # a copy, since it is changed below
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
