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
