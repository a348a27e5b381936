"""What verify says of records that were made, or are computed again, elsewhere."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.verification.processors import PROCESSORS, environment_of
from searchlab.evaluation.provenance.manifest import commit
from searchlab.evaluation.provenance.measurement import read_measurement
from searchlab.evaluation.provenance.registry import STUDIES
from searchlab.evaluation.provenance.reproduce import ONE_IN, differences, other_rankings
from searchlab.evaluation.provenance.study import TABLES, Study
from searchlab.evaluation.provenance.tolerances import Tolerance
from searchlab.evaluation.provenance.verify import verify_result
from searchlab.studies.index.study import recompute
from tests.support import recorded_results
from tests.support.recorded_results import toy_study
from tests.support.shades import reseal

shades = recorded_results.shades
known = recorded_results.known
cache = recorded_results.cache
recorded = recorded_results.recorded
measured = recorded_results.measured
ROOT = Path(__file__).parents[2]


def test_a_run_that_was_removed_is_noticed_even_under_a_fresh_seal(recorded):
    run = recorded.with_suffix(".run.gz")
    run.unlink()
    assert "missing or changed" in verify_result(recorded, quick=True).differences[0]
    values = json.loads(recorded.read_text())
    files = {name: seal for name, seal in values["files"].items() if name != run.name}
    reseal(recorded, lambda values: values.update(files=files))
    verification = verify_result(recorded, quick=True)
    assert verification.status == "differs"
    assert verification.differences == (
        f"no {run.name} under its seal, so that its rankings cannot be compared",
    )


def test_times_beside_it_of_another_machine_and_changed_code_are_said(measured, monkeypatch):
    monkeypatch.setattr("searchlab.evaluation.provenance.notes.is_lost", lambda name: False)
    reseal(measured, lambda values: values["manifest"].update(commit="0123456789ab"))
    other = measured.with_name("other.json")
    other.write_bytes(measured.read_bytes())
    assert verify_result(measured).notes == ("not computed again: it is a toy",)

    def elsewhere(values):
        values["manifest"] |= {"machine": "Linux, Z80, 1 CPUs", "commit": "0123456789ab+"}
        values["name"] = "other"

    reseal(other, elsewhere)
    _, note = verify_result(measured).notes
    assert note == "times beside it are of another machine, Linux, Z80, 1 CPUs: other.json"
    assert note in str(verify_result(measured))
    _, first, second = verify_result(other).notes
    assert first == "measured with changes that commit 0123456789ab has not"
    assert measured.name in second

    def without_times(values):
        del values["metrics"]["p50_ms"]

    reseal(other, without_times)
    assert len(verify_result(measured).notes) == 1


def test_a_commit_that_the_history_has_not_is_said(measured):
    here = commit()
    for name, lost in ((here.rstrip("+"), False), ("0123456789ab", bool(here)), ("", False)):
        reseal(measured, lambda values, name=name: values["manifest"].update(commit=name))
        said = f"commit {name} is not in the history here" in verify_result(measured).notes
        assert said == lost


def test_each_file_says_what_is_computed_again_what_is_not_and_what_that_needs(measured):
    def of_a_task(values):
        values |= {"benchmark": "word_tasks", "dataset": "there", "name": "flickr8k-described"}

    reseal(measured, of_a_task)
    note = verify_result(measured, quick=True).notes[0]
    assert note == (
        "computed again: quality with and without words, intervals and tests; "
        "not computed again: times; needs SEARCHLAB_DATASETS"
    )


def test_a_record_that_its_study_leaves_out_is_said_not_to_be_computed_again(measured, monkeypatch):
    toy_study(monkeypatch, recompute=lambda measurement: {"metrics": {"share": 0.5}})
    study = replace(STUDIES["toy_study"], again="shares", sealed="times", only=("shades/some*",))
    monkeypatch.setitem(STUDIES, "toy_study", study)
    verification = verify_result(measured)
    assert verification.status == "sealed"
    assert verification.notes[0] == "not computed again: times"
    some = measured.with_name("some.json")
    some.write_bytes(measured.read_bytes())
    reseal(some, lambda values: values.update(name="some"))
    assert verify_result(some).status == "verified"
    assert verify_result(some).notes[0] == "computed again: shares; not computed again: times"


TABLES_ON_RECORD = [
    path
    for path in sorted((ROOT / "results").glob("*/*/*.json"))
    if path.stem in TABLES and STUDIES[path.parts[-3]].summary
]


@pytest.mark.slow
@pytest.mark.parametrize("path", TABLES_ON_RECORD, ids=lambda path: "/".join(path.parts[-3:-1]))
def test_a_table_on_record_says_what_the_records_beside_it_say_now(path):
    values = read_measurement(path)
    study = STUDIES[values["benchmark"]]
    again = study.load_summary(values["name"])(values, ROOT / "results")
    assert differences(values, again, tolerances=study.tolerances) == []


def test_a_table_is_made_again_from_the_records_that_it_names(measured, monkeypatch):
    def summarise(measurement, folder):
        return {"metrics": {"n": len(list(folder.glob("toy_study/shades/*.json")))}}

    toy_study(monkeypatch)
    monkeypatch.setattr(sys.modules["toy_module"], "summarise", summarise, raising=False)
    study = Study(("searchlab.evaluation.metrics",), again="n", summary="toy_module:summarise")
    monkeypatch.setitem(STUDIES, "toy_study", study)
    table = measured.with_name("summary.json")
    table.write_bytes(measured.read_bytes())
    reseal(table, lambda values: values.update(name="summary", metrics={"n": 2}))
    assert verify_result(table).status == "verified"
    measured.unlink()
    assert verify_result(table).differences == ("metrics.n: recorded 2, now 1",)


# -- tolerances -----------------------------------------------------------------------------------


def test_a_tolerance_covers_the_figures_that_it_names_and_no_others():
    tolerances = (
        Tolerance("points.*.recall", absolute=0.002, why="ties"),
        Tolerance("metrics.*_ratio", factor=2.0, why="a short run"),
    )
    recorded = {"points": [{"recall": 0.99, "short": 0.0}], "metrics": {"cpu_ratio": 0.5}}

    def off(recall=0.99, short=0.0, ratio=0.5):
        now = {"points": [{"recall": recall, "short": short}], "metrics": {"cpu_ratio": ratio}}
        return [line.split(":")[0] for line in differences(recorded, now, tolerances=tolerances)]

    assert off(recall=0.988, ratio=0.26) == off(recall=0.992, ratio=0.99) == []
    assert off(recall=0.9879) == ["points[0].recall"]
    assert off(short=0.001) == ["points[0].short"]
    assert off(ratio=1.01) == off(ratio=0.2) == off(ratio=-0.5) == ["metrics.cpu_ratio"]


def test_every_tolerance_says_why_and_is_narrow():
    stated = [one for study in STUDIES.values() for one in study.tolerances]
    assert stated
    for one in stated:
        assert one.why
        assert one.absolute <= 0.06
        assert one.factor <= 2


@pytest.mark.parametrize(
    ("study", "recorded", "on_another"),
    [
        (
            "relevance",
            {
                "metrics": {"written_auc.as ranked.without fr": 0.714942, "auc.x": 0.85},
                "written": [{"bars": [{"mean_score": 0.44424, "n_pairs": 844, "low": 0.454419}]}],
                "thresholds": [{"shown": 0.98937}],
            },
            {
                "metrics": {"written_auc.as ranked.without fr": 0.714944, "auc.x": 0.85},
                "written": [{"bars": [{"mean_score": 0.444174, "n_pairs": 843, "low": 0.45417}]}],
                "thresholds": [{"shown": 0.989764}],
            },
        ),
        (
            "abroad",
            {"metrics": {"photos of Flickr8k, mini × exact": 0.673784}},
            {"metrics": {"photos of Flickr8k, mini × exact": 0.673617}},
        ),
    ],
)
def test_what_a_processor_without_wide_instructions_gave_counts_as_the_same(
    study, recorded, on_another
):
    tolerances = STUDIES[study].tolerances
    assert differences(recorded, on_another, tolerances=tolerances) == []
    for name, value in recorded["metrics"].items():
        worse = {"metrics": recorded["metrics"] | {name: value - 0.002}}
        assert differences(recorded, worse, tolerances=tolerances)


def test_one_ranking_in_a_thousand_may_differ_on_another_machine():
    recorded = {f"q{number}": ["a", "b"] for number in range(2_000)}
    ranked = {query: [("a", 0.5), ("b", 0.5)] for query in recorded}
    otherwise = [("b", 0.5), ("a", 0.5)]
    assert other_rankings(recorded, ranked | {"q7": otherwise}) == [
        "run: 1 of 2,000 rankings differ, first 'q7'"
    ]
    most = len(recorded) // ONE_IN
    two = {"q7": otherwise, "q8": otherwise}
    assert other_rankings(recorded, ranked | two, most=most) == []
    (line,) = other_rankings(recorded, ranked | two | {"q9": otherwise}, most=most)
    assert line.startswith("run: 3 of 2,000")


# -- other processors -----------------------------------------------------------------------------


def run_on(processor, script):
    return subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **environment_of(processor), "PYTHONPATH": str(Path.cwd())},
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    ).stdout


@pytest.mark.slow
@pytest.mark.parametrize("processor", sorted(set(PROCESSORS) - {"this"}))
def test_another_processor_is_really_stood_in_for(processor):
    script = (
        "import json, numpy as np\n"
        "from numba.core import config\n"
        "from numpy._core._multiarray_umath import __cpu_features__ as features\n"
        "from threadpoolctl import threadpool_info\n"
        "np.ones((8, 8)) @ np.ones((8, 8))\n"
        "print(json.dumps([features['AVX512F'] and features.get('X86_V4', False), "
        "config.CPU_NAME, [one.get('architecture') for one in threadpool_info()]]))\n"
    )
    newest, name, architectures = json.loads(run_on(processor, script))
    assert not newest
    assert name == processor
    assert processor.capitalize() in architectures


# All kernels are compiled when they are imported, for half a minute where a processor is new; these
# when they are called, and only a few are.
COMPILE_WHAT_IS_CALLED = """
import functools
from searchlab import _numba

