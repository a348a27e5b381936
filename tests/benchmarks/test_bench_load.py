"""The load generator and the watch that benchmarks measure with: they must count what happened."""

import asyncio
import os
import shutil
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from benchmarks.common.load import wrk
from benchmarks.common.load.closed_loop import (
    NEW_TEXT,
    LoadRequest,
    load,
    load_with_asyncio,
    sender,
)
from benchmarks.common.load.libraries import library_of, synthetic_library
from benchmarks.common.load.processes import (
    children_of,
    cpu_seconds,
    peak_mib,
    proportional_mib,
    resident_mib,
)
from benchmarks.common.load.rounds import (
    Target,
    flatten,
    measure_in_turn,
    take_medians,
    with_ratios,
)
from benchmarks.common.load.targets import show_targets, target
from benchmarks.embedding.stages import Watch
from searchlab.photos.colors import color_name
from searchlab.progress import Progress
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.queries import Query


class Asked(BaseHTTPRequestHandler):
    """Answers 200, but 404 below /gone, and remembers what it was asked."""

    protocol_version = "HTTP/1.1"
    seen: ClassVar = []

    def answer(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.seen.append((self.command, self.path, self.headers.get("x-api-key"), body))
        self.send_response(404 if self.path.startswith("/gone") else 200)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"okay")

    do_GET = do_POST = answer  # noqa: N815 - http.server's names

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    Asked.seen = []
    running = ThreadingHTTPServer(("127.0.0.1", 0), Asked)
    thread = threading.Thread(target=running.serve_forever, args=(0.01,))  # how late it ends
    thread.start()
    yield f"http://127.0.0.1:{running.server_port}"
    running.shutdown()
    thread.join()
    running.server_close()


def by_hand(ask, *, seconds=0.1):
    return asyncio.run(load_with_asyncio(ask, 2, seconds))


def by_wrk(ask):
    if shutil.which("wrk") is None:
        pytest.skip("wrk is not installed")
    return wrk.load_with_wrk(ask, connections=2, seconds=1, first=0)


SENDERS = pytest.mark.parametrize("send", [by_hand, by_wrk])


# -- asking -----------------------------------------------------------------------------------


@pytest.mark.slow
@SENDERS
def test_answers_are_counted_and_latency_is_that_of_an_answer(server, send):
    measured = send(LoadRequest(f"{server}/a?q=b", headers={"x-api-key": "k"}))
    # wrk may leave a last request on each connection unanswered.
    assert 0 < measured.requests <= len(Asked.seen) <= measured.requests + 2
    assert set(Asked.seen) == {("GET", "/a?q=b", "k", b"")}
    assert (measured.refused, measured.failed) == (0, 0)
    assert 0 < measured.p50_ms <= measured.p95_ms <= measured.p99_ms < 1e3 * measured.seconds


@pytest.mark.slow
@SENDERS
def test_another_status_is_counted_as_refused(server, send):
    measured = send(LoadRequest(f"{server}/gone"))
    assert measured.refused == measured.requests > 0


@pytest.mark.slow
@SENDERS
def test_a_body_is_sent_as_it_is(server, send):
    body = bytes(range(256)) * 3
    send(LoadRequest(f"{server}/a", "POST", {"x-api-key": "k"}, body))
    assert set(Asked.seen) == {("POST", "/a", "k", body)}


@pytest.mark.slow
@SENDERS
def test_a_new_text_is_never_asked_twice(server, send):
    send(LoadRequest(f"{server}/a?q={NEW_TEXT}&per_page=%2320"))
    paths = [path for _, path, _, _ in Asked.seen]
    assert len(set(paths)) == len(paths) > 1
    assert all(path.startswith("/a?q=") and path.endswith("&per_page=%2320") for path in paths)


def test_a_new_text_is_new_in_the_next_load_too(server):
    for _ in range(2):
        load(LoadRequest(f"{server}/a?q={NEW_TEXT}"), connections=1, seconds=0.05)
    paths = [path for _, path, _, _ in Asked.seen]
    assert len(set(paths)) == len(paths)


def test_what_is_too_short_for_wrk_is_sent_by_hand():
    assert sender(0.5) == "asyncio"


def test_a_connection_that_breaks_is_counted_as_failed():
    async def ask():
        async def hang_up(reader, writer):
            await reader.readline()
            writer.close()

        running = await asyncio.start_server(hang_up, "127.0.0.1", 0)
        async with running:
            port = running.sockets[0].getsockname()[1]
            return await load_with_asyncio(LoadRequest(f"http://127.0.0.1:{port}/"), 1, 0.1)

    measured = asyncio.run(ask())
    assert (measured.requests, measured.failed > 0) == (0, True)


