"""No answer of the server says where the owner's photos lie, what their files are called, or more.

Neither on success nor on failure: paths, folders and file names are looked for in all that is sent.
"""

import json
import shutil

import pytest
from PIL import Image

from searchlab.config import Config
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library
from tests.support.apis import api

pytestmark = pytest.mark.slow

FOLDER, FILE, DATA = "secret-folder", "secret-file", "secret-data"
ONLY_OWNERS = ("secret-folder", "secret-file", "secret-data", "secret-place", "secret-tag")


@pytest.fixture
def served(tmp_path):
    photos = tmp_path / FOLDER / "in"
    photos.mkdir(parents=True)
    lines = []
    for number, color in enumerate(("red", "blue", "green")):
        file = photos / f"{FILE}-{number}.png"
        Image.new("RGB", (60, 40), color).save(file)
        line = {"file": f"in/{file.name}", "source_description": f"photo {number}"}
        lines.append(line | {"place": "secret-place", "tags": ["secret-tag"]})
    (tmp_path / FOLDER / "photos.jsonl").write_text("\n".join(map(json.dumps, lines)))
    library = create_library(tmp_path / DATA)
    index_photos(library, [tmp_path / FOLDER], config=Config(model="palette"))
    with api(tmp_path / DATA) as server:
        server.photos = photos
        yield server


def answers(served):
    get, post = served.client.get, served.client.post
    everything = get("/api/v1/search/photos", params={"q": "red", "per_page": 100})
    yield everything
    photos = everything.json()["data"]
    assert len(photos) == 3
    for photo in photos:
        yield get(f"/api/v1/photos/{photo['photo_id']}")
        yield get(f"/api/v1/photos/{photo['photo_id']}/similar")
        for url in (photo["image_url"], *photo["urls"].values()):
            yield served.anonymous.get(url)
    for query in (FILE, FOLDER, "secret-place", "secret-tag", f"{served.photos}/{FILE}-0.png"):
        yield get("/api/v1/search/photos", params={"photographer": query})
        yield get("/api/v1/search/photos", params={"q": "red", "fields": "photo_id,file"})
        yield get("/api/v1/search/photos", params={"q": "red", "source": "unknown"})
    picture = {"image": (served.photos / "x").name.encode()}
    yield post("/api/v1/search/photos", files=picture)
    for path in ("colors", "sources", "licenses", "orientations", "photographers"):
        yield get(f"/api/v1/facets/{path}")
    for path in ("/openapi.json", "/docs", "/health", "/metrics", "/nowhere"):
        yield served.anonymous.get(path)


def assert_nothing_is_told(served):
    for answer in answers(served):
        sent = f"{answer.headers}{answer.content.decode('latin-1')}"
        told = [word for word in (*ONLY_OWNERS, str(served.photos)) if word in sent]
        assert told == [], (answer.request.url, answer.status_code)


def test_no_answer_tells_where_photos_lie(served):
    assert_nothing_is_told(served)


def test_nor_does_one_where_files_have_gone_or_cannot_be_read(served):
    files = sorted(served.photos.iterdir())
    files[0].unlink()
    files[1].write_bytes(b"no picture")
    files[2].unlink()
    files[2].mkdir()
    assert_nothing_is_told(served)
    shutil.rmtree(served.photos.parent)
    assert_nothing_is_told(served)
