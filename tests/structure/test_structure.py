"""The package's own shape: rooms, public names, light imports, short files."""

import ast
import graphlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import searchlab
from benchmarks.structure.draw_rooms import DRAWING, draw
from benchmarks.structure.imports import MODULES, PACKAGE, ROOMS, imports_of, room_of, tree_of
from searchlab import errors

MOST_AT_THE_ROOT = 6

HEAVY = (
    "matplotlib",
    "numba",
    "onnxruntime",
    "open_clip",
    "pandas",
    "ranx",
    "scipy",
    "sklearn",
    "tokenizers",
    "torch",
)
MAX_LINES = 400
COMPILED = (".pyc", ".nbi", ".nbc")
TESTS = Path(__file__).parents[1]
BENCHMARKS = TESTS.parent / "benchmarks"
# What has tests and is no room of the package, and what tests share.
MORE_TESTS = {"benchmarks", "browser", "notebooks", "spec", "structure", "support"}
AT_THE_TOP = {
    *("LICENSE", "NOTICE", "README.md", "conftest.py", "pyproject.toml"),
    *("benchmarks", "datasets", "notebooks", "results", "searchlab", "tests"),
}


# -- rooms ------------------------------------------------------------------------------------


def test_the_rooms_are_the_folders_and_the_root_stays_small():
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert sorted(ROOMS) == sorted(folders)
    assert len(list(PACKAGE.glob("*.py"))) <= MOST_AT_THE_ROOT


def test_tests_stand_in_the_rooms_too():
    folders = {path.relative_to(TESTS).parts[0] for path in TESTS.glob("*/**/*.py")}
    assert folders - MORE_TESTS == set(ROOMS)


def test_beside_the_package_lies_what_belongs_there_and_nothing_that_was_left():
    if not (TESTS.parent / ".git").exists():
        pytest.skip("not a checkout of git")
    listed = subprocess.run(
        ["git", "ls-files"], cwd=TESTS.parent, capture_output=True, text=True, check=True
    )
    names = {line.partition("/")[0] for line in listed.stdout.splitlines()}
    assert {name for name in names if not name.startswith(".")} == AT_THE_TOP


def test_a_module_imports_only_from_its_own_room_and_from_those_under_it():
    floors = [*ROOMS, ""]
    upward = {
        module: [
            name
            for name in imports_of(path)
            if floors.index(room_of(name)) < floors.index(room_of(module))
        ]
        for module, path in MODULES.items()
        if module != "searchlab"
    }
    assert {module: names for module, names in upward.items() if names} == {}


def test_the_package_itself_imports_nothing_until_it_is_asked():
    assert imports_of(MODULES["searchlab"], only_on_import=True) == []


def test_no_modules_import_each_other_in_a_circle():
    """Late imports and those for types count too; a comment `# circle: why` excuses a line."""
    needs = {name: imports_of(path) for name, path in MODULES.items()}
    assert len(list(graphlib.TopologicalSorter(needs).static_order())) == len(MODULES)


def test_every_module_can_be_the_first_that_is_imported():
    """A module of another package brings what that package imports, before itself."""

    def packages_of(name):
        parts = name.split(".")
        return {".".join(parts[:n]) for n in range(1, len(parts))} - {"searchlab"}

    needs = {}
    for module, path in MODULES.items():
        needed = set(imports_of(path, only_on_import=True))
        brought = set().union(*map(packages_of, needed)) - packages_of(module) - {module}
        needs[module] = needed | brought
    assert len(list(graphlib.TopologicalSorter(needs).static_order())) == len(MODULES)


def test_the_drawing_of_the_rooms_is_made_from_the_imports_of_today():
    """Otherwise: python -m benchmarks.structure.draw_rooms."""
    assert DRAWING.read_text(encoding="utf-8") == draw()


def test_imports_are_absolute():
    relative = [
        f"{path.name}:{node.lineno}"
        for path in MODULES.values()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert relative == []


def test_the_package_stands_without_what_lies_beside_it():
    """A wheel has neither benchmarks nor tests."""
    beside = [
        f"{path.name}:{node.lineno}"
        for path in MODULES.values()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ImportFrom | ast.Import)
        for name in [getattr(node, "module", None) or node.names[0].name]
        if name.split(".")[0] in {"benchmarks", "tests"}
    ]
    assert beside == []


# -- public names -----------------------------------------------------------------------------


def test_public_names_are_sorted_and_are_what_is_visible():
    visible = [name for name in dir(searchlab) if not name.startswith("_")]
    assert searchlab.__all__ == sorted(searchlab.__all__) == visible


@pytest.mark.parametrize("name", searchlab.__all__)
def test_a_public_name_can_be_used_and_knows_its_own_name(name):
    assert getattr(searchlab, name).__name__ == name


def test_a_type_checker_sees_the_names_where_they_are():
    (block,) = [node for node in tree_of(MODULES["searchlab"]).body if isinstance(node, ast.If)]
    typed = {alias.asname: (node.module, alias.name) for node in block.body for alias in node.names}
    homes = {
        name: (f"searchlab.{module}", name) for name, module in vars(searchlab)["_HOMES"].items()
    }
    assert typed == homes
    assert sorted(typed) == searchlab.__all__
    assert (PACKAGE / "py.typed").is_file()


def test_an_unknown_name_is_no_attribute():
    with pytest.raises(AttributeError, match="module 'searchlab' has no attribute 'Searcher'"):
        _ = searchlab.Searcher


def test_every_exception_is_drawn_in_the_tree_at_the_head_of_its_module():
    tree = errors.__doc__
    for name, value in vars(errors).items():
        if isinstance(value, type) and issubclass(value, Exception):
            assert name in tree


# -- light imports ----------------------------------------------------------------------------


def modules_after(code):
    """Run code in a fresh interpreter and return the top-level modules that it has loaded."""
    report = "import json, sys; print(json.dumps(sorted({n.split('.')[0] for n in sys.modules})))"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_searchlab_loads_nothing_heavy():
    loaded = modules_after("import searchlab")
    assert "searchlab" in loaded
    assert loaded.isdisjoint(HEAVY)


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["search", "--help"], ["nonsense"]]
)
def test_help_and_usage_errors_load_nothing_heavy(arguments):
    loaded = modules_after(
        "import sys\n"
        "from searchlab.cli import main\n"
        f"sys.argv = ['searchlab', *{arguments!r}]\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as stop:\n"
        f"    assert (stop.code or 0) == {2 if arguments == ['nonsense'] else 0}"
    )
    assert "click" in loaded
    assert loaded.isdisjoint(HEAVY)


# -- files ------------------------------------------------------------------------------------


def test_no_file_is_too_long_to_be_read_in_one_go():
    files = [*MODULES.values(), *TESTS.rglob("*.py"), *BENCHMARKS.rglob("*.py")]
    lengths = {str(path): len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    assert {name: lines for name, lines in lengths.items() if lines > MAX_LINES} == {}


def test_what_is_installed_stays_small():
    """The wheel was to stay below 80 MB, and most of it is packed already."""
    root = TESTS.parent
    files = [*(root / "searchlab").rglob("*"), *(root / "datasets").rglob("*")]
    kept = [path for path in files if path.is_file() and path.suffix not in COMPILED]
    assert 10_000_000 < sum(path.stat().st_size for path in kept) < 80_000_000


def test_every_module_says_what_it_is():
    silent = [name for name, path in MODULES.items() if not ast.get_docstring(tree_of(path))]
    assert silent == []
