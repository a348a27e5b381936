"""What an answer over HTTP costs: the servers compared on one body, and the API as it is served.

    python benchmarks/bench_http.py
    python benchmarks/bench_http.py --smoke --out "$(mktemp -d)"

Writes results/http/servers/<server>.json and results/http/api/<config_id>.json, and a table of both
as results/http/README.md; skips what is there (--force measures again).

Servers get the same application, Litestar with a 27 KB body made beforehand, and one worker: what
is measured is the server. Where FastAPI is installed, it answers with 20 records as it is usually
written. The API is the real one, with key, limits, counting and log, on the bundled photos.

All are asked in turn, round after round, and the median round counts. CPU is that of the worker,
all its threads, from the system's accounts; it depends less on what else the machine does than the
times that clients see. `wrk` sends, each connection one request after the other; where it is
missing, a small client of our own does, which is slower than some servers; the file says which.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent
CONNECTIONS = (1, 16, 64)
SECONDS = 2
PACKAGES = ("granian", "uvicorn", "uvloop", "httptools", "litestar", "msgspec", "fastapi")
MAIN = [sys.executable, "-c", "from searchlab.cli import main; main()"]

# -- the applications -----------------------------------------------------------------------------

RECORD = {f"field_{n}": "a value of a photo record, about so long" for n in range(21)}


def litestar_app() -> Any:
    """Answer 27 KB that were encoded beforehand."""
    import msgspec
    from litestar import Litestar, Request, Response, get

    body = msgspec.json.encode({"success": True, "data": [RECORD] * 20, "error": None})

    @get("/api/v1/search/photos")
    async def search(request: Request[Any, Any, Any]) -> Response[bytes]:
        request.query_params.get("q")
        return Response(body, media_type="application/json")

    return Litestar(
        [search],
        openapi_config=None,
        logging_config=None,
        signature_types=[Request, Response],
    )


def fastapi_app() -> Any:
    """Answer 20 records as models, as it is usually written."""
    from fastapi import FastAPI
    from pydantic import BaseModel, create_model

    fields: Any = dict.fromkeys(RECORD, (str, ...))
    photo: type[BaseModel] = create_model("Photo", **fields)
    envelope: type[BaseModel] = create_model(
        "Envelope", success=(bool, ...), data=(list[photo], ...), error=(str | None, None)
    )
    app = FastAPI()

    @app.get("/api/v1/search/photos", response_model=envelope)
    async def search(q: str = "", per_page: int = 20) -> Any:
        return envelope(success=True, data=[photo(**RECORD) for _ in range(per_page)])

    return app


def bare_app() -> Any:
    """Answer the same 27 KB without a framework: what the server alone costs."""
    body = json.dumps({"success": True, "data": [RECORD] * 20}).encode()
    length = str(len(body)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", length)]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return app


SERVERS = {
    "granian-litestar": ("granian", "litestar_app"),
    "uvicorn-litestar": ("uvicorn", "litestar_app"),
    "granian-bare": ("granian", "bare_app"),
    "uvicorn-bare": ("uvicorn", "bare_app"),
    "uvicorn-fastapi": ("uvicorn", "fastapi_app"),
}


# -- running them ---------------------------------------------------------------------------------


def python_path() -> str:
    """Where servers find this file."""
    here, before = str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")
    return here if not before else f"{here}{os.pathsep}{before}"


@contextmanager
def granian(app: str) -> Iterator[tuple[str, list[int]]]:
    """Serve as `searchlab serve` does; yields the address and the workers."""
    from searchlab.api.server import Supervisor, bind
    from searchlab.api.settings import Settings

    os.environ["PYTHONPATH"] = python_path()
    listener = bind("127.0.0.1", 0)
    supervisor = Supervisor(Settings(data=Path()), listener, app=f"bench_http:{app}")
    try:
        supervisor.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", supervisor.pids
    finally:
        supervisor.close()


@contextmanager
def uvicorn(app: str) -> Iterator[tuple[str, list[int]]]:
    """Serve with the fast loop and parser; yields the address and the worker."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = ["--factory", "--loop", "uvloop", "--http", "httptools", "--no-access-log"]
    process = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", f"bench_http:{app}", "--port", str(port), *words],
        env=os.environ | {"PYTHONPATH": python_path()},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for_port(port)
        yield f"http://127.0.0.1:{port}", [process.pid]
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def searchlab(data: Path, workers: int) -> Iterator[tuple[str, list[int]]]:
    """Serve a library; yields the address and the workers."""
    words = ["serve", "--data", str(data), "--port", "0", "--workers", str(workers)]
    limits = ["--rate", "1000000", "--burst", "1000000", "--log-format", "json"]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen([*MAIN, *words, *limits], stderr=log, stdout=subprocess.DEVNULL)
        try:
            said = None
            while said is None and process.poll() is None:
                time.sleep(0.05)
                # Read beside the writer, whose position in the file is not ours to move.
                head = os.pread(log.fileno(), 4096, 0).decode()
                said = re.search(r"searchlab serves .* at (http://\S+)", head)
            if said is None:
                sys.exit(f"the server must start, got: {head}")
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
            yield said[1], [int(pid) for pid in children.split()]
        finally:
            process.terminate()
            process.wait(60)


