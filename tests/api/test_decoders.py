"""Decoders: pictures are decoded in processes with limits, whatever the pictures do."""

import contextlib
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from PIL import Image

from searchlab.api.http import decoders as module
from searchlab.api.http.decoders import Decoders, TooBusyError, TooSlowError
from searchlab.api.http.decoding import (
    MAX_EFFORT,
    NICE,
    READY,
    REQUEST,
    check_effort,
    open_for_model,
)
from searchlab.errors import ImageError
from searchlab.photos.images.effort import decoding_effort
from tests.support.pictures import encoded
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

PICTURE = encoded(Image.effect_noise((640, 480), 60).convert("RGB"), "JPEG")


@pytest.fixture(scope="module")
def decoders():
    with contextlib.closing(Decoders(60)) as decoders:
        yield decoders


def repeated_scans(side, times):
    """A progressive JPEG of one colour, whose last scan is repeated."""
    content = encoded(Image.new("RGB", (side, side), "teal"), "JPEG", progressive=True)
    last = content.rindex(b"\xff\xda")
    return content[:last] + content[last:-2] * times + b"\xff\xd9"


def test_the_picture_is_the_same_as_in_this_process_and_the_process_is_used_again(decoders):
    assert decoders.decode(PICTURE, 64).tobytes() == open_for_model(PICTURE, 64).tobytes()
    pids = decoders.pids
    with pytest.raises(ImageError) as caught:
        decoders.decode(PICTURE[:4_000], 64)
    assert caught.value.reason == "damaged"
    assert decoders.decode(PICTURE, 100).size == (133, 100)
    assert decoders.pids == pids


