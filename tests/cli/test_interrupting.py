"""Ctrl-C: one line, which promises that the command goes on only where it does."""

import subprocess
import sys

import pytest

from tests.support import cli_world

whole = cli_world.whole

KEPT = "searchlab: interrupted; what was finished is kept, the same command goes on from there"


@pytest.mark.parametrize(
    ("arguments", "at", "said"),
    [
        (["search", "red"], "library.library.open_library", "searchlab: interrupted"),
        (["info"], "library.info.describe_library", "searchlab: interrupted"),
        (["tune"], "library.library.open_library", "searchlab: interrupted"),
        (["index"], "library.ingest.index_photos", KEPT),
        (["push", "elsewhere"], "cluster.publishing.push", KEPT),
        (["models", "migrate", "a", "b"], "training.migrate.migration.migrate", KEPT),
    ],
)
def test_only_what_keeps_something_says_so(run, whole, monkeypatch, arguments, at, said):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"searchlab.{at}", stop)
    done = run(*arguments, "--data", whole / "data")
    assert (done.code, done.out) == (130, "")
    assert done.err.splitlines()[-1] == said
    assert "Traceback" not in done.err


def test_little_is_imported_before_an_interruption_is_told():
    script = "import sys, searchlab.cli; print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert not {name for name in loaded if name.startswith(("searchlab.library", "numpy"))}
