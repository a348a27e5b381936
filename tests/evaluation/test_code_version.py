"""The hash of code: what keeps it, what changes it, and what every study reaches."""

import importlib.util
from pathlib import Path

import pytest

import searchlab
from searchlab.errors import InputError
from searchlab.evaluation.provenance import code_version as code_version_module
from searchlab.evaluation.provenance.code_version import (
    _kept_version,
    _state_of,
    _version_below,
    code_version,
    import_closure,
    modules_below,
)
from searchlab.evaluation.provenance.registry import STUDIES, study_of

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

ENTRY = ("searchlab.errors",)


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Where versions are kept, in a cache of its own."""
    monkeypatch.setenv("SEARCHLAB_CACHE", str(tmp_path / "cache"))
    yield tmp_path / "cache" / "code.json"
    _kept_version.cache_clear()


def next_process():
    _kept_version.cache_clear()
    _state_of.cache_clear()
    return code_version(*ENTRY)


def test_a_version_is_computed_once_for_all_processes(kept):
    version = next_process()
    assert version == _version_below(PACKAGE, ENTRY)
    assert version in kept.read_text()
    kept.write_text(kept.read_text().replace(version, "as it was kept"))
    assert next_process() == "as it was kept"
    code_version("searchlab.progress")
    assert next_process() == "as it was kept"


@pytest.mark.parametrize("module", ["errors", "cli.serve"])
def test_a_version_is_computed_anew_after_any_change(kept, tmp_path, monkeypatch, module):
    version = next_process()
    kept.write_text(kept.read_text().replace(version, "as it was kept"))
    changed = {**modules_below(PACKAGE), f"searchlab.{module}": tmp_path / "changed.py"}
    (tmp_path / "changed.py").write_text("x = 1")
    with monkeypatch.context() as patch:
        patch.setattr(code_version_module, "modules_below", lambda _: changed)
        assert _state_of.__wrapped__(PACKAGE) != _state_of(PACKAGE)
        assert next_process() != "as it was kept"
    assert next_process() == version  # what was kept of the former state is gone


@pytest.mark.parametrize("text", ["", "{", "[]", '{"state": 1}', '{"versions": {}}'])
def test_a_broken_cache_is_computed_anew(kept, text):
    version = next_process()
    kept.write_text(text)
    assert next_process() == version
    assert version in kept.read_text()


def test_without_a_cache_it_is_computed_each_time(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SEARCHLAB_CACHE", str(tmp_path / "file"))
    assert next_process() == next_process()


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
        assert module in import_closure(modules_below(PACKAGE), study.code)
