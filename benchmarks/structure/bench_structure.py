"""The structure of the code in numbers: lines, files, rooms, and how many files a query enters.

    python -m benchmarks.structure.bench_structure
    python -m benchmarks.structure.bench_structure --checkout ../before --name before
    python -m benchmarks.structure.bench_structure --smoke --out "$(mktemp -d)"

Writes results/structure/searchlab/<name>.json. A checkout of another commit is counted by the same
rules: its package is read as text, and asked one text query over HTTP in a process of its own.
"""

from __future__ import annotations

import ast
import collections
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.common.demo_photos import some_photos
from benchmarks.common.recording import bench_parser, on_record, record
from searchlab.evaluation.provenance.manifest import make_manifest

BENCHMARK = "structure"
ROOT = Path(__file__).resolve().parents[2]
TREES = ("searchlab", "tests", "benchmarks")
N_PHOTOS = 40  # more than a page
N_SMOKE = 3


def main() -> None:
    """Count, ask, record, print."""
    parser = bench_parser(__doc__, dataset="searchlab", datasets=["searchlab"])
    parser.add_argument("--checkout", type=Path, default=ROOT, help="what is counted")
    parser.add_argument("--name", default="now", help="what the record is called")
    options = parser.parse_args()
    if on_record(options, BENCHMARK, options.name) is not None:
        return
    n_photos = N_SMOKE if options.smoke else N_PHOTOS
    entered = list_entered_files(options.checkout.resolve(), n_photos)
    metrics = count_files(options.checkout) | {
        "files entered by a text query": len(entered["request"]),
        "with the threads for all requests": len({*entered["request"], *entered["apart"]}),
    }
    values = {
        "parameters": {"n_photos": n_photos, "checkout": _commit_of(options.checkout)},
        "metrics": metrics,
        "entered": entered,
        "manifest": make_manifest(BENCHMARK),
    }
    record(options, BENCHMARK, options.name, values)
    for name, value in metrics.items():
        print(f"{value:>8,}  {name}")


def count_files(checkout: Path) -> dict[str, int]:
    """Count lines and files of each tree, modules and rooms at the root, and repeated names."""
    package = checkout / "searchlab"
    files = {tree: sorted((checkout / tree).rglob("*.py")) for tree in TREES}
    figures = {f"lines of {tree}": sum(map(_lines, files[tree])) for tree in TREES}
    figures |= {f"files of {tree}": len(files[tree]) for tree in TREES}
    modules = [path for path in files["searchlab"] if path.name != "__init__.py"]
    classes = [name for path in modules for name in _classes(path)]
    return figures | {
        "modules at the root": len(list(package.glob("*.py"))),
        "rooms at the root": len(list(package.glob("*/__init__.py"))),
        "class names that stand more than once": _count_repeated(classes),
        "file names that stand more than once": _count_repeated(path.name for path in modules),
    }


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def _classes(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


def _count_repeated(names: Iterable[str]) -> int:
    return sum(n > 1 for n in collections.Counter(names).values())


def _commit_of(checkout: Path) -> str:
    described = ["git", "-C", str(checkout), "describe", "--always", "--abbrev=12"]
    return subprocess.run(described, capture_output=True, text=True, check=True).stdout.strip()


def list_entered_files(checkout: Path, n_photos: int) -> dict[str, dict[str, list[str]]]:
    """Serve some bundled photos by the code of a checkout, and list what one query enters.

    Returns:
        `request` and `apart` (see `entered.py`) -> path of a file -> its functions.
    """
    with tempfile.TemporaryDirectory() as scratch:
        library = Path(scratch) / "library"
        photos = some_photos(Path(scratch) / "photos", n_photos)
        cli = [sys.executable, "-c", "from searchlab.cli import main; main()"]
        _run(checkout, [*cli, "index", "--data", str(library), str(photos)])
        keys = ["keys", "create", "--data", str(library), "--account", "me", "--name", "laptop"]
        key = _run(checkout, [*cli, *keys]).splitlines()[-1]
        script = [sys.executable, str(Path(__file__).with_name("entered.py")), str(library), key]
        answer: dict[str, dict[str, list[str]]] = json.loads(
            _run(checkout, script).splitlines()[-1]
        )
        return answer


def _run(checkout: Path, command: list[str]) -> str:
    environment: dict[str, Any] = {**os.environ, "PYTHONPATH": str(checkout)}
    process = subprocess.run(
        command, cwd=checkout, env=environment, capture_output=True, text=True, check=False
    )
    if process.returncode:
        sys.exit(f"{' '.join(command[:4])} must end with 0, got: {process.stderr[-2000:]}")
    return process.stdout


if __name__ == "__main__":
    main()
