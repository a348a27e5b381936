"""What quick runs leave out, which examples are drawn, what runs first, and who runs twice."""

import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

TESTS = Path(__file__).parent / "tests"
BENCHMARKS = TESTS / "benchmarks"
RAY = "test_ray_"  # begins the names of files that start clusters
PACKAGE = Path(__file__).parent / "searchlab"
SLOW_FILE = "\npytestmark = pytest.mark.slow\n"
# What has kernels, in two parts that take about as long to compile.
KERNELS = (
    "searchlab.search.indexes.ivf.search",
    "searchlab.search.words._kernels.postings, searchlab.search.filters._kernels.oklab, "
    "searchlab.search.filters._kernels.bits, searchlab.photos.images._lanczos, "
    "searchlab.search.indexes.ivf._kernels.clusters",
)

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")

# Every run draws the same examples, so that a test fails by what was changed, not by luck. New ones
# are sought with `--hypothesis-profile=explore`. No example fails for being slow.
settings.register_profile("whole", deadline=None, derandomize=True)
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=20)
settings.register_profile("explore", deadline=None)


def pytest_configure(config: pytest.Config) -> None:
    """Choose how many examples are drawn, and compile what all workers need."""
    chosen: str | None = config.getoption("hypothesis_profile")
    settings.load_profile(chosen or ("quick" if is_quick(config) else "whole"))
    gc.set_threshold(200_000, 50, 100)  # what is collected stays, and is walked through in vain
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        # A worker has a processor: threads of its libraries would wait for those of the others.
        for name in ONE_THREAD:
            os.environ.setdefault(name, "1")
        compile_kernels()


def compile_kernels() -> None:
    """Compile the kernels of a fresh checkout once, where each worker would compile all of them."""
    parts = [subprocess.Popen([sys.executable, "-c", f"import {part}"]) for part in KERNELS]
    for part in parts:
        part.wait()  # a module that cannot be imported fails its tests


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files unread in which nothing would run: to import torch alone takes seconds."""
    if not is_quick(config) or collection_path.suffix != ".py":
        return None
    text = collection_path.read_text(encoding="utf-8")
    return SLOW_FILE in text or (PACKAGE in collection_path.parents and ">>>" not in text) or None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run slow files first, and a slow test that fails once more.

    The last files are short ones then, and no worker waits long for another. Slow tests talk to
    processes that a busy machine delays; what needed a second run is named at the end, for a test
    that needs it often has a fault.
    """
    files = {str(item.path): item.path for item in items}  # paths are slow to hash and compare
    slow = [item for item in items if item.get_closest_marker("slow")]
    slow_files = {str(item.path) for item in slow}
    benchmarks = {name for name, path in files.items() if BENCHMARKS in path.parents}
    ray = {name for name, path in files.items() if path.name.startswith(RAY)}
    order = {
        name: (name not in slow_files, name not in ray, name not in benchmarks) for name in files
    }
    items.sort(key=lambda item: order[str(item.path)])
    # Cells stand on the cells before them, and benchmarks are started once for all their tests.
    alone = {name for name, path in files.items() if TESTS in path.parents} - benchmarks
    for item in slow:
        if str(item.path) in alone:
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give a file to one worker, and all with clusters: two at once would have no processors."""
    from xdist.scheduler import LoadFileScheduling

    class OneCluster(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            return RAY if f"/{RAY}" in file else file

    return OneCluster(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_finish() -> None:
    """Set aside what was collected: every search for garbage would walk through all of it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


def is_quick(config: pytest.Config) -> bool:
    """Tell whether slow tests are left out."""
    return config.option.markexpr == "not slow"
