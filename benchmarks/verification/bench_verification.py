"""Which records come out the same on another processor, and which are not computed again?

    SEARCHLAB_DATASETS=... python -m benchmarks.verification.bench_verification \
        --processor haswell --data FOLDER --minutes 60
    python -m benchmarks.verification.bench_verification --smoke --out "$(mktemp -d)"

Writes results/verification/<processor>/<name>.json: for each file whether it was computed again
with the same figures, which of its figures that are, or why not. Every file is verified by a
process of its own settings (`processors.py`), the whole folder in one go, as `searchlab verify`
does; with --only, the files of some studies. --data keeps libraries of photos, and what was
verified: called again, it goes on where it was ended, or where --minutes were over; files that were
not reached by then are listed. What takes no time comes first. Ends with 1 if a file differs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.common.recording import bench_parser, on_record, record
from benchmarks.verification.processors import PROCESSORS, environment_of
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.evaluation.provenance.notes import benchmark_of
from searchlab.evaluation.provenance.registry import STUDIES, code_of
from searchlab.files import sha256_of

BENCHMARK, NAME = "verification", "files"
RESULTS = Path(__file__).resolve().parents[2] / "results"
STATUSES = ("verified", "sealed", "not here", "differs", "not reached")
_LINES = 3
_VERIFY = """
import json, sys
from pathlib import Path
from searchlab.evaluation.provenance.verify import verify
cache = Path(sys.argv[2]) if sys.argv[2] else None
for one in verify(sys.argv[3:], quick=sys.argv[1] == "quick", cache=cache):
    print(json.dumps([str(one.path), one.status, list(one.differences), one.remark]), flush=True)
"""


def main() -> None:
    """Verify, count, record."""
    parser = bench_parser(__doc__, dataset="haswell", datasets=list(PROCESSORS))
    parser.add_argument("--processor", choices=list(PROCESSORS), help="the same as --dataset")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder that is verified")
    parser.add_argument("--only", help="folders of results, separated by commas; all if left out")
    parser.add_argument("--name", default=NAME, help="what the record is called")
    parser.add_argument("--quick", action="store_true", help="compute nothing again")
    parser.add_argument("--data", type=Path, help="folder to work in, which is kept")
    parser.add_argument("--minutes", type=float, default=1e6, help="most minutes to spend")
    options = parser.parse_args()
    options.dataset = options.processor or options.dataset
    if on_record(options, BENCHMARK, options.name) is not None:
        return
    folder = options.results / "color_names" if options.smoke else options.results
    files = [file for file in folder.rglob("*.json") if BENCHMARK not in file.parts]
    if options.only:
        only = set(options.only.split(","))
        files = [file for file in files if only & set(file.relative_to(folder).parent.parts)]
    if not files:
        parser.error(f"--only must name folders of results with records, got {options.only}")
    started = time.perf_counter()
    quick = options.quick or options.smoke
    rows = verify_on(
        options.dataset, files, quick=quick, data=options.data, most_s=60 * options.minutes
    )
    counts = Counter(row["status"] for row in rows)
    values = {
        "parameters": {
            "processor": options.dataset,
            "only": options.only,
            "environment": environment_of(options.dataset),
        },
        "metrics": {
            "files": len(rows),
            **{status: counts[status] for status in STATUSES},
            "took_s": round(time.perf_counter() - started, 1),
        },
        "rows": rows,
        "manifest": make_manifest(BENCHMARK, threads=1),
    }
    record(options, BENCHMARK, options.name, values)
    print(", ".join(f"{counts[status]} {status}" for status in sorted(counts)))
    sys.exit(1 if counts["differs"] else 0)


def verify_on(
    processor: str,
    files: list[Path],
    *,
    quick: bool = False,
    data: Path | None = None,
    most_s: float = float("inf"),
) -> list[dict[str, Any]]:
    """Verify files in a process that computes as another processor would; a row for each file.

    Args:
        processor: One of `PROCESSORS`.
        files: Records.
        quick: Whether to compute nothing again.
        data: Folder that keeps libraries and rows; a row counts as long as its file and the
            code that it is computed by are the same.
        most_s: Seconds after which it ends; the file that is under way then is not reached.
    """
    seals = {_relative(str(file)): _seal(file, quick=quick) for file in files}
    kept = data / f"{processor}.jsonl" if data else None
    rows = {name: row for name, row in _read(kept).items() if row["seal"] == seals.get(name)}
    ahead = [str(one) for one in sorted(files, key=_effort) if _relative(str(one)) not in rows]
    cache = data / f"libraries-{processor}" if data else None
    for folder in filter(None, (data, cache)):
        folder.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-c", _VERIFY, "quick" if quick else "whole", str(cache or ""), *ahead],
        env={**os.environ, **environment_of(processor)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    began = started = time.perf_counter()
    ending = threading.Timer(min(most_s, threading.TIMEOUT_MAX), process.terminate)
    ending.start()
    for line in process.stdout:
        path, status, differing, remark = json.loads(line)
        name = _relative(path)
        row = {"file": name, "status": status, "remark": remark[:200], "seal": seals[name]}
        row["took_s"], started = round(time.perf_counter() - started, 1), time.perf_counter()
        if differing:
            row |= {
                "n_differences": len(differing),
                "first": [one[:160] for one in differing[:_LINES]],
            }
        print(f"{status}: {name}", file=sys.stderr)
        rows[name] = row
        if kept:
            with kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
    ending.cancel()
    if process.wait() and time.perf_counter() - began <= most_s:
        sys.exit(f"verifying on {processor} ended with {process.returncode}")
    for name in seals.keys() - rows.keys():
        rows[name] = {"file": name, "status": "not reached", "remark": "", "took_s": 0.0}
    return [{key: rows[name][key] for key in rows[name] if key != "seal"} for name in sorted(rows)]


def _effort(file: Path) -> tuple[bool, str]:
    """Order files: first those of which nothing is computed again."""
    values = json.loads(file.read_text(encoding="utf-8"))
    study = STUDIES.get(benchmark_of(values))
    computes = study is not None and study.computes(str(values["dataset"]), str(values["name"]))
    return computes, str(file)


def _seal(file: Path, *, quick: bool) -> str:
    """Name what a row depends on: the record, the code that measures it, how it was verified."""
    values = json.loads(file.read_text(encoding="utf-8"))
    benchmark = benchmark_of(values)
    code = code_of(benchmark) if benchmark in STUDIES else "unknown"
    return f"{sha256_of(file)[:12]} {code} {'quick' if quick else 'whole'}"


def _read(kept: Path | None) -> dict[str, dict[str, Any]]:
    """Read the rows of an earlier call by file; none if nothing is kept."""
    if kept is None or not kept.is_file():
        return {}
    rows = [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]
    return {row["file"]: row for row in rows}


def _relative(path: str) -> str:
    """Name a file below its folder of results."""
    return path.rpartition("results/")[2]


if __name__ == "__main__":
    main()
