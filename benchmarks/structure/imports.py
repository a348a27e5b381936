"""The rooms of the package, top to bottom, and which modules import which, read from the code."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import searchlab

PACKAGE = Path(searchlab.__file__).parent
# The rooms stand top to bottom in the docstring of the package, each on a line of its own.
ROOMS = dict(re.findall(r"^    (\w+)  +(.+)$", searchlab.__doc__ or "", flags=re.MULTILINE))


def _name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


MODULES = {_name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def room_of(module: str) -> str:
    """Return the room of a module; "" for a module at the root."""
    first = module.split(".")[1]
    return first if (PACKAGE / first).is_dir() else ""


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """Parse a Python file; each file is parsed once."""
    return ast.parse(path.read_text(encoding="utf-8"))


def imports_of(path: Path, *, only_on_import: bool = False) -> list[str]:
    """List the modules of searchlab that a file imports: within functions and for types too.

    Args:
        path: A file of Python.
        only_on_import: Leave out what is imported within functions and for types. A line with a
            comment `# circle: why` is left out in any case.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    excused = {number for number, line in enumerate(lines, 1) if "# circle: " in line}
    names: list[str] = []

    def visit(node: ast.AST) -> None:
        for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        late = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if only_on_import and (for_types or late):
            return
        if getattr(node, "lineno", 0) in excused:
            return
        if isinstance(node, ast.Import):
            names.extend(alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            below = [f"{node.module}.{alias.name}" for alias in node.names]
            names.extend([name for name in below if name in MODULES] or [str(node.module)])
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(tree_of(path))
    return sorted({name for name in names if name in MODULES and name != "searchlab"})


def arrows() -> set[tuple[str, str]]:
    """Return which room imports from which other room."""
    return {
        (room_of(module), room_of(name))
        for module, path in MODULES.items()
        if module != "searchlab" and room_of(module)
        for name in imports_of(path)
        if room_of(name) not in ("", room_of(module))
    }


def shortest_arrows(pairs: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Leave out the arrows whose end can also be reached through a room between.

    Args:
        pairs: Pairs of rooms: one that imports, and one that it imports from.
    """
    order = list(ROOMS)
    reach: dict[str, set[str]] = {}
    for room in reversed(order):
        nexts = {b for a, b in pairs if a == room and order.index(b) > order.index(room)}
        reach[room] = nexts.union(*(reach[b] for b in nexts))
    return {(a, c) for a, c in pairs if not any(b in reach[a] and c in reach[b] for b in order)}
