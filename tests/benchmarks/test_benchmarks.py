"""Every script in `benchmarks/` runs with --smoke and leaves sealed measurements that can be read.

A script joins by its name, `benchmarks/<study>/bench_<what>.py`. One that needs data that is not
here must say so by naming SEARCHLAB_DATASETS on standard error, and is skipped with its own words.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from benchmarks.common.recording import bench_parser
from searchlab import build_demo_library
from searchlab.config import Config
from searchlab.evaluation.datasets import ENVIRONMENT, load_dataset
from searchlab.evaluation.datasets.dataset_library import dataset_library
from searchlab.evaluation.provenance.measurement import read_measurement
from tests.support.commands import Done
from tests.support.forked import run_module

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = {path.stem: path for path in sorted((ROOT / "benchmarks").glob("*/bench_*.py"))}
# What only makes a smoke run longer: other systems of the same kind.
SHORTER = {
    "bench_index": ["--systems", "searchlab-hnsw,searchlab-clustered,hnswlib,faiss-hnsw"],
    "bench_filters": ["--systems", "searchlab-clustered,searchlab-planned,hnswlib,usearch"],
    "bench_scale": ["--systems", "searchlab-clustered,hnswlib-huge"],
}
# It measures what importing and compiling take; ranx several times from nothing would take minutes.
UNCOMPILED = {"bench_cold_start": {"NUMBA_DISABLE_JIT": "1"}}
# What embeds all bundled photos into a folder that is kept: each gets one that knows their vectors.
KEPT = (
    "bench_abroad",
    "bench_calibration",
    "bench_newcomer",
    "bench_relevance",
    "bench_search_quality",
    "bench_steering",
    "bench_word_tasks",
)
WHAT_IS_INDEXED = shutil.ignore_patterns("links", "snapshots", "CURRENT", "indexed.json")
SHARED = {"dataset", "runs", "seed", "threads", "force", "smoke", "out", "allow_changes"}
TIMEOUT_S = 600  # for a machine that has much else to do


def module_of(script):
    return f"benchmarks.{SCRIPTS[script].parent.name}.{script}"


def run(script, *arguments):
    environment = {name: value for name, value in os.environ.items() if name != ENVIRONMENT}
    if script in UNCOMPILED:
        done = subprocess.run(
            [sys.executable, "-m", module_of(script), *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
            env=environment | UNCOMPILED[script],
        )
        return Done(done.returncode, done.stdout, done.stderr)
    where = {"cwd": ROOT, "env": environment, "timeout_s": TIMEOUT_S}
    return run_module(module_of(script), *arguments, **where)


def smoke(script, out, kept):
    more = SHORTER.get(script, [])
    if script not in KEPT:
        return run(script, "--smoke", "--out", str(out), *more)
    with tempfile.TemporaryDirectory() as folder:
        data = shutil.copytree(kept, Path(folder) / "data", ignore=WHAT_IS_INDEXED)
        return run(script, "--smoke", "--out", str(out), "--data", str(data), *more)


@pytest.fixture(scope="module")
def under_way(request, tmp_path_factory):
    """Start the scripts that will be tested, two at a time: alone they leave a processor idle."""
    calls = [getattr(item, "callspec", None) for item in request.session.items]
    params = [call.params for call in calls if call is not None]
    scripts = sorted({each["smoked"] for each in params if "smoked" in each})
    kept = tmp_path_factory.mktemp("kept")
    if set(scripts) & set(KEPT):
        known = build_demo_library()
        library = dataset_library(load_dataset("demo"), kept, config=Config(), known=known)
        library.engine_for(Config(model="palette"))
    with ThreadPoolExecutor(2) as pool:
        folders = {script: tmp_path_factory.mktemp(script) for script in scripts}
        yield {
            script: (out, pool.submit(smoke, script, out, kept)) for script, out in folders.items()
        }
        pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="module", params=[pytest.param(s, marks=pytest.mark.slow) for s in SCRIPTS])
def smoked(request, under_way):
    """Wait for a script, which has run once for all tests about it."""
    out, running = under_way[request.param]
    done = running.result()
    if done.code and ENVIRONMENT in done.err:
        pytest.skip(done.err.strip().splitlines()[-1])
    assert done.code == 0, done.err[-3000:]
    return request.param, out, done


def test_a_smoke_run_leaves_only_sealed_measurements_with_figures(smoked):
    script, out, _ = smoked
    files = sorted(out.rglob("*.json"))
    assert files
    for path in files:
        measurement = read_measurement(path)
        assert measurement["manifest"]["code"]
        assert measurement["benchmark"] == path.relative_to(out).parts[0]
        numbers = [v for v in measurement["metrics"].values() if isinstance(v, int | float)]
        assert numbers or measurement["parameters"], f"{script} wrote {path.name} without figures"


def test_a_smoke_run_says_on_standard_output_what_it_found(smoked):
    assert len(smoked[2].out.splitlines()) > 1


def test_charts_come_in_both_formats(smoked):
    _, out, _ = smoked
    for picture in out.rglob("*.png"):
        assert picture.with_suffix(".svg").read_text(encoding="utf-8").startswith("<?xml")
        assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_says_how_it_is_called_and_where_it_writes(script):
    head = SCRIPTS[script].read_text(encoding="utf-8").split('"""')[1]
    assert f"python -m {module_of(script)}" in head
    assert "--smoke" in head
    assert "results/" in head


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_takes_the_shared_command_line(script):
    assert "bench_parser(" in SCRIPTS[script].read_text(encoding="utf-8")
    shared = {action.dest for action in bench_parser("", dataset="x")._actions}
    assert shared >= SHARED


@pytest.mark.slow
def test_a_system_that_is_not_installed_is_named_and_one_that_is_unknown_refused(tmp_path):
    done = run("bench_index", "--systems", "hnswlib,oracle", "--out", str(tmp_path))
    assert done.code
    assert "got ['oracle']" in done.err
    assert not list(tmp_path.rglob("*"))
