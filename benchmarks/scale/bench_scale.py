"""What search costs as a collection grows: build, memory, disk and time at equal recall; filters.

    python -m benchmarks.scale.bench_scale --cache /tmp/scenes              # 10k to 1M x 512
    python -m benchmarks.scale.bench_scale --cache /tmp/scenes --sizes 10M --dataset scenes-256 \
        --systems searchlab-clustered --limit 3600
    SEARCHLAB_DATASETS=... python -m benchmarks.scale.bench_scale --cache /tmp/real \
        --dataset spliced-256 --sizes 1M                                  # real vectors
    python -m benchmarks.scale.bench_scale --smoke --out "$(mktemp -d)"

Writes results/scale/<dataset>/<system>-<size>.json, and summary.json with the laws fitted to the
costs, a plan for sizes that nobody measured, and charts. Skips what is on record (--force measures
again). The vectors are those of `searchlab.studies.vectors.scenes`, made once into --cache (2 KB a
photo; a temporary folder if left out) and memory-mapped; all sizes are samples of one collection.
`spliced-256` and `mixed-256` are the real vectors of `searchlab.studies.vectors.real`, of texts and
of photos, up to a million; an index may learn from 128 queries of the kind that is unlike the rows,
as it does from what is written about the photos of a library. There efforts that double are tried
halfway, too, so that a system need not be measured at twice the effort that it needs.

Every system runs in a process of its own for every size and is ended after --limit seconds; then
it is not tried at larger sizes. Builds use --threads processors. Then queries come one at a time to
one processor: 20 neighbours for queries like photos and like captions, without a filter and with
filters that are made before the clock starts, in the form that the system takes. The efforts of a
system are tried from the least; once one reaches a recall of .99 and --budget is spent, the next
filter is taken. Slow systems get three queries at least (`n_queries`). Memory is what the process
grew by without pages of files; the float32 rows that a system reads from the mapped file are
`rows_mib`, and need not lie in memory.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from threadpoolctl import threadpool_limits

from benchmarks.common.fresh_process import Usage, bind, in_fresh_process, size_mib
from benchmarks.common.peer_runs import summary_manifest
from benchmarks.common.peers import PEERS, Peer
from benchmarks.common.recording import (
    add_summarise,
    bench_parser,
    on_record,
    record,
    recorded,
    refuse_empty,
)
from benchmarks.scale.cells import KINDS, Workload, make_truth, make_workload, truth_path
from benchmarks.scale.charts import draw_costs, draw_filters
from benchmarks.scale.real import is_real
from benchmarks.scale.summary import RECALL, at_recall, fit_laws, format_summary, make_rows, plan
from searchlab.cli.console import ConsoleProgress
from searchlab.errors import InputError
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.studies.index.recall import measure_within

SYSTEMS = (
    "searchlab-clustered",
    "searchlab-exact",
    "hnswlib-huge",
    "faiss-flat",
    "faiss-ivf-sq8",
    "faiss-ivf-pq4",
    "faiss-ivf-rabitq",
    "faiss-hnsw-sq8",
    "usearch",
    "lancedb",
    "pgvector",
)
# Measured where they are named: over real vectors. Made ones were measured without them.
LEFT_OUT = SYSTEMS[SYSTEMS.index("faiss-ivf-pq4") :]
_ALL = 1_000  # an effort that is a recall in thousandths, where nothing may be missed
SIZES = "10k,30k,100k,300k,1M"
_UNITS = {"k": 1_000, "M": 1_000_000}


def size_of(text: str) -> int:
    """Read a number of photos such as `300k` or `10M`."""
    number, unit = (text[:-1], _UNITS[text[-1]]) if text[-1:] in _UNITS else (text, 1)
    if not number.isdecimal() or not int(number):
        msg = f"a size must be a number such as 300k or 10M, got {text!r}"
        raise InputError(msg)
    return int(number) * unit


def measure(name: str, n: int, options: argparse.Namespace) -> dict[str, Any]:
    """Build one system over n photos and ask it everything."""
    workload = make_workload(n, options)
    peer = PEERS[name].make(seed=options.seed, threads=options.threads)
    peer.load()
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch,
        contextlib.closing(peer),
    ):
        before, started = Usage.now(), time.perf_counter()
        peer.build(workload.photos, marks_of(peer, workload), Path(scratch))
        if workload.known is not None:
            peer.learn(workload.known)
        build_s, after = time.perf_counter() - started, Usage.now(*peer.pids)
        peer.save(Path(scratch))
        metrics = {
            "build_s": build_s,
            "build_cpu_s": after.cpu_s - before.cpu_s,
            "memory_mib": max(after.own_mib - before.own_mib, 0.0),
            "rows_mib": workload.photos.nbytes / 2**20 if peer.borrows else 0.0,
            "stored_mib": size_mib(Path(scratch)),
        }
        bind(1, *peer.pids)
        with threadpool_limits(1):  # while its files are there, which some systems read from
            points = _points(name, peer, workload, options)
            if name == "searchlab-clustered":
                metrics |= _bandwidth(peer, workload, options.smoke)
    return {
        "parameters": {
            "system": peer.settings,
            "n_photos": n,
            "dim": workload.photos.shape[1],
            "k": workload.true[KINDS[0]]["none"].rows.shape[1],
            "n_queries": options.queries,
            "threads": options.threads,
            "budget_s": options.budget,
        },
        "metrics": _round_floats(metrics | at_recall(points, peer.filter_effort)),
        "points": [_round_floats(point) for point in points],
    }


def _points(
    name: str, peer: Peer, workload: Workload, options: argparse.Namespace
) -> list[dict[str, Any]]:
    progress = ConsoleProgress(Console(stderr=True))
    efforts = refine(peer.efforts) if is_real(options) else peer.efforts
    points: list[dict[str, Any]] = []
    with progress.step(name, len(KINDS) * len(workload.masks), unit="cells") as step:
        for within, mask in workload.masks.items():
            answer = answer_within(peer, within, mask)
            if answer is None:
                step.advance(len(KINDS))
                continue
            for kind, queries in workload.queries.items():
                step.note(f"{kind}, {within}")
                started = time.perf_counter()
                for effort in efforts or (None,):
                    if effort is not None:
                        peer.set_effort(effort)
                    measured = measure_within(
                        answer,
                        workload.photos,
                        queries,
                        workload.true[kind][within],
                        budget_s=options.budget,
                    )
                    points.append({"queries": kind, "filter": within, "effort": effort, **measured})
                    is_spent = time.perf_counter() - started > len(efforts) * options.budget
                    if measured["recall"] >= RECALL and is_spent:
                        break
                step.advance(1)
    return points


def answer_within(
    peer: Peer, within: str, mask: NDArray[np.bool_] | None
) -> Callable[[Any, int], Any] | None:
    """Return what answers queries among the rows of a filter; None where the system cannot."""
    if mask is None:
        return peer.search
    if peer.takes_masks:
        allowed = peer.make_selection(mask)
        return lambda query, k: peer.search_among(query, k, allowed)
    if peer.takes_marks:
        return lambda query, k: peer.search_marked(query, k, column_of(within))
    return None


def marks_of(peer: Peer, workload: Workload) -> dict[str, NDArray[np.int64]]:
    """Return each filter as an attribute of 0 and 1, for systems that filter by attributes."""
    if not peer.takes_marks:
        return {}
    masks = {name: mask for name, mask in workload.masks.items() if mask is not None}
    return {column_of(name): mask.astype(np.int64) for name, mask in masks.items()}


def column_of(within: str) -> str:
    """Name the attribute of a filter.

    >>> column_of("random 0.01%")
    'random_0_01'
    """
    return within.rstrip("%").replace(" ", "_").replace(".", "_")


def refine(efforts: Sequence[int]) -> tuple[int, ...]:
    """Put an effort halfway between any two of which one is twice the other.

    Efforts that are recalls in thousandths are halved by what they let a search miss.

    >>> refine((16, 32, 40))
    (16, 23, 32, 40)
    >>> refine((950, 980, 990, 1000))
    (950, 968, 980, 986, 990, 1000)
    """
    between = {round(math.sqrt(low * high)) for low, high in pairwise(efforts) if high == 2 * low}
    if efforts[-1:] == (_ALL,):
        missed = [_ALL - effort for effort in efforts[:-1]]
        between = {_ALL - round(math.sqrt(more * less)) for more, less in pairwise(missed)}
    return tuple(sorted({*efforts, *between}))


def _bandwidth(peer: Peer, workload: Workload, smoke: bool) -> dict[str, float]:
    """Compare the exact scan of eight-bit rows with only reading as much memory."""
    values = np.ones(2**20 if smoke else 2**27, dtype=np.float32)
    reading_s, scanning_s = [], []
    peer.set_effort(1000)
    for turn in range(1 if smoke else 5):
        started = time.perf_counter()
        np.dot(values, values)
        reading_s.append(time.perf_counter() - started)
        started = time.perf_counter()
        peer.search(workload.queries["text"][turn], 20)
        scanning_s.append(time.perf_counter() - started)
    read_rate = values.nbytes / min(reading_s) / 1e9
    scan_rate = workload.photos.size / min(scanning_s) / 1e9
    return {
        "read_gb_per_s": read_rate,
        "scan_gb_per_s": scan_rate,
        "scan_share_of_read": scan_rate / read_rate,
    }


def _round_floats(values: dict[str, Any]) -> dict[str, Any]:
    return {k: round(v, 5) if isinstance(v, float) else v for k, v in values.items()}


def measure_all(options: argparse.Namespace) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Measure every system at every size; returns the records, and why some are not there."""
    sizes = [(text, size_of(text)) for text in options.sizes.split(",")]
    systems = options.systems.split(",")
    unknown = sorted(set(systems) - set(SYSTEMS))
    if unknown:
        msg = f"systems must be among {', '.join(SYSTEMS)}, got {unknown}"
        raise InputError(msg)
    systems.sort(key=SYSTEMS.index)  # as a summary is made again
    records, missing = [], {}
    progress = ConsoleProgress(Console(stderr=True))
    with progress.step("scale", len(sizes) * len(systems), unit="measurements") as step:
        for label, n in sizes:
            for system in systems:
                name = f"{system}-{label}"
                step.note(name)
                look = recorded if options.summarise else on_record
                values = look(options, "scale", name)
                if values is None and options.summarise:
                    missing[system] = f"{label}: not measured yet"
                elif values is None and not PEERS[system].is_installed:
                    missing[system] = "not installed"
                if values is None and system not in missing:
                    values = _measure(system, label, n, options, missing)
                if values is not None:
                    records.append(values)
                step.advance(1)
    refuse_empty(options, "scale", records)
    return records, missing


