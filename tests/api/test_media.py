"""Media: the addresses in photo records lead to pictures, cached for ever, and to nothing else."""

import asyncio
import io
import shutil
import threading

import numpy as np
import pytest
from PIL import Image

from searchlab.api.http.decode_slots import DecodeSlots
from searchlab.api.http.renditions import Renditions
from searchlab.api.routes.media import FOR_A_WHILE, FOREVER
from searchlab.config import Config
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library
from searchlab.library.roots import check_root
from tests.support.apis import api

SIZES = ("thumb", "small", "regular", "large", "full")


def noise(width, height):
    rng = np.random.default_rng(0)
    return Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("media")
    (place / "photos").mkdir()
    noise(1120, 700).save(place / "photos" / "large.png")
    Image.new("RGB", (60, 40), "red").save(place / "photos" / "red.jpg")
    Image.new("RGB", (60, 40), "blue").save(place / "photos" / "blue.gif")
    Image.new("RGB", (60, 40), "green").save(place / "photos" / "green.tiff")
    Image.new("RGB", (60, 40), "white").save(place / "photos" / "white.avif")
    index(place)
    return place


def index(place):
    library = create_library(place / "library")
    index_photos(library, [check_root(place / "photos")], config=Config(model="palette"))
    return library


@pytest.fixture(scope="module")
def served(place):
    with api(place / "library") as server:
        server.place = place
        yield server


@pytest.fixture
def changing(place, tmp_path):
    """As `served`, over a library and photos of its own, which may be changed."""
    shutil.copytree(place / "photos", tmp_path / "photos")
    index(tmp_path)
    with api(tmp_path / "library") as server:
        server.place = tmp_path
        yield server


def record(served, **filters):
    answer = served.client.get("/api/v1/search/photos", params=filters)
    (photo,) = answer.json()["data"]
    return photo


def red(served):
    return record(served, color_name="red")


def large(served):
    photos = served.client.get("/api/v1/search/photos", params={"orientation": "landscape"})
    return next(photo for photo in photos.json()["data"] if photo["width"] == 1120)


def failure(response):
    body = response.json()
    assert set(body) == {"success", "data", "meta", "error", "pagination"}
    return response.status_code, body["error"]["code"]


# -- what is sent -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "expected"),
    [("thumb", (400, 250)), ("small", (480, 300)), ("regular", (1080, 675))],
)
def test_every_size_is_a_picture_without_a_key(served, size, expected):
    for _ in range(2):  # made, then found
        answer = served.anonymous.get(large(served)["urls"][size])
        assert (answer.status_code, answer.headers["content-type"]) == (200, "image/webp")
        with Image.open(io.BytesIO(answer.content)) as picture:
            assert picture.size == expected
    assert answer.headers["content-length"] == str(len(answer.content))


def test_nothing_is_scaled_up(served):
    answer = served.anonymous.get(large(served)["urls"]["large"])
    with Image.open(io.BytesIO(answer.content)) as picture:
        assert picture.size == (1120, 700)


@pytest.mark.parametrize(
    ("color", "name", "kind"),
    [
        ("red", "red.jpg", "image/jpeg"),
        ("blue", "blue.gif", "image/gif"),
        ("green", "green.tiff", "image/tiff"),
        ("white", "white.avif", "image/avif"),
    ],
)
def test_the_full_size_is_the_file_itself_with_its_type(served, color, name, kind):
    answer = served.anonymous.get(record(served, color_name=color)["urls"]["full"])
    assert (answer.status_code, answer.headers["content-type"]) == (200, kind)
    assert answer.content == (served.place / "photos" / name).read_bytes()


def test_a_file_of_many_pieces_arrives_whole(served):
    answer = served.anonymous.get(large(served)["urls"]["full"])
    assert len(answer.content) > 4 * 256 * 1024
    assert answer.content == (served.place / "photos" / "large.png").read_bytes()


def test_the_base_link_is_the_full_size(served):
    photo = red(served)
    base, full = (served.anonymous.get(url) for url in (photo["image_url"], photo["urls"]["full"]))
    assert (base.status_code, base.content) == (200, full.content)
    assert base.headers["cache-control"] == FOREVER


@pytest.mark.parametrize("size", SIZES)
def test_a_browser_can_run_nothing_of_it(served, size):
    headers = served.anonymous.get(red(served)["urls"][size]).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert headers["content-disposition"].startswith("inline; filename=")
    assert headers["content-type"].startswith("image/")


