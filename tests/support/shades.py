"""A dataset of four plain pictures that the palette model can tell apart."""

import json

from PIL import Image

from searchlab.evaluation.datasets import Dataset, LabelledQuery
from searchlab.evaluation.provenance.measurement import read_measurement
from searchlab.files import digest_of, sha256_of
from searchlab.photos.photo import photo_id_of

SHADES = {"red": "#e50000", "green": "#15b01a", "blue": "#0343df", "white": "#ffffff"}


def photo_id(name):
    return photo_id_of("shades", name)


def make_shades(folder):
    """Write a picture of each shade and ask for them by word, and once by picture."""
    records = []
    for name, shade in SHADES.items():
        Image.new("RGB", (32, 24), shade).save(folder / f"{name}.png")
        file = str(folder / f"{name}.png")
        records.append({"file": file, "source": "shades", "source_photo_id": name})
    queries = tuple(LabelledQuery(f"en-{name}", "en", "graded", name) for name in SHADES)
    queries += (LabelledQuery("like-red", "zxx", "graded", photo_id=photo_id("red")),)
    qrels = {f"en-{name}": {photo_id(name): 1} for name in SHADES}
    qrels["like-red"] = {photo_id("blue"): 2, photo_id("white"): 1}
    return Dataset("shades", "r1", folder, None, queries, qrels, tuple(records))


def reseal(path, change):
    """Tamper as one who knows how seals are made."""
    values = json.loads(path.read_text(encoding="utf-8"))
    change(values)
    values["files"] = {name: sha256_of(path.with_name(name)) for name in values["files"]}
    path.write_text(json.dumps({**values, "digest": digest_of(values)}), encoding="utf-8")
    read_measurement(path)
