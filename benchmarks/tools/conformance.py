"""Whether the tool server and its sign-in keep to the protocol, by the protocol's own suite.

    npm install node@22 @modelcontextprotocol/conformance@0.2.0-alpha.12
    export PATH=$PWD/node_modules/.bin:$PATH  # the suite needs Node 22 or newer
    python -m benchmarks.tools.conformance --suite conformance --data LIBRARY

Writes results/tools/demo/conformance.json: of each scenario for tool servers and for authorization
servers, in each revision of the protocol that it names, whether it passed, failed or does not
apply, and why. Those that do not apply are run as well, and what the suite says is recorded beside
the reason. The suite's scenarios for tools know no tokens, so a proxy on this machine adds one to
each message; host and origin are left as the suite sends them. Those for authorization servers ask
a person to consent in a browser; a script that is signed in does.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx

from benchmarks.common.recording import record
from benchmarks.tools.people import Person
from benchmarks.tools.served_tools import ServedTools, free_port, serve_tools
from searchlab.api.accounts.apps import propose_app_id, register_app
from searchlab.api.accounts.database import open_database
from searchlab.api.accounts.visitors import find_account
from searchlab.api.settings import MCP_PATH
from searchlab.errors import DataError
from searchlab.evaluation.provenance.manifest import make_manifest, refuse_changes

# Checks that ask for a tool of the reference server, and lists of what this server does not have.
_LEFT_OUT: Final = re.compile(r"Not testable|(?:prompts|resources)\S*-list-caching-hints")
_PASSING: Final = frozenset({"SUCCESS", "INFO"})
_NOTED: Final = frozenset({"SKIPPED", "WARNING"})  # the suite itself counts neither as a failure
_RESULTS = Path(__file__).resolve().parents[2] / "results"
# Scenarios that need a server made for them, or what the tools do not use, by how they begin.
NOT_APPLICABLE: Final = {
    "tools-call-": "calls tools of a reference server by name",
    "json-schema-2020-12": "reads the schema of a tool of a reference server",
    "http-custom-header-server-validation": "calls a tool of a reference server by name",
    "completion-complete": "no prompts or templates, so there is nothing to complete",
    "logging-set-level": "logging is deprecated; the server sends no log messages",
    "elicitation-": "no tool asks the person anything; that would need a session",
    "input-required-": "no tool asks for more input in the middle of a call",
    "resources-": "photos are tools' answers with links, not resources of the server",
    "sep-2164-": "photos are tools' answers with links, not resources of the server",
    "sep-2640-": "an extension for skills, of which the server has none",
    "tasks-": "an extension for long tasks; every call is answered at once",
    "prompts-": "the server has no prompts",
    "server-sse-": "answers are single JSON messages, so there is no stream to resume",
    "server-session-lifecycle": "the server keeps no sessions, in any revision",
}


def reason_not_to_apply(scenario: str) -> str:
    """Return why a scenario does not apply; empty if it does."""
    names = [name for name in NOT_APPLICABLE if scenario.startswith(name)]
    return NOT_APPLICABLE[names[0]] if names else ""


class _Listener(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Say nothing of clients that go away, as those of the suite do."""


@contextmanager
def proxy(port: int, server: ServedTools) -> Iterator[None]:
    """Pass requests on to a server, messages to its tools with a token."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            onward = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            sent = {n: v for n, v in self.headers.items() if n.lower() != "transfer-encoding"}
            if self.path == MCP_PATH:
                sent |= {"Authorization": f"Bearer {server.token}"}
            onward.request(self.command, self.path, body, sent)
            answer = onward.getresponse()
            content = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in {"transfer-encoding", "content-length", "connection"}:
                    self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            onward.close()

        do_GET = do_POST = do_DELETE = do_OPTIONS = _pass_on  # noqa: N815 - names of the base class

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    listener = _Listener(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=listener.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        listener.shutdown()
        listener.server_close()


class Scenario(NamedTuple):
    """A scenario of the suite.

    Attributes:
        kind: `server` or `authorization`.
        name: Its name.
        revisions: Those of the protocol that it can be run in; empty if it has none of its own.
    """

    kind: str
    name: str
    revisions: tuple[str, ...]


def list_scenarios(suite: Sequence[str]) -> list[Scenario]:
    """List the scenarios for tool servers, then those for authorization servers."""
    scenarios = []
    for kind in ("server", "authorization"):
        listed = subprocess.run(
            [*suite, "list", f"--{kind}"], capture_output=True, text=True, check=True
        ).stdout
        for name, words in re.findall(r"^\s+- (\S+) \[([^\]]*)\]", listed, re.MULTILINE):
            dated = tuple(word for word in words.split(",") if word[:4].isdigit())
            scenarios.append(Scenario(kind, name, dated))
    return scenarios


class Ran(NamedTuple):
    """What a run of scenarios left: the checks of each, and what was printed."""

    checks: dict[str, list[dict[str, Any]]]
    printed: str


def run_server(suite: Sequence[str], scenario: Scenario, revision: str, url: str) -> Ran:
    """Run a scenario for tool servers in a revision, or in its own if that is empty."""
    chosen = ["--spec-version", revision] if revision else []
    with tempfile.TemporaryDirectory() as folder:
        command = [*suite, "server", "--url", url, "--scenario", scenario.name, "-o", folder]
        done = subprocess.run(
            [*command, *chosen], capture_output=True, text=True, check=False, timeout=120
        )
        return Ran(_read_checks(Path(folder), [scenario.name]), done.stdout + done.stderr)


def run_authorization(
    suite: Sequence[str], names: Sequence[str], revision: str, server: ServedTools, port: int
) -> Ran:
    """Run all scenarios for authorization servers; a person consents where the suite waits."""
    client_id = _register(server, f"http://127.0.0.1:{port}/callback")
    who = ["--client-id", client_id, "--resource", f"{server.base_url}{MCP_PATH}"]
    where = ["--url", server.base_url, "--port", str(port), "--spec-version", revision]
    person, printed = Person(server), []
    with tempfile.TemporaryDirectory() as folder:
        with subprocess.Popen(
            [*suite, "authorization", *where, *who, "-o", folder],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as running:
            for line in running.stdout or ():
                printed.append(line)
                if line.startswith(f"{server.base_url}/connect?"):
                    _visit(person.allow(line.strip()).address)
        return Ran(_read_checks(Path(folder), names), "".join(printed))


def _register(server: ServedTools, redirect_uri: str) -> str:
    """Register the suite as the dashboard does, and return its client id."""
    database, client_id = open_database(server.database_url), propose_app_id()
    account_id = find_account(database, "local").account_id
    uris = [redirect_uri]
    register_app(database, account_id, name="Suite", redirect_uris=uris, client_id=client_id)
    database.close()
    return client_id


def _visit(address: str) -> None:
    answer = httpx.get(address, timeout=60)
    if answer.status_code != 200:
        msg = f"the suite must take the code, got {answer.status_code}"
        raise DataError(msg)


def _read_checks(folder: Path, names: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    checks = {}
    for file in sorted(folder.rglob("checks.json")):
        found = [name for name in names if name in file.parent.name]
        checks[max(found, key=len)] = json.loads(file.read_text(encoding="utf-8"))
    return checks


def judge(checks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Say whether a scenario passed, in how many checks, and what is said of the others."""
    said: dict[str, list[str]] = {"failed": [], "do not apply": [], "noted": []}
    for check in checks:
        if check["status"] in _PASSING:
            continue
        words = f"{check['id']}: {check.get('errorMessage') or check['status']}"
        if check["status"] in _NOTED:
            said["noted"].append(f"{check['status'].lower()}: {words}")
        else:
            said["do not apply" if _LEFT_OUT.search(words) else "failed"].append(words)
    passed = sum(check["status"] in _PASSING for check in checks)
    is_passed = bool(passed) and not said["failed"]
    return {"outcome": "passed" if is_passed else "failed", "passed": passed, **said}


