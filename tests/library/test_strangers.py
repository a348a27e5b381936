"""Libraries from strangers: whatever stands in a file, with checksums that fit it, nothing crashes.

Each run is a process of its own: it builds a small library, mutates one file at a time, makes the
checksums right again, opens the library and searches it in every way. What may come is an answer,
or a DataError. For more of them than fit here: python -m tests.support.snapshot_fuzz.
"""

import json
import os
import subprocess
import sys

import pytest

from benchmarks.soak.soak_snapshots import _KINDS
from searchlab.config.indexes import ENGINES, INDEXES, index_kind, load_index
from tests.support.snapshot_fuzz import FILES, KINDS, MORE_FILES

pytestmark = pytest.mark.slow
COUNT = 1_000


def fuzz(folder, kind, seed, count, **environment):
    words = [sys.executable, "-m", "tests.support.snapshot_fuzz", folder / kind, kind, seed, count]
    done = subprocess.run(
        [*map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"} | environment,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    mutated, outcomes = map(json.loads, done.stdout.splitlines()[-2:])
    assert set(mutated) == FILES | MORE_FILES[kind]
    assert sum(outcomes.values()) == count
    assert outcomes["DataError"] > count / 2
    return outcomes


def test_all_that_any_index_writes_into_a_snapshot_is_mutated():
    def saving(name):
        return load_index(name).save

    assert {saving(name) for name in (*INDEXES, *ENGINES)} <= {
        saving(index_kind(config.index)) for config in KINDS.values()
    }
    assert set(MORE_FILES) == set(KINDS) == set(_KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_mutated_files_are_answered_from_or_refused(tmp_path, kind):
    fuzz(tmp_path, kind, 100_000, COUNT)


@pytest.mark.parametrize("kind", KINDS)
def test_no_kernel_reads_or_writes_beyond_an_array(tmp_path, kind):
    compiled = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path / "compiled")}
    fuzz(tmp_path, kind, 200_000, 300, **compiled)
