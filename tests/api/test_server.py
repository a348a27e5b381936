"""The server: starting, stopping, workers that die, and the command that runs it."""

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from searchlab.api.accounts.clock import ENVIRONMENT, utc_now
from searchlab.api.ops import run_folders
from searchlab.api.ops import server as server_module
from searchlab.api.ops.listening import bind
from searchlab.api.ops.run_folders import run_folder
from searchlab.api.ops.server import Supervisor
from searchlab.api.settings import Settings
from searchlab.errors import ConflictError, InputError, SearchlabError
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow
YEARS_S = 3 * 365 * 86_400
APP = """
import asyncio, os, sys
from searchlab.cli import searchlab
from searchlab.config import Config
from searchlab.errors import DataError

MARKS = os.environ["MARKS"]

def mark(word):
    with open(os.path.join(MARKS, f"{word}-{os.getpid()}"), "w"):
        pass

def create():
    return app

def refuse():
    return refusing

async def refusing(scope, receive, send):
    raise DataError("the library must be whole, got a part")

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        await asyncio.sleep(0.3)
        mark("warm")
        await send({"type": "lifespan.startup.complete"})
        await receive()
        mark("closed")
        await send({"type": "lifespan.shutdown.complete"})
        return
    if scope["path"] in ("/slow", "/endless"):
        mark("busy")
        await asyncio.sleep(0.5 if scope["path"] == "/slow" else 60)
    body = str(os.getpid()).encode()
    if scope["path"].startswith("/environ/"):
        body = os.environ[scope["path"].split("/")[-1]].encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
"""


