"""What conditions on palettes cost over many made photos, and an order by colour.

    python -m benchmarks.color.bench_palette_filter
    python -m benchmarks.color.bench_palette_filter --smoke --out "$(mktemp -d)"

Writes results/palette_filter/drawn/<photos>.json, for a million photos unless --photos says
otherwise, and skips what is on record (--force measures again). Palettes are drawn: five shades at
random, each of 1 to 40 percent. Each condition is timed as it is answered from facets opened from a
file, and the plain way, and both answers must be the same; so must an order by colour and a sort of
all photos.
"""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.common.recording import bench_parser, median_ms, on_record, record
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.photos.colors import FAMILY_NAMES, distance, nearest_family, shades_to_oklab
from searchlab.photos.columns import Texts
from searchlab.photos.table import (
    CODED_COLUMNS,
    MAX_PALETTE,
    NUMBER_COLUMNS,
    TEXT_COLUMNS,
    Codes,
    PhotoTable,
)
from searchlab.search.color_order import rank_by_color
from searchlab.search.filters.facets import Facets
from searchlab.search.filters.palettes import Palettes
from searchlab.search.filters.photo_filter import PhotoFilter

BENCHMARK = "palette_filter"
CONDITIONS = {
    "a family": PhotoFilter(palette="red"),
    "a family on 30 %": PhotoFilter(palette="red:30"),
    "a family, widened": PhotoFilter(palette="red", color_tolerance=40),
    "a shade": PhotoFilter(palette="#1f6f8b"),
    "a shade, widened": PhotoFilter(palette="#1f6f8b", color_tolerance=60),
    "two families": PhotoFilter(palette=("red:20", "blue:20")),
    "a family and a shade": PhotoFilter(palette=("red", "#1f6f8b")),
}
ORDERS = {
    "a shade": PhotoFilter(color_hex="#1f6f8b"),
    "a shade, widened": PhotoFilter(color_hex="#1f6f8b", color_tolerance=60),
    "a shade, every photo": PhotoFilter(color_hex="#1f6f8b", color_tolerance=255),
    "a family": PhotoFilter(color_name="red"),
    "a palette": PhotoFilter(palette="red:30"),
}
PAGES = {"page 1": 0, "page 1,000": 19_980}


def main() -> None:
    """Measure and write what is not on record, and print it."""
    parser = bench_parser(__doc__, dataset="drawn", datasets=["drawn"])
    parser.add_argument("--photos", type=int, default=1_000_000, help="that are drawn")
    options = parser.parse_args()
    n = 20_000 if options.smoke else options.photos
    values = on_record(options, BENCHMARK, str(n))
    if values is None:
        table = draw_table(n, options.seed)
        with TemporaryDirectory() as folder:
            values = measure(table, Path(folder) / "facets.columns", options.runs)
        values["parameters"] = {"photos": n, "runs": options.runs}
        values["manifest"] = make_manifest(
            BENCHMARK, seed=options.seed, threads=options.threads, packages=["numba"]
        )
        record(options, BENCHMARK, str(n), values)
    for name, value in values["metrics"].items():
        print(f"{value:12.3f}  {name}")


def recompute(measurement: dict[str, Any]) -> dict[str, Any]:
    """Count the photos that meet each condition again, and compare answers with the plain way's."""
    table = draw_table(int(measurement["name"]), int(measurement["manifest"]["seed"]))
    with TemporaryDirectory() as folder:
        metrics = measure(table, Path(folder) / "facets.columns", 1)["metrics"]
    return {"metrics": {name: n for name, n in metrics.items() if name.endswith(".photos")}}


def draw_table(n: int, seed: int) -> PhotoTable:
    """Draw photos of a dominant shade and five shades of a palette each."""
    rng = np.random.default_rng(seed)
    numbers: dict[str, Any] = {name: np.zeros(n, kind) for name, kind in NUMBER_COLUMNS.items()}
    numbers["shade"] = rng.integers(0, 1 << 24, n).astype(np.uint32)
    for place in range(MAX_PALETTE):
        numbers[f"palette_shade_{place}"] = rng.integers(0, 1 << 24, n).astype(np.uint32)
        numbers[f"palette_percent_{place}"] = rng.integers(1, 41, n).astype(np.uint8)
    codes = {name: Codes(np.zeros(n, dtype=np.int32), ["one"]) for name in CODED_COLUMNS}
    families = nearest_family(shades_to_oklab(numbers["shade"])).astype(np.int32)
    names = sorted(FAMILY_NAMES)
    places = np.array([names.index(name) for name in FAMILY_NAMES], dtype=np.int32)
    codes["color_name"] = Codes(places[families], names)
    empty = Texts(np.zeros(n + 1, dtype=np.int64), np.zeros(0, dtype=np.uint8))
    return PhotoTable(numbers, codes, dict.fromkeys(TEXT_COLUMNS, empty))


def measure(table: PhotoTable, path: Path, runs: int) -> dict[str, Any]:
    """Time each condition and each order, and check their answers.

    Raises:
        AssertionError: An answer is not that of the plain way.
    """
    began = time.perf_counter()
    arrays = Palettes.from_table(table).arrays()
    metrics: dict[str, float] = {
        "palettes built.s": round(time.perf_counter() - began, 3),
        "palettes.bytes a photo": round(sum(a.nbytes for a in arrays.values()) / len(table), 1),
    }
    Facets(table).save(path)
    facets = Facets.open(path, table)
    for name, condition in CONDITIONS.items():
        allowed = condition.allowed(facets)
        mask = condition.mask(table)
        assert allowed is not None
        assert np.array_equal(allowed.mask(), mask), name
        metrics[f"{name}.photos"] = int(mask.sum())
        metrics[f"{name}.ms"] = round(median_ms(lambda c=condition: c.allowed(facets), runs), 3)
        metrics[f"{name}.plainly.ms"] = round(median_ms(lambda c=condition: c.mask(table), 1), 1)
    lab = shades_to_oklab(table.shades)
    for name, condition in ORDERS.items():
        allowed = condition.allowed(facets)
        for page, start in PAGES.items():

            def cut(c=condition, allowed=allowed, start=start):  # type: ignore[no-untyped-def]
                return rank_by_color(c, facets, allowed, start, start + 20)

            metrics[f"order by {name}.{page}.ms"] = round(median_ms(cut, runs), 3)
            if condition.color_hex is not None:
                point = shades_to_oklab(np.array([int(condition.color_hex[1:], 16)], np.uint32))[0]
                rows = allowed.rows()
                order = np.argsort(distance(lab[rows], point), kind="stable")
                assert np.array_equal(cut(), rows[order[start : start + 20]]), name
    return {"metrics": metrics}


if __name__ == "__main__":
    main()
