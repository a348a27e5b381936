"""How fast dumps of upstream libraries are read, and what memory that takes, however long they are.

    SEARCHLAB_DATASETS=... python -m benchmarks.sources.bench_sources --dataset bulk
    python -m benchmarks.sources.bench_sources --dataset drawn --photos 1000000
    python -m benchmarks.sources.bench_sources --smoke --out "$(mktemp -d)"

`bulk` are 7,543 recorded credits of Flickr photos, a JSONL and a CSV; `drawn` are random lines in
the same format, every thousandth one malformed. Writes results/sources/<dataset>/reading.json with
seconds (the median of --runs), records per second, and the peak of Python's memory, which is
measured in a separate run because it slows reading down; skips what is on record (--force measures
again).
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import tracemalloc
from pathlib import Path
from typing import Any

from benchmarks.common.again import data_wanted
from benchmarks.common.recording import bench_parser, median_ms, on_record, record
from searchlab.evaluation.datasets import external_root
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.sources import SOURCES
from searchlab.sources.dump import DumpRecord, read_dump

BULK = ("flickr_landscapes_ml5.jsonl", "openimages_xm3600_attributions.csv")


def list_bulk() -> list[Path]:
    """List the files of the recorded dumps."""
    root = external_root()
    if root is None:
        sys.exit("set SEARCHLAB_DATASETS to a folder that holds upstream-records")
    return [root / "upstream-records" / "bulk" / name for name in BULK]


def write_dumps(folder: Path, n: int, seed: int) -> list[Path]:
    """Write a dump of n lines, every thousandth of them cut short."""
    rng = random.Random(seed)
    path = folder / "drawn.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number in range(n):
            photo, secret = 10**10 + number, f"{rng.getrandbits(40):010x}"
            entry = {
                "clean_name": f"{photo}_{secret}.jpg",
                "url": f"https://farm4.staticflickr.com/{rng.randrange(10_000)}/{photo}_{secret}.jpg",
                "license": str(rng.randrange(11)),
                "title": " ".join(rng.choices(("harbour", "dune", "tram", "señal", "夜"), k=4)),
                "owner": f"Owner {rng.randrange(5_000)}",
                "owner_id": f"{rng.randrange(10**8)}@N0{rng.randrange(10)}",
                "keyword": "landscape",
            }
            line = json.dumps(entry, ensure_ascii=False)
            file.write((line[:40] if number % 1_000 == 999 else line) + "\n")
    return [path]


def read_records(paths: list[Path]) -> tuple[int, int]:
    """Read every record; returns how many were good and how many were reported as malformed."""
    good = reported = 0
    for path in paths:
        for photo in read_dump(path, SOURCES["flickr"]):
            good += isinstance(photo, DumpRecord)
            reported += not isinstance(photo, DumpRecord)
    return good, reported


def recompute(measurement: dict[str, Any]) -> dict[str, Any]:
    """Read the dumps again, and count records.

    Raises:
        NotFoundError: SEARCHLAB_DATASETS does not hold them.
    """
    with tempfile.TemporaryDirectory() as folder, data_wanted():
        if measurement["dataset"] == "bulk":
            paths = list_bulk()
        else:
            n, seed = measurement["parameters"]["photos"], measurement["manifest"]["seed"]
            paths = write_dumps(Path(folder), int(n), int(seed))
        good, reported = read_records(paths)
    return {"metrics": {"records": good, "reported": reported}}


def main() -> None:
    """Read dumps, time it, and record the figures."""
    parser = bench_parser(__doc__, dataset="bulk", datasets=("bulk", "drawn"))
    parser.add_argument("--photos", type=int, default=100_000, help="lines of the drawn dump")
    options = parser.parse_args()
    if options.smoke:
        options.dataset, options.photos, options.runs = "drawn", 2_000, 1
    if on_record(options, "sources", "reading") is not None:
        return
    with tempfile.TemporaryDirectory() as folder:
        paths = (
            list_bulk()
            if options.dataset == "bulk"
            else write_dumps(Path(folder), options.photos, options.seed)
        )
        seconds = median_ms(lambda: read_records(paths), options.runs) / 1_000
        tracemalloc.start()
        good, reported = read_records(paths)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        n_bytes = sum(path.stat().st_size for path in paths)
    metrics = {
        "seconds": round(seconds, 3),
        "records_per_s": round((good + reported) / seconds),
        "peak_mib": round(peak / 2**20, 3),
        "file_mib": round(n_bytes / 2**20, 2),
        "records": good,
        "reported": reported,
    }
    for name, value in metrics.items():
        sys.stdout.write(f"{name:>14} {value:,}\n")
    values = {
        "parameters": {"photos": options.photos} if options.dataset == "drawn" else {},
        "metrics": metrics,
        "manifest": make_manifest("sources", seed=options.seed),
    }
    record(options, "sources", "reading", values)


if __name__ == "__main__":
    main()
