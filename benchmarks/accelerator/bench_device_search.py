"""Queries a second of exact search on an accelerator, with filters, beside bare products of torch.

    python -m benchmarks.accelerator.bench_device_search  on cuda, xpu or mps, whichever torch has
    python -m benchmarks.accelerator.bench_device_search --device cpu --dataset scenes-100k-256
    python -m benchmarks.accelerator.bench_device_search --smoke --out "$(mktemp -d)"

Writes results/device_search/<dataset>/<device>.json. The vectors are made ones, of 256 components:
their values do not change how long products take. `ours` is the index `exact-on-device`, whose
answers are compared with those of `exact` for 100 queries of each filter. `torch` is a product and
a topk alone, in float32 as well, over the rows that the filter keeps, which lie on the device
already; its candidates are not scored again, so ties and last bits differ.
`exact` is the same search on the processor, query by query, on --threads threads.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.accelerator.devices import choose_device
from benchmarks.common.recording import bench_parser, median_ms, on_record, record
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.models.protocol import Embeddings
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.indexes.exact import ExactIndex
from searchlab.studies.vectors.made import made_vectors

BENCHMARK = "device_search"
SHARES = (1.0, 0.1, 0.01)
COMPARED = 100


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Time each filter; returns a row of figures for each."""
    import torch

    from searchlab.search.indexes.on_device import DeviceIndex

    made = made_vectors(options.dataset, n_queries=COMPARED, seed=options.seed)
    vectors, asked = made.photos, made.queries["image"]
    rng = np.random.default_rng(options.seed)
    many = vectors[rng.integers(len(vectors), size=options.queries)]
    index, exact = DeviceIndex(vectors, options.device), ExactIndex(vectors)
    part = torch.from_numpy(many[: options.at_once]).to(index.device)
    figures = []
    for share in SHARES:
        allowed = None
        if share < 1:
            allowed = Bitmap.of_mask(rng.random(len(vectors)) < share)
        kept = vectors if allowed is None else vectors[allowed.rows()]
        bare = _time_products(part, torch.from_numpy(np.array(kept)).to(index.device), options)
        ours = _time(index, many, allowed, options)
        with threadpool_limits(options.threads):
            alone = _time(exact, asked[:1], allowed, options)
        here, there = (
            each.search(asked, options.k, allowed=allowed).rows for each in (index, exact)
        )
        figures.append(
            {
                "filter": share,
                "ours, queries/s": round(1e3 * len(many) / ours, 1),
                "torch, queries/s": round(1e3 * len(part) / bare, 1),
                "exact, queries/s": round(1e3 / alone, 1),
                "answers as exact's": float((here == there).all(axis=1).mean()),
            }
        )
    return figures


def _time(
    index: ExactIndex, queries: Embeddings, allowed: Bitmap | None, options: argparse.Namespace
) -> float:
    return median_ms(lambda: index.search(queries, options.k, allowed=allowed), options.runs)


def _time_products(part: Any, rows: Any, options: argparse.Namespace) -> float:
    k = min(options.k, len(rows))
    return median_ms(lambda: (part @ rows.T).topk(k).indices.cpu(), options.runs)


def main() -> None:
    """Measure every filter and record it."""
    parser = bench_parser(__doc__, dataset="scenes-1000k-256")
    parser.set_defaults(runs=3)
    parser.add_argument("--device", default="auto", help="torch device; auto for an accelerator")
    parser.add_argument("--queries", type=int, default=20_000, help="queries of a batch of ours")
    parser.add_argument("--at-once", type=int, default=256, help="queries of a bare product")
    parser.add_argument("--k", type=int, default=20, help="neighbours")
    options = parser.parse_args()
    if options.smoke:
        options.queries, options.runs, options.device = 200, 1, "cpu"
        options.dataset = "scenes-2k-16"
    options.device = choose_device(parser, options.device)
    name = options.device.replace(":", "-")
    if on_record(options, BENCHMARK, name) is None:
        rows = measure(options)
        for row in rows:
            print(f"filter that keeps {row['filter']:.0%}")
            for figure, value in list(row.items())[1:]:
                print(f"  {figure:<25}{value:>12,}")
        values = {
            "parameters": {key: getattr(options, key) for key in ("queries", "k")}
            | {"device": options.device},
            "metrics": {
                f"{row['filter']:g}.{figure}": value
                for row in rows
                for figure, value in list(row.items())[1:]
            },
            "rows": rows,
            "manifest": make_manifest(BENCHMARK, seed=options.seed, packages=["torch"]),
        }
        record(options, BENCHMARK, name, values)


if __name__ == "__main__":
    main()
