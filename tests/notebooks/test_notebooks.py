"""Notebooks use what is public: names of `searchlab`, and modules of its packages."""

import ast
import importlib
import json
import pkgutil
from pathlib import Path

import pytest

import searchlab

FILES = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


@pytest.fixture(params=FILES, ids=[path.stem for path in FILES])
def tree(request):
    cells = json.loads(request.param.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    lines = "\n".join(sources).splitlines()
    return ast.parse("\n".join("" if line.startswith("%") else line for line in lines))


def public_names(package):
    """List what a package offers: its `__all__`, or its modules without an underscore."""
    module = importlib.import_module(package)
    modules = {each.name for each in pkgutil.iter_modules(getattr(module, "__path__", []))}
    return {*getattr(module, "__all__", []), *(each for each in modules if each[0] != "_")}


def test_imports_are_of_public_names(tree):
    private = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            private += [alias.name for alias in node.names if alias.name.startswith("searchlab.")]
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "searchlab":
            known = searchlab.__all__ if node.module == "searchlab" else public_names(node.module)
            names = {alias.name for alias in node.names}
            private += [f"{node.module}.{name}" for name in sorted(names - {*known})]
    assert private == []


def test_nothing_is_patched_and_no_private_name_used(tree):
    imported = {
        alias.name for node in ast.walk(tree) if hasattr(node, "names") for alias in node.names
    }
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not {name for name in {*imported, *modules} if "mock" in name}
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert {name for name in used if name.startswith("_")} == set()