# -- rounds -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_target_is_measured_over_every_number_of_connections(server):
    targets = [
        Target(LoadRequest(f"{server}/{name}"), [], {"endpoint": name}) for name in ("here", "gone")
    ]
    rows = measure_in_turn(targets, rounds=2, connections=(1, 2), seconds=0.05, progress=Progress())
    places = [(row["endpoint"], row["connections"]) for row in rows]
    assert sorted(places) == [("gone", 1), ("gone", 2), ("here", 1), ("here", 2)]
    for row in rows:
        assert row["errors"] == (row["requests"] if row["endpoint"] == "gone" else 0)


@pytest.mark.slow
def test_no_more_connections_are_opened_than_a_target_takes(server):
    target = Target(LoadRequest(f"{server}/a"), [], {"endpoint": "a"}, most_connections=1)
    rows = measure_in_turn(
        [target], rounds=1, connections=(1, 2), seconds=0.05, progress=Progress()
    )
    assert [row["connections"] for row in rows] == [1]


def test_the_median_round_counts_and_errors_of_all_rounds_add_up():
    rows = [
        {"p50_ms": ms, "errors": errors, "requests": 10}
        for ms, errors in ((3.0, 0), (1.0, 2), (2.0, 1))
    ]
    assert take_medians(rows) == {"p50_ms": 2.0, "errors": 3, "requests": 30}


def test_ratios_are_to_the_base_over_as_many_connections():
    rows = [
        {"server": name, "connections": count, "cpu_us": cpu, "p99_ms": 2.0}
        for name, count, cpu in (("a", 1, 10), ("a", 16, 100), ("b", 1, 5), ("b", 16, 300))
    ]
    with_columns = with_ratios(rows, by="server", base="a")
    assert [row["cpu_ratio"] for row in with_columns] == [1, 1, 0.5, 3]
    assert {row["p99_ratio"] for row in with_columns} == {1}


def test_figures_have_names_of_their_own():
    figures = ("cpu_ratio", "p99_ratio", "p50_ms", "p95_ms", "p99_ms")
    figures += ("cpu_us", "requests_per_s", "requests_per_core_s")
    row = {"endpoint": "a photo", "connections": 16} | dict.fromkeys(figures, 1.5)
    assert flatten([row], by="endpoint") == {f"a photo.16.{name}": 1.5 for name in figures}


# -- processes --------------------------------------------------------------------------------


def test_a_process_that_is_gone_costs_nothing():
    gone = 2**22 + 1
    assert (cpu_seconds(gone), resident_mib(gone), children_of(gone)) == (0.0, 0.0, [])


def test_memory_of_a_process_is_plausible():
    pid = os.getpid()
    assert 1 < proportional_mib(pid) <= resident_mib(pid) <= peak_mib(pid)
    assert cpu_seconds(pid) > 0


# -- targets and libraries --------------------------------------------------------------------


def test_a_target_is_reached_by_what_is_at_most_as_much(capsys):
    rows = [target("s", most=2.0, measured=2.0), target("GB", most=1.2, measured=1.201)]
    assert [row["reached"] for row in rows] == [True, False]
    show_targets(rows)
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("reached ")
    assert shown[1].startswith("NOT reached")


@pytest.mark.slow
def test_a_synthetic_library_has_records_that_belong_together(tmp_path):
    seed = library_of("plain", tmp_path)
    library = synthetic_library(seed, tmp_path / "many", 500)
    table = library.engine.table
    ids = list(table.texts("photo_id"))
    assert ids == sorted(set(ids))
    assert len(ids) == len(library.engine.index) == 500
    for row in (0, 250, 499):
        photo = table.photo(row)
        assert photo.color_name == color_name(photo.color_hex)
        named = library.search(Query(filter=PhotoFilter(photographer=photo.photographer_username)))
        names = {hit.photo.photographer_full_name for hit in named}
        assert names == {photo.photographer_full_name}
    page = library.search("red", per_page=100)
    assert len(page) == 100
    scores = [hit.relevance_score for hit in page]
    assert scores == sorted(scores, reverse=True)


# -- the watch --------------------------------------------------------------------------------


class Model:
    """Prepares inside of embedding, as models do."""

    def prepare(self):
        time.sleep(0.03)

    def embed(self):
        self.prepare()
        time.sleep(0.01)


def test_a_stage_inside_another_one_is_taken_off_the_outer_one():
    class Own(Model):
        prepare = Model.prepare

    watch = Watch()
    watch.count_calls(Own, "prepare", "preprocess")
    with watch.stage("model"):
        Own().embed()
    time.sleep(0.03)  # between stages: nobody's
    assert watch.wall["preprocess"] == pytest.approx(0.03, abs=0.015)
    assert 0.01 <= watch.wall["model"] < 0.03
    assert set(watch.wall) == {"preprocess", "model"}


def test_a_stage_that_fails_is_closed():
    watch = Watch()
    with (
        pytest.raises(ValueError, match="invalid literal"),
        watch.stage("outer"),
        watch.stage("inner"),
    ):
        int("no")
    watch.reset()
    with watch.stage("next"):
        time.sleep(0.01)
    assert set(watch.wall) == {"next"}
