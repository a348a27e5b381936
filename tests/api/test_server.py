"""The server: starting, stopping, workers that die, and the command that runs it."""

import http.client
import json
import os
import re
import shutil
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
from click.testing import CliRunner
from PIL import Image
from prometheus_client.parser import text_string_to_metric_families

from searchlab.api.ops import run_folders
from searchlab.api.ops import server as server_module
from searchlab.api.ops.run_folders import run_folder
from searchlab.api.ops.server import Supervisor, bind
from searchlab.api.settings import Settings
from searchlab.cli import searchlab
from searchlab.config import Config
from searchlab.errors import ConflictError, InputError, SearchlabError
from searchlab.library.library import open_library
from tests.support.served import create_key, run_command, serving

pytestmark = pytest.mark.slow

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


def wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "waited for 60 s"
        time.sleep(0.01)


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
    with supervised(workers=2) as server, ThreadPoolExecutor(8) as clients:
        pids = set(clients.map(server.ask, ["/slow"] * 16))
        assert pids == set(server.supervisor.pids)


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
    monkeypatch.setattr(server_module, "_IMPATIENT_S", 0)
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


def test_a_worker_that_cannot_start_says_why(supervised):
    with pytest.raises(SearchlabError, match="the library must be whole, got a part"):
        supervised(app="refuse").__enter__()


