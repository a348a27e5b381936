"""Mutants: one small change to one expression of a module, of the kind that people make by mistake.

Nothing is changed that no answer shows: docstrings, annotations, messages of errors and logs,
checks of our own work (`assert`, `zip(..., strict=True)`), nor in what is computed once when a
module is imported.
"""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_CALLED = {
    "minimum": "maximum",
    "maximum": "minimum",
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "floor": "ceil",
    "ceil": "floor",
}
_SPEAKING = ("msg", "message", "reason", "problem")
_LOGGING = ("warning", "error", "info", "debug", "exception", "event")


@dataclass(frozen=True)
class Mutant:
    """A change of a module.

    Attributes:
        line: Of the change, from 1.
        before: The expression as it was.
        after: The expression as it is.
        number: Of the changed place among all places of the module.
        original: The module as it was.
    """

    line: int
    before: str
    after: str
    number: int
    original: str

    @property
    def source(self) -> str:
        """The whole changed module; its layout and comments are lost."""
        tree = ast.parse(self.original)
        place = next(itertools.islice(_places(tree), self.number, None))
        _change(place)
        return ast.unparse(ast.fix_missing_locations(tree))


def make_mutants(source: str) -> Iterator[Mutant]:
    """Yield every mutant of a module, in the order of its lines."""
    for number, node in enumerate(_places(ast.parse(source))):
        line = getattr(node, "lineno", 0)
        if change := _change(copy.deepcopy(node)):
            yield Mutant(line, *change, number, source)


def _places(tree: ast.Module) -> Iterator[ast.AST]:
    for statement in tree.body:
        yield from _inside(statement, None)


def _inside(node: ast.AST, used: set[str] | None) -> Iterator[ast.AST]:
    """Yield what may change; `used` are the names that the function reads, None outside of one."""
    if _is_prose(node) or (used is not None and _is_told(node, used)):
        return
    if used is not None:
        yield node
    is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    if is_function and used is None:
        used = set(_names_used(node))
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        if is_function and name == "args":
            continue
        children = value if isinstance(value, list) else [value]
        for child in children:
            if isinstance(child, ast.AST):
                yield from _inside(child, used)


def _names_used(node: ast.AST) -> Iterator[str]:
    if _is_prose(node) and not isinstance(node, ast.JoinedStr):
        return
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield node.id
    for child in ast.iter_child_nodes(node):
        yield from _names_used(child)


def _is_told(node: ast.AST, used: set[str]) -> bool:
    """Say whether a node computes a name that is read in messages alone."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name not in used
        case _:
            return False


def _is_prose(node: ast.AST) -> bool:
    """Say whether a node is text for people, such as an error, or a check of our own work."""
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Raise() | ast.JoinedStr() | ast.Assert():
            return True
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AugAssign(target=ast.Name(id=name)):
            return name in _SPEAKING
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in _LOGGING
        case ast.keyword(arg="strict" | "stacklevel"):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case _:
            return False


def _change(node: ast.AST) -> tuple[str, str] | None:
    """Change a place in its tree; returns the expression before and after, None if it stays."""
    before = ast.unparse(node)
    match node:
        case ast.Compare(ops=[op, *rest]) if type(op) in _COMPARED:
            node.ops = [_COMPARED[type(op)](), *rest]
        case ast.BinOp(op=op, left=left) if type(op) in _COMPUTED:
            if isinstance(left, ast.Constant) and isinstance(left.value, str | bytes):
                return None
            node.op = _COMPUTED[type(op)]()
        case ast.AugAssign(op=op) if type(op) in _COMPUTED:
            node.op = _COMPUTED[type(op)]()
        case ast.BoolOp(op=op):
            node.op = ast.Or() if isinstance(op, ast.And) else ast.And()
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            node.op, node.operand = ast.Not(), ast.UnaryOp(ast.Not(), operand)
        case ast.UnaryOp(op=ast.USub()):
            node.op = ast.UAdd()
        case ast.Constant(value=bool() as value):
            node.value = not value
        case ast.Constant(value=int() as value):
            node.value = value + 1
        case ast.Constant(value=float() as value):
            node.value = value * 2 or 1.0
        case ast.Call(func=ast.Name(id=name) as function) if name in _CALLED:
            function.id = _CALLED[name]
        case ast.Call(func=ast.Attribute(attr=name) as function) if name in _CALLED:
            function.attr = _CALLED[name]
        case ast.IfExp():
            node.body, node.orelse = node.orelse, node.body
        case ast.If(test=test) if not isinstance(test, ast.Compare | ast.UnaryOp):
            before, node.test = ast.unparse(test), ast.UnaryOp(ast.Not(), test)
        case _:
            return None
    return before, ast.unparse(node.test if isinstance(node, ast.If) else node)
