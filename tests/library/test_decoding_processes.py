"""Decoding in processes: the same as in threads, and what becomes of them when something ends."""

import contextlib
import io
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from searchlab.errors import SearchlabError
from searchlab.library import decoding, decoding_processes
from searchlab.library import embed as pipeline
from searchlab.library.cache import ContentCache
from searchlab.library.decoding import CHANGED, Decoder, thumbnail_path
from searchlab.library.embed import embed_pictures
from searchlab.models import load_model
from searchlab.photos.images.resize import plain_resize
from searchlab.progress import Progress
from tests.support.embedding import MeanColour
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow


def children(pid):
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    return {int(child) for listed in lists for child in listed.read_text().split()}


def is_alive(pid):
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


@pytest.fixture
def files(put):
    """Pictures of several kinds and sizes, among them three that are refused."""
    rng = np.random.default_rng(3)
    written = {}
    for i, (size, kind) in enumerate(
        [((900, 700), "JPEG"), ((60, 40), "PNG"), ((700, 2000), "WEBP"), ((500, 500), "JPEG")]
    ):
        tiles = Image.fromarray(rng.integers(0, 256, (9, 12, 3), dtype=np.uint8))
        encoded = io.BytesIO()
        tiles.resize(size, Image.Resampling.BICUBIC).save(encoded, kind)
        digest, path = put(f"{i}", encoded.getvalue())
        written[digest] = path
    for name, content in (("damaged", encoded.getvalue()[:3000]), ("text", b"no picture")):
        digest, path = put(name, content)
        written[digest] = path
    digest, path = put("changed", encoded.getvalue() + b"1")
    path.write_bytes(b"other")
    return written | {digest: path}


def outcome(files, folder, **options):
    model = load_model("palette")
    folder.mkdir()
    with ContentCache(folder / "cache.db") as cache:
        refused = embed_pictures(
            files, [model], cache, folder / "small", Progress(), threads=2, **options
        )
        facts = cache.facts(list(files))
        good = [digest for digest in files if digest in facts and not facts[digest].problem]
        rows = cache.vectors(model.model_id, good, model.dim).tobytes()
    small = [thumbnail_path(folder / "small", digest).read_bytes() for digest in good]
    assert len(good) == 4
    return refused, facts, rows, small


def test_processes_give_what_threads_give_to_the_last_bit(files, tmp_path):
    in_threads = outcome(files, tmp_path / "threads")
    in_processes = outcome(files, tmp_path / "processes", in_processes=True)
    assert in_processes == in_threads
    assert CHANGED in [skipped.reason for skipped in in_processes[0]]


def test_what_needs_more_than_a_share_of_the_memory_is_decoded_here(files, tmp_path, monkeypatch):
    in_threads = outcome(files, tmp_path / "threads")
    monkeypatch.setattr(decoding_processes, "MAX_DECODING_BYTES", 2_000_000)
    here, decode = [], decoding.open_rgb

    def counted(*args, **options):
        here.append(1)
        return decode(*args, **options)

    monkeypatch.setattr(decoding, "open_rgb", counted)
    assert outcome(files, tmp_path / "processes", in_processes=True) == in_threads
    assert 0 < len(here) < len(files)


class Watched:
    """Memory of which is noted how much was held at once, at most."""

    def __init__(self):
        self.lock, self.held, self.most, self.largest = threading.Lock(), 0, 0, 0

    @contextlib.contextmanager
    def holding(self, n_bytes):
        with self.lock:
            self.held += n_bytes
            self.most, self.largest = max(self.most, self.held), max(self.largest, n_bytes)
        try:
            yield
        finally:
            with self.lock:
                self.held -= n_bytes


def test_what_processes_hold_and_what_is_decoded_here_come_from_one_memory(
    files, tmp_path, monkeypatch
):
    monkeypatch.setattr(decoding_processes, "MAX_DECODING_BYTES", 2_000_000)
    room = Watched()
    decoder = Decoder(64, tmp_path / "small", plain_resize, room)
    with decoding_processes.decoding_in_processes(decoder, 2) as decode:
        for digest, path in files.items():
            decode(digest, path, frozenset([64]))
    # A share is given back before a picture that needs more is decoded here.
    assert room.most == room.largest > 2_000_000
    assert room.held == 0


