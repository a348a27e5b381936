"""Connections: sockets that are not read from are closed, and what one address has too many of."""

import contextlib
import fcntl
import logging
import os
import re
import resource
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import httpx
import pytest
from PIL import Image

from searchlab.api.http.addresses import Proxies
from searchlab.api.ops.connections import Connections
from searchlab.config import Config
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library, open_library
from searchlab.library.roots import check_root
from tests.support.pictures import encoded
from tests.support.served import COMMAND, create_key, serving
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc and tcp_info")

_IDLE = 9_000
_ASK = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        print("locked", end="")
"""


class Pairs:
    """A listening socket, and connections to it from any address of this machine."""

    def __init__(self, stack):
        self._stack = stack
        self._listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.port = self._listener.getsockname()[1]

    def connect(self, address="127.0.0.1"):
        ours = socket.create_connection(("127.0.0.1", self.port), source_address=(address, 0))
        theirs, _ = self._listener.accept()
        return self._stack.enter_context(ours), self._stack.enter_context(theirs)


@pytest.fixture
def pairs():
    with contextlib.ExitStack() as stack:
        yield Pairs(stack)


def watch(pairs, *, most=100, send_timeout_s=30.0, proxies=None):
    return Connections(
        pairs.port,
        most_of_address=most,
        send_timeout_s=send_timeout_s,
        proxies=proxies or Proxies("", ()),
    )


def fill(sender):
    sender.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            sender.send(bytes(65_536))


def is_closed(theirs):
    try:
        theirs.setblocking(False)
        theirs.send(b"x")
    except BlockingIOError:
        return False
    except BrokenPipeError:
        return True
    return False


def test_a_client_that_reads_nothing_is_closed_and_one_that_reads_is_not(pairs, caplog):
    _, stalled = pairs.connect()
    reader, read_from = pairs.connect()
    _, idle = pairs.connect()
    connections = watch(pairs, send_timeout_s=0.05)
    for sender in (stalled, read_from):
        fill(sender)
    with caplog.at_level(logging.WARNING):
        assert connections.look() == 0
        deadline = time.monotonic() + 5
        while not is_closed(stalled) and time.monotonic() < deadline:
            reader.recv(2**20)
            fill(read_from)
            connections.look()
            time.sleep(0.01)
    assert is_closed(stalled)
    assert not is_closed(read_from)
    assert not is_closed(idle)
    assert "closed 1 connections whose clients read nothing for 0.05 s" in caplog.text


def test_of_too_many_connections_of_an_address_the_most_idle_are_closed(pairs, caplog):
    crowd = [pairs.connect() for _ in range(6)]
    _, other = pairs.connect("127.0.0.2")
    time.sleep(0.02)
    for ours, _ in crowd[:4]:
        ours.send(b"GET")
    with caplog.at_level(logging.WARNING):
        assert watch(pairs, most=4).look() == 2
    assert [is_closed(theirs) for _, theirs in crowd] == 4 * [False] + 2 * [True]
    assert not is_closed(other)
    assert "closed 2 connections of 127.0.0.1, which had more than 4" in caplog.text


def test_a_trusted_proxy_may_hold_any_number(pairs):
    crowd = [pairs.connect() for _ in range(6)]
    proxies = Proxies("X-Forwarded-For", ["127.0.0.1"])
    assert watch(pairs, most=4, proxies=proxies).look() == 0
    assert not any(is_closed(theirs) for _, theirs in crowd)


def test_looking_leaves_no_file_open(pairs):
    for _ in range(20):
        pairs.connect()
    connections = watch(pairs)
    connections.look()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        connections.look()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


# -- a real server ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stalled")
    (folder / "photos").mkdir()
    Image.effect_noise((2_400, 2_400), 90).save(folder / "photos" / "large.png")
    library = create_library(folder / "library")
    index_photos(library, [check_root(folder / "photos")], config=Config(model="palette"))
    return folder / "library"


@pytest.fixture(scope="module")
def server(library):
    with serving(library, "--send-timeout", "3", "--no-access-log") as server:
        yield server


def resident_mib(pid):
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def knock(server, address, request=b""):
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    client.bind((address, 0))
    client.connect(("127.0.0.1", server.port))
    client.sendall(request)
    return client


@pytest.fixture(scope="module")
def others(library, server):
    """Ask for all kinds of answers from another address: those that were not 200 within 5 s."""
    photo_id = open_library(library).snapshot().table.photo(0).photo_id
    key = {"x-api-key": create_key(library)}
    picture = {"image": ("small.png", encoded(Image.new("RGB", (90, 60), "teal"), "PNG"))}
    asked = [
        ("GET", "/health", {}),
        ("GET", f"/media/{photo_id}/full", {}),
        ("GET", f"/media/{photo_id}/thumb", {}),
        ("GET", "/api/v1/collections", {"headers": key}),
        ("GET", "/api/v1/search/photos?q=teal", {"headers": key}),
        ("POST", "/api/v1/search/photos", {"headers": key, "files": picture}),
    ]

    def ask():
        transport = httpx.HTTPTransport(local_address="127.0.7.7")
        failed = {}
        with httpx.Client(transport=transport, base_url=server.base_url, timeout=10) as client:
            for method, path, sent in asked:
                started = time.monotonic()
                status = client.request(method, path, **sent).status_code
                took = time.monotonic() - started
                if status != 200 or took > 5:
                    failed[method, path] = (status, took)
        return failed

    return ask


def is_answered(server):
    started = time.monotonic()
    with urllib.request.urlopen(f"{server.base_url}/health", timeout=10) as answer:
        assert answer.status == 200
    return time.monotonic() - started < 5


@pytest.mark.slow
def test_readers_that_stall_cost_little_memory_and_are_closed(library, server, others):
    worker = server.workers[0]
    photo_id = open_library(library).snapshot().table.photo(0).photo_id
    request = f"GET /media/{photo_id}/full HTTP/1.1\r\nHost: a\r\n\r\n".encode()
    base = resident_mib(worker)
    for wave in range(2):
        with contextlib.ExitStack() as stack:
            for number in range(1_200):
                stack.enter_context(knock(server, f"127.0.{wave}.{number % 9 + 2}", request))
            wait_until(lambda: resident_mib(worker) > base + 40)
            assert others() == {}
            time.sleep(1)
            assert resident_mib(worker) < base + 450
            # Given back while all clients are still there; some got a 503, which is short.
            wait_until(lambda: "clients read nothing for 3 s" in server.log)
            wait_until(lambda: resident_mib(worker) < base + 300)
        wait_until(lambda: resident_mib(worker) < base + 200)  # huge pages are given back late
        wait_until(lambda: len(list(Path(f"/proc/{worker}/fd").iterdir())) < 100)


@pytest.mark.slow
def test_idle_connections_of_one_address_do_not_stop_others(server, others):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < _IDLE + 1_000:
        pytest.skip(f"needs {_IDLE + 1_000} open files, may have {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        with contextlib.ExitStack() as stack:
            for _ in range(_IDLE):
                stack.enter_context(knock(server, "127.0.9.9"))
            for _ in range(3):
                assert others() == {}
            wait_until(lambda: len(list(Path(f"/proc/{server.workers[0]}/fd").iterdir())) < 700)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.slow
def test_bodies_that_wait_hold_little_memory_however_many_come(library, server, others):
    worker = server.workers[0]
    boundary = "cut"
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="image"; filename="a"\r\n\r\n'
    picture = encoded(Image.new("RGB", (90, 60)), "PNG") + bytes(9_000_000)
    base = resident_mib(worker)
    most, taken = base, 0
    with contextlib.ExitStack() as stack:
        for account in range(8):
            key = create_key(library, account=f"waits-{account}", plan="growth")
            request = (
                "POST /api/v1/search/photos HTTP/1.1\r\nHost: a\r\n"
                f"x-api-key: {key}\r\nContent-Length: {10_000_000}\r\n"
                f"Content-Type: multipart/form-data; boundary={boundary}\r\n\r\n{head}"
            ).encode()
            for _ in range(12):  # together 864 MB, whose ends never come
                client = stack.enter_context(knock(server, f"127.0.8.{account + 1}"))
                client.settimeout(2)
                with contextlib.suppress(OSError):  # refused, and no longer read
                    client.sendall(request + picture)
                    taken += 1
                most = max(most, resident_mib(worker))
        assert others() == {}
        most = max(most, resident_mib(worker))
    assert taken >= 30  # more than there is room for, or nothing was tried
    assert most < base + 400
    wait_until(lambda: resident_mib(worker) < base + 150)


LIMITED = ["bash", "-c", 'ulimit "-$1" "$2"; shift 2; exec "$@"', "bash"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limit", "refusal"),
    [
        (
            ("n", "200"),
            r"a worker must be allowed 256 open files or more, got 200; see `ulimit -n`",
        ),
        (
            ("v", "1200000"),
            r"allowed [\d,]+ KiB of address space or more, got 1,200,000; see `ulim",
        ),
        (("v", "500000"), r"allowed [\d,]+ KiB of address space or more, got 500,000; see `ulim"),
    ],
)
def test_too_little_of_what_a_worker_needs_is_refused_at_the_start(library, limit, refusal):
    done = subprocess.run(
        [*LIMITED, *limit, *COMMAND, "serve", "--data", str(library), "--port", "0"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert re.search(refusal, done.stderr.splitlines()[-1])


@pytest.fixture(scope="module")
def with_few_files(library):
    limits = ("--no-access-log", "--send-timeout", "5")
    with serving(library, *limits, before=[*LIMITED, "n", "320"]) as server:
        yield server


@pytest.mark.slow
def test_with_few_open_files_one_address_leaves_half_of_the_connections_to_others(with_few_files):
    with contextlib.ExitStack() as stack:
        for _ in range(160):
            stack.enter_context(knock(with_few_files, "127.0.9.9"))
        assert is_answered(with_few_files)


@pytest.mark.slow
def test_with_more_clients_than_open_files_accepting_neither_fails_nor_spins(
    library, with_few_files
):
    server, worker = with_few_files, with_few_files.workers[0]
    photo_id = open_library(library).snapshot().table.photo(0).photo_id
    request = f"GET /media/{photo_id}/full HTTP/1.1\r\nHost: a\r\n\r\n".encode()
    with contextlib.ExitStack() as stack:
        # All that a connection may cost: its socket, and the file that is sent and not taken.
        for number in range(400):
            stack.enter_context(knock(server, f"127.0.1.{number % 40 + 2}", request))
        time.sleep(1)  # until the worker has looked at its connections
        most, spent = 0, cpu_seconds(worker)
        for _ in range(20):
            most = max(most, len(list(Path(f"/proc/{worker}/fd").iterdir())))
            time.sleep(0.1)  # together the 2 s whose time of the CPU is counted
        assert 100 < most < 320
        assert cpu_seconds(worker) - spent < 0.2
    wait_until(lambda: is_answered(server))


def test_looking_gives_up_no_lock_of_a_file(tmp_path):
    """A lock is the process's own: SQLite loses what is written to a database without its locks."""
    path = tmp_path / "locked"
    with path.open("wb") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        Connections(1, most_of_address=9, send_timeout_s=9, proxies=Proxies("", [])).look()
        asked = subprocess.run(
            [sys.executable, "-c", _ASK, path], capture_output=True, text=True, check=True
        )
    assert asked.stdout == "locked"
