"""What test files share: plain photos, unit vectors, a model of a few words, plain pictures."""

import atexit
import hashlib
import json
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from searchlab.cli import main
from searchlab.models import registry
from searchlab.models.protocol import unit_rows
from searchlab.photos.colors import color_name
from searchlab.photos.photo import Photo, attribution_of, orientation_of
from searchlab.photos.table import PhotoTable
from tests.support.commands import Done

# Kept between runs and users otherwise, the photos of made-up datasets among them. What one worker
# has embedded is there for the others: they have the folder of the process that started them.
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["SEARCHLAB_CACHE"] = tempfile.mkdtemp(prefix="searchlab-tests-")
    atexit.register(shutil.rmtree, os.environ["SEARCHLAB_CACHE"], ignore_errors=True)

# Started in the background, a shell makes its commands deaf to Ctrl-C, and they their children.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

PLAIN = ("#e50000", "#15b01a", "#0343df", "#ffff14", "#000000", "#ffffff")


def plain_photo(number, **changes):
    """Make photo `number`, whose id sorts by number; any field can be set."""
    color_hex = changes.get("color_hex", PLAIN[number % len(PLAIN)])
    width, height = changes.get("width", 30), changes.get("height", 20)
    values = {
        "photo_id": f"00000000-0000-4000-8000-{number:012d}",
        "source_photo_id": f"photo-{number}",
        "image_url": f"https://example.org/{number}",
        "urls": {
            size: f"https://example.org/{number}/{size}"
            for size in ("thumb", "small", "regular", "large", "full")
        },
        "source_image_url": f"https://example.org/page/{number}",
        "width": width,
        "height": height,
        "orientation": orientation_of(width, height),
        "blur_hash": "L00000fQfQfQfQfQfQfQfQfQfQfQ",
        "color_name": color_name(color_hex),
        "color_hex": color_hex,
        "source": "unsplash",
        "license_type": "cc0",
        "photographer_username": "ann",
        "photographer_full_name": "Ann Lee",
        "photographer_url": "https://example.org/ann",
        "source_description": f"plain photo {number}",
        "description": f"A plain {color_name(color_hex)} photo.",
        "alt_description": f"plain {color_name(color_hex)}",
        "uploaded_on": "2024-01-01",
        "attribution": attribution_of(
            title="",
            photographer="Ann Lee",
            license_type="cc0",
            page="https://example.org/page",
            profile="",
            license_url="",
        ),
    }
    return Photo(**values | changes)


class ToyModel:
    """Texts and pictures in one space: a red picture lies exactly where the word red lies."""

    name = "toy"
    dim = 16
    model_id = "toy-0123456789ab"
    reads = "image"
    input_size = 4
    words = ("red", "green", "blue", "sea", "dune", "night")

    def __init__(self):
        rng = np.random.default_rng(7)
        rows = unit_rows(rng.normal(size=(len(self.words), self.dim)))
        self.vectors = dict(zip(self.words, rows, strict=True))

    @property
    def parts(self):
        return ((self, 1.0),)

    def encode_texts(self, texts):
        rows = np.zeros((len(texts), self.dim))
        for row, text in zip(rows, texts, strict=True):
            for word in text.split():
                row += self.vectors.get(word, 0)
        return unit_rows(rows)

    def encode_images(self, images):
        light = np.array([np.asarray(image, dtype=float).mean(axis=(0, 1)) for image in images])
        axes = np.stack([self.vectors[word] for word in ("red", "green", "blue")])
        return unit_rows(light.reshape(len(images), 3) @ axes)