class Supervised:
    """A supervisor of workers that run the small application above, in a thread."""

    def __init__(self, folder, monkeypatch, *, workers=1, app="create"):
        self.marks = folder / "marks"
        self.marks.mkdir()
        (folder / "small_app.py").write_text(APP, encoding="utf-8")
        monkeypatch.setenv("PYTHONPATH", str(folder))
        monkeypatch.setenv("MARKS", str(self.marks))
        self.notes = []
        self._listener = bind("127.0.0.1", 0)
        self.port = self._listener.getsockname()[1]
        settings = Settings(data=folder, workers=workers)
        self.supervisor = Supervisor(settings, self._listener, app=f"small_app:{app}")
        self._thread = threading.Thread(target=self.supervisor.run, args=(self.notes.append,))

    def __enter__(self):
        try:
            self.supervisor.start()
        except BaseException:
            self.supervisor.close()
            raise
        self._thread.start()
        return self

    def __exit__(self, *about):
        self.stop()

    def stop(self):
        if self._thread.is_alive():
            self.supervisor.stop()
            self._thread.join()
            self.supervisor.close()

    def ask(self, path="/"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", path)
            answer = connection.getresponse().read()
            return answer.decode() if path.startswith("/environ/") else int(answer)
        finally:
            connection.close()

    def marked(self, word):
        return sorted(int(path.name.split("-")[1]) for path in self.marks.glob(f"{word}-*"))


def ask_until(server, condition):
    while not condition():
        server.ask()
    server.ask()


@pytest.fixture
def supervised(tmp_path, monkeypatch):
    def start(**options):
        return Supervised(tmp_path, monkeypatch, **options)

    return start


# -- workers ------------------------------------------------------------------------------------


def test_a_connection_is_refused_until_a_worker_is_warm(supervised):
    waiting = supervised()
    with pytest.raises(ConnectionRefusedError):
        waiting.ask()
    with waiting:
        assert waiting.marked("warm") == [waiting.ask()]


def test_several_workers_answer_on_one_port(supervised):
    # They share a listener: on a busy machine one may take a whole round before the other wakes.
    with supervised(workers=2) as server, ThreadPoolExecutor(8) as clients:
        answered = set()

        def both_answered():
            answered.update(clients.map(server.ask, ["/slow"] * 8))
            return answered == set(server.supervisor.pids)

        wait_until(both_answered)


def test_workers_use_one_thread_and_large_pages_unless_told_otherwise(supervised, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    with supervised() as server:
        assert server.ask("/environ/OMP_NUM_THREADS") == "1"
        assert server.ask("/environ/OPENBLAS_NUM_THREADS") == "3"
        assert server.ask("/environ/GLIBC_TUNABLES") == "glibc.malloc.hugetlb=1"


def test_told_to_stop_it_finishes_what_it_is_working_on_and_takes_nothing_new(supervised):
    with supervised() as server, ThreadPoolExecutor(2) as clients:
        running = clients.submit(server.ask, "/slow")
        wait_until(lambda: server.marked("busy"))
        stopping = clients.submit(server.stop)
        wait_until(lambda: server._listener.fileno() == -1)
        with pytest.raises(OSError, match=r"refused|reset"):
            ask_until(server, stopping.done)
        (pid,) = server.marked("warm")
        assert running.result() == pid
        stopping.result()
        assert server.marked("closed") == [pid]


def test_told_twice_it_does_not_wait_for_what_is_running(supervised, monkeypatch):
    monkeypatch.setattr(server_module, "_FORCE_AFTER_S", 0)
    with supervised() as server, ThreadPoolExecutor(2) as clients:
        running = clients.submit(server.ask, "/endless")
        wait_until(lambda: server.marked("busy"))
        stopping = clients.submit(server.stop)
        wait_until(lambda: server._listener.fileno() == -1)
        server.supervisor.stop()
        stopping.result(30)
        with pytest.raises((OSError, http.client.HTTPException)):
            running.result(30)


def test_a_worker_that_cannot_be_replaced_at_once_is_replaced_later(supervised, monkeypatch):
    monkeypatch.setattr(server_module, "_RETRY_S", (0.0,))
    with supervised() as server:
        starting = server_module.subprocess.Popen
        failures = iter([OSError(11, "Resource temporarily unavailable")])

        def start(*arguments, **options):
            for failure in failures:
                raise failure
            return starting(*arguments, **options)

        monkeypatch.setattr(server_module.subprocess, "Popen", start)
        os.kill(server.supervisor.pids[0], signal.SIGKILL)
        wait_until(lambda: len(server.notes) == 2)
        assert server.notes[1] == "worker 1 cannot be started: Resource temporarily unavailable"
        assert server.ask() in server.marked("warm")


def test_an_idle_connection_does_not_hold_up_the_end(supervised):
    with supervised() as server:
        idle = socket.create_connection(("127.0.0.1", server.port))
        idle.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert idle.recv(1000).startswith(b"HTTP/1.1 200 OK")
        server.stop()
        assert idle.recv(1000) == b""
        idle.close()


def test_a_worker_that_is_killed_is_replaced_and_nobody_is_refused_meanwhile(supervised):
    with supervised() as server:
        (before,) = server.supervisor.pids
        os.kill(before, signal.SIGKILL)
        wait_until(lambda: server.notes)
        (after,) = {server.ask() for _ in range(3)}
        assert after != before
        assert server.notes == ["worker 1 died; starting another"]


def test_a_worker_that_replaces_another_while_the_clock_is_wrong_goes_by_the_right_time(
    supervised, monkeypatch
):
    with supervised() as server:
        (before,) = server.supervisor.pids
        monkeypatch.setattr(utc_now, "_wall", lambda: time.time() + YEARS_S)
        os.kill(before, signal.SIGKILL)
        wait_until(lambda: server.notes)
        wait_until(lambda: server.supervisor.pids not in ([], [before]))
        handed_on = [environment_of(pid)[ENVIRONMENT] for pid in server.supervisor.pids]
        right = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        assert [abs(float(text) - right) < 60 for text in handed_on] == [True]


def environment_of(pid):
    entries = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return dict(entry.split("=", 1) for entry in entries if entry)


def test_a_worker_that_cannot_start_says_why(supervised):
    with pytest.raises(SearchlabError, match="the library must be whole, got a part"):
        supervised(app="refuse").__enter__()


ORPHANED = """
import sys
from pathlib import Path
from searchlab.api.ops.listening import bind
from searchlab.api.ops.server import Supervisor
from searchlab.api.settings import Settings
supervisor = Supervisor(
    Settings(data=Path(), workers=2), bind("127.0.0.1", 0), app="small_app:create"
)
supervisor.start()
print(*supervisor.pids, flush=True)
sys.stdin.read()
"""


def test_workers_stop_when_the_server_is_killed(supervised):
    server = supervised()
    with subprocess.Popen(
        [sys.executable, "-c", ORPHANED], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        pids = sorted(map(int, parent.stdout.readline().split()))
        parent.kill()
        parent.wait()
        wait_until(lambda: server.marked("closed") == pids)
    server.supervisor.close()


def exchange(server, data):
    """Send bytes on a connection of their own and return the status lines that come back."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
        client.sendall(data + b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        came = b""
        while part := client.recv(65_536):
            came += part
    return re.findall(rb"HTTP/1\.1 (\d+)", came)


PLAIN = b"GET / HTTP/1.1\r\nHost: a\r\n"


def test_strange_requests_are_refused_and_hold_up_nobody(supervised):
    with supervised() as server, ExitStack() as stack:
        for _ in range(200):
            half = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            half.sendall(PLAIN[:9])
        assert exchange(server, 3 * (PLAIN + b"\r\n")) == [b"200"] * 4
        assert exchange(server, PLAIN + b"X: " + b"a" * 100_000 + b"\r\n\r\n") == [b"200"] * 2
        assert exchange(server, PLAIN + b"X: " + b"a" * 1_000_000 + b"\r\n\r\n") == [b"431"]
        assert exchange(server, b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n") == [b"414"]
        assert exchange(server, PLAIN + b"X: a\0b\r\n\r\n") == [b"400"]
        assert exchange(server, PLAIN + b"Content-Length: -1\r\n\r\n") == [b"400"]
        assert exchange(server, b"\x16\x03\x01\r\n\r\n") == [b"400"]


# -- the socket -----------------------------------------------------------------------------------


def test_a_port_in_use_is_refused_with_what_to_do():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(
            ConflictError, match=rf"port must be free, got {port}, one in use; stop"
        ):
            bind("127.0.0.1", port)


def test_the_end_of_an_answer_does_not_wait_for_its_beginning_to_be_acknowledged():
    with bind("127.0.0.1", 0) as listener:
        listener.listen()
        with socket.create_connection(listener.getsockname()):
            connection, _ = listener.accept()
            with connection:
                assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


@pytest.mark.parametrize("host", ["203.0.113.7", "no such host", "a" * 300, "\0"])
def test_a_host_of_another_machine_is_refused(host):
    with pytest.raises(InputError, match="host must be a name or address of this machine"):
        bind(host, 0)


# -- the run folder -------------------------------------------------------------------------------


def test_a_run_folder_is_there_for_as_long_as_it_is_used(tmp_path):
    with run_folder(tmp_path) as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        with run_folder(tmp_path) as other:
            assert other != folder
        assert folder.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_server_left_is_removed_by_the_next(tmp_path):
    leftover = tmp_path / "searchlab-serve-0"
    leftover.mkdir()
    (leftover / "in-use").write_bytes(b"")
    (leftover / "worker-000.counts").write_bytes(b"")
    with run_folder(tmp_path):
        assert not leftover.exists()


def test_counters_are_kept_in_memory_where_the_system_has_a_place_for_it(monkeypatch, tmp_path):
    monkeypatch.setattr(run_folders, "_MEMORY", tmp_path)
    with run_folder() as folder:
        assert folder.parent == tmp_path
