"""Libraries from strangers: whatever stands in a file, with checksums that fit it, nothing crashes.

Each kind has a process of its own: it mutates one file of a small library at a time, makes the
checksums right again, opens the library and searches it in every way. What may come is an answer,
or a DataError. For more of them than fit here: python -m tests.support.snapshot_fuzz.
"""

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import searchlab
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
PACKAGE = Path(searchlab.__file__).parent


def fuzz(folder, kinds, seed, count, **environment):
    """Returns [exit status, what was said] by kind."""
    words = [sys.executable, "-m", "tests.support.snapshot_fuzz", folder, ",".join(kinds)]
    done = subprocess.run(
        [*map(str, words), str(seed), str(count)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"} | environment,
    )
    assert done.stdout, done.stderr[-3000:]
    statuses = json.loads(done.stdout.splitlines()[-1])
    return {kind: (statuses[kind], (folder / f"{kind}.txt").read_text()) for kind in kinds}


def check(kind, status, said, count):
    assert status == 0, said[-6000:]
    mutated, outcomes = map(json.loads, said.splitlines()[-2:])
    assert set(mutated) == FILES | MORE_FILES[kind]
    assert sum(outcomes.values()) == count
    assert outcomes["DataError"] > count / 2


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


def compiled():
    """Where kernels that check their bounds are kept, which takes a minute to compile.

    A cache of numba does not notice a change to what a kernel calls, so that another place is found
    after it.
    """
    parts = [PACKAGE / "_numba.py", *PACKAGE.rglob("_kernels/*.py"), *PACKAGE.rglob("_lanczos.py")]
    sources = b"".join(path.read_bytes() for path in sorted(parts))
    kept = Path(__file__).with_name("__pycache__")
    folder = kept / f"bounds-{hashlib.sha256(sources).hexdigest()[:12]}"
    for other in kept.glob("bounds-*"):
        if other != folder:
            shutil.rmtree(other)
    return folder


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """What came of each kind, by kernels that notice what would read or write elsewhere."""
    environment = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(compiled())}
    return fuzz(tmp_path_factory.mktemp("checked"), KINDS, 100_000, COUNT, **environment)


def test_mutated_files_are_answered_from_or_refused(tmp_path):
    """As it is served: where no kernel notices; the test below does the same for every kind."""
    came = fuzz(tmp_path, ["clustered"], 200_000, COUNT // 2)
    check("clustered", *came["clustered"], COUNT // 2)


@pytest.mark.parametrize("kind", KINDS)
def test_no_kernel_reads_or_writes_beyond_an_array(checked, kind):
    check(kind, *checked[kind], COUNT)