def _measure(
    system: str, label: str, n: int, options: argparse.Namespace, missing: dict[str, str]
) -> dict[str, Any] | None:
    if not truth_path(n, options).exists():  # made first, so that no system's limit covers it
        largest = max(size_of(text) for text in options.sizes.split(","))
        in_fresh_process(make_truth, n, largest, options, threads=options.threads)
    try:
        values = in_fresh_process(
            measure,
            system,
            n,
            options,
            threads=options.threads,
            environment=PEERS[system].environment,
            limit_s=options.limit,
        )
    except Exception as error:  # a peer may raise anything; the others are measured all the same
        missing[system] = f"{label}: {type(error).__name__}: {error}".splitlines()[0][:200]
        return None
    values["parameters"]["of"] = system
    values["manifest"] = make_manifest(
        "scale",
        seed=options.seed,
        threads=options.threads,
        packages=("threadpoolctl", PEERS[system].package),
    )
    record(options, "scale", f"{system}-{label}", values)
    return values


def summarise(
    options: argparse.Namespace, records: list[dict[str, Any]], missing: dict[str, str]
) -> str:
    """Write summary.json and its charts; returns the tables."""
    tables = make_tables(records)
    rows, laws = tables["rows"], tables["fits"]
    folder = options.out / "scale" / options.dataset
    values = {
        "parameters": {"recall": RECALL, "sizes": options.sizes, "threads": options.threads},
        **tables,
        "missing": missing,
        "manifest": summary_manifest(options, "scale", records),
    }
    charts = [*draw_costs(rows, laws, folder), *draw_filters(rows, folder)]
    record(options, "scale", "summary", values, beside=charts)
    return format_summary(rows, laws, values["plan"], missing)