@pytest.mark.parametrize("size", SIZES)
def test_head_tells_the_same_without_a_body(served, size):
    url = red(served)["urls"][size]
    get, head = served.anonymous.get(url), served.anonymous.head(url)
    assert (head.status_code, head.content) == (200, b"")
    for name in ("content-length", "content-type", "etag", "cache-control", "accept-ranges"):
        assert head.headers[name] == get.headers[name]


# -- caching ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_an_address_with_its_version_is_kept_for_ever(served, size):
    url = red(served)["urls"][size]
    plain, _, version = url.partition("?")
    assert served.anonymous.get(url).headers["cache-control"] == FOREVER
    for other in (plain, f"{plain}?v=00000000", f"{plain}?v=", f"{plain}?x{version}"):
        assert served.anonymous.get(other).headers["cache-control"] == FOR_A_WHILE


@pytest.mark.parametrize("size", SIZES)
def test_who_has_it_already_gets_no_body(served, size):
    url = red(served)["urls"][size]
    first = served.anonymous.get(url)
    for known in (first.headers["etag"], f'"x", W/{first.headers["etag"]}', "*"):
        again = served.anonymous.get(url, headers={"if-none-match": known})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == first.headers["etag"]
        assert again.headers["cache-control"] == FOREVER
    assert served.anonymous.get(url, headers={"if-none-match": '"x"'}).status_code == 200
    for tags in (['"x"', first.headers["etag"]], [first.headers["etag"], '"x"']):
        lines = [("if-none-match", tag) for tag in tags]  # together a list
        assert served.anonymous.get(url, headers=lines).status_code == 304


def test_every_size_and_photo_has_a_tag_of_its_own(served):
    urls = [*red(served)["urls"].values(), *large(served)["urls"].values()]
    assert len({served.anonymous.head(url).headers["etag"] for url in urls}) == 10


# -- parts ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("byte_range", "expected"),
    [
        ("bytes=0-9", slice(0, 10)),
        ("bytes=300000-300009", slice(300_000, 300_010)),
        ("bytes=100-", slice(100, None)),
        ("bytes=-10", slice(-10, None)),
        ("bytes=-999999999", slice(0, None)),
        ("bytes=10-999999999", slice(10, None)),
    ],
)
def test_a_part_can_be_asked_for(served, byte_range, expected):
    url = large(served)["urls"]["full"]
    content = (served.place / "photos" / "large.png").read_bytes()
    answer = served.anonymous.get(url, headers={"range": byte_range})
    part = content[expected]
    start = content.index(part)
    assert (answer.status_code, answer.content) == (206, part)
    expected_range = f"bytes {start}-{start + len(part) - 1}/{len(content)}"
    assert answer.headers["content-range"] == expected_range
    assert answer.headers["content-length"] == str(len(part))


@pytest.mark.parametrize("byte_range", ["bytes=999999999-", "bytes=-0"])
def test_a_part_that_is_not_there_is_said_so(served, byte_range):
    answer = served.anonymous.get(red(served)["urls"]["full"], headers={"range": byte_range})
    assert (answer.status_code, answer.content) == (416, b"")
    assert answer.headers["content-range"].startswith("bytes */")
    assert answer.headers["cache-control"] == "no-store"
    assert "etag" not in answer.headers


@pytest.mark.parametrize(
    "byte_range",
    ["bytes=5-2", "bytes=-", "bytes=0-1,3-4", "lines=0-1", "bytes=a-b", "x", "bytes=" * 9],
)
def test_a_part_that_is_not_understood_is_all_of_it(served, byte_range):
    answer = served.anonymous.get(red(served)["urls"]["full"], headers={"range": byte_range})
    assert answer.status_code == 200


def test_a_part_of_another_state_is_all_of_it(served):
    url = red(served)["urls"]["full"]
    tag = served.anonymous.head(url).headers["etag"]
    statuses = [
        served.anonymous.get(url, headers={"range": "bytes=0-9", "if-range": known}).status_code
        for known in (tag, '"other"', "Mon, 01 Jan 2024 00:00:00 GMT")
    ]
    assert statuses == [206, 200, 200]


# -- what is not there ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/media/00000000-0000-4000-8000-000000000000/full",
        "/media/x/thumb",
        "/media/%00/thumb",
        "/media/%ff/thumb",
        "/media/..%2f..%2fsecret.key/full",
        "/media/../library/secret.key",
        "/media/" + "a" * 5_000,
        "/media/",
        "/media",
        "/renditions/small",
    ],
)
def test_an_unknown_photo_is_not_found(served, path):
    assert failure(served.anonymous.get(path)) == (404, "NOT_FOUND")


