"""A library of six plain shades and a dataset that asks for them by name."""

import json

import pytest
from PIL import Image

from searchlab.config import Config
from searchlab.evaluation.datasets import Dataset, LabelledQuery
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library
from searchlab.library.roots import check_root
from searchlab.photos.photo import photo_id_of

SHADES = {
    "red": "#e50000",
    "green": "#15b01a",
    "blue": "#0343df",
    "yellow": "#ffff14",
    "black": "#000000",
    "white": "#ffffff",
}
EXACT = Config(model="palette")
GRAPH = Config(model="palette", index="hnsw", step_rows=0, depth=5)


def photo_id(name):
    return photo_id_of("shades", name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shades")
    lines = []
    for name, shade in SHADES.items():
        Image.new("RGB", (48, 32), shade).save(folder / f"{name}.png")
        lines.append({"file": f"{name}.png", "source": "shades", "source_photo_id": name})
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (folder / "photos.jsonl").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def library(folder, tmp_path_factory):
    library = create_library(tmp_path_factory.mktemp("library"))
    root = check_root(folder, records=folder / "photos.jsonl", source="shades")
    index_photos(library, [root], config=EXACT)
    return library


def shades(folder, names=tuple(SHADES), revision="r1"):
    """One English query for each shade; every other one again in German, where it says nothing."""
    queries = [LabelledQuery(f"en-{name}", "en", "graded", name) for name in names]
    queries += [LabelledQuery(f"de-{name}", "de", "graded", "xyzzy") for name in names[::2]]
    qrels = {query.query_id: {photo_id(query.query_id[3:]): 1} for query in queries}
    records = tuple(
        {"source": "shades", "source_photo_id": name, "file": str(folder / f"{name}.png")}
        for name in names
    )
    return Dataset("shades", revision, folder, None, tuple(queries), qrels, records)
