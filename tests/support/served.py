"""A real `searchlab serve` on a free port, for tests that ask through a socket."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from click.testing import CliRunner

from searchlab.cli import searchlab

COMMAND = [sys.executable, "-P", "-c", "from searchlab.cli import main; main()"]
READY = re.compile(r"searchlab serves .* at (http://\S+) \((\d+) workers?, snapshot (\S+),")
START_S = 120


class Served:
    """A running server.

    Attributes:
        data: Folder of the library.
        base_url: Its address, such as http://127.0.0.1:43211.
        process: The parent process; its workers are `workers`.
    """

    def __init__(self, data, *options, env=None, before=()):
        self.data = Path(data)
        handle, name = tempfile.mkstemp(prefix="served-", suffix=".log")
        self._log = Path(name)
        self._said = ""
        with os.fdopen(handle, "wb") as stream:
            self.process = subprocess.Popen(
                [
                    *before,
                    *COMMAND,
                    "serve",
                    "--data",
                    str(data),
                    "--port",
                    "0",
                    *map(str, options),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stream,
                env=os.environ | (env or {}),
            )
        try:
            self.base_url, _, self.snapshot = self._wait().groups()
        except BaseException:
            self.kill()
            raise

    def _wait(self):
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            ready = READY.search(self.log)
            if ready:
                return ready
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        message = f"serve must become ready, got exit code {self.process.poll()}:\n{self.log}"
        raise AssertionError(message)

    @property
    def log(self):
        """All that it wrote on standard error so far."""
        return self._log.read_text(encoding="utf-8") if self._log.exists() else self._said

    @property
    def port(self):
        return int(self.base_url.rpartition(":")[2])

    @property
    def workers(self):
        """Process ids of its workers."""
        folder = Path(f"/proc/{self.process.pid}/task/{self.process.pid}")
        return sorted(map(int, (folder / "children").read_text().split()))

    def stop(self, number=signal.SIGTERM):
        """Stop it as a person would, and return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(60)

    def kill(self):
        """Stop it in whatever state it is; the workers notice."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(60)
        self._said = self.log
        self._log.unlink(missing_ok=True)


@contextlib.contextmanager
def serving(data, *options, env=None, before=()):
    """Serve a library for as long as the block runs.

    Options are those of `searchlab serve`; `before` are words that the command is run by.
    """
    server = Served(data, *options, env=env, before=before)
    try:
        yield server
        code = server.stop()
        assert code == 0, f"serve must end with 0, got {code}:\n{server.log}"
    finally:
        server.kill()


def run_command(*words, **options):
    """Run a searchlab command in a process of its own; returns what `subprocess.run` does."""
    return subprocess.run(
        [*COMMAND, *map(str, words)], capture_output=True, text=True, check=False, **options
    )


def create_key(data, account="acme", name="first", **options):
    """Make a key as a person would: it is the last line of standard output."""
    words = [word for pair in options.items() for word in (f"--{pair[0]}", pair[1])]
    line = ["keys", "create", "--data", str(data), "--account", account, "--name", name, *words]
    done = CliRunner().invoke(searchlab, line, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()[-1]
