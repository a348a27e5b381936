"""A run of `searchlab index` that is killed or interrupted goes on where it stopped."""

import contextlib
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from searchlab.config import Config
from searchlab.errors import NotFoundError
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library, open_library
from searchlab.library.roots import check_root
from tests.support.cli_world import mosaic

pytestmark = pytest.mark.slow

EXACT = Config(model="palette")


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Pictures that take a while."""
    folder = tmp_path_factory.mktemp("large").resolve()
    for i in range(80):
        mosaic(folder / f"{i}.png", i, size=(200, 150))
    return folder


@pytest.fixture(scope="module")
def undisturbed(large, tmp_path_factory):
    """The vectors that a run without interruption gives, by photo_id."""
    library = create_library(tmp_path_factory.mktemp("undisturbed"))
    index_photos(library, [check_root(large)], config=EXACT)
    return vectors_of(library)


def vectors_of(library):
    snapshot = library.snapshot()
    rows = map(bytes, snapshot.index.vectors.copy())
    return dict(zip(snapshot.table.texts("photo_id"), rows, strict=True))


# The pauses give the test time to kill the run at the moment that it means.
SLOW = """
import time
from searchlab.models.palette.embedder import PaletteEmbedder
encode = PaletteEmbedder.encode_images
PaletteEmbedder.encode_images = lambda *arguments: time.sleep(0.3) or encode(*arguments)
"""


def command(photos, folder):
    return ["index", str(photos), "--data", str(folder), "--model", "palette"]


def start_slowly(photos, folder):
    """Starts `searchlab index` in a process of its own."""
    script = SLOW + "from searchlab.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", script, *command(photos, folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def thumbnails_in(folder):
    return len(list((folder / "thumbnails").glob("*/*.webp")))


def embedded_in(folder):
    try:
        cache = f"file:{folder / 'cache.db'}?mode=ro"
        with contextlib.closing(sqlite3.connect(cache, uri=True)) as db:
            (count,) = db.execute("SELECT count(*) FROM vectors").fetchone()
    except sqlite3.OperationalError:  # not there yet
        return 0
    return count


def wait_until(count_in, folder, least):
    deadline = time.monotonic() + 60
    while count_in(folder) < least:
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_killed_at_any_time_again_and_again_it_gets_there(large, tmp_path, undisturbed, run):
    folder, counts = tmp_path / "library", []
    for count_in, least in ((thumbnails_in, 1), (embedded_in, 1), (embedded_in, 40)):
        with start_slowly(large, folder) as slow:
            wait_until(count_in, folder, least)
            slow.kill()
        assert slow.returncode == -signal.SIGKILL
        counts.append(embedded_in(folder))
        with pytest.raises(NotFoundError, match="searchlab index"):
            open_library(folder).check()
    assert counts == sorted(counts)
    code, out, err = run(*command(large, folder))
    assert code == 0, err
    assert out.endswith("80 photos: 80 added, 0 removed, 0 copies left out\n")
    library = open_library(folder)
    library.check()
    assert vectors_of(library) == undisturbed


def test_an_interrupted_run_says_one_clear_line_and_goes_on_where_it_stopped(
    large, tmp_path, undisturbed, run
):
    folder = tmp_path / "library"
    with start_slowly(large, folder) as slow:
        wait_until(embedded_in, folder, 1)
        slow.send_signal(signal.SIGINT)
        out, err = slow.communicate(timeout=120)
    assert slow.returncode == 130
    assert out == ""
    assert "Traceback" not in err
    assert err.splitlines()[-1] == (
        "searchlab: interrupted; what was finished is kept, the same command goes on from there"
    )
    assert 0 < embedded_in(folder) < 80
    code, _, err = run(*command(large, folder))
    assert code == 0, err
    assert vectors_of(open_library(folder)) == undisturbed
