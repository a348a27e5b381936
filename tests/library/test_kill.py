"""A writer that is killed at any moment leaves the last good state and a run that can go on."""

import json
import os
import subprocess
import sys
import tempfile

import pytest

from searchlab.config import Config
from searchlab.config.word_weights import USUAL_WORDS
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library, open_library
from searchlab.library.roots import check_root
from tests.support.cli_world import mosaic

pytestmark = pytest.mark.slow

EXACT = Config(model="palette")
WORDS = Config(model="palette", words=USUAL_WORDS)
GRAPH = Config(model="palette", index="hnsw", step_rows=0, depth=5)

# Runs one indexing run again and again in a forked process that dies before its first, second,
# third ... call that changes the disk, and examines and completes in another what each left.
DRIVER = """
import functools, json, os, shutil, signal, sqlite3, sys
from contextlib import closing
from pathlib import Path
import numpy as np
from PIL import Image
import searchlab.cli.console, searchlab.search.engine, searchlab.search.indexes.hnsw
from searchlab.config import Config
from searchlab.errors import NotFoundError
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library, open_library
from searchlab.models import canaries, load_model
from searchlab.models.palette.embedder import PaletteEmbedder
from searchlab.search.queries import Query
from searchlab.library.roots import check_root
from searchlab.library import decoding, retention
from searchlab.library.snapshots import current_id
retention.KEPT_S = 0.0
photos, base, work = map(Path, sys.argv[1:4])
config = Config.from_dict(json.loads(sys.argv[4]))


def index(folder):
    return index_photos(create_library(folder), [check_root(photos)], config=config)


def arm(n):
    left, small = n, 0

    def before(owner, name, counts=lambda *_: True):
        call = getattr(owner, name)

        def deadly(*args, **options):
            nonlocal left
            if counts(*args):
                left -= 1
                if left == 0:
                    what = Path(args[0]).name if isinstance(args[0], str | Path) else ""
                    os.write(1, f'"{name} {what}", '.encode())
                    os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **options)

        setattr(owner, name, deadly)

    def seldom(path, *_):  # thumbnails are many
        nonlocal small
        small += str(path).endswith(".part") and "thumbnails" in str(path)
        return "thumbnails" not in str(path) or small % 15 == 7

    class Dying(sqlite3.Connection):
        def __exit__(self, *error):  # commits
            return super().__exit__(*error)

    before(os, "replace", seldom)
    before(os, "rename")
    before(os, "link")
    before(os, "fsync")
    before(np, "save")
    before(searchlab.photos.table, "save_columns")
    before(shutil, "rmtree")
    before(os, "rmdir")
    before(Dying, "__exit__")
    connect = sqlite3.connect
    sqlite3.connect = lambda *args, **options: connect(*args, factory=Dying, **options)


def answers(library):
    engine = library.engine
    queries = [Query(text=text) for text in ("red", "dark green", "#123456")]
    queries += [Query(text=f"{number}") for number in (3, 203)]  # names of files
    queries.append(Query(filter=PhotoFilter(after_date="1000-01-01")))
    return [
        [(hit.photo.photo_id, hit.relevance_score) for hit in engine.search(query, per_page=50)]
        for query in queries
    ]


def state(folder):
    library = open_library(folder)
    library.check()
    found = library.snapshot()
    return {
        "name": found.snapshot_id,
        "digest": found.snapshot_id[7:],
        "files": sorted(Path(file).name for file in found.table.texts("file")),
        "vectors": found.index.vectors.tobytes().hex(),
        "answers": answers(library),
    }


def committed(folder):
    if not (folder / "cache.db").exists():
        return 0
    with closing(sqlite3.connect(folder / "cache.db")) as db:
        try:
            return db.execute("SELECT count(*) FROM vectors").fetchone()[0]
        except sqlite3.OperationalError:  # no table yet
            return 0


def examine(folder, old, new):
    problems = []
    try:
        now = state(folder)
    except NotFoundError:
        now = None
    if now is not None and now != old and now["digest"] != new["digest"]:
        problems.append(f"state in force is neither the old nor the new: {now['name']}")
    if now is None and old is not None:
        problems.append("the old state is gone")
    have, counts = committed(folder), []
    encode = PaletteEmbedder.encode_images

    def counted(self, images):
        counts.append(sum(image.size != (320, 320) for image in images))
        return encode(self, images)

    PaletteEmbedder.encode_images = counted
    index(folder)
    if have + sum(counts) != committed(folder):
        problems.append(f"{sum(counts)} embedded besides {have}, {committed(folder)} in all")
    after = state(folder)
    problems += [f"{name} differs" for name in after if name != "name" and after[name] != new[name]]
    left = [path.name for path in (folder / "snapshots").iterdir()]
    if len(left) > retention.KEPT or any(not name[0].isdigit() for name in left):
        problems.append(f"leftovers: {sorted(left)}")
    if now is not None and now["digest"] == new["digest"] and after["name"] != now["name"]:
        problems.append("a finished state was written again")
    return problems


def forked(do):
    child = os.fork()
    if child == 0:
        code = 9
        try:
            do()
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    return os.waitpid(child, 0)[1]


def fresh(name):
    shutil.rmtree(work / name, ignore_errors=True)
    if base.exists():
        shutil.copytree(base, work / name)
    return work / name


def keep_states():
    states = {"old": state(base) if base.exists() else None}
    index(fresh("whole"))
    states["new"] = state(work / "whole")
    (work / "states.json").write_text(json.dumps(states))


def judge():
    states = json.loads((work / "states.json").read_text())
    old, new = (json.loads(json.dumps(states[which])) for which in ("old", "new"))
    print(json.dumps([plain for plain in examine(work / "killed", old, new)]), flush=True)


def keep(owner, name, key):
    work_out, known = getattr(owner, name), {}

    def kept(given, *others, **options):
        if key(given) not in known:
            known[key(given)] = work_out(given, *others, **options)
        return known[key(given)]

    setattr(owner, name, kept)


# What every child would load, embed or work out again.
canaries._sample = functools.cache(canaries._sample)
keep(decoding, "analyse", lambda decoded: decoded.image.tobytes())
keep(decoding, "thumbnail", Image.Image.tobytes)
load_model("mini")
index(work / "warm")
answers(open_library(work / "warm"))
assert forked(keep_states) == 0
_state, state = state, lambda folder: json.loads(json.dumps(_state(folder)))
for n in range(1, 200):
    folder = fresh("killed")
    os.write(1, b"[")

    def write():
        arm(n)
        index(folder)

    status = forked(write)
    if status == 0:
        os.write(1, b'"completed"]\\n')
        break
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, status
    if forked(judge) != 0:
        os.write(1, b'"see stderr"\\n')
    os.write(1, b"]\\n")
"""


