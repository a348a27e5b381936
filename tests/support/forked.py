"""Modules that run as `python -m` runs them, where all that is slow to import is there already.

To import what a benchmark stands on takes seconds of a processor, often longer than its smoke run.
A server imports it once, and forks for each run; what a module would start anew is forked from it
as well.
"""

import multiprocessing
import os
import runpy
import sys
import tempfile
from pathlib import Path

from tests.support.commands import Done

_GET_CONTEXT = multiprocessing.get_context
_CONTEXT = _GET_CONTEXT("forkserver")
_CONTEXT.set_forkserver_preload(["tests.support.prepared"])


def run_module(name, *arguments, cwd, env, timeout_s):
    """Run a module in a process of its own, and return what came of it."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        process = _CONTEXT.Process(target=_run, args=(name, arguments, cwd, dict(env), out, err))
        process.start()
        process.join(timeout_s)
        if process.is_alive():
            process.kill()
            process.join()
        texts = [path.read_text("utf-8") if path.exists() else "" for path in (out, err)]
        return Done(process.exitcode, *texts)


def _forked_for_spawned(method=None):
    return _GET_CONTEXT("fork" if method == "spawn" else method)


def _run(name, arguments, cwd, env, out, err):
    for path, stream in ((out, 1), (err, 2)):
        os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY), stream)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.path.insert(0, str(cwd))
    sys.argv[1:] = arguments
    multiprocessing.get_context = _forked_for_spawned
    runpy.run_module(name, run_name="__main__", alter_sys=True)
