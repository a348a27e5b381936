"""The dataset that ships with searchlab: 602 photos and what people call them in 114 languages.

Its judgments come from names, categories, WordNet's kinds and from looking; each bears its origin.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from searchlab.errors import NotFoundError
from searchlab.evaluation.datasets.dataset import Dataset
from searchlab.evaluation.datasets.labelled import LabelledQuery
from searchlab.evaluation.datasets.rows import make_dataset, read_rows
from searchlab.evaluation.datasets.written import derive_written
from searchlab.photos.photo import photo_id_of


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
    """Load the bundled photos with their labels, titles, alt texts and more as queries."""
    return _read_demo(bundled_root() / "demo")


@cache  # Nine data sets are made from it, and reading it takes a second.
def _read_demo(folder: Path) -> Dataset:
    photos = folder / "photos.jsonl"
    records = []
    for line in photos.read_text("utf-8").splitlines():
        values = json.loads(line)
        records.append({**values, "file": str(folder / values["file"])})
    queries = [
        LabelledQuery(row["query_id"], row["lang"], row["kind"], row["text"])
        for row in read_rows(folder / "queries.tsv")
    ]
    photo_id = cache(photo_id_of)
    qrels: dict[str, dict[str, int]] = {}
    origins: dict[str, dict[str, str]] = {}
    for row in read_rows(folder / "qrels.tsv"):
        photo, query_id = photo_id(row["source"], row["source_photo_id"]), row["query_id"]
        qrels.setdefault(query_id, {})[photo] = int(row["relevance"])
        origins.setdefault(query_id, {})[photo] = row["origin"]
    return make_dataset("demo", folder, queries, qrels, records, photos=photos, origins=origins)


def demo_names() -> Dataset:
    """Load what people call the bundled photos: known items, whose unjudged photos may fit too."""
    return demo().only_judged_by("demo-names", ["name"])


def demo_everyday() -> Dataset:
    """Load everyday queries for which somebody has looked at every bundled photo."""
    return demo().only_judged_by("demo-everyday", ["eye"])


def demo_proper_names() -> Dataset:
    """Load names of photographers, people and places, which find the photos by and of them.

    Photographers are those of the records; people and places, and which photos show them, were
    listed by hand.
    """
    base = demo()
    by_source_id = {
        record["source_photo_id"]: photo_id
        for photo_id, record in zip(base.ids_of_records, base.records, strict=True)
    }
    qrels: dict[str, dict[str, int]] = {}
    queries = {}
    for photo_id, record in zip(base.ids_of_records, base.records, strict=True):
        name = record["photographer_full_name"] or ""
        query_id = f"photographer-{name.replace(' ', '_')}"
        queries[query_id] = LabelledQuery(query_id, "en", "photographer", name)
        qrels.setdefault(query_id, {})[photo_id] = 1
    for row in read_rows(base.folder / "proper_names.tsv"):
        query_id = f"{row['kind']}-{row['text'].replace(' ', '_')}"
        queries[query_id] = LabelledQuery(query_id, "en", row["kind"], row["text"])
        qrels[query_id] = {by_source_id[name]: 1 for name in row["photos"].split(" ")}
    made = base.derive("demo-proper-names", queries.values(), qrels)
    return derive_written(made, "demo-proper-names")