@pytest.mark.parametrize("size", ["huge", "Thumb", "full.jpg", "%00", "..", "thumb%2f..%2ffull"])
def test_an_unknown_size_is_not_found(served, size):
    path = red(served)["urls"]["full"].partition("?")[0].removesuffix("full")
    assert failure(served.anonymous.get(path + size)) == (404, "NOT_FOUND")


def test_other_methods_are_not_allowed(served):
    answer = served.anonymous.post(red(served)["urls"]["full"])
    assert failure(answer) == (405, "METHOD_NOT_ALLOWED")


def test_a_file_that_has_gone_is_not_found_and_what_was_made_of_it_is(changing):
    urls = red(changing)["urls"]
    made = changing.anonymous.get(urls["small"]).content
    (changing.place / "photos" / "red.jpg").unlink()
    answer = changing.anonymous.get(urls["full"])
    assert failure(answer) == (404, "NOT_FOUND")
    assert str(changing.place) not in answer.text
    assert failure(changing.anonymous.get(urls["regular"])) == (404, "NOT_FOUND")
    assert changing.anonymous.get(urls["small"]).content == made
    assert changing.anonymous.get(urls["thumb"]).status_code == 200


def test_another_picture_under_the_name_is_not_shown(changing):
    urls = red(changing)["urls"]
    before = changing.anonymous.get(urls["full"]).content
    Image.new("RGB", (60, 40), "black").save(changing.place / "photos" / "red.jpg")
    for size in ("full", "small", "regular", "large"):
        assert failure(changing.anonymous.get(urls[size])) == (404, "NOT_FOUND")
    (changing.place / "photos" / "red.jpg").write_bytes(before)
    assert changing.anonymous.get(urls["full"]).content == before


def test_thumbnails_that_were_thrown_away_are_made_again(changing):
    shutil.rmtree(changing.place / "library" / "thumbnails")
    answer = changing.anonymous.get(large(changing)["urls"]["thumb"])
    with Image.open(io.BytesIO(answer.content)) as picture:
        assert picture.size == (400, 250)


def test_a_photo_that_was_deleted_is_gone_at_once(changing):
    urls = red(changing)["urls"]
    assert changing.anonymous.get(urls["thumb"]).status_code == 200
    (changing.place / "photos" / "red.jpg").unlink()
    index(changing.place)
    for _ in range(200):
        answer = changing.anonymous.get(urls["thumb"])
        if answer.status_code == 404:
            break
        threading.Event().wait(0.02)
    assert failure(answer) == (404, "NOT_FOUND")


# -- many at once -----------------------------------------------------------------------------


class Counting:
    """Stands for the files of a library; a gate holds what is being made."""

    def __init__(self):
        self.gate = threading.Event()
        self.made = []

    def find(self, photo, size):
        return None

    def make(self, photo, size, roots):
        self.gate.wait(5)
        self.made.append((photo.sha256, size))
        return b"RIFF\x04\0\0\0WEBP"


@pytest.fixture
def making(served, monkeypatch):
    """Ask for pictures of these contents while none can be finished; see what comes of it."""

    def ask(contents, make_photo, **places):
        async def run():
            slots = DecodeSlots(1, **{"timeout_s": 5, "wait_s": 5, **places})
            renditions = Renditions(served.app.services.live_library, slots=slots)
            files = Counting()
            monkeypatch.setattr(renditions, "_files", files)
            tasks = [
                asyncio.create_task(renditions.open(make_photo(1, sha256=content), "small"))
                for content in contents
            ]
            done, _ = await asyncio.wait(tasks, timeout=0.1)
            tasks[0].cancel()
            files.gate.set()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            renditions.close()
            return files.made, [getattr(one, "kind", one) for one in outcomes], len(done)

        return asyncio.run(run())

    return ask


def test_what_many_ask_for_is_made_once_also_where_the_first_goes_away(making, make_photo):
    made, outcomes, _ = making(["a"] * 5, make_photo)
    assert made == [("a", "small")]
    assert isinstance(outcomes[0], asyncio.CancelledError)
    assert outcomes[1:] == ["WEBP"] * 4


def test_where_too_many_wait_the_answer_is_to_come_again(making, make_photo):
    made, outcomes, refused = making(list("abcde"), make_photo, waiting=2)
    assert (len(made), refused) == (3, 2)
    assert [kind.code for kind in outcomes if not isinstance(kind, str | BaseException)] == [
        "OVERLOADED",
        "OVERLOADED",
    ]