ORPHANED = """
import sys
from pathlib import Path
from searchlab.api.ops.server import Supervisor, bind
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


# -- the command ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    photos = folder / "photos"
    photos.mkdir()
    for name in ("red", "green", "blue"):
        Image.new("RGB", (8, 6), name).save(photos / f"{name}.png")
    done = run_command("index", "--data", folder / "library", "--model", "palette", photos)
    assert done.returncode == 0, done.stderr
    return folder / "library"


@pytest.fixture(scope="module")
def server(library):
    with serving(library, "--workers", 2, "--log-format", "json") as running:
        yield running


def get(server, path, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def metrics_of(server):
    status, _, body = get(server, "/metrics")
    assert status == 200
    families = text_string_to_metric_families(body.decode())
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }


@pytest.mark.parametrize("path", ["/health", "/ready"])
def test_health_says_what_is_served_and_needs_no_key(server, path):
    status, headers, body = get(server, path)
    about = json.loads(body)
    assert (status, headers["cache-control"]) == (200, "no-store")
    assert about["snapshot_id"] == server.snapshot
    assert about["config_id"] in server.log
    assert (about["status"], about["ready"], about["n_photos"]) == ("ok", True, 3)


def test_metrics_need_no_key_and_count_what_all_workers_answered(server):
    key = ("searchlab_requests_total", "/health", "2xx", "GET")
    before = metrics_of(server).get(key, 0)
    for _ in range(20):
        get(server, "/health")
    metrics = metrics_of(server)
    assert metrics[key] == before + 20
    assert metrics["searchlab_workers",] == 2


def test_a_key_made_while_it_runs_works_at_once(server):
    secret = create_key(server.data)
    status, headers, _ = get(server, "/api/v1/search/photos?q=red", **{"x-api-key": secret})
    assert status == 200
    assert headers["RateLimit-Policy"] == '"burst";q=400;w=2, "month";q=5000;w=2592000'


def test_the_log_holds_the_request_and_neither_key_nor_query(server):
    secret = create_key(server.data)
    _, headers, _ = get(server, f"/api/v1/facets/colors?q={secret}", **{"x-api-key": secret})
    wait_until(lambda: headers["X-Request-Id"] in server.log)
    (line,) = [line for line in server.log.splitlines() if headers["X-Request-Id"] in line]
    about = json.loads(line)
    assert (about["path"], about["status"]) == ("/api/v1/facets/colors", 200)
    assert about["plan"] == "free"
    assert secret not in server.log


def test_counts_survive_the_worker_that_counted(server):
    key = ("searchlab_requests_total", "/health", "2xx", "GET")
    for _ in range(10):
        get(server, "/health")
    before = metrics_of(server)[key]
    for pid in server.workers:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: server.log.count("died; starting another") >= 2)
    wait_until(lambda: metrics_of(server)["searchlab_workers",] == 2)
    assert metrics_of(server)[key] == before


def test_a_second_server_on_the_same_port_is_refused_in_one_line(server):
    done = run_command("serve", "--data", server.data, "--port", server.port)
    assert done.returncode == 2
    assert done.stderr == (
        f"searchlab: port must be free, got {server.port}, one in use; "
        "stop what uses it or choose another with --port\n"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--workers", "0"], "workers must be from 1 to 256, got 0"),
        (["--port", "65536"], "port must be from 0 to 65535, got 65536"),
        (["--host", "203.0.113.7"], "host must be a name or address of this machine"),
        (["--base-url", "ftp://x"], "base_url must be like https://"),
        (["--config", "no-such.json"], "no-such.json must hold a config as JSON"),
        (["--database-url", "mysql://u:pass@h/d"], ""),
        (["--rate", "0"], "rate_per_second must be from"),
    ],
)
def test_what_cannot_be_served_ends_with_2_and_one_line(library, options, message):
    done = CliRunner().invoke(searchlab, ["serve", "--data", str(library), "--port", "0", *options])
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert "pass@" not in done.stderr


@pytest.mark.parametrize(
    ("words", "environment"),
    [
        (
            "--data D --host 0.0.0.0 --port 81 --workers 3 --config c.json --base-url https://a.b "
            "--cors-origin https://x.y --cors-origin * --database-url postgresql://h/d --rate 5 "
            "--burst 7 --max-in-flight 9 --max-upload-mib 2 --decode-slots 4 --decode-timeout 1.5 "
            "--log-format json --no-access-log",
            {},
        ),
        (
            "",
            {
                "SEARCHLAB_DATA": "D",
                "SEARCHLAB_HOST": "0.0.0.0",
                "SEARCHLAB_PORT": "81",
                "SEARCHLAB_WORKERS": "3",
                "SEARCHLAB_CONFIG": "c.json",
                "SEARCHLAB_BASE_URL": "https://a.b",
                "SEARCHLAB_CORS_ORIGINS": "https://x.y *",
                "SEARCHLAB_DATABASE_URL": "postgresql://h/d",
                "SEARCHLAB_RATE": "5",
                "SEARCHLAB_BURST": "7",
                "SEARCHLAB_MAX_IN_FLIGHT": "9",
                "SEARCHLAB_MAX_UPLOAD_MIB": "2",
                "SEARCHLAB_DECODE_SLOTS": "4",
                "SEARCHLAB_DECODE_TIMEOUT": "1.5",
                "SEARCHLAB_LOG_FORMAT": "json",
                "SEARCHLAB_ACCESS_LOG": "false",
            },
        ),
    ],
)
def test_options_and_variables_say_the_same(monkeypatch, words, environment):
    settings = []
    monkeypatch.setattr(server_module, "serve", settings.append)
    done = CliRunner().invoke(searchlab, ["serve", *words.split()], env=environment)
    assert (done.exit_code, done.output) == (0, "")
    expected = Settings(
        data=Path("D"),
        config=Path("c.json"),
        database_url="postgresql://h/d",
        host="0.0.0.0",
        port=81,
        workers=3,
        base_url="https://a.b",
        cors_origins=("https://x.y", "*"),
        rate_per_second=5,
        rate_burst=7,
        max_in_flight=9,
        max_upload_bytes=2 * 2**20,
        decode_slots=4,
        decode_timeout_s=1.5,
        log_format="json",
        access_log=False,
    )
    assert settings == [expected]


def test_a_folder_that_is_no_library_ends_with_2_and_one_line(tmp_path):
    done = CliRunner().invoke(searchlab, ["serve", "--data", str(tmp_path / "none")])
    assert done.exit_code == 2
    assert "a library must hold library.json" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_library_whose_snapshot_is_damaged_ends_with_2_and_one_line(library, tmp_path):
    copy = tmp_path / "library"
    shutil.copytree(library, copy)
    (vectors,) = copy.glob("snapshots/*/vectors.npy")
    vectors.write_bytes(b"damaged")
    done = CliRunner().invoke(searchlab, ["serve", "--data", str(copy), "--port", "0"])
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert "must be as it was written" in done.stderr


def test_a_configuration_is_served_and_an_interrupt_ends_it_with_0_and_leaves_nothing(
    library, tmp_path
):
    copy = tmp_path / "library"
    shutil.copytree(library, copy)
    before = open_library(copy).snapshot()
    chosen = Config(model="palette", depth=123)
    file = tmp_path / "chosen.json"
    file.write_text(json.dumps({"config": chosen.to_dict()}), encoding="utf-8")
    with serving(copy, "--config", file, "--no-access-log") as running:
        about = json.loads(get(running, "/health")[2])
        workers = running.workers
        assert running.stop(signal.SIGINT) == 0
        assert len(running.log.splitlines()) == 1
    expected = chosen.with_model_id(before.config.model_id).config_id
    assert about["config_id"] == expected != before.config.config_id
    assert [pid for pid in workers if Path(f"/proc/{pid}").exists()] == []


def test_a_configuration_that_cannot_be_served_ends_with_2_and_one_line(library, tmp_path):
    chosen = tmp_path / "chosen.json"
    other = Config(model="palette", model_id="palette-ffffffffffff").to_dict()
    chosen.write_text(json.dumps({"config": other}), encoding="utf-8")
    before = (library / "CURRENT").read_text()
    words = ["serve", "--data", str(library), "--port", "0", "--config", str(chosen)]
    done = CliRunner().invoke(searchlab, words)
    assert done.exit_code == 2
    assert done.stderr.startswith("searchlab: ")
    assert "palette-ffffffffffff" in done.stderr
    assert done.stderr.count("\n") == 1
    assert (library / "CURRENT").read_text() == before


HEAVY = ("torch", "ranx", "matplotlib", "sklearn", "numba", "pandas", "scipy")


def test_a_worker_loads_nothing_that_answers_do_not_need():
    code = (
        "import json, sys\n"
        "import searchlab.api.ops.worker, searchlab.api.app\n"
        "print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(json.loads(done.stdout)).isdisjoint(HEAVY)
