"""StandIn: while no worker lives, requests are answered 503, and by workers again when one does."""

import contextlib
import gc
import http.client
import json
import os
import signal
import socket
import threading

import pytest

from searchlab.api.ops import server as server_module
from searchlab.api.ops.server import Supervisor, bind
from searchlab.api.ops.stand_in import StandIn
from searchlab.api.settings import Settings
from tests.support.waiting import wait_until

APP = """
import os, pathlib

def create():
    if pathlib.Path(os.environ["BROKEN"]).exists():
        from searchlab.errors import DataError
        raise DataError("the library must be whole, got a part")
    return app

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        for kind in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{kind}.complete"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"worker"})
"""


def ask(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", "/api/v1/usage")
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def test_every_request_gets_the_envelope_and_a_time_to_wait():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        stand_in = StandIn(listener)
        try:
            with socket.create_connection(("127.0.0.1", port)):  # sends nothing, and stops nobody
                status, headers, body = ask(port)
        finally:
            stand_in.close()
        assert (status, headers["retry-after"], headers["connection"]) == (503, "2", "close")
        answer = json.loads(body)
        assert set(answer) == {"success", "data", "meta", "error", "pagination"}
        assert answer["error"]["code"] == "OVERLOADED"
        # The socket still listens, for the workers.
        socket.create_connection(("127.0.0.1", port)).close()


@pytest.mark.slow
def test_an_upload_that_is_still_under_way_reads_its_answer():
    body = bytes(20_000_000)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        stand_in = StandIn(listener)
        try:
            for _ in range(10):
                connection = http.client.HTTPConnection(*listener.getsockname(), timeout=20)
                with contextlib.closing(connection):
                    connection.request("POST", "/api/v1/search/photos", body)
                    assert connection.getresponse().status == 503
        finally:
            stand_in.close()


def test_who_sends_without_end_is_left():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        stand_in = StandIn(listener)
        try:
            with socket.create_connection(listener.getsockname(), timeout=20) as client:
                client.sendall(b"POST / HTTP/1.1\r\nHost: a\r\n\r\n")
                with pytest.raises(OSError, match=r"reset|Broken pipe"):  # noqa: PT012 - in the end
                    while True:
                        client.sendall(bytes(2**20))
        finally:
            stand_in.close()


def test_a_connection_that_ends_as_the_stand_in_does_is_closed():
    for _ in range(20):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            stand_in = StandIn(listener)
            with socket.create_connection(listener.getsockname()):  # leaves when all ends
                assert ask(listener.getsockname()[1])[0] == 503
            stand_in.close()
    del stand_in
    gc.collect()  # a connection that is left open is a warning, and so an error here


@pytest.mark.slow
def test_while_no_worker_can_start_nobody_hangs_and_then_all_is_well(tmp_path, monkeypatch):
    (tmp_path / "small_app.py").write_text(APP, encoding="utf-8")
    broken = tmp_path / "broken"
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("BROKEN", str(broken))
    monkeypatch.setattr(server_module, "_PATIENCE_S", 0.5)
    monkeypatch.setattr(server_module, "_RETRY_S", (0.1, 0.5))
    listener, notes = bind("127.0.0.1", 0), []
    port = listener.getsockname()[1]
    supervisor = Supervisor(Settings(data=tmp_path, workers=2), listener, app="small_app:create")
    try:
        supervisor.start()
        thread = threading.Thread(target=supervisor.run, args=(notes.append,))
        thread.start()
        assert ask(port)[0] == 200
        broken.touch()
        for pid in supervisor.pids:
            os.kill(pid, signal.SIGKILL)
        assert ask(port)[0] == 503
        wait_until(lambda: any("must be whole, got a part" in note for note in notes))
        broken.unlink()
        wait_until(lambda: ask(port)[0] == 200)
        wait_until(lambda: any("answers again" in note for note in notes))
    finally:
        supervisor.stop()
        thread.join()
        supervisor.close()
    assert any("no worker answers since 0.5 s" in note for note in notes)