class TilesModel:
    """Reads the colours of a picture's four tiles, and captions that list them as 12 numbers.

    Args:
        rest: Seed of a rotation of the whole space, and, after a colon, how far its words are from
            its pictures: 0 for not at all.
    """

    dim = 12
    reads = "image"
    input_size = 2

    def __init__(self, rest):
        seed, _, apart = rest.partition(":")
        rng = np.random.default_rng(int(seed))
        self.name = f"tiles:{rest}"
        self.model_id = f"tiles-{hashlib.sha256(rest.encode()).hexdigest()[:12]}"
        self.turn = np.linalg.qr(rng.normal(size=(12, 12)))[0]
        self.words = np.eye(12) + float(apart or 0) * rng.normal(size=(12, 12))
        self.n_pictures = 0

    @property
    def parts(self):
        return ((self, 1.0),)

    def encode_texts(self, texts):
        colours = np.full((len(texts), 12), 127.5)
        for row, text in zip(colours, texts, strict=True):
            numbers = [int(word) for word in text.split() if word.isdigit()][:12]
            row[: len(numbers)] = numbers
        return unit_rows((colours - 127.5) @ self.words @ self.turn)

    def encode_images(self, images):
        self.n_pictures += len(images)
        tiles = [np.asarray(image.resize((2, 2), Image.Resampling.BOX)) for image in images]
        colours = np.array(tiles, dtype=float).reshape(len(images), 12)
        return unit_rows((colours - 127.5) @ self.turn)


@pytest.fixture
def tiles_models(monkeypatch):
    """Registers `tiles:SEED[:APART]`; gives the models that were loaded, by spec."""
    loaded = {}

    def load(rest):
        return loaded.setdefault(f"tiles:{rest}", TilesModel(rest))

    monkeypatch.setitem(registry.MODELS, "tiles", load)
    monkeypatch.setattr(registry, "_loaded", dict(registry._loaded))
    return loaded


@pytest.fixture(scope="session")
def tiles_photos(tmp_path_factory):
    """A folder of 240 pictures of four tiles; the records say which colours they have."""
    folder = tmp_path_factory.mktemp("tiles").resolve()
    lines = []
    for number in range(240):
        tiles = np.random.default_rng(number).integers(0, 256, (2, 2, 3), dtype=np.uint8)
        file = folder / f"{number:03d}.png"
        Image.fromarray(tiles).resize((8, 8), Image.Resampling.NEAREST).save(file)
        words = " ".join(map(str, tiles.ravel()))
        lines.append(json.dumps({"file": file.name, "source_description": words}))
    (folder / "photos.jsonl").write_text("\n".join(lines))
    return folder


@pytest.fixture(scope="session")
def make_photo():
    return plain_photo


@pytest.fixture(scope="session")
def make_table():
    """Build a table with a plain photo for each dict of changes; row i is photo i."""

    def build(*changes):
        return PhotoTable.from_photos(
            [plain_photo(number, **change) for number, change in enumerate(changes)]
        )

    return build


@pytest.fixture(scope="session")
def six_photos(make_table):
    """Red, green, blue, yellow, black and white, told apart in every field that filters read."""
    return make_table(
        {"source": "unsplash", "license_type": "cc0", "uploaded_on": "2024-01-01"},
        {"source": "pexels", "license_type": "cc0", "uploaded_on": "2024-02-29", "width": 10},
        {"source": "unsplash", "license_type": "by", "uploaded_on": "2023-12-31", "width": 20},
        {"photographer_username": "bob", "uploaded_on": "2024-01-02"},
        {"photographer_username": "bob", "source": "nasa", "license_type": "public domain"},
        {"photographer_username": "", "uploaded_on": "1969-07-20"},
    )


@pytest.fixture(scope="session")
def unit_vectors():
    """Draw (n, dim) unit rows around `clusters` centres; always the same for the same numbers."""

    def draw(n, dim=16, *, clusters=20, seed=0):
        rng = np.random.default_rng(seed)
        centres = np.random.default_rng(1).normal(size=(clusters, dim))
        return unit_rows(centres[rng.integers(clusters, size=n)] + 0.5 * rng.normal(size=(n, dim)))

    return draw


@pytest.fixture(scope="session")
def toy_model():
    return ToyModel()


@pytest.fixture
def make_picture():
    """Write a plain picture; the suffix of the path names the format."""

    def write(path, color="#e50000", size=(8, 6)):
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", size, color).save(path)
        return path

    return write


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs a command line in this process."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["searchlab", *map(str, arguments)])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
        return Done(code, *capsys.readouterr())

    return call
