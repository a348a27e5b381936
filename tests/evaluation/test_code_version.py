"""The hash of code: what keeps it, what changes it, and what every study reaches."""

import importlib.util
import json
from pathlib import Path

import pytest

import searchlab
from searchlab.errors import InputError
from searchlab.evaluation.provenance.code_version import (
    _modules_of,
    _version_below,
    code_version,
    import_closure,
    modules_below,
)
from searchlab.evaluation.provenance.registry import STUDIES, study_of
from searchlab.evaluation.provenance.statements import read_module

PACKAGE = Path(searchlab.__file__).parent
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

ENGINE = """
\"\"\"Rank.\"\"\"
from typing import TYPE_CHECKING
from searchlab import kernels
from searchlab.scores import best, worst
if TYPE_CHECKING:
    from searchlab.studies.plots import Plot

def rank(rows):
    \"\"\"Rank rows.\"\"\"
    from searchlab.ties import broken  # late
    return broken(kernels.dot(best(rows), worst(rows)))
"""
BEST = """
def best(rows):
    return max(rows)
"""
WORST = """
LEAST = 1

def worst(rows):
    return min(rows) + LEAST
"""
RECALL = """
from searchlab.engine import rank

def recall(rows):
    return len(rank(rows))
"""
FILES = {
    "__init__.py": "",
    "engine.py": ENGINE,
    "kernels.py": "def dot(a, b):\n    return a * b\n",
    "scores.py": BEST + WORST,
    "ties.py": "def broken(rows):\n    return sorted(rows)\n",
    "studies/plots.py": "class Plot:\n    size = 3\n",
    "studies/recall.py": RECALL,
}

REACHED = ("engine.py", "kernels.py", "scores.py", "studies/recall.py", "ties.py")


def version_of(folder, entry="searchlab.studies.recall"):
    modules_below.cache_clear()
    return _version_below(folder / "searchlab", (entry,))


@pytest.fixture
def write(tmp_path):
    """Write a small package, with some files changed, and return the version of its study."""
    calls = iter(range(100))

    def written(changes=(), entry="searchlab.studies.recall"):
        folder = tmp_path / str(next(calls))
        for name, text in {**FILES, **dict(changes)}.items():
            file = folder / "searchlab" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            if text is not None:
                file.write_text(text)
        return version_of(folder, entry)

    return written


def moved(old, new):
    """Return what changes when a module moves and all that import it follow."""
    before, after = old.replace("/", "."), new.replace("/", ".")
    changes = {
        name: text.replace(f"from searchlab.{before} import", f"from searchlab.{after} import")
        for name, text in FILES.items()
    }
    return {**changes, f"{old}.py": None, f"{new}.py": changes[f"{old}.py"]}


@pytest.mark.parametrize(
    ("old", "new"), [("scores", "search/scores"), ("ties", "breaking"), ("engine", "core/engine")]
)
def test_a_module_that_moves_keeps_the_version(write, old, new):
    assert write(moved(old, new)) == write()


def test_an_imported_module_may_be_called_otherwise(write):
    engine = ENGINE.replace("import kernels", "import lanes").replace("kernels.dot", "lanes.dot")
    renamed = {"kernels.py": None, "lanes.py": FILES["kernels.py"], "engine.py": engine}
    assert write(renamed) == write()


