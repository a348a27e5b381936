"""Libraries from strangers: whatever stands in a file, with checksums that fit it, nothing crashes.

Each run is a process of its own: it builds a small library, mutates one file at a time, makes the
checksums right again, opens the library and searches it in every way. What may come is an answer,
or a DataError. For more of them than fit here: python -m tests.support.snapshot_fuzz.
"""

import contextlib
import json
import os
import subprocess
import sys

import pytest

from benchmarks.soak.soak_snapshots import _KINDS
from searchlab.config.indexes import ENGINES, INDEXES, index_kind, load_index
from searchlab.errors import DataError
from searchlab.library.info import describe_library
from searchlab.library.library import open_library
from searchlab.library.retention import read_retention
from tests.support import library_world
from tests.support.snapshot_fuzz import FILES, KINDS, MORE_FILES

pytestmark = pytest.mark.slow

index = library_world.index
library = library_world.library
photos = library_world.photos
put = library_world.put
COUNT = 150


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


@pytest.mark.parametrize("name", ["library.json", "indexed.json", "CURRENT", "secret.key"])
@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"null", b"[]", b"1", b"{}", b"\xff\xfe", b"\0" * 50, b"9" * 5_000),
        *(b"[" * 100_000, b'{"format": 1}', b'{"format": 1, "kept_s": NaN}', b'{"format": [[]]}'),
    ],
    ids=lambda content: repr(content[:20]),
)
def test_what_lies_beside_the_snapshots_is_passed_over_or_refused(
    put, index, library, name, content
):
    put("red.png", 1)
    index()
    (library.folder / name).write_bytes(content)
    for look in (open_library, read_retention, lambda folder: describe_library(library)):
        with contextlib.suppress(DataError):
            look(library.folder)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Where kernels that check their bounds are kept, which takes long to compile."""
    return tmp_path_factory.mktemp("compiled")


def test_mutated_files_are_answered_from_or_refused(tmp_path):
    """As it is served: where no kernel notices; the test below does the same for every kind."""
    fuzz(tmp_path, "clustered", 200_000, COUNT // 2)


@pytest.mark.parametrize("kind", KINDS)
def test_no_kernel_reads_or_writes_beyond_an_array(tmp_path, compiled, kind):
    """As above, by kernels that notice what would read or write elsewhere."""
    environment = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(compiled)}
    fuzz(tmp_path, kind, 100_000, COUNT, **environment)
