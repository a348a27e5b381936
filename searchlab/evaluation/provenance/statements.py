"""What a module imports, and what it does: its statements as plain text, free of layout."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable
from typing import NamedTuple

_MODULE_NAME = re.compile(r"\bsearchlab(\.\w+)+")
_REGISTERED = re.compile(r"(searchlab(?:\.\w+)+):\w+")  # a registry's entry, imported when used
_ONLY_TYPES = ("__future__", "collections.abc", "typing")
_TELLING = (ast.Import, ast.ImportFrom, ast.Constant)  # nodes that say what is imported
_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


class ModuleCode(NamedTuple):
    """A module as the hash of code sees it.

    Attributes:
        imports: Dotted names of all that it may import, both modules and names.
        statements: Statements at its top, and imports of other packages, each as plain text.
    """

    imports: list[str]
    statements: list[str]


def read_module(source: bytes, modules: Collection[str]) -> ModuleCode:
    """Read a module.

    Args:
        source: Its file.
        modules: Dotted names of all modules of its package; what names them is left out.
    """
    tree = ast.parse(source)
    tree.body = [node for node in tree.body if not _is_for_types(node)]
    told = [node for node in ast.walk(tree) if isinstance(node, _TELLING)]
    imported = {
        f"import {alias.name} as {alias.asname}"
        for node in told
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if _counts(node, alias, modules)
    }
    imports = _imports(told)
    stripped = _Stripped(told, modules).visit(tree)
    return ModuleCode(imports, sorted(imported | {ast.unparse(node) for node in stripped.body}))


def _is_for_types(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _imports(told: Iterable[ast.AST]) -> list[str]:
    names = []
    for node in told:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            names += [match[1] for match in [_REGISTERED.fullmatch(node.value)] if match]
    return list(dict.fromkeys(names))


def _counts(node: ast.Import | ast.ImportFrom, alias: ast.alias, modules: Collection[str]) -> bool:
    """Tell whether an import matters: of another package, or under another name."""
    if isinstance(node, ast.ImportFrom) and node.module in _ONLY_TYPES:
        return False
    from_here = isinstance(node, ast.ImportFrom) and node.module in modules
    return not _names_module(node, alias, modules) and (not from_here or alias.asname is not None)


def _names_module(
    node: ast.Import | ast.ImportFrom, alias: ast.alias, modules: Collection[str]
) -> bool:
    below = f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
    return below in modules


class _Stripped(ast.NodeTransformer):
    """Removes imports, docstrings and names of modules."""

    def __init__(self, told: Iterable[ast.AST], modules: Collection[str]) -> None:
        self._aliases = {
            alias.asname or alias.name
            for node in told
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
