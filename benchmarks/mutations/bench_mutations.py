"""Planted bugs: which of them do the tests catch?

    python -m benchmarks.mutations.bench_mutations --each 12
    python -m benchmarks.mutations.bench_mutations --smoke --out "$(mktemp -d)"

Of each part of `targets.py`, mutants are drawn at random (`operators.py`), put into a copy of the
checkout one at a time, and the part's quick tests run until one fails (`warm.py`); where none does,
all its tests. A mutant that no test fails on survives. Where a survivor cannot be told from the
original by any answer, `harmless.json` beside this script says why; all others are gaps.

Writes results/mutations/<dataset>/<part>.json as soon as a part is done, named.json about bugs that
were planted by hand (`named.py`), and summary.json over what is on record. An interrupted run goes
on with the parts that are not: a record counts, from whatever machine, as long as the same mutants
would be drawn. After tests that were written for what survived, the same mutants flatter them:
`--dataset new-draw` with another `--seed` keeps other mutants beside these. --since plants only the
gaps on record, and writes since.json about which of them the tests of today catch: the summary has
both, the share that a draw was caught by tests that did not know it, and the share caught since.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from rich.console import Console

from benchmarks.common.recording import bench_parser, record
from benchmarks.mutations.named import NAMED
from benchmarks.mutations.operators import Mutant, make_mutants
from benchmarks.mutations.targets import TARGETS, Target
from benchmarks.mutations.warm import Outcome, WarmTests
from searchlab.cli.console import ConsoleProgress
from searchlab.errors import DataError
from searchlab.evaluation.judging.proportions import proportion_interval
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.evaluation.provenance.measurement import measurement_path, read_measurement

BENCHMARK = "mutations"
ROOT = Path(__file__).resolve().parents[2]
_HARMLESS = Path(__file__).with_name("harmless.json")
_COPIED = (
    *("searchlab", "tests", "benchmarks", "datasets", "results", "conftest.py", "pyproject.toml"),
    *("README.md", "LICENSE", "NOTICE"),
)
_NAMED, _SINCE = "named", "since"
_SAME = ("module", "line", "before", "after")
_SECONDS: dict[str, float] = {}  # of test files without a mutant
_AT_MOST_S = 900  # for tests without a mutant, which compile every kernel at first

Drawn: TypeAlias = list[tuple[str, Mutant]]
"""Modules below `searchlab`, each with a mutant of it."""


def main() -> None:
    """Draw mutants, run the tests on each, record part by part."""
    parser = bench_parser(__doc__, dataset="searchlab", datasets=["searchlab", "new-draw"])
    parser.add_argument("--each", type=int, default=12, help="mutants of each part")
    known = [*(target.about for target in TARGETS), _NAMED]
    parser.add_argument("--about", action="append", choices=known, help="only this part")
    parser.add_argument("--since", action="store_true", help="plant only the gaps on record, again")
    options = parser.parse_args()
    wanted = options.about or known
    by_name = {target.about: target for target in TARGETS}
    targets = [by_name[name] for name in wanted if name in by_name]  # in the order asked for
    if options.smoke:
        few = replace(targets[-1], tests=targets[-1].tests[:2])  # which are quick
        options.each, targets = 1, [few]
    with tempfile.TemporaryDirectory() as folder:
        checkout = copy_checkout(Path(folder) / "checkout")
        tests = WarmTests(checkout)
        if options.since:
            measure_since(options, checkout, tests)
            targets, wanted = [], []
        for target in targets:
            drawn = draw(target, options.each, options.seed)
            if not options.force and _is_recorded(options, target, drawn):
                continue
            measure(options, target, drawn, checkout, tests)
        if _NAMED in wanted and not options.smoke:
            measure_named(options, checkout, tests)
        tests.close()
    summary = make_summary(options.out / BENCHMARK / options.dataset)
    manifest = make_manifest(BENCHMARK, seed=options.seed, threads=1)
    record(options, BENCHMARK, "summary", {**summary, "manifest": manifest})
    for row in summary["rows"]:
        print(f"{row['part']:28} {row['caught']:3} of {row['mutants']:3} caught")
    for one in summary["survivors"]:
        reason = one["harmless_because"] or "a gap"
        print(f"{one['module']}:{one['line']}: {one['before']} -> {one['after']}: {reason}")


# -- the draw ---------------------------------------------------------------------------------


def draw(target: Target, n: int, seed: int) -> Drawn:
    """Draw mutants of a part, as many of each of its modules as go evenly."""
    order = random.Random(f"{seed} {target.about}")
    piles = []
    for module in target.modules:
        source = (ROOT / "searchlab" / module).read_text(encoding="utf-8")
        pile = [(module, mutant) for mutant in make_mutants(source)]
        order.shuffle(pile)
        piles.append(pile)
    drawn: Drawn = []
    while len(drawn) < n and any(piles):
        drawn += [pile.pop() for pile in piles if pile][: n - len(drawn)]
    return drawn


def _digest(drawn: Drawn) -> str:
    told = "\n".join(f"{module}\n{mutant.source}" for module, mutant in drawn)
    return hashlib.sha256(told.encode()).hexdigest()[:12]


def _is_recorded(options: argparse.Namespace, target: Target, drawn: Drawn) -> bool:
    path = measurement_path(options.out, BENCHMARK, options.dataset, _name(target))
    try:
        recorded = path.exists() and read_measurement(path)["parameters"]["drawn"] == _digest(drawn)
    except DataError:
        return False
    if recorded:
        print(f"on record: {path}")
    return recorded


def _name(target: Target) -> str:
    return target.about.replace(" ", "-")


# -- a part -----------------------------------------------------------------------------------


def measure(
    options: argparse.Namespace, target: Target, drawn: Drawn, checkout: Path, tests: WarmTests
) -> None:
    """Plant the mutants of a part one by one, and record which its tests catch."""
    limit_s = _run_unchanged(target.tests, tests)
    mutants = []
    with ConsoleProgress(Console(stderr=True)).step(target.about, len(drawn)) as step:
        for module, mutant in drawn:
            step.note(f"{module}:{mutant.line}")
            with planted(checkout / "searchlab" / module, mutant.source):
                outcome = _catch(_likely_first(target, module), tests, limit_s)
            mutants.append({**describe(module, mutant), "caught_by": _name_of(outcome)})
            print(f"{module}:{mutant.line} {outcome.seconds} s {outcome.failed or 'SURVIVED'}")
            step.advance(1)
    values = {
        "parameters": {
            "part": target.about,
            "each": options.each,
            "modules": list(target.modules),
            "tests": list(target.tests),
            "drawn": _digest(drawn),
        },
        "metrics": _share(mutants),
        "mutants": mutants,
        "manifest": make_manifest(BENCHMARK, seed=options.seed, threads=1),
    }
    record(options, BENCHMARK, _name(target), values)


def measure_named(options: argparse.Namespace, checkout: Path, tests: WarmTests) -> None:
    """Plant the bugs that are known by name one by one, and record which test notices."""
    files = sorted({name for bug in NAMED for name in bug.tests})
    limit_s = _run_unchanged(files, tests)
    bugs = []
    for bug in NAMED:
        path = checkout / "searchlab" / bug.module
        with planted(path, bug.plant(path.read_text(encoding="utf-8"))):
            outcome = _catch(bug.tests, tests, limit_s)
        bugs.append({"bug": bug.about, "module": bug.module, "caught_by": _name_of(outcome)})
        print(f"{bug.about}: {outcome.seconds} s {outcome.failed or 'SURVIVED'}")
    values = {
        "metrics": {"bugs": len(bugs), "caught": sum(bool(bug["caught_by"]) for bug in bugs)},
        "bugs": bugs,
        "manifest": make_manifest(BENCHMARK, seed=options.seed, threads=1),
    }
    record(options, BENCHMARK, _NAMED, values)


def measure_since(options: argparse.Namespace, checkout: Path, tests: WarmTests) -> None:
    """Plant the gaps on record again, and record which of them the tests of today catch."""
    gaps = []
    for target, one in _find_gaps(options.out / BENCHMARK / options.dataset):
        limit_s = _run_unchanged(target.tests, tests)
        with planted(checkout / "searchlab" / one["module"], _make_again(one).source):
            outcome = _catch(_likely_first(target, one["module"]), tests, limit_s)
        gaps.append({**{name: one[name] for name in _SAME}, "caught_by": _name_of(outcome)})
        print(f"{one['module']}:{one['line']} {outcome.seconds} s {outcome.failed or 'SURVIVED'}")
    values = {
        "metrics": {"gaps": len(gaps), "caught": sum(bool(gap["caught_by"]) for gap in gaps)},
        "gaps": gaps,
        "manifest": make_manifest(BENCHMARK, seed=options.seed, threads=1),
    }
    record(options, BENCHMARK, _SINCE, values)


def _find_gaps(folder: Path) -> Iterator[tuple[Target, dict[str, Any]]]:
    for target in TARGETS:
        path = folder / f"{_name(target)}.json"
        for one in read_measurement(path)["mutants"] if path.exists() else ():
            if not one["caught_by"] and not _reason(one):
                yield target, one


def _make_again(one: dict[str, Any]) -> Mutant:
    source = (ROOT / "searchlab" / one["module"]).read_text(encoding="utf-8")
    for mutant in make_mutants(source):
        if describe(one["module"], mutant).items() <= one.items():
            return mutant
    msg = f"a gap on record must be in the code as it is, got {one}; measure its part again"
    raise DataError(msg)


def _catch(files: Sequence[str], tests: WarmTests, limit_s: float) -> Outcome:
    """Run the quick tests, which catch most mutants, and where they do not, all."""
    outcome = tests.run(files, limit_s=limit_s)
    return outcome if outcome.failed else tests.run(files, limit_s=limit_s, whole=True)


def _run_unchanged(files: Sequence[str], tests: WarmTests) -> float:
    """Run tests without a mutant; returns after how many seconds those with one have no end.

    A file is run once, in whichever parts it is.
    """
    for file in files:
        if file in _SECONDS:
            continue
        plain = tests.run([file], limit_s=_AT_MOST_S, whole=True, keep=True)
        if plain.failed:
            print(plain.output)
            msg = f"tests must pass without a mutant, got a failure of {plain.failed}; mend them"
            raise SystemExit(msg)
        _SECONDS[file] = plain.seconds
    return max(120.0, 4 * sum(_SECONDS[file] for file in files))


def _name_of(outcome: Outcome) -> str:
    """Return the test that failed, without its parameters."""
    return outcome.failed.partition("[")[0]


def copy_checkout(folder: Path) -> Path:
    """Copy what tests need of this checkout."""
    folder.mkdir()
    for name in _COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy2(source, folder / name)
    return folder


@contextmanager
def planted(path: Path, source: str) -> Iterator[None]:
    """Put changed code in place of a module, and the module back with its time of change.

    What is compiled of a module is kept by that time: a mutant never runs as the original, nor the
    original as a mutant.
    """
    original, status = path.read_bytes(), path.stat()
    path.write_text(source, encoding="utf-8")
    try:
        yield
    finally:
        path.write_bytes(original)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _likely_first(target: Target, module: str) -> list[str]:
    """Put the tests that import the changed module themselves before the others of its part."""
    dotted = "searchlab." + module.removesuffix(".py").replace("/", ".")
    texts = {name: (ROOT / "tests" / name).read_text(encoding="utf-8") for name in target.tests}
    return sorted(target.tests, key=lambda name: dotted not in texts[name])


def describe(module: str, mutant: Mutant) -> dict[str, Any]:
    """Say what a mutant changes, and why that is harmless where somebody knows."""
    told = {
        "module": module,
        "line": mutant.line,
        "in": mutant.original.splitlines()[mutant.line - 1].strip(),
        "before": mutant.before,
        "after": mutant.after,
    }
    return {**told, "harmless_because": _reason(told)}


def _reason(one: dict[str, Any]) -> str:
    """Say why no answer can tell a mutant from the original; empty if nobody knows."""
    reasons = json.loads(_HARMLESS.read_text(encoding="utf-8"))
    lines = (ROOT / "searchlab" / one["module"]).read_text(encoding="utf-8").splitlines()
    line = one.get("in") or "".join(lines[one["line"] - 1 : one["line"]]).strip()
    change = f"{one['module']}: {one['before']} -> {one['after']} in `{line}`"
    return one.get("harmless_because") or str(reasons.get(change, ""))


# -- all parts --------------------------------------------------------------------------------


def recompute(measurement: dict[str, Any], results: Path) -> dict[str, Any]:
    """Make the summary again from the records of the parts that lie beside it now."""
    return make_summary(results / BENCHMARK / measurement["dataset"])


def make_summary(folder: Path) -> dict[str, Any]:
    """Put the parts on record into a table, and the survivors of all into one list."""
    paths = {target.about: folder / f"{_name(target)}.json" for target in TARGETS}
    records = {part: read_measurement(path) for part, path in paths.items() if path.exists()}
    mutants = {part: values["mutants"] for part, values in records.items()}
    every = [one for some in mutants.values() for one in some]
    since = _read_since(folder)
    for one in every:
        one["harmless_because"] = _reason(one)  # which may be known since
        one["caught_since_by"] = since.get(tuple(one[name] for name in _SAME), "")
    now = [{**one, "caught_by": one["caught_by"] or one["caught_since_by"]} for one in every]
    return {
        "parameters": {"parts": list(records), "not_run": sorted(set(paths) - set(records))},
        "metrics": {
            **_share(every),
            "caught_since": sum(bool(one["caught_since_by"]) for one in every),
            "share_caught_now": _share(now)["share_caught"],
        },
        "rows": [
            {"part": part, **_share(mutants[part]), "commit": values["manifest"]["commit"]}
            for part, values in records.items()
        ],
        "survivors": [one for one in every if not one["caught_by"]],
    }


def _read_since(folder: Path) -> dict[tuple[Any, ...], str]:
    path = folder / f"{_SINCE}.json"
    gaps = read_measurement(path)["gaps"] if path.exists() else []
    return {tuple(gap[name] for name in _SAME): gap["caught_by"] for gap in gaps}


def _share(mutants: list[dict[str, Any]]) -> dict[str, Any]:
    """Count mutants; the share of the caught is of those not harmless, with a 95 % interval."""
    caught = sum(bool(one["caught_by"]) for one in mutants)
    harmless = sum(not one["caught_by"] and bool(one["harmless_because"]) for one in mutants)
    counted = len(mutants) - harmless
    ends = proportion_interval(caught, counted) if counted else (0.0, 0.0, 1.0)
    named = zip(("share_caught", "low", "high"), ends, strict=True)
    counts = {"mutants": len(mutants), "caught": caught, "harmless": harmless}
    return {**counts, **{name: round(value, 4) for name, value in named}}


if __name__ == "__main__":
    main()