def test_several_at_once_each_get_their_own(decoders):
    pictures = [encoded(Image.new("RGB", (90, 90), (n, n, n)), "PNG") for n in range(0, 200, 50)]
    results = [None] * len(pictures)

    def decode(place):
        results[place] = decoders.decode(pictures[place], 30).getpixel((5, 5))[0]

    threads = [threading.Thread(target=decode, args=(n,)) for n in range(len(pictures))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == list(range(0, 200, 50))


def test_a_process_that_dies_is_a_damaged_picture_and_then_replaced():
    with contextlib.closing(Decoders(60)) as decoders:
        decoders.decode(PICTURE, 64)
        (pid,) = decoders.pids
        os.kill(pid, signal.SIGSTOP)
        failures = []

        def decode():
            with pytest.raises(ImageError) as caught:
                decoders.decode(encoded(Image.new("RGB", (9, 9)), "PNG"), 64)
            failures.append(caught.value.reason)

        thread = threading.Thread(target=decode)
        thread.start()
        wait_until(lambda: not decoders._idle)
        time.sleep(0.05)  # until all of the picture is in the pipe
        os.kill(pid, signal.SIGKILL)
        thread.join()
        assert failures == ["damaged"]
        assert decoders.decode(PICTURE, 64).size == (85, 64)


def test_a_process_that_died_while_it_was_idle_is_replaced(decoders):
    decoders.decode(PICTURE, 64)
    for pid in decoders.pids:
        os.kill(pid, signal.SIGKILL)
    assert decoders.decode(PICTURE, 64).size == (85, 64)


SPINS = "while True: pass"
SLEEPS = "import time; time.sleep(600)"


@pytest.mark.parametrize(("program", "error"), [(SPINS, TooSlowError), (SLEEPS, TooBusyError)])
def test_what_takes_too_long_is_stopped_and_a_picture_is_blamed_only_for_its_own_time(
    monkeypatch, program, error
):
    monkeypatch.setattr(module, "_OWN_SHARE", 0.02)  # of a machine that is busy with tests as well
    monkeypatch.setattr(module, "_COMMAND", (sys.executable, "-S", "-c", program))
    started = time.monotonic()
    with contextlib.closing(Decoders(3)) as decoders:
        with pytest.raises(error):
            decoders.decode(PICTURE, 64)
        assert decoders.pids == []
    assert time.monotonic() - started < 30


def test_after_a_large_picture_its_memory_is_given_back(decoders):
    decoders.decode(encoded(Image.new("RGB", (6_000, 6_000)), "PNG"), 64)
    wait_until(lambda: all(resident_mib(pid) < 200 for pid in decoders.pids))


def test_after_a_wave_one_process_stays(monkeypatch):
    monkeypatch.setattr(module, "_IDLE_S", 0.3)
    with contextlib.closing(Decoders(60)) as decoders:
        for _ in range(2):
            threads = [
                threading.Thread(target=decoders.decode, args=(PICTURE, 64)) for _ in range(4)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            wait_until(lambda: len(decoders.pids) == 1)
        (first,) = decoders.pids
        decoders.decode(PICTURE, 64)
        time.sleep(1)  # three times as long as the others may be idle
        assert decoders.pids == [first]


LEAVES = """
import os, pathlib, sys, time
os.write(1, {ready!r})
sys.stdin.buffer.read(1)
time.sleep(0.3)  # until all of the picture is in the pipe
pathlib.Path({path!r}).touch()
"""


def test_a_process_that_ends_just_when_a_picture_comes_is_replaced(monkeypatch, tmp_path):
    leaves = LEAVES.format(path=str(tmp_path / "left"), ready=READY)
    monkeypatch.setattr(module, "_COMMAND", (sys.executable, "-c", leaves))
    with contextlib.closing(Decoders(60)) as decoders:
        start = decoders._take

        def take():
            if (tmp_path / "left").exists():
                monkeypatch.undo()
            return start()

        decoders._take = take
        tiny = encoded(Image.new("RGB", (9, 9)), "PNG")
        assert decoders.decode(tiny, 64).size == (9, 9)
    assert (tmp_path / "left").exists()


SMALL = "import searchlab.api.http.decoding as d; d.MEMORY_BYTES = 64 << 20; d.main()"


def test_memory_is_bounded_by_the_system(monkeypatch, decoders):
    decoders.decode(PICTURE, 64)
    for pid in decoders.pids:
        limits = Path(f"/proc/{pid}/limits").read_text(encoding="ascii")
        assert int(re.search(r"Max address space +(\d+)", limits)[1]) < 3 * 2**30
    monkeypatch.setattr(module, "_COMMAND", (sys.executable, "-c", SMALL))
    with contextlib.closing(Decoders(60)) as small:
        assert small.decode(PICTURE, 64).size == (85, 64)
        with pytest.raises(ImageError, match="in 64 MiB of memory") as caught:
            small.decode(encoded(Image.new("RGB", (6_000, 6_000)), "PNG"), 64)
        assert caught.value.reason == "too complex"
        assert small.decode(PICTURE, 64).size == (85, 64)


ENDLESS = """
import searchlab.api.http.decoding as d

def decode(content, input_size):
    while True:
        pass

d.open_for_model = decode
d.main()
"""


def test_time_is_bounded_by_the_system_as_well_should_nobody_look():
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run(
        [sys.executable, "-c", ENDLESS, "inf"],
        input=REQUEST.pack(len(PICTURE), 64, 1.0) + PICTURE,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == -signal.SIGXCPU
    assert done.stdout == READY
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 4


def resident_mib(pid):
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) / 256
    return 0


def test_decoding_gives_way_to_searches(decoders):
    decoders.decode(PICTURE, 64)
    own = os.getpriority(os.PRIO_PROCESS, 0)
    others = {os.getpriority(os.PRIO_PROCESS, pid) for pid in decoders.pids}
    assert others == {min(19, own + NICE)}


def test_processes_end_with_their_owner():
    decoders = Decoders(20)
    decoders.decode(PICTURE, 64)
    (pid,) = decoders.pids
    decoders.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_no_process_is_too_little_memory(monkeypatch):
    monkeypatch.setattr(module, "_COMMAND", ("/no/such/program",))
    with contextlib.closing(Decoders(60)) as decoders, pytest.raises(MemoryError):
        decoders.decode(PICTURE, 64)


@pytest.mark.parametrize(
    ("kind", "options", "passes"),
    [
        ("JPEG", {}, 1),
        ("JPEG", {"progressive": True}, 10),
        ("PNG", {}, 2),
        ("WEBP", {"lossless": True}, 2),
        ("WEBP", {}, 2),
        ("AVIF", {}, 4),
    ],
)
def test_pixels_and_passes_are_read_from_the_structure(kind, options, passes):
    content = encoded(Image.new("RGB", (123, 45), "red"), kind, **options)
    assert decoding_effort(content, kind) == (123 * 45, passes)
    for end in range(0, len(content), 7):
        assert decoding_effort(content[:end], kind).pixels in {0, 123 * 45}


def test_scans_that_are_repeated_are_refused_before_anything_is_decoded(monkeypatch):
    monkeypatch.setattr("searchlab.api.http.decoding.MAX_EFFORT", 50 * 300 * 300)
    content = repeated_scans(300, 60)
    assert decoding_effort(content, "JPEG").passes == 69
    with pytest.raises(ImageError, match="6,210,000") as caught:
        check_effort(content)
    assert caught.value.reason == "too complex"
    assert check_effort(repeated_scans(300, 9)) <= MAX_EFFORT


@pytest.mark.parametrize("size", [100, 1 << 20])
@pytest.mark.parametrize("command", [("false",), ("true",)])
def test_where_no_process_stays_alive_no_picture_is_blamed(monkeypatch, command, size):
    monkeypatch.setattr(module, "_COMMAND", command)
    with contextlib.closing(Decoders(60)) as decoders:
        with pytest.raises(MemoryError, match="must stay alive, got 5 that ended at once"):
            decoders.decode(bytes(size), 64)
        assert decoders.pids == []
