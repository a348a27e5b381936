"""A served library of a dozen photos of plain colours, for tests of the pages."""

import json

import numpy as np
import pytest
from PIL import Image

from searchlab.config import Config
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library
from searchlab.library.roots import check_root
from tests.support.apis import api

COLORS = ("red", "blue", "green", "gold", "black", "white", "pink", "gray", "navy", "teal")
HOSTILE = '"><script>alert(1)</script><b x="'


def make_library(place, n_photos=10, **more):
    """Index photos whose titles and photographers would break a page that trusts them.

    Args:
        place: An empty folder.
        n_photos: How many there are.
        **more: Further fields of each photo's record.
    """
    photos = place / "photos"
    photos.mkdir(parents=True)
    lines = []
    for number in range(n_photos):
        color = COLORS[number % len(COLORS)]
        name = color if number < len(COLORS) else f"{color}-{number}"
        size = ((60, 40), (40, 60), (50, 50))[number % 3]
        pixels = np.array(Image.new("RGB", size, color))
        pixels[: number + 1] //= 2
        Image.fromarray(pixels).save(photos / f"{name}.png")
        record = {"file": f"{name}.png", "source": "nasa", "license_type": "cc0"}
        record |= {"title": f"{name} {HOSTILE}", "photographer_full_name": f"Ann {HOSTILE}"}
        lines.append(json.dumps(record | more))
    (photos / "photos.jsonl").write_text("\n".join(lines))
    library = create_library(place / "library")
    index_photos(library, [check_root(photos)], config=Config(model="palette"))
    return place / "library"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with api(make_library(tmp_path_factory.mktemp("pages")), rate_burst=10**6) as server:
        yield server
