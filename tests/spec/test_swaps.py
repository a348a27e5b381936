"""Pages, photos and facets while the library changes under the server."""

import json
import time

import pytest
from click.testing import CliRunner
from PIL import Image

from searchlab.cli import searchlab
from tests.support.independent_client import Api, check_failure, check_page
from tests.support.served import Served

pytestmark = pytest.mark.slow

SHADES = ["#e50000", "#c00000", "#a00000", "#800000", "#600000", "#400000"]


class Changing:
    """A small library with a server of its own, whose photos come and go."""

    def __init__(self, folder):
        self.data, self.photos = folder / "library", folder / "photos"
        self.photos.mkdir()
        self.records = {}
        for number in range(12):
            self.add(number)
        self.index()
        line = ["keys", "create", "--data", str(self.data), "--account", "a", "--name", "k"]
        key = CliRunner().invoke(searchlab, [*line, "--plan", "scale"]).stdout.splitlines()[-1]
        self.server = Served(self.data, "--workers", "2")
        self.api = Api(self.server.base_url, key)

    def add(self, number, source="red"):
        name = f"{number:02d}.png"
        Image.new("RGB", (30, 20 + number), SHADES[number % 6]).save(self.photos / name)
        self.records[number] = {"file": name, "source": source, "source_photo_id": name}

    def remove(self, number):
        (self.photos / self.records.pop(number)["file"]).unlink()

    def index(self, *options):
        lines = [json.dumps(record) for record in self.records.values()]
        (self.photos / "photos.jsonl").write_text("\n".join(lines), encoding="utf-8")
        line = ["index", str(self.photos), "--data", str(self.data), "--model", "palette"]
        line += options
        done = CliRunner().invoke(searchlab, line, catch_exceptions=False)
        assert done.exit_code == 0, done.output

    def until_shown(self, **query):
        """Wait until every worker shows something, some requests in a row."""
        in_a_row = 0
        for _ in range(500):
            answer = self.api.get("/search/photos", **query)
            in_a_row = in_a_row + 1 if answer.is_success and answer.json()["data"] else 0
            if in_a_row == 12:
                return
            time.sleep(0.02)
        msg = f"the server must show {query} within ten seconds"
        raise AssertionError(msg)


@pytest.fixture(scope="module")
def changing(tmp_path_factory):
    made = Changing(tmp_path_factory.mktemp("changing"))
    yield made
    made.api.http.close()
    made.server.stop()
    made.server.kill()


def ids(pages):
    return [photo["source_photo_id"] for page in pages for photo in page["data"]]


def test_pages_of_the_old_state_go_on_and_the_new_one_is_shown(changing):
    api = changing.api
    query = {"q": "red", "per_page": 4}
    whole = ids(api.pages(**query))
    assert len(whole) == 12
    first = api.page(**query)
    gone = next(photo for photo in whole if photo not in ids([first]))
    photo_id = next(p["photo_id"] for p in api.all_photos(q="red") if p["source_photo_id"] == gone)

    changing.remove(int(gone[:2]))
    for number in (20, 21, 22):
        changing.add(number, source="new")
    changing.index()
    changing.until_shown(source="new")

    rest = api.follow(first, lambda cursor: api.page(cursor=cursor))
    assert ids(rest) == [photo for photo in whole if photo != gone]
    photo_ids = ids(api.pages(**query))
    assert sorted(photo_ids) == sorted({*whole, "20.png", "21.png", "22.png"} - {gone})
    check_failure(api.get(f"/photos/{photo_id}"), 404, "NOT_FOUND")
    check_failure(api.get(f"/photos/{photo_id}/similar"), 404, "NOT_FOUND")
    check_failure(api.post("/search/photos", photo_id=photo_id), 404, "NOT_FOUND")
    assert {entry["name"] for entry in api.data("/facets/sources")} == {"red", "new"}


def test_a_cursor_of_a_state_that_is_no_longer_kept_says_so(changing):
    api = changing.api
    cursor = api.page(q="red", per_page=4)["pagination"]["next_cursor"]
    for number in range(30, 36):
        changing.add(number, source=f"source-{number}")
        changing.index("--keep-minutes", "0")
        changing.until_shown(source=f"source-{number}")
        answer = api.get("/search/photos", cursor=cursor)
        if not answer.is_success:
            break
        check_page(answer)
    check_failure(answer, 410, "CURSOR_EXPIRED")