def wait_for_port(port: int) -> None:
    """Wait until somebody listens."""
    for _ in range(600):
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    sys.exit(f"port {port} must answer, got nobody in 30 s")


# -- asking ---------------------------------------------------------------------------------------

WRK_LINES = """
local number = 0
local words = {}
for word in string.gmatch("{words}", "%S+") do words[#words + 1] = word end
request = function()
  number = number + 1
  local text = words[number % #words + 1] .. "+" .. number
  return wrk.format("GET", (string.gsub("{path}", "@", text)))
end
done = function(summary, latency, requests)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.timeout
  io.write(string.format("RESULT %d %d %d %.1f %.1f %.1f", summary.requests,
    errors.status, failed, summary.duration, latency:percentile(50), latency:percentile(99)))
end
"""
WORDS = "castle boat dragonfly bridge night flower mountain red leaf rain city wine snow"


def load(
    url: str, pids: list[int], *, connections: int, seconds: float, headers: dict[str, str]
) -> dict[str, float]:
    """Ask over so many connections for so long; @ in the address stands for ever new words."""
    before = sum(map(cpu_seconds, pids))
    if shutil.which("wrk"):
        found = ask_with_wrk(url, connections, seconds, headers)
    else:
        found = asyncio.run(ask_by_hand(url, connections, seconds, headers))
    spent = sum(map(cpu_seconds, pids)) - before
    row = {
        "connections": connections,
        "requests": found["requests"],
        "cpu_us": round(1e6 * spent / max(1, found["requests"]), 1),
        "qps": round(found["requests"] / found["seconds"], 1),
        "p50_ms": round(found["p50_ms"], 3),
        "p99_ms": round(found["p99_ms"], 3),
        "refused": found["refused"],
        "failed": found["failed"],
    }
    sys.stdout.write(json.dumps({"url": urlsplit(url).path, **row}) + "\n")
    return row


