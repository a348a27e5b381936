"""Blue and green: new states of the library come in while it is being served."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from searchlab.api.snapshots import live_library as module
from searchlab.api.snapshots.live_library import LiveLibrary
from searchlab.config import Config
from searchlab.errors import DataError
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library, open_library
from searchlab.library.retention import KEPT
from searchlab.library.roots import check_root
from searchlab.library.snapshots import current_id
from searchlab.search.engine import SearchEngine
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.queries import Query
from tests.support import snapshot_world
from tests.support.apis import api

pytestmark = pytest.mark.slow

forgetful = snapshot_world.forgetful

SEARCH = "/api/v1/search/photos"
PALETTE = Config(model="palette")


@pytest.fixture
def place(tmp_path):
    (tmp_path / "photos").mkdir()
    for number in range(9):
        put(tmp_path, number)
    create_library(tmp_path / "library")
    index(tmp_path)
    return tmp_path


def put(place, number):
    tiles = np.random.default_rng(number).integers(0, 256, (3, 4, 3), dtype=np.uint8)
    picture = Image.fromarray(tiles).resize((40, 30), Image.Resampling.NEAREST)
    picture.save(place / "photos" / f"{number:03}.png")


def index(place):
    library = open_library(place / "library")
    index_photos(library, [check_root(place / "photos")], config=PALETTE)


@pytest.fixture
def served(place):
    with api(place / "library", poll_s=0.02) as server:
        yield server


def pages(client, cursor, **params):
    pages_of_ids = []
    while cursor:
        answer = client.get(SEARCH, params={**params, "cursor": cursor})
        assert answer.status_code == 200, answer.text
        pages_of_ids.append([photo["photo_id"] for photo in answer.json()["data"]])
        cursor = answer.json()["pagination"]["next_cursor"]
    return pages_of_ids


def first_page(client, **params):
    answer = client.get(SEARCH, params=params)
    assert answer.status_code == 200, answer.text
    return [p["photo_id"] for p in answer.json()["data"]], answer.json()["pagination"][
        "next_cursor"
    ]


def wait_for(served, folder):
    """Wait until the state in force is the one on disk."""
    live_library = served.app.services.live_library
    for _ in range(500):
        current = live_library.current
        if current.engine.snapshot_id == current_id(folder) and current.live is None:
            return
        time.sleep(0.02)
    pytest.fail("the new state did not come in")


def test_a_new_photo_is_found_without_a_restart(served, place):
    before, _ = first_page(served.client, q="red")
    put(place, 100)
    index(place)
    wait_for(served, place / "library")
    after, _ = first_page(served.client, q="red")
    assert (len(before), len(after)) == (9, 10)


def test_a_deleted_photo_is_gone_everywhere_also_for_cursors_of_before(served, place):
    head, cursor = first_page(served.client, q="red", per_page=2)
    whole = [*head, *(i for page in pages(served.client, cursor) for i in page)]
    (place / "photos" / "003.png").unlink()
    (place / "photos" / "007.png").unlink()
    index(place)
    wait_for(served, place / "library")
    left, _ = first_page(served.client, q="red")
    gone = set(whole) - set(left)
    assert len(gone) == 2
    rest = pages(served.client, cursor)
    assert [i for page in rest for i in page] == [i for i in whole[2:] if i not in gone]
    assert [len(page) for page in rest][:-1] == [2] * (len(rest) - 1)
    for photo_id in gone:
        assert served.client.get(f"/api/v1/photos/{photo_id}").status_code == 404
        assert served.client.get(f"/api/v1/photos/{photo_id}/similar").status_code == 404
        assert served.client.post(SEARCH, params={"photo_id": photo_id}).status_code == 404
        assert served.anonymous.get(f"/media/{photo_id}/thumb").status_code == 404


@pytest.mark.usefixtures("forgetful")
def test_a_cursor_goes_on_in_its_own_state_while_that_is_kept_and_then_says_so(served, place):
    head, cursor = first_page(served.client, q="red", per_page=4)
    expected = pages(served.client, cursor)
    for number in range(KEPT - 1):
        put(place, 200 + number)
        index(place)
        wait_for(served, place / "library")
        assert pages(served.client, cursor) == expected
    put(place, 300)
    index(place)
    wait_for(served, place / "library")
    answer = served.client.get(SEARCH, params={"cursor": cursor})
    assert (answer.status_code, answer.json()["error"]["code"]) == (410, "CURSOR_EXPIRED")
    assert head


def test_a_promoted_configuration_comes_in_and_cursors_of_the_old_one_go_on(served, place):
    _, cursor = first_page(served.client, q="red", per_page=4)
    expected = pages(served.client, cursor)
    before = served.client.get(SEARCH, params={"q": "red"}).headers["x-searchlab-config"]
    library = open_library(place / "library")
    library.publish(replace(library.engine.config, steering=0.123))
    wait_for(served, place / "library")
    after = served.client.get(SEARCH, params={"q": "red"}).headers["x-searchlab-config"]
    assert after != before
    assert pages(served.client, cursor) == expected


def test_requests_do_not_fail_while_states_come_and_go(served, place):
    answers = []
    for number in range(6):
        put(place, 400 + number)
        index(place)
        for _ in range(20):
            answers.append(served.client.get(SEARCH, params={"q": "sea"}).status_code)
    wait_for(served, place / "library")
    assert set(answers) == {200}
    assert len(first_page(served.client, q="red")[0]) == 15


def test_a_state_that_cannot_be_opened_leaves_the_old_one_answering(served, place):
    library = place / "library"
    put(place, 500)
    index(place)
    wait_for(served, library)
    name = (library / "CURRENT").read_text()
    (library / "CURRENT").write_text("000009-00000000\n")
    time.sleep(0.3)
    assert served.client.get(SEARCH, params={"q": "red"}).status_code == 200
    (library / "CURRENT").write_text(name)
    put(place, 501)
    index(place)
    wait_for(served, library)
    assert len(first_page(served.client, q="red")[0]) == 11


def live_library_of(served):
    return served.app.services.live_library


def test_whoever_looks_for_new_states_outlives_a_moment_without_one(served, place):
    current = place / "library" / "CURRENT"
    current.rename(current.with_suffix(".x"))
    time.sleep(0.3)
    current.with_suffix(".x").rename(current)
    put(place, 600)
    index(place)
    wait_for(served, place / "library")
    assert len(first_page(served.client, q="red")[0]) == 10


@pytest.mark.parametrize("error", [MemoryError("no memory"), DataError("too many open files")])
def test_a_state_that_could_not_be_opened_is_tried_again(served, place, monkeypatch, capfd, error):
    live_library, tries = live_library_of(served), []
    show = live_library._serve

    def fail_twice(engine):
        tries.append(engine.snapshot_id)
        if len(tries) <= 2:
            raise error
        return show(engine)

    monkeypatch.setattr(live_library, "_serve", fail_twice)
    put(place, 601)
    index(place)
    wait_for(served, place / "library")
    assert len(first_page(served.client, q="red")[0]) == 10
    assert tries == [current_id(place / "library")] * 3
    text = served.app.services.metrics.expose().decode()
    assert 'searchlab_swaps_total{outcome="done"} 1.0' in text
    assert 'searchlab_swaps_total{outcome="failed"} 1.0' in text


def test_a_model_of_pictures_is_warm_when_the_state_comes_in(place, monkeypatch):
    seen = []
    embed = SearchEngine.reference_vector

    def watched(engine, query):
        seen.append(query.kind)
        return embed(engine, query)

    monkeypatch.setattr(SearchEngine, "reference_vector", watched)
    LiveLibrary(place / "library")
    assert "image" in seen


@pytest.mark.parametrize(
    ("query", "end", "short"),
    [
        (Query(text="red"), 20, True),
        (Query(filter=PhotoFilter(color_name="teal")), 20, True),
        (Query(text="red"), 1_000, True),
        (Query(text="red"), 1_001, False),
        (Query(text="red", score_threshold=0.0), 20, False),
        (Query(text="red", sort_by="newest"), 20, False),
        (Query(text="字" * 500), 20, False),
        (Query(filter=PhotoFilter(color_name="teal", color_tolerance=254)), 20, False),
        (Query(filter=PhotoFilter(color_hex="#008080")), 20, False),
    ],
)
def test_only_what_is_short_for_certain_is_ranked_on_the_event_loop(served, query, end, short):
    snapshot = replace(live_library_of(served).current, quick=True)
    assert snapshot.is_short(query, end) is short
    assert not replace(snapshot, quick=False).is_short(query, end)
    everything = np.ones(len(snapshot.engine.table), dtype=bool)
    assert not replace(snapshot, live=everything).is_short(query, end)


def test_texts_that_were_embedded_are_known_in_the_next_state(served, place, monkeypatch):
    first_page(served.client, q="a very blue sea")
    put(place, 602)
    index(place)
    wait_for(served, place / "library")
    model = live_library_of(served).current.engine.model

    def refuse(texts):
        pytest.fail(f"embedded again: {texts}")

    monkeypatch.setattr(model, "encode_texts", refuse)
    assert len(first_page(served.client, q="a very blue sea")[0]) == 10


def test_a_cursor_of_an_older_state_that_takes_long_to_open_is_busy_and_stops_nothing_else(
    served, place, monkeypatch
):
    _, cursor = first_page(served.client, q="red", per_page=4)
    put(place, 700)
    index(place)
    wait_for(served, place / "library")
    live_library, opened = served.app.services.live_library, threading.Event()
    open_kept = live_library.library.open_kept

    def slowly(snapshot_id):
        opened.wait(30)
        return open_kept(snapshot_id)

    monkeypatch.setattr(live_library.library, "open_kept", slowly)
    monkeypatch.setattr(module, "_OPENING_S", 0.05)
    for _ in range(8):
        answer = served.client.get(SEARCH, params={"cursor": cursor})
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "OVERLOADED")
    # Threads that all share are free: a picture is read in one.
    picture = (place / "photos" / "000.png").read_bytes()
    answer = served.client.post(SEARCH, files={"image": ("a.png", picture)})
    assert answer.status_code == 200
    opened.set()
    monkeypatch.setattr(module, "_OPENING_S", 10.0)
    assert served.client.get(SEARCH, params={"cursor": cursor}).status_code == 200