def test_a_process_that_is_killed_says_so_and_the_next_run_goes_on(many, cache, tmp_path):
    class Killing(MeanColour):
        def encode_images(self, images):
            rows = super().encode_images(images)
            for child in children(os.getpid()):
                if b"popen_loky" in Path(f"/proc/{child}/cmdline").read_bytes():
                    os.kill(child, signal.SIGKILL)
            return rows

    small = tmp_path / "small"
    first = Killing()
    with pytest.raises(SearchlabError, match=r"processes that decode must live, .* start again"):
        embed_pictures(dict(many), [first], cache, small, Progress(), threads=2, in_processes=True)
    rest = MeanColour()
    embed_pictures(dict(many), [rest], cache, small, Progress(), threads=2, in_processes=True)
    assert 0 < len(first.seen) < 100
    assert len(first.seen) + len(rest.seen) >= 100
    assert len(cache.known_vectors(rest.model_id, list(dict(many)))) == 100


# As researchers write scripts: nothing is guarded by `if __name__ == "__main__"`.
SCRIPT = """
import hashlib, sys, time
from pathlib import Path
from searchlab.library.cache import ContentCache
from searchlab.library.embed import embed_pictures
from searchlab.progress import Progress
from tests.support.embedding import MeanColour

print("begun", flush=True)

class Slow(MeanColour):
    def encode_images(self, images):
        print("embedding", flush=True)
        time.sleep(float(sys.argv[2]))  # so that it is in the middle when it is stopped
        return super().encode_images(images)

paths = list(Path(sys.argv[1]).iterdir())
files = {hashlib.sha256(path.read_bytes()).hexdigest(): path for path in paths}
folder = Path(sys.argv[1]).parent
with ContentCache(folder / "cache.db") as cache:
    refused = embed_pictures(
        files, [Slow()], cache, folder / "small", Progress(), threads=2, in_processes=True
    )
print(f"done, {len(refused)} refused")
"""


def start(photos, *, wait_s):
    script = photos.parent / "script.py"
    script.write_text(SCRIPT)
    return subprocess.Popen(
        [sys.executable, str(script), str(photos), str(wait_s)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )


def until_it_embeds(process):
    while "embedding" not in process.stdout.readline():
        assert process.poll() is None, process.stderr.read()
    return children(process.pid)


def test_a_script_that_guards_nothing_runs_once(many):
    process = start(many[0][1].parent, wait_s=0)
    out, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (0, "")
    assert out.count("begun") == 1
    assert out.endswith("done, 0 refused\n")


def test_ctrl_c_reaches_the_one_process_alone_and_leaves_none(many):
    process = start(many[0][1].parent, wait_s=30)
    others = until_it_embeds(process)
    assert len(others) >= 2
    os.killpg(process.pid, signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert error.count("Traceback") == 1
    assert error.endswith("KeyboardInterrupt\n")
    wait_until(lambda: not any(map(is_alive, others)))


def test_processes_end_by_themselves_when_theirs_is_killed(many):
    process = start(many[0][1].parent, wait_s=30)
    others = until_it_embeds(process)
    process.kill()
    process.communicate(timeout=30)  # which waits for all that hold its output
    wait_until(lambda: not any(map(is_alive, others)))


@pytest.mark.parametrize(("threads", "from_photos", "pays"), [(5, 7, 1), (4, 7, 0), (5, 8, 0)])
def test_processes_are_chosen_for_many_pictures_at_once(
    files, tmp_path, monkeypatch, threads, from_photos, pays
):
    made = []

    def noted(*args):
        made.append(args)
        return decoding_processes.decoding_in_processes(*args)

    monkeypatch.setattr(pipeline, "decoding_in_processes", noted)
    monkeypatch.setattr(pipeline, "_PROCESSES_FROM", from_photos)
    with ContentCache(tmp_path / "cache.db") as cache:
        embed_pictures(files, [], cache, tmp_path / "small", Progress(), threads=threads)
    assert len(made) == pays