def ask_with_wrk(
    url: str, connections: int, seconds: float, headers: dict[str, str]
) -> dict[str, float]:
    """Run wrk with one thread."""
    parts = urlsplit(url)
    target = f"{parts.path}?{parts.query}" if parts.query else parts.path
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        # Lua takes % in the replacement for its own.
        script.write(WRK_LINES.replace("{words}", WORDS).replace("{path}", target))
        script.flush()
        told = [word for name, value in headers.items() for word in ("-H", f"{name}: {value}")]
        words = ["-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "-s", script.name]
        base = f"{parts.scheme}://{parts.netloc}"
        done = subprocess.run(
            ["wrk", *words, *told, base], capture_output=True, text=True, check=True
        )
    numbers = re.search(r"RESULT (.*)", done.stdout)
    if numbers is None:
        sys.exit(f"wrk must report, got: {done.stdout}{done.stderr}")
    requests, refused, failed, duration_us, p50_us, p99_us = map(float, numbers[1].split())
    return {
        "requests": int(requests),
        "refused": int(refused),
        "failed": int(failed),
        "seconds": duration_us / 1e6,
        "p50_ms": p50_us / 1e3,
        "p99_ms": p99_us / 1e3,
    }


async def ask_by_hand(
    url: str, connections: int, seconds: float, headers: dict[str, str]
) -> dict[str, float]:
    """Do what wrk does, in Python."""
    parts = urlsplit(url)
    target = f"{parts.path}?{parts.query}" if parts.query else parts.path
    told = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    words, took, refused = WORDS.split(), [], 0
    deadline = time.perf_counter() + seconds

    async def ask_on_one() -> None:
        nonlocal refused
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        while (started := time.perf_counter()) < deadline:
            number = len(took)
            path = target.replace("@", f"{words[number % len(words)]}+{number}")
            writer.write(f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\n{told}\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head.lower())
            await reader.readexactly(int(length[1]) if length else 0)
            refused += not head.startswith(b"HTTP/1.1 200")
            took.append(time.perf_counter() - started)
        writer.close()

    started = time.perf_counter()
    await asyncio.gather(*(ask_on_one() for _ in range(connections)))
    took.sort()
    return {
        "requests": len(took),
        "refused": refused,
        "failed": 0,
        "seconds": time.perf_counter() - started,
        "p50_ms": 1e3 * took[len(took) // 2],
        "p99_ms": 1e3 * took[min(len(took) - 1, len(took) * 99 // 100)],
    }


def cpu_seconds(pid: int) -> float:
    """CPU time of a process and all its threads."""
    numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")


# -- what a server does with strange clients ------------------------------------------------------

ASK = b"GET /api/v1/search/photos HTTP/1.1\r\nHost: a\r\n"
SEND = b"POST /api/v1/search/photos HTTP/1.1\r\nHost: a\r\n"
STRANGE = {
    "an ordinary request": ASK + b"\r\n",
    "three requests at once (pipelining)": 3 * (ASK + b"\r\n"),
    "a connection that sends nothing": b"",
    "half a request head, and then nothing (slowloris)": ASK[:20],
    "a request, and then the sending half is closed": ASK + b"\r\n",
    "16 KB in one header": ASK + b"X-A: " + b"a" * 16_000 + b"\r\n\r\n",
    "1 MB in one header": ASK + b"X-A: " + b"a" * 1_000_000 + b"\r\n\r\n",
    "200 headers": ASK + b"".join(b"X-%d: a\r\n" % n for n in range(200)) + b"\r\n",
    "a path of 100 KB": b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
    "bytes that are no HTTP": b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
    "HTTP/9.9": b"GET / HTTP/9.9\r\nHost: a\r\n\r\n",
    "a NUL in a header": ASK + b"X-A: a\0b\r\n\r\n",
    "two different lengths of the body": SEND
    + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "a length below zero": SEND + b"Content-Length: -1\r\n\r\n",
    "HTTP/1.0": b"GET /api/v1/search/photos HTTP/1.0\r\n\r\n",
}
PATIENCE_S = 40.0


def strange_clients(address: str, patience_s: float) -> dict[str, str]:
    """Send each strange request; says what came back and how the connection ended."""
    parts = urlsplit(address)
    with ThreadPoolExecutor(len(STRANGE)) as pool:
        asked = {
            name: pool.submit(strange_client, parts.port or 80, name, data, patience_s)
            for name, data in STRANGE.items()
        }
        return {name: answer.result() for name, answer in asked.items()}


def strange_client(port: int, name: str, data: bytes, patience_s: float) -> str:
    """Be one strange client."""
    started, came = time.perf_counter(), b""
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.settimeout(patience_s)
        try:
            client.sendall(data)
            if "half is closed" in name:
                client.shutdown(socket.SHUT_WR)
            while part := client.recv(65_536):
                came += part
            end = f"closed after {time.perf_counter() - started:.0f} s"
        except TimeoutError:
            end = f"open after {patience_s:.0f} s"
        except OSError:
            end = "reset"
    statuses = re.findall(rb"HTTP/1\.[01] (\d{3})", came)
    return f"{', '.join(one.decode() for one in statuses) or 'no answer'}; {end}"


# -- measuring ------------------------------------------------------------------------------------


def measure_servers(out: Path, options: argparse.Namespace) -> None:
    """Measure all servers that are installed on the same body, in turn."""
    folder = out / "http" / "servers"
    with ExitStack() as running:
        served: dict[str, tuple[str, list[int]]] = {}
        for name, (server, app) in SERVERS.items():
            needed = {server, app.removesuffix("_app")} & {"uvicorn", "fastapi"}
            missing = [one for one in needed if importlib.util.find_spec(one) is None]
            if missing:
                sys.stdout.write(f"{name} needs {', '.join(missing)}, which is not installed\n")
            elif (folder / f"{name}.json").exists() and not options.force:
                sys.stdout.write(f"{name} is on record; --force measures again\n")
            elif not options.smoke or app != "bare_app":
                serve = granian if server == "granian" else uvicorn
                served[name] = running.enter_context(serve(app))
        asked = {
            name: (f"{address}/api/v1/search/photos?q=@&per_page=20", pids, {})
            for name, (address, pids) in served.items()
        }
        rows = measure_in_turn(asked, options)
        strange = {
            name: strange_clients(address, 1.0 if options.smoke else PATIENCE_S)
            for name, (address, _) in served.items()
            if SERVERS[name][1] == "litestar_app"
        }
    for name in served:
        mine = [row for row in rows if row["asked"] == name]
        setting: dict[str, object] = {"server": name}
        path = folder / f"{name}.json"
        write(path, "http_servers", "27-kb-body", setting, mine, strange=strange.get(name))


def plain_library(data: Path, photos: Path) -> None:
    """Index 60 plain pictures with the lightest model: enough to see that all works."""
    from PIL import Image

    photos.mkdir()
    for number in range(60):
        shade = (number * 4, 255 - number * 4, number * 40 % 256)
        Image.new("RGB", (48, 32), shade).save(photos / f"{number}.png")
    words = ["index", "--data", str(data), "--model", "palette", str(photos)]
    subprocess.run([*MAIN, *words], check=True, capture_output=True)


def measure_api(out: Path, options: argparse.Namespace) -> None:
    """Measure what the API's operations cost on the bundled photos."""
    from searchlab.demo import build_demo_library
    from searchlab.library import open_library

    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "library"
        if options.smoke:
            plain_library(data, Path(folder) / "photos")
            engine = open_library(data).engine
        else:
            if options.library is not None:
                shutil.copytree(options.library, data, ignore=shutil.ignore_patterns("api.db*"))
            engine = build_demo_library(data).engine
        path = out / "http" / "api" / f"{engine.config.config_id}.json"
        if path.exists() and not options.force:
            sys.stdout.write(f"{path} is there; --force measures again\n")
            return
        made = ["--data", str(data), "--account", "bench", "--name", "bench", "--plan", "scale"]
        key = subprocess.run(
            [*MAIN, "keys", "create", *made], capture_output=True, text=True, check=True
        ).stdout.splitlines()[-1]
        with searchlab(data, options.workers) as (address, pids):
            api = f"{address}/api/v1"
            photo = f"{api}/photos/{engine.table.photo(0).photo_id}"
            urls = {
                "search, a text asked before": f"{api}/search/photos?q=castle",
                "search, always a new text": f"{api}/search/photos?q=@",
                "search, only a filter": f"{api}/search/photos?color_name=blue",
                "search, three fields": f"{api}/search/photos?q=castle&fields=photo_id,width,urls",
                "similar photos": f"{photo}/similar",
                "a photo": photo,
                "colours facet": f"{api}/facets/colors",
                "photographers suggested": f"{api}/facets/photographers/suggest?q=an",
                "usage": f"{api}/usage",
                "an unknown key": f"{api}/usage?",
                "health": f"{address}/health",
            }
            asked: Asked = {
                name: (url, pids, {} if name == "an unknown key" else {"x-api-key": key})
                for name, url in urls.items()
            }
            rows = measure_in_turn(asked, options)
        setting = {"workers": options.workers, "n_photos": len(engine.table)}
        dataset = "plain" if options.smoke else "demo"
        write(path, "http_api", dataset, setting, rows, config=engine.config.to_dict())


def middle(values: list[float]) -> float:
    """The median, to three digits; a count stays one."""
    found = round(statistics.median(values), 3)
    return int(found) if found == int(found) else found


Asked = dict[str, tuple[str, list[int], dict[str, str]]]


def measure_in_turn(asked: Asked, options: argparse.Namespace) -> list[dict[str, object]]:
    """Measure addresses again and again, so that all meet the same machine; medians.

    Args:
        asked: Name -> address, process ids, headers.
        options: How often, and whether all of it.
    """
    rounds, connections = (1, (16,)) if options.smoke else (options.runs, CONNECTIONS)
    found: dict[tuple[str, int], list[dict[str, float]]] = {}
    for url, pids, headers in asked.values():
        load(url, pids, connections=16, seconds=1, headers=headers)
    for _ in range(rounds):
        for name, (url, pids, headers) in asked.items():
            for count in connections:
                seconds = 1 if options.smoke else SECONDS
                row = load(url, pids, connections=count, seconds=seconds, headers=headers)
                found.setdefault((name, count), []).append(row)
    return [
        {"asked": name} | {figure: middle([row[figure] for row in rows]) for figure in rows[0]}
        for (name, _), rows in found.items()
    ]


def write(
    path: Path,
    benchmark: str,
    dataset: str,
    setting: dict[str, object],
    rows: list[dict[str, object]],
    *,
    config: dict[str, object] | None = None,
    strange: dict[str, str] | None = None,
) -> None:
    """Write one result."""
    from searchlab.results import environment

    where = environment()
    installed = [name for name in PACKAGES if importlib.util.find_spec(name) is not None]
    where["packages"] |= {name: version(name) for name in installed}
    where["sender"] = "wrk" if shutil.which("wrk") else "asyncio"
    result = {
        "schema": 1,
        "benchmark": benchmark,
        "dataset": dataset,
        "config_id": path.stem,
        "config": setting | (config or {}),
        "metrics": {"rows": rows} | ({"strange_clients": strange} if strange else {}),
        "environment": where,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"{path}\n")


def write_tables(folder: Path) -> None:
    """Write all that is on record as tables for people."""
    lines = ["# HTTP: what an answer costs", "", *INTRODUCTION.splitlines(), ""]
    for kind, title in (("servers", "Servers, one worker, 27 KB body"), ("api", "The API")):
        found = [json.loads(path.read_text()) for path in sorted(folder.glob(f"{kind}/*.json"))]
        if not found:
            continue
        lines += [f"## {title}", "", f"| | {' | '.join(COLUMNS)} |", "|---|" + "---:|" * 6]
        for result in found:
            for row in result["metrics"]["rows"]:
                name = result["config_id"] if kind == "servers" else row["asked"]
                cells = " | ".join(f"{row[column]:,}" for column in COLUMNS.values())
                lines.append(f"| {name} | {cells} |")
        where = found[0]["environment"]
        lines += ["", f"{where['machine']}, {where['date'][:10]}, sent by {where['sender']}.", ""]
        told = [result for result in found if "strange_clients" in result["metrics"]]
        if told:
            heads = " | ".join(result["config_id"] for result in told)
            lines += ["## Strange clients", "", f"| | {heads} |", "|---|" + "---|" * len(told)]
            for name in told[0]["metrics"]["strange_clients"]:
                cells = " | ".join(one["metrics"]["strange_clients"][name] for one in told)
                lines.append(f"| {name} | {cells} |")
            lines += ["", *DECISION.splitlines(), ""]
    for path in sorted(folder.glob("soak/*.json")):
        result = json.loads(path.read_text())
        seconds = result["config"]["seconds"]
        lines += [f"## Soak: everything at once for {seconds} seconds", "", "| | |", "|---|---:|"]
        for name, value in result["metrics"].items():
            if isinstance(value, int | float):
                lines.append(f"| {name.replace('_', ' ')} | {value:,} |")
        broken = result["metrics"]["broken"]
        lines += ["", f"Promises that were not kept: {len(broken) or 'none'}.", *broken, ""]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text("\n".join(lines), encoding="utf-8")
    sys.stdout.write(f"{folder / 'README.md'}\n")


COLUMNS = {
    "connections": "connections",
    "CPU us": "cpu_us",
    "requests/s": "qps",
    "p50 ms": "p50_ms",
    "p99 ms": "p99_ms",
    "failed": "failed",
}
DECISION = """
`searchlab serve` runs on granian. Under load it costs as much CPU as uvicorn, for a lone connection
more, since each request changes threads; in return its tail over many connections is shorter: its
sockets do not wait for Python. It closes connections that send nothing or half a request and bounds
a request's head, which uvicorn does not. What it lacks, `searchlab/api/server.py` and `worker.py`
add: one socket for all workers, open while one of them is replaced; a worker that listens only once
it is warm; an end that waits for running requests, but not for ever.
""".strip()
INTRODUCTION = """
Written by `benchmarks/bench_http.py` and `benchmarks/soak_http.py`. All are asked in turn, and the
median round counts. CPU is that of the worker for one request; requests/s and milliseconds are what
clients saw on a machine that others used at the same time.
""".strip()


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", choices=["servers", "api", "all"], default="all")
    parser.add_argument("--library", type=Path, help="a demo library to copy, to save its making")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--runs", type=int, default=3, help="rounds of two seconds each")
    parser.add_argument("--force", action="store_true")
    parser.add_argument("--smoke", action="store_true", help="a second a row, 16 connections")
    parser.add_argument("--out", type=Path, default=ROOT / "results")
    options = parser.parse_args()
    if options.dataset in {"servers", "all"}:
        measure_servers(options.out, options)
    if options.dataset in {"api", "all"}:
        measure_api(options.out, options)
    write_tables(options.out / "http")


if __name__ == "__main__":
    main()
