"""Every benchmark has a line in STUDIES, which covers the code that the benchmark measures."""

import ast
from pathlib import Path

import pytest

from searchlab.evaluation.provenance.code_version import import_closure, modules_below
from searchlab.evaluation.provenance.registry import STUDIES

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "searchlab"
MODULES = modules_below(PACKAGE)
BENCHMARKS = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for path in sorted((ROOT / "benchmarks").rglob("*.py"))
}
SCRIPTS = [name for name in BENCHMARKS if name.split(".")[-1].startswith(("bench_", "soak_"))]

# What shows, drives or books a measurement changes no figure of it.
PRESENTING = ("searchlab.cli", "searchlab.client", "searchlab.evaluation.reporting")
BOOKING = (
    "searchlab.errors",
    "searchlab.progress",
    "searchlab.evaluation.provenance",
    "searchlab.cluster.runners",  # where something runs, not what
)

# The function -> which of its arguments names the benchmark.
NAMING = {"make_manifest": 0, "on_record": 1, "record": 1, "measure_systems": 1, "Record": 1}


def parse(name):
    return ast.parse(BENCHMARKS[name].read_text(encoding="utf-8"))


def imports_of(name):
    for node in ast.walk(parse(name)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def with_helpers(script):
    """Name a script and the modules of benchmarks/ that it imports, however far away."""
    reached, ahead = set(), [script]
    while ahead:
        name = ahead.pop()
        if name not in reached:
            reached.add(name)
            ahead += [other for other in imports_of(name) if other in BENCHMARKS]
    return reached


def assigned_at_the_top(tree):
    """Return the strings that the module gives names to, `A = "a"` and `A, B = "a", "b"`."""
    names = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            pairs = [(node.targets[0], node.value)]
            if isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = zip(node.targets[0].elts, node.value.elts, strict=True)
            for target, value in pairs:
                if isinstance(target, ast.Name) and isinstance(value, ast.Constant):
                    names[target.id] = value.value
    return names


def benchmarks_of(script):
    """Return what a script records its figures under."""
    tree = parse(script)
    constants = assigned_at_the_top(tree)
    recorded = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in NAMING:
            argument = node.args[NAMING[node.func.id]]
            named = isinstance(argument, ast.Name)
            recorded.add(constants[argument.id] if named else ast.literal_eval(argument))
    # An experiment records its figures itself.
    return recorded or ({"search_quality"} if "Experiment" in ast.unparse(tree) else set())


def is_beside_the_measuring(module):
    below = any(f"{module}.".startswith(f"{room}.") for room in (*PRESENTING, *BOOKING))
    return below or module.rpartition(".")[2] in ("chart", "charts")


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_every_benchmark_has_a_line_that_covers_what_it_measures(script):
    recorded = benchmarks_of(script)
    assert recorded
    assert recorded <= set(STUDIES)
    entries = tuple(entry for name in recorded for entry in STUDIES[name].code)
    covered = import_closure(PACKAGE, entries)
    imported = {
        module
        for name in with_helpers(script)
        for module in imports_of(name)
        if module in MODULES and module != "searchlab" and not is_beside_the_measuring(module)
    }
    assert sorted(imported.difference(covered)) == []


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_benchmark_says_how_it_is_run(script):
    assert f"python -m {script}" in ast.get_docstring(parse(script))
