"""What a newcomer gets for twenty queries in thirteen languages: precision@5 by eye.

    SEARCHLAB_DATASETS=... python -m benchmarks.words.bench_newcomer --dataset flickr8k-described \
        --grids FOLDER
    python -m benchmarks.words.bench_newcomer --smoke --out "$(mktemp -d)"

Writes results/newcomer/<dataset>/eye.json: precision@5 without and with words, and of each query.
`searchlab/studies/words/newcomer.tsv` has the judgments of one person who looked at the grids, a
photo each; photos among the first five that nobody has judged are counted. Of flickr8k's photos
500 are searched. --grids draws what was looked at: left without words, right with them.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

from benchmarks.common.recording import bench_parser, record
from searchlab.config import USUAL, Config
from searchlab.evaluation.datasets import load_dataset
from searchlab.evaluation.datasets.dataset_library import dataset_library
from searchlab.evaluation.datasets.rows import read_rows
from searchlab.evaluation.provenance.manifest import make_manifest, models_of
from searchlab.models.shipped_calibration import calibrate
from searchlab.search.engine import SearchEngine
from searchlab.search.hits import Hit
from searchlab.search.queries import Query
from searchlab.studies.words import newcomer
from searchlab.studies.words.newcomer import QUERIES

BENCHMARK, NAME = "newcomer", "eye"
_K, _SIDE, _LINE = 5, 150, 30
_MOST = 500


def main() -> None:
    """Rank, compare with the judgments and write the figures."""
    parser = bench_parser(__doc__, dataset="demo", datasets=["demo", "flickr8k-described"])
    parser.add_argument("--data", type=Path, help="folder to work in, which is kept")
    parser.add_argument("--grids", type=Path, help="folder to draw grids in")
    options = parser.parse_args()
    usual = calibrate(Config() if not options.smoke else Config(model="palette"))
    queries = QUERIES[:2] if options.smoke else QUERIES
    values = measure(options.dataset, usual, queries, data=options.data, grids=options.grids)
    revision = load_dataset(options.dataset).revision
    values["manifest"] = make_manifest(
        BENCHMARK, models=models_of(usual.model), data={"revision": revision}
    )
    record(options, BENCHMARK, NAME, values)
    totals = values["metrics"]
    print(f"precision@5 {totals['without']:.2f} -> {totals['with']:.2f}")


def recompute(measurement: dict[str, Any]) -> dict[str, Any]:
    """Rank again, and compare with what was judged then."""
    return measure(str(measurement["dataset"]), calibrate(Config()), QUERIES)


def measure(
    name: str,
    usual: Config,
    queries: Sequence[newcomer.Everyday],
    *,
    data: Path | None = None,
    grids: Path | None = None,
) -> dict[str, Any]:
    """Rank every query without and with words, and count what was judged relevant."""
    dataset = load_dataset(name)
    by_hash = sorted(dataset.photo_ids, key=lambda i: hashlib.sha256(i.encode()).hexdigest())
    photo_ids = by_hash if name == "demo" else by_hash[:_MOST]
    judged = {
        (row["query"], row["photo_id"]): row["relevant"] == "1"
        for row in read_rows(Path(newcomer.__file__).parent / "newcomer.tsv")
    }
    with tempfile.TemporaryDirectory() as nowhere:
        library = dataset_library(dataset, data or Path(nowhere), config=Config())
        engines = [
            library.engine_for(config, photo_ids=photo_ids)
            for config in (usual, replace(usual, words=USUAL.words))
        ]
        rows = []
        for number, query in enumerate(queries):
            hits = [best_of(engine, query.text) for engine in engines]
            if grids is not None:
                draw(hits).save(grids / f"{name}-{number:02}.png")
            compared = figures(query.text, hits, judged)
            rows.append({"lang": query.lang, "query": query.text, **compared})
    totals = {
        part: sum(row[part] for row in rows) / len(rows) for part in ("without", "with", "unjudged")
    }
    return {
        "config": engines[1].config.to_dict(),
        "n_photos": len(photo_ids),
        "metrics": {part: round(value, 4) for part, value in totals.items()},
        "rows": rows,
    }


def best_of(engine: SearchEngine, text: str) -> tuple[Hit, ...]:
    """Return the first five photos."""
    return engine.search(Query(text=text), per_page=_K).hits


def figures(
    text: str, hits: list[tuple[Hit, ...]], judged: dict[tuple[str, str], bool]
) -> dict[str, Any]:
    """Return precision@5 without and with words, and how many of the photos nobody has judged."""
    shown = [[(text, hit.photo.photo_id) for hit in some] for some in hits]
    without, with_words = (sum(judged.get(key, False) for key in keys) / _K for keys in shown)
    unjudged = len({key for keys in shown for key in keys if key not in judged})
    return {"without": without, "with": with_words, "unjudged": unjudged}


def draw(hits: list[tuple[Hit, ...]]) -> Image.Image:
    """Draw the photos of both in a row."""
    grid = Image.new("RGB", ((2 * _K + 1) * _SIDE, _SIDE + _LINE), "white")
    pen = ImageDraw.Draw(grid)
    for side, some in enumerate(hits):
        for place, hit in enumerate(some):
            left = (side * (_K + 1) + place) * _SIDE
            with Image.open(hit.photo.file) as opened:
                photo = opened.convert("RGBA")
            photo.thumbnail((_SIDE - 4, _SIDE - 4))
            grid.paste(photo.convert("RGB"), (left, 0), photo)
            title = hit.photo.title or hit.photo.source_description
            pen.text((left, _SIDE), title[:22].encode("ascii", "replace").decode(), fill="gray")
    return grid


if __name__ == "__main__":
    main()