compiled_now = _numba.kernel


def kernel(*arguments, **options):
    def compile_later(function):
        compiled = functools.cache(lambda: compiled_now(*arguments, **options)(function))
        return lambda *given: compiled()(*given)

    return compile_later


_numba.kernel = kernel
"""


@pytest.mark.slow
def test_what_is_computed_again_is_the_same_on_another_processor():
    """Kernels of numba and products of BLAS, once as here and once without wide instructions."""
    system = {"index": "clustered", "step_rows": 4, "M": 16, "ef_construction": 200}
    asked = [(kind, effort) for kind in ("image", "text") for effort in (900, 990)]
    record = {
        "name": "searchlab-clustered",
        "dataset": "clustered-2k-32",
        "parameters": {"system": system, "n_queries": 60, "n_photos": 2_000},
        "manifest": {"seed": 0},
        "points": [{"queries": kind, "k": 10, "effort": effort} for kind, effort in asked],
    }
    script = (
        f"{COMPILE_WHAT_IS_CALLED}\n"
        "import json\n"
        "from searchlab.studies.index.study import recompute\n"
        f"print(json.dumps(recompute({record!r})))\n"
    )
    here = json.loads(json.dumps(recompute(record)))
    there = json.loads(run_on("nehalem", script))
    assert differences(here, there, tolerances=STUDIES["index"].tolerances) == []
    assert all(0.7 < point["recall"] <= 1 for point in here["points"])