def test_a_module_that_is_split_keeps_the_version(write):
    engine = ENGINE.replace(
        "from searchlab.scores import best, worst",
        "from searchlab.lowest import worst\nfrom searchlab.scores import best",
    )
    split = {"scores.py": BEST, "lowest.py": WORST, "engine.py": engine}
    assert write(split) == write()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""Rank rows."""', '"""Order the rows."""'),
        ("  # late", ""),
        ("def rank(rows):", "\n\ndef rank(\n    rows,\n):"),
        ("    from searchlab.studies.plots import Plot", "    from pathlib import Path"),
        ("import best, worst", "import worst, best"),
    ],
)
def test_words_layout_and_types_keep_the_version(write, old, new):
    assert old in ENGINE
    assert write({"engine.py": ENGINE.replace(old, new)}) == write()


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("engine.py", "best(rows), worst(rows)", "worst(rows), best(rows)"),
        ("scores.py", "LEAST = 1", "LEAST = 2"),
        ("ties.py", "sorted(rows)", "list(rows)"),
        ("kernels.py", "a * b", "a + b"),
        ("engine.py", "import best, worst", "import best, least as worst"),
        ("engine.py", "def rank(rows):", "def rank(rows, deep=3):"),
    ],
)
def test_what_a_measurement_runs_changes_the_version(write, file, old, new):
    assert old in FILES[file]
    assert write({file: FILES[file].replace(old, new)}) != write()


def test_what_it_does_not_reach_keeps_the_version(write):
    assert write({"studies/plots.py": "class Plot:\n    size = 4\n"}) == write()
    assert write({"pages.py": "x = 1\n"}) == write()
    assert write(entry="searchlab.studies.plots") != write()


def test_a_module_that_is_not_there_is_refused():
    with pytest.raises(InputError, match=r"got searchlab\.nowhere"):
        code_version("searchlab.nowhere")


# -- what is kept -----------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A small package, whose modules are kept in a cache of their own."""
    monkeypatch.setenv("SEARCHLAB_CACHE", str(tmp_path / "cache"))
    for name, text in FILES.items():
        file = tmp_path / "searchlab" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path / "searchlab"


@pytest.fixture
def parsed(monkeypatch):
    """Sources that were parsed."""
    sources = []

    def note(source, modules):
        sources.append(source.decode())
        return read_module(source, modules)

    monkeypatch.setattr("searchlab.evaluation.provenance.code_version.read_module", note)
    return sources


def in_the_next_process(package):
    for known in (modules_below, _modules_of, _version_below):
        known.cache_clear()
    return _version_below(package, ("searchlab.studies.recall",))


def test_a_module_is_parsed_once_for_all_processes(small, parsed):
    version = in_the_next_process(small)
    assert sorted(parsed) == sorted(FILES[name] for name in REACHED)
    parsed.clear()
    assert in_the_next_process(small) == version
    assert parsed == []
    (small / "scores.py").write_text(BEST.replace("max", "sum") + WORST)
    changed = in_the_next_process(small)
    assert changed != version
    assert parsed == [(small / "scores.py").read_text()]
    (small / "scores.py").write_text(BEST + WORST)
    assert in_the_next_process(small) == version


def test_where_a_module_comes_all_are_read_anew(small, parsed):
    """What names a module is left out of the hash, and which names those are has changed."""
    version = in_the_next_process(small)
    (small / "pages.py").write_text("x = 1")
    parsed.clear()
    assert in_the_next_process(small) == version
    assert len(parsed) == len(REACHED)


def test_modules_kept_for_one_study_are_there_for_the_next(small, parsed):
    in_the_next_process(small)
    parsed.clear()
    assert _version_below(small, ("searchlab.studies.plots",))
    assert parsed == [FILES["studies/plots.py"]]
    in_the_next_process(small)
    assert _version_below(small, ("searchlab.studies.plots",))
    assert parsed == [FILES["studies/plots.py"]]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"state": 1}', '"x"', '{"state": %s, "modules": {"a": [1]}}']
)
def test_a_broken_cache_is_read_anew(small, parsed, text):
    version = in_the_next_process(small)
    kept = small.parent / "cache" / "code.json"
    kept.write_text(text.replace("%s", json.dumps(json.loads(kept.read_text())["state"])))
    parsed.clear()
    assert in_the_next_process(small) == version
    assert len(parsed) == len(REACHED)
    parsed.clear()
    assert in_the_next_process(small) == version
    assert parsed == []


def test_without_a_cache_modules_are_read_each_time(small, parsed, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SEARCHLAB_CACHE", str(tmp_path / "file"))
    assert in_the_next_process(small) == in_the_next_process(small)
    assert len(parsed) == 2 * len(REACHED)


# -- the studies ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(STUDIES))
def test_a_study_names_code_that_is_there_and_how_its_figures_are_checked(name):
    study = study_of(name)
    assert code_version(*study.code)
    assert study.again or study.sealed
    if study.recompute or study.summary:
        assert study.again
    for function in filter(None, (study.recompute, study.summary)):
        module = function.partition(":")[0]
        assert importlib.util.find_spec(module) is not None
    for pattern in study.only or ("any/record",):
        function = study.load_recompute(*pattern.replace("*", "any").split("/"))
        assert callable(function) if study.recompute else function is None
    module = study.recompute.partition(":")[0]
    if module.startswith("searchlab"):
        assert module in import_closure(PACKAGE, study.code)
