"""Planted bugs: what is changed and what is left alone, and that no mutant outlives its turn."""

from contextlib import suppress
from pathlib import Path

import pytest

from benchmarks.mutations.bench_mutations import (
    ROOT,
    _find_gaps,
    _make_again,
    describe,
    draw,
    make_summary,
    planted,
)
from benchmarks.mutations.named import NAMED
from benchmarks.mutations.operators import make_mutants
from benchmarks.mutations.targets import TARGETS
from searchlab.errors import DataError
from searchlab.evaluation.provenance.measurement import write_measurement

MODULE = '''
"""A module."""
SIZE = 3 * 4

def add(a: int = 1, *, b: int = 2) -> int:
    """Return 1 + 1."""
    what = "one" if a == 1 else "more"
    if a < 0:
        msg = f"a must be at least {0 + 0}, got {what}"
        raise ValueError(msg)
    log.warning("%s", a - 1)
    assert a > 0
    return [x + b for x, _ in zip(a, a, strict=True)]
'''


def test_only_what_an_answer_can_show_is_changed():
    changes = [(mutant.before, mutant.after) for mutant in make_mutants(MODULE)]
    assert changes == [("a < 0", "a <= 0"), ("0", "1"), ("x + b", "x - b")]


def test_a_mutant_differs_from_its_module_in_one_line():
    plain = next(make_mutants(MODULE)).source.replace("a <= 0", "a < 0")
    for mutant in make_mutants(MODULE):
        lines = zip(plain.splitlines(), mutant.source.splitlines(), strict=True)
        assert sum(one != other for one, other in lines) == 1


def test_a_name_that_is_read_elsewhere_too_is_no_message():
    source = "def f(a):\n    n = a + 1\n    if a:\n        raise ValueError(n)\n    return n\n"
    assert ("a + 1", "a - 1") in [(mutant.before, mutant.after) for mutant in make_mutants(source)]


@pytest.mark.slow
def test_the_draw_is_the_same_for_a_seed_and_even_over_modules():
    target = TARGETS[1]
    drawn = draw(target, 6, seed=0)
    assert drawn == draw(target, 6, seed=0) != draw(target, 6, seed=1)
    modules = [module for module, _ in drawn]
    assert {module: modules.count(module) for module in modules} == dict.fromkeys(target.modules, 3)


def test_a_module_comes_back_as_it_was_even_after_an_error(tmp_path):
    path = tmp_path / "module.py"
    path.write_text("x = 1\n")
    before = path.stat().st_mtime_ns
    with suppress(KeyboardInterrupt), planted(path, "x = 2\n"):
        assert path.read_text() == "x = 2\n"
        raise KeyboardInterrupt
    assert (path.read_text(), path.stat().st_mtime_ns) == ("x = 1\n", before)


@pytest.mark.parametrize("bug", NAMED, ids=lambda bug: bug.about)
def test_bugs_that_are_known_by_name_can_be_planted(bug):
    source = (ROOT / "searchlab" / bug.module).read_text(encoding="utf-8")
    compile(bug.plant(source), bug.module, "exec")


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.about)
def test_every_module_and_test_of_a_part_is_there(target):
    for path in (*target.modules, *target.tests):
        assert (Path(ROOT / "searchlab", path).exists()) != (Path(ROOT / "tests", path).exists())


def test_harmless_mutants_are_neither_caught_nor_missed(tmp_path):
    part = {"benchmark": "mutations", "dataset": "searchlab", "name": "planner"}
    part["manifest"] = {"commit": "0123456789ab"}
    mutant = {"module": "errors.py", "line": 1, "in": "x", "before": "1", "after": "2"}
    outcomes = [*(("tests/a.py::test_b", ""),) * 9, ("", "it is"), ("", "so"), ("", "")]
    mutants = [{**mutant, "caught_by": by, "harmless_because": why} for by, why in outcomes]
    path = tmp_path / "planner.json"
    write_measurement(path, {**part, "metrics": {}, "mutants": mutants})

    summary = make_summary(tmp_path)

    (row,) = summary["rows"]
    assert (row["part"], row["commit"]) == ("planner", "0123456789ab")
    counts = {"mutants": 12, "caught": 9, "harmless": 2, "caught_since": 0}
    shares = {"share_caught": 0.9, "low": 0.5958, "high": 0.9821, "share_caught_now": 0.9}
    assert summary["metrics"] == {**counts, **shares}
    assert summary["survivors"] == [{**one, "caught_since_by": ""} for one in mutants[-3:]]
    assert "cursors" in summary["parameters"]["not_run"]


def test_what_was_caught_since_is_told_beside_what_a_draw_that_no_test_knew_showed(tmp_path):
    (mutant, *_), (other, *_) = (draw(TARGETS[0], 1, seed=seed) for seed in (0, 1))
    about = {"benchmark": "mutations", "dataset": "searchlab", "metrics": {}}
    manifest = {"manifest": {"commit": "0123456789ab"}}
    gaps = [{**describe(*one), "harmless_because": "", "caught_by": ""} for one in (mutant, other)]
    path = tmp_path / "mutations" / "searchlab"
    write_measurement(
        path / "cursors.json", {**about, **manifest, "name": "cursors", "mutants": gaps}
    )
    found = list(_find_gaps(path))
    assert [one for _, one in found] == gaps
    assert _make_again(found[1][1]) == other[1]
    gone = {**gaps[0], "before": "what is no more"}
    with pytest.raises(DataError, match="must be in the code as it is"):
        _make_again(gone)

    again = [{**gaps[0], "caught_by": "tests/a.py::test_b"}, gaps[1]]
    write_measurement(path / "since.json", {**about, **manifest, "name": "since", "gaps": again})
    summary = make_summary(path)
    metrics = summary["metrics"]
    assert (metrics["share_caught"], metrics["share_caught_now"]) == (0.0, 0.5)
    assert metrics["caught_since"] == 1
    assert [one["caught_since_by"] for one in summary["survivors"]] == ["tests/a.py::test_b", ""]