def measure(suite: Sequence[str], data: Path) -> list[dict[str, Any]]:
    """Run every scenario in every revision; returns a record of each."""
    listed, port = list_scenarios(suite), free_port()
    rows = []
    with serve_tools(data, at=port) as server, proxy(port, server):
        url = f"{server.base_url}{MCP_PATH}"
        for scenario in listed:
            if scenario.kind == "server":
                for revision in scenario.revisions or ("",):
                    ran = run_server(suite, scenario, revision, url)
                    rows.append(_row(scenario, revision, ran))
        givers = [scenario for scenario in listed if scenario.kind == "authorization"]
        for revision in sorted({one for scenario in givers for one in scenario.revisions}):
            theirs = [scenario for scenario in givers if revision in scenario.revisions]
            names = [scenario.name for scenario in theirs]
            ran = run_authorization(suite, names, revision, server, free_port())
            rows += [_row(scenario, revision, ran) for scenario in theirs]
    return rows


def _row(scenario: Scenario, revision: str, ran: Ran) -> dict[str, Any]:
    judged = judge(ran.checks.get(scenario.name, []))
    if not ran.checks.get(scenario.name):
        judged["failed"] = [f"not run: {ran.printed.strip()[-300:]}"]
    why = reason_not_to_apply(scenario.name)
    row = {"for": scenario.kind, "scenario": scenario.name, "revision": revision or "extension"}
    others = judged["failed"] + judged["do not apply"] + judged["noted"]
    if why and others:
        row |= {"outcome": "does not apply", "why": why, "the suite says": others[0]}
    else:
        row |= judged
    sys.stdout.write(f"{row['revision']:11}{scenario.name:46}{row['outcome']}\n")
    sys.stdout.writelines(f"    {words}\n" for words in row.get("failed", ()))
    return row


def in_revisions(rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Put the outcomes of each scenario in the revisions side by side."""
    table: dict[str, dict[str, Any]] = {}
    for row in rows:
        line = table.setdefault(row["scenario"], {"for": row["for"]})
        column = row["revision"].replace("-", "")
        if "why" in row:
            line |= {column: "does not apply", "why": row["why"]}
        else:
            line[column] = f"{row['outcome']}, {row['passed']} checks"
    return table


def main() -> None:
    """Run the suite and record what came of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--suite", nargs="+", required=True, help="command of the suite")
    parser.add_argument("--data", type=Path, required=True, help="a library to serve")
    parser.add_argument("--out", type=Path, default=_RESULTS, help="folder of results")
    options = parser.parse_args(namespace=argparse.Namespace(dataset="demo", smoke=False))
    said = [[*options.suite, "--version"], ["node", "--version"]]
    version, node = (
        subprocess.run(one, capture_output=True, text=True, check=True).stdout for one in said
    )
    refuse_changes(options.out)
    rows = measure(options.suite, options.data)
    outcomes = [row["outcome"] for row in rows]
    values = {
        "parameters": {
            "suite": "@modelcontextprotocol/conformance",
            "version": version.strip(),
            "node": node.strip(),
        },
        "metrics": {name: outcomes.count(name) for name in ("passed", "failed", "does not apply")},
        "rows": in_revisions(rows),
        "scenarios": rows,
        "manifest": make_manifest("tools", packages=("mcp",)),
    }
    record(options, "tools", "conformance", values)


if __name__ == "__main__":
    main()
