"""A process that has imported what tests need, except searchlab, and runs pytest in its children.

To import numpy, numba and the web framework takes longer than most tests that catch a mutant.
`WarmTests` starts this module with `python -m` in a copy of the checkout; it reads one request a
line and answers with one line.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

_LIBRARIES = """
numba numpy scipy.stats scipy.special sklearn.isotonic sklearn.linear_model hnswlib ranx PIL.Image
Stemmer threadpoolctl msgspec click rich.console filelock blurhash defusedxml bs4 httpx sqlalchemy
alembic litestar pytest hypothesis _hypothesis_pytestplugin
"""
_OPTIONS = """
-x -q -o addopts= --strict-markers --strict-config --import-mode=importlib
-p no:cacheprovider --hypothesis-seed=0
"""


@dataclass(frozen=True)
class Outcome:
    """What came of one run of tests.

    Attributes:
        failed: The first test that failed; empty if all passed.
        output: What pytest printed, its end.
        seconds: It took.
    """

    failed: str
    output: str
    seconds: float


class WarmTests:
    """Runs tests of a copy of the checkout, each time in a process of their own.

    Args:
        checkout: Holds `searchlab`, `tests` and `benchmarks`.
    """

    def __init__(self, checkout: Path) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": str(checkout),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }
        self._server = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.mutations.warm"],
            cwd=checkout,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(
        self, tests: Sequence[str], *, limit_s: float, whole: bool = False, keep: bool = False
    ) -> Outcome:
        """Run the tests of some files, in their order, until one fails.

        Args:
            tests: Files below `tests`.
            limit_s: Tests that have not come to an end by then have failed.
            whole: Slow tests too, and each with as many examples as where all tests run.
            keep: Compiled modules; only those of a checkout without a mutant.
        """
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        files = [f"tests/{name}" for name in tests]
        asked = {"files": files, "limit_s": limit_s, "whole": whole, "keep": keep}
        started = time.monotonic()
        self._server.stdin.write(json.dumps(asked) + "\n")
        self._server.stdin.flush()
        answer = json.loads(self._server.stdout.readline())
        return Outcome(**answer, seconds=round(time.monotonic() - started, 2))

    def close(self) -> None:
        """End the process."""
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait()


# -- the process itself -----------------------------------------------------------------------


def _serve() -> None:
    for library in _LIBRARIES.split():
        with contextlib.suppress(ImportError):
            importlib.import_module(library)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints must not get among the answers
    for line in sys.stdin:
        answers.write(json.dumps(_run(**json.loads(line))) + "\n")
        answers.flush()


def _run(files: list[str], limit_s: float, whole: bool, keep: bool) -> dict[str, str]:
    # Examples that failed for one mutant would otherwise be tried first on the next.
    shutil.rmtree(".hypothesis/examples", ignore_errors=True)
    log = Path("pytest.log")
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        os.close(ours)
        _run_child(files, whole, keep, theirs, log)
    os.close(theirs)
    try:
        in_time = bool(select.select([ours], [], [], limit_s)[0])
        written = os.read(ours, 65536).decode() if in_time else ""
    finally:
        os.close(ours)
        # Its own group: servers that a test had started end as well.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    failed = written.removeprefix("ended ") if written else "no end" if not in_time else "a crash"
    output = log.read_text(encoding="utf-8", errors="replace")[-4000:] if log.exists() else ""
    return {"failed": failed, "output": output}


def _run_child(files: list[str], whole: bool, keep: bool, answer: int, log: Path) -> NoReturn:
    status = b""
    try:
        os.setsid()
        with log.open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.dont_write_bytecode = not keep
        # Of the plugins, the only one that the tests of the parts use: all take a second to load.
        import _hypothesis_pytestplugin
        import pytest

        watch = _Watch()
        temporary = f"--basetemp={Path.cwd().parent / 'temporary'}"
        marked = "" if whole else "not slow"
        arguments = [*_OPTIONS.split(), temporary, "-m", marked, *files]
        code = pytest.main(arguments, plugins=[watch, _hypothesis_pytestplugin])
        tested = sys.modules.get("searchlab")
        if tested and not Path(tested.__file__ or "").is_relative_to(Path.cwd()):
            watch.failed = "another searchlab was tested"
        status = f"ended {watch.failed or (f'pytest ended with {code:d}' if code else '')}".encode()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os.write(answer, status)
        os._exit(0)


class _Watch:
    """Notes the first failure; keeps hypothesis from looking for a smaller one."""

    def __init__(self) -> None:
        self.failed = ""

    def pytest_configure(self, config: Any) -> None:
        # Called after the checkout's own conftest, which sets how many examples are drawn.
        from hypothesis import Phase, settings

        # Of a plugin that is left out: a test that fails counts at once.
        config.addinivalue_line("markers", "flaky: not run again")
        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", settings.default, phases=phases, database=None)
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and not self.failed:
            self.failed = f"{report.nodeid} (import)"


if __name__ == "__main__":
    _serve()
