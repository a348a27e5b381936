"""What a call of a tool costs beside the same request to the HTTP API, in CPU of the server.

    python -m benchmarks.tools.bench_tools
    python -m benchmarks.tools.bench_tools --smoke --out "$(mktemp -d)"

Writes results/tools/demo/calls.json: CPU milliseconds of the only worker for one request, user and
system time together, over --calls requests that one client sends one after the other over one
connection; each kind --runs times in turn, and the median of the runs. Searches are for nine
photos by texts that come again, so that what the tool adds is not hidden behind the model.
Predicted before it was measured: a search by tool takes 5 ms in the revision of 2026-07-28 and 7 ms
in that of 2025-11-25, against 1.5 ms by the API.
"""

from __future__ import annotations

import http.client
import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from benchmarks.common.recording import bench_parser, on_record, record
from benchmarks.pages.bench_pages import WORDS, index
from benchmarks.tools.served_tools import ServedTools, serve_tools
from searchlab.errors import DataError
from searchlab.evaluation.provenance.manifest import make_manifest

_VERSIONS = ("2026-07-28", "2025-11-25")


class _Asker:
    """One connection to the server."""

    def __init__(self, server: ServedTools) -> None:
        self._server = server
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)

    def ask_api(self, path: str) -> None:
        self._connection.request("GET", path, headers={"x-api-key": self._server.key})
        self._read()

    def call(self, version: str, tool: str, arguments: dict[str, Any]) -> None:
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        headers = {
            "authorization": f"Bearer {self._server.token}",
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            "mcp-protocol-version": version,
        }
        if version == _VERSIONS[0]:
            headers |= {"mcp-method": "tools/call", "mcp-name": tool}
            params["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": version,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        self._connection.request("POST", "/mcp", json.dumps(message), headers)
        if b'"isError":true' in self._read():
            msg = f"a call of {tool} must succeed, got a refusal"
            raise DataError(msg)

    def _read(self) -> bytes:
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            msg = f"an answer must be 200, got {answer.status}: {body[:200]!r}"
            raise DataError(msg)
        return body


def _kinds(asker: _Asker) -> dict[str, Callable[[int], None]]:
    def search_api(number: int) -> None:
        query = {"q": WORDS[number % len(WORDS)], "per_page": 9}
        asker.ask_api(f"/api/v1/search/photos?{urlencode(query)}")

    def search(version: str) -> Callable[[int], None]:
        return lambda number: asker.call(
            version, "search_photos", {"q": WORDS[number % len(WORDS)]}
        )

    def list_colors(version: str) -> Callable[[int], None]:
        return lambda _: asker.call(version, "facets", {"facet": "colors"})

    return {
        "search, API": search_api,
        **{f"search, tool {version}": search(version) for version in _VERSIONS},
        "colours, API": lambda _: asker.ask_api("/api/v1/facets/colors"),
        **{f"colours, tool {version}": list_colors(version) for version in _VERSIONS},
    }


def measure(library: Path, *, calls: int, runs: int, words: int = len(WORDS)) -> dict[str, float]:
    """Ask a server of one worker; returns CPU milliseconds a request by kind."""
    with serve_tools(library, "--rate", "1000000", "--burst", "1000000") as server:
        kinds = _kinds(_Asker(server))
        for ask in kinds.values():  # each text once, so that all is loaded
            for number in range(words):
                ask(number)
        spent: dict[str, list[float]] = {name: [] for name in kinds}
        for _ in range(runs):
            for name, ask in kinds.items():
                before = server.cpu_s()
                for number in range(calls):
                    ask(number)
                spent[name].append(1e3 * (server.cpu_s() - before) / calls)
    return {f"{name}, CPU ms": round(statistics.median(ms), 3) for name, ms in spent.items()}


def _by_request(metrics: dict[str, float]) -> dict[str, dict[str, float]]:
    """Put the figures of one request beside each other."""
    rows: dict[str, dict[str, float]] = {}
    for name, value in metrics.items():
        request, _, way = name.removesuffix(", CPU ms").partition(", ")
        rows.setdefault(request, {})[way.replace("-", "")] = value
    return rows


def main() -> None:
    """Measure and record."""
    parser = bench_parser(__doc__, dataset="demo", datasets=["demo"])
    parser.add_argument("--calls", type=int, default=500, help="requests of a run")
    parser.add_argument("--data", type=Path, help="library; the bundled photos if left out")
    options = parser.parse_args()
    calls, runs, words = (2, 1, 1) if options.smoke else (options.calls, options.runs, len(WORDS))
    values = on_record(options, "tools", "calls")
    if values is None:
        with tempfile.TemporaryDirectory() as scratch:
            n_photos = 3 if options.smoke else None
            library = options.data or index(Path(scratch), n_photos=n_photos)
            metrics = measure(library, calls=calls, runs=runs, words=words)
        values = {
            "parameters": {"calls": calls, "runs": runs, "workers": 1, "per_page": 9},
            "metrics": metrics,
            "rows": _by_request(metrics),
            "manifest": make_manifest("tools", packages=("mcp",)),
        }
        record(options, "tools", "calls", values)
    for name, value in values["metrics"].items():
        sys.stdout.write(f"{name:32}{value:8.3f}\n")


if __name__ == "__main__":
    main()