def make_tables(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Put the records into rows, fit the laws, and say what they mean for larger sizes."""
    rows = make_rows(records)
    laws = fit_laws(rows)
    return {
        "metrics": {
            f"{law['system']} {law['cost']} exponent": law["exponent"]["mean"] for law in laws
        },
        "rows": rows,
        "fits": laws,
        "plan": plan(laws, dim=records[0]["parameters"]["dim"]) if records else [],
        "filters": [
            {"system": one["parameters"]["of"], "n_photos": one["parameters"]["n_photos"], **point}
            for one in records
            for point in one["points"]
        ],
    }


def main() -> None:
    """Measure, fit, draw."""
    parser = bench_parser(__doc__, dataset="scenes-512")
    parser.set_defaults(threads=2)
    parser.add_argument("--sizes", default=SIZES, help=f"numbers of photos, default {SIZES}")
    parser.add_argument("--systems", help=f"separated by commas: {', '.join(SYSTEMS)}")
    parser.add_argument("--queries", type=int, default=100, help="most queries of each kind")
    parser.add_argument("--budget", type=float, default=0.1, help="seconds of a point")
    parser.add_argument("--limit", type=int, default=900, help="seconds of a system at one size")
    parser.add_argument("--cache", type=Path, help="folder that keeps the vectors")
    add_summarise(parser)
    options = parser.parse_args()
    if options.systems is None:
        left_out = () if options.summarise else LEFT_OUT
        options.systems = ",".join(name for name in SYSTEMS if name not in left_out)
    if options.smoke:
        options.dataset, options.sizes, options.budget = "scenes-16", "1k,2k", 0.0
        options.queries = 2
    with tempfile.TemporaryDirectory() as scratch:
        options.cache = options.cache or Path(scratch)
        records, missing = measure_all(options)
        sys.stdout.write(summarise(options, records, missing) + "\n")


if __name__ == "__main__":
    main()
