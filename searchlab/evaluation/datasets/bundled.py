"""The dataset that ships with searchlab: 349 photos, and their names in 114 languages."""

from __future__ import annotations

import json
from pathlib import Path

from searchlab.errors import NotFoundError
from searchlab.evaluation.datasets.dataset import Dataset
from searchlab.evaluation.datasets.judgments import read_qrels
from searchlab.evaluation.datasets.labelled import LabelledQuery
from searchlab.evaluation.datasets.rows import make_dataset, read_rows


def bundled_root() -> Path:
    """Return the folder of the datasets that ship with searchlab.

    Raises:
        NotFoundError: The installation lacks them.
    """
    package = Path(__file__).parents[2]
    for root in (package / "_datasets", package.parent / "datasets"):
        if (root / "demo/photos.jsonl").is_file():
            return root
    msg = f"the bundled datasets must lie in {package / '_datasets'}; install searchlab again"
    raise NotFoundError(msg)


def demo() -> Dataset:
    """Load the bundled photos with their labels, titles and alt texts as queries."""
    folder = bundled_root() / "demo"
    photos = folder / "photos.jsonl"
    records = []
    for line in photos.read_text("utf-8").splitlines():
        values = json.loads(line)
        records.append({**values, "file": str(folder / values["file"])})
    queries = [
        LabelledQuery(row["query_id"], row["lang"], row["kind"], row["text"])
        for row in read_rows(folder / "queries.tsv")
    ]
    qrels = read_qrels(folder / "qrels.tsv")
    return make_dataset("demo", folder, queries, qrels, records, photos=photos)
