"""The log: one line each, nothing secret, and nobody waits for it."""

import json
import os
import re
import threading
from contextlib import contextmanager

import pytest

from searchlab.api.ops.logs import Log

REQUEST = {
    "request_id": "6f2c1a52-6b0a-4f6e-9a3e-0f3a1d2b3c4d",
    "method": "GET",
    "path": "/api/v1/usage",
    "route": "/api/v1/usage",
    "status": 200,
    "took_ms": 1.23456,
    "size": 207,
    "key_id": "key_1",
    "account_id": 3,
    "plan": "free",
    "snapshot": "000001-abcdef01",
}
SECRET = "sl_" + "k" * 43


@contextmanager
def logged(form, **options):
    """Open a log into a pipe; the list holds what was written once the block has ended."""
    reading, writing = os.pipe()
    log, lines = Log(form, handle=writing, **options), []
    yield log, lines
    log.close()
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as file:
        lines += file.read().splitlines()


def test_a_request_is_one_line_of_json():
    with logged("json") as (log, lines):
        log.request(**REQUEST)
    (line,) = map(json.loads, lines)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", line.pop("time"))
    expected = REQUEST | {"event": "request", "took_ms": 1.235, "bytes": 207}
    assert line == {name: value for name, value in expected.items() if name != "size"}


def test_a_request_is_one_line_of_text():
    with logged("text") as (log, lines):
        log.request(**REQUEST)
    assert [line.partition(" ")[2] for line in lines] == [
        "200 GET /api/v1/usage 1.2 ms 207 bytes key=key_1 plan=free "
        "request=6f2c1a52-6b0a-4f6e-9a3e-0f3a1d2b3c4d"
    ]


@pytest.mark.parametrize("form", ["json", "text"])
@pytest.mark.parametrize(
    "path", ["/a\nb", "/\r\n\x1b[31m", "/\udc80", "/é\u2028", "/" + "\0" * 9000]
)
def test_no_path_breaks_a_line_or_makes_it_long(form, path):
    with logged(form) as (log, lines):
        log.request(**REQUEST | {"path": path, "method": "M" * 9000})
    assert len(lines) == 1
    assert len(lines[0]) < 2500
    assert lines[0].isprintable()


def test_what_looks_like_a_key_is_struck_out_everywhere():
    with logged("text") as (log, lines):
        log.request(**REQUEST | {"path": f"/x/{SECRET}"})
        try:
            raise ValueError(SECRET)
        except ValueError as error:
            log.error(f"no {SECRET}", error, request_id="r")
        log.event(SECRET, about=SECRET)
    assert "kkk" not in "\n".join(lines)
    assert "/x/sl_***" in lines[0]


@pytest.mark.parametrize("prefix", ["slc_", "sla_", "slr_", "slp_", "sll_", "sls_"])
def test_codes_tokens_links_sessions_and_addresses_are_struck_out(prefix):
    secret = prefix + "k" * 43 + (".kkkk" if prefix == "slp_" else "")
    with logged("text") as (log, lines):
        log.request(**REQUEST | {"path": f"/mcp/pictures/{secret}"})
    assert "kkk" not in "\n".join(lines)


@pytest.mark.parametrize("form", ["json", "text"])
def test_an_error_brings_its_traceback_and_the_request_that_met_it(form):
    with logged(form) as (log, lines):
        try:
            raise RuntimeError(*["disk\nfull \x1b[31m"])
        except RuntimeError as error:
            log.error("a request failed", error, request_id="r-1")
    text = "\n".join(lines)
    assert "r-1" in text
    assert "RuntimeError: disk" in text
    assert "test_an_error_brings_its_traceback" in text
    assert (
        len(lines) == 1
        if form == "json"
        else r"error=RuntimeError: disk\nfull \u001b[31m" in lines[0]
    )


def test_without_an_access_log_errors_are_logged_all_the_same():
    with logged("text", access=False) as (log, lines):
        log.request(**REQUEST)
        log.error("a request failed")
    assert [line.partition(" ")[2] for line in lines] == ["ERROR a request failed"]


def test_a_log_that_nobody_reads_holds_up_nobody_and_says_what_was_lost():
    reading, writing = os.pipe()
    log = Log("text", handle=writing)
    for _ in range(12_000):
        log.request(**REQUEST)
    assert log.dropped > 0
    assert not log.flush(0.01)
    written = []

    def read():
        with os.fdopen(reading) as file:
            written.append(file.read())

    reader = threading.Thread(target=read)
    reader.start()
    log.close(30)
    os.close(writing)
    reader.join()
    assert re.search(r"\(\d+ lines were dropped, nobody read them\)", written[0])


def test_a_log_whose_reader_is_gone_goes_on():
    reading, writing = os.pipe()
    os.close(reading)
    log = Log("text", handle=writing)
    log.request(**REQUEST)
    assert log.flush(30)
    log.close()
    os.close(writing)