@pytest.fixture
def photos(tmp_path):
    folder = (tmp_path / "photos").resolve()
    folder.mkdir()
    for i in range(24):
        mosaic(folder / f"{i}.png", i)
    return folder


@pytest.fixture
def work():
    """A folder in memory, if there is one: no power is cut, so that no disk need be waited for."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield folder


def kill_everywhere(photos, base, work, config):
    """Returns [the call before which the run was killed, what was wrong afterwards] pairs."""
    arguments = [str(photos), str(base), work, config.to_json()]
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results = json.loads("[" + ",".join(done.stdout.replace("\n]", "]").splitlines()) + "]")
    assert results[-1] == ["completed"]
    return results[:-1], done.stderr


def test_a_first_run_killed_before_any_change_of_the_disk(photos, tmp_path, work):
    results, stderr = kill_everywhere(photos, tmp_path / "none", work, EXACT)
    assert [one for one in results if one[1] != []] == [], stderr
    assert len(results) >= 18


def test_a_later_run_killed_before_any_change_of_the_disk(photos, tmp_path, work):
    base = tmp_path / "base"
    for i in range(100, 103):  # so that the run under test drops an old state
        mosaic(photos / f"{i}.png", i)
        index_photos(create_library(base), [check_root(photos)], config=GRAPH)
    for i in range(4):
        (photos / f"{i}.png").unlink()
    for i in range(200, 210):
        mosaic(photos / f"{i}.png", i)
    results, stderr = kill_everywhere(photos, base, work, GRAPH)
    assert [one for one in results if one[1] != []] == [], stderr
    assert len(results) >= 18


def test_a_run_that_adds_to_many_text_segments_killed_before_any_change(tmp_path, work):
    photos, base = (tmp_path / "photos").resolve(), tmp_path / "base"
    photos.mkdir()
    end = 0
    for count in (16, 8, 4, 2, 1):  # each too small to be written anew with the one before
        for i in range(end, end + count):
            mosaic(photos / f"{i}.png", i)
        end += count
        index_photos(create_library(base), [check_root(photos)], config=WORDS)
    assert len(open_library(base).snapshot().words.segments) == 5
    (photos / "3.png").unlink()
    mosaic(photos / "203.png", 203)
    results, stderr = kill_everywhere(photos, base, work, WORDS)
    assert [one for one in results if one[1] != []] == [], stderr
    assert len(results) >= 18
