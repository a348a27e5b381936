"""A library of 25 photos, a search on it, and what a command line says where it fails.

A test file takes the fixtures it needs by their names, as in `search = cli_world.search`.
"""

import functools
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from tests.support.commands import Done

NASTY = "<script>alert(1)</script> [bold]markup[/bold] \u001b[31m 夜"


def in_a_process(*arguments, **environment):
    """Runs a command line in a process of its own, with arguments of any bytes."""
    command = [sys.executable, "-c", "from searchlab.cli import main; main()", *arguments]
    done = subprocess.run(
        command, capture_output=True, env=os.environ | environment, check=False, timeout=60
    )
    return Done(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode())


def mosaic(path, number, size=(40, 30)):
    path.parent.mkdir(parents=True, exist_ok=True)
    tiles = np.random.default_rng(number).integers(0, 256, (3, 4, 3), dtype=np.uint8)
    Image.fromarray(tiles).resize(size, Image.Resampling.NEAREST).save(path)


@functools.cache
def _made(temporary):
    folder = temporary.resolve() / "cli"
    lines = []
    for i in range(25):
        mosaic(folder / "photos" / f"{i:02d}.png", i)
        lines.append(
            {
                "file": f"{i:02d}.png",
                "source": "unsplash" if i % 2 else "pexels",
                "license_type": "cc0",
                "photographer_username": f"user{i % 3}",
                "source_description": NASTY if i == 7 else f"photo {i}",
                "title": NASTY if i == 7 else f"photo {i}",
                "uploaded_on": f"2024-01-{i + 1:02d}",
            }
        )
    (folder / "photos/photos.jsonl").write_text("\n".join(map(json.dumps, lines)))
    done = in_a_process("index", folder / "photos", "--data", folder / "data", "--model", "palette")
    assert done.code == 0, done.err
    return folder


@pytest.fixture
def whole(tmp_path_factory):
    """A library of 25 photos, the one of this run; tests only read it."""
    return _made(tmp_path_factory.getbasetemp())


@pytest.fixture
def search(run, whole):
    def call(*arguments):
        return run("search", *arguments, "--data", whole / "data")

    return call


@pytest.fixture
def mine(whole, tmp_path):
    """A copy of the library that a test may change."""
    shutil.copytree(whole / "data", tmp_path / "data")
    return tmp_path / "data"


def error_of(done, code):
    """The one line on standard error, without a traceback and without results."""
    assert done.code == code, done
    assert done.out == ""
    [line] = done.err.splitlines()
    assert line.startswith("searchlab: ")
    return line


def ids_of(done):
    assert done.code == 0, done.err
    return [record["photo_id"] for record in json.loads(done.out)["data"]]
