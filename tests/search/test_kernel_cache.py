"""Kernels are compiled once, and anew where what was compiled cannot be kept or read."""

import os
import subprocess
import sys

import pytest

KERNEL = """
from searchlab._numba import I64, kernel

@kernel(I64)
def double(number):
    return 2 * number

print(double(21))
"""


@pytest.mark.slow
@pytest.mark.parametrize("harm", ["no folder", "damaged"])
def test_kernels_do_without_a_cache_that_cannot_be_used(tmp_path, harm):
    (tmp_path / "doubling.py").write_text(KERNEL)
    cache = tmp_path / "cache"

    def run():
        env = os.environ | dict.fromkeys(("NUMBA_CACHE_DIR", "HOME", "XDG_CACHE_HOME"), str(cache))
        return subprocess.run(
            [sys.executable, "doubling.py"],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )

    if harm == "no folder":
        for place in (cache, tmp_path / "__pycache__"):
            place.write_text("a file where a folder should be")
    else:
        assert (run().stdout, run().stderr) == ("42\n", "")
        (index,) = cache.rglob("*.nbi")
        index.write_bytes(index.read_bytes()[:20])
    done = run()
    assert done.stdout == "42\n"
    assert "double is compiled at every start, which takes seconds" in done.stderr


TOGETHER = """
import pathlib, sys, time
import numpy as np
from searchlab._numba import I64, kernel

mine, others = map(pathlib.Path, sys.argv[1:])
mine.touch()
for _ in range(60_000):  # until both are here, since numba takes about a second to import
    if others.exists():
        break
    time.sleep(0.001)

@kernel(I64)
def double(number):  # what takes a while to compile
    return np.sort(np.arange(2 * number + 1))[-1]

print(double(21), sum(double.stats.cache_misses.values()))
"""


@pytest.mark.slow
def test_of_two_processes_that_start_together_one_compiles(tmp_path):
    (tmp_path / "doubling.py").write_text(TOGETHER)
    processes = [
        subprocess.Popen(
            [sys.executable, "doubling.py", mine, others],
            cwd=tmp_path,
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")},
            stdout=subprocess.PIPE,
            text=True,
        )
        for mine, others in (("first", "second"), ("second", "first"))
    ]
    said = sorted(process.communicate(timeout=120)[0] for process in processes)
    assert said == ["42 0\n", "42 1\n"]
