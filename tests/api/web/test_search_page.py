"""The search page without a script: states as addresses, results, and ways out of none."""

import io
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from urllib.parse import parse_qsl, quote, urlsplit

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from litestar import Request
from PIL import Image

from searchlab.api.web.search_state import SearchState, read_state
from searchlab.config import Config
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library
from searchlab.library.roots import check_root
from tests.support.apis import api
from tests.support.examples import examples

SAME = {"sec-fetch-site": "same-origin"}
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)> {{ 7*7 }} אבג"
COLORS = ("red", "green", "blue", "white", "orange", "black", "yellow")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("search-page")
    (place / "photos").mkdir()
    lines = []
    for number, color in enumerate(COLORS):
        Image.new("RGB", (60, 40 + 10 * number), color).save(place / "photos" / f"{color}.png")
        title = HOSTILE if color == "red" else f"all {color}"
        name = HOSTILE if color == "red" else "Ann Lee"
        lines.append(
            msgspec.json.encode(
                {
                    "file": f"{color}.png",
                    "title": title,
                    "source_description": title,
                    "photographer_full_name": name,
                    "photographer_username": "annlee" if color != "red" else HOSTILE,
                    "license_type": "cc0",
                }
            )
        )
    (place / "photos" / "photos.jsonl").write_bytes(b"\n".join(lines))
    library = create_library(place / "library")
    index_photos(library, [check_root(place / "photos")], config=Config(model="palette"))
    return place / "library"


@pytest.fixture(scope="module")
def served(folder):
    with api(folder, visitors="guests", rate_per_second=1e6, rate_burst=10**6) as server:
        yield server


def library_of(place, people):
    """Index a plain picture for each photographer, given by username and full name."""
    (place / "photos").mkdir()
    lines = []
    for number, (username, name) in enumerate(people):
        Image.new("RGB", (40, 40), COLORS[number]).save(place / "photos" / f"{number}.png")
        names = {"photographer_username": username, "photographer_full_name": name}
        lines.append(msgspec.json.encode({"file": f"{number}.png", **names}))
    (place / "photos" / "photos.jsonl").write_bytes(b"\n".join(lines))
    library = create_library(place / "library")
    index_photos(library, [check_root(place / "photos")], config=Config(model="palette"))
    return place / "library"


def photos_in(page):
    return re.findall(r'href="/photos/([0-9a-f-]{36})"', page)


class _Scripts(HTMLParser):
    def __init__(self):
        super().__init__()
        self.lines = []

    def handle_starttag(self, tag, attrs):
        names = dict(attrs)
        inline = tag == "style" or (tag == "script" and "src" not in names)
        if inline or any(name == "style" or name.startswith("on") for name in names):
            self.lines.append(self.get_starttag_text())


def scripts_in(page):
    """List the elements that would run or style something within the page itself."""
    parser = _Scripts()
    parser.feed(page)
    return parser.lines


def open_page(served, address):
    answer = served.anonymous.get(address)
    assert answer.status_code == 200, answer.text
    return answer.text


def test_without_conditions_the_newest_photos_are_shown_and_nothing_is_counted(served):
    before = served.anonymous.get("/?q=red").status_code
    assert before == 200
    page = open_page(served, "/")
    assert len(photos_in(page)) == len(COLORS)
    assert "search photos" in page.lower()


def test_a_search_shows_photos_credits_scores_and_how_many(served):
    page = open_page(served, "/?q=green")
    assert len(photos_in(page)) == len(COLORS)
    assert "<span data-shown>7</span> of 7" in page
    assert "Ann Lee" in page
    assert re.search(r'class="score">\d+ %<', page)
    assert "How this was searched" in page
    assert 'value="green"' in page


def test_what_photos_and_visitors_say_is_text_and_never_markup(served):
    for address in ("/?q=red", f"/?q={quote(HOSTILE)}", f"/?photographer={quote(HOSTILE)}"):
        page = open_page(served, address)
        assert "<script>alert" not in page
        assert scripts_in(page) == []
        assert "&lt;script&gt;alert(1)" in page
        assert "{{ 7*7 }}" in page


@pytest.mark.parametrize(
    ("asked", "canonical"),
    [
        ("/?q=", "/"),
        ("/?q=+&color_name=&score_threshold=0&sort_by=relevance&palette_share=10", "/"),
        ("/?q=red&text_alpha=3&color_tolerance=40", "/?q=red"),
        ("/?q=red&palette=blue&palette=green&palette_share=30",
         "/?q=red&palette=blue%3A30&palette=green%3A30"),
        ("/?q=red&score_threshold=.50", "/?q=red&score_threshold=0.5"),
        ("/?q=red&page=1&snapshot=x", "/?q=red"),
    ],
)  # fmt: skip
def test_each_state_has_one_address(served, asked, canonical):
    answer = served.anonymous.get(asked)
    assert (answer.status_code, answer.headers["location"]) == (303, canonical)
    assert served.anonymous.get(canonical).status_code == 200


def test_other_parameters_of_an_address_are_nobody_s_business(served):
    assert served.anonymous.get("/?q=red&utm_source=mail").status_code == 200


@settings(max_examples=examples(60), deadline=None)
@given(
    st.builds(
        SearchState,
        q=st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20),
        color_name=st.none() | st.sampled_from(("red", "teal")),
        color_tolerance=st.integers(0, 255),
        palette=st.lists(st.sampled_from(("red", "blue:30")), unique=True).map(tuple),
        palette_share=st.integers(1, 100),
        orientation=st.lists(st.sampled_from(("landscape", "square")), unique=True).map(tuple),
        score_threshold=st.none() | st.floats(0, 1),
        text_alpha=st.floats(0, 10),
        photo_id=st.none() | st.just("x y"),
        page=st.integers(1, 10**9),
        snapshot=st.none() | st.just("000001-ab"),
        sort_by=st.sampled_from(("relevance", "newest")),
    )
)
def test_an_address_leads_to_the_state_that_it_was_made_of(state):
    def read(address):
        scope = {"type": "http", "query_string": urlsplit(address).query.encode(), "headers": []}
        return read_state(Request(scope))

    again, is_canonical = read(state.address)
    assert is_canonical
    assert again.address == state.address
    assert again.filter == msgspec.structs.replace(state, palette=again.palette).filter or (
        not state.color_name and not state.palette
    )


def test_a_condition_in_force_goes_with_one_click(served):
    page = open_page(served, "/?q=red&orientation=portrait&color_name=orange")
    chips = {
        unescape(label): unescape(address)
        for address, label in re.findall(
            r'class="chip" href="([^"]+)" aria-label="Remove ([^"]+)"', page
        )
    }
    assert chips == {
        "Orange": "/?q=red&orientation=portrait",
        "Portrait": "/?q=red&color_name=orange",
    }
    assert "Clear all" in page


def test_pages_follow_each_other_without_a_gap_or_a_repetition(served):
    address, seen = "/?q=red&per_page=2", []
    while address:
        page = open_page(served, address)
        seen += dict.fromkeys(photos_in(page))
        following = re.search(r'rel="next" href="([^"]+)"', page)
        address = following and unescape(following[1])
    whole = list(dict.fromkeys(photos_in(open_page(served, "/?q=red"))))
    assert seen == whole


def test_no_page_repeats_a_photo_while_some_have_left_and_the_next_state_is_not_there(
    served, monkeypatch
):
    whole = photos_in(open_page(served, "/?q=red"))
    live_library = served.app.services.live_library
    snapshot = live_library.current
    live = np.ones(len(COLORS), dtype=np.bool_)
    live[[snapshot.row_of(photo_id) for photo_id in whole[1:4:2]]] = False
    monkeypatch.setattr(type(live_library), "current", replace(snapshot, live=live))
    seen = []
    for page in (1, 2):
        state = f"&page={page}&snapshot={snapshot.engine.snapshot_id}" if page > 1 else ""
        seen += dict.fromkeys(photos_in(open_page(served, f"/?q=red&per_page=4{state}")))
    left = list(dict.fromkeys(photo_id for photo_id in whole if photo_id not in whole[1:4:2]))
    assert seen == left


def test_further_photos_come_as_a_piece_of_the_page(served):
    page = open_page(served, "/?q=red&per_page=3")
    grid = unescape(re.search(r'data-grid="([^"]+)"', page)[1])
    piece = open_page(served, grid)
    assert "<html" not in piece
    assert len(dict.fromkeys(photos_in(piece))) == 3
    assert 'data-shown="6"' in piece


def test_a_page_behind_the_last_and_a_snapshot_that_is_gone_are_said(served):
    assert served.anonymous.get("/?q=red&page=99").status_code == 422
    answer = served.anonymous.get("/?q=red&page=2&per_page=2&snapshot=000009-gone")
    assert answer.status_code == 410
    assert 'href="/?q=red&amp;per_page=2"' in answer.text


@pytest.mark.parametrize("snapshot", ["..", "../..", "a/b", "%00"])
def test_a_snapshot_is_a_name_and_never_a_path(served, snapshot):
    answer = served.anonymous.get("/", params={"q": "a", "page": "2", "snapshot": snapshot})
    assert answer.status_code == 422


def test_an_empty_result_says_which_condition_emptied_it(served):
    page = open_page(served, "/?q=red&photographer=nobody&orientation=square")
    assert "No photo meets all of this" in page
    ways = re.findall(
        r'<a href="([^"]+)"><span>without <bdi>([^<]+)</bdi></span><strong[^>]*>([^<]+)', page
    )
    assert [(unescape(a), label, count) for a, label, count in ways] == [
        ("/?q=red&orientation=square", "By nobody", "1 photo")
    ]


def test_an_empty_result_that_no_single_condition_explains_offers_to_drop_all(served):
    page = open_page(served, "/?q=red&photographer=nobody&after_date=2999-01-01")
    assert "whichever single one is dropped" in page
    assert '<a href="/?q=red"><span>without any condition' in page


def test_values_that_cannot_be_are_said_on_a_page(served):
    answer = served.anonymous.get("/?color_name=mauve&per_page=1000")
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "per_page must be" in answer.text


def test_conditions_that_do_not_fit_together_leave_the_words(served):
    answer = served.anonymous.get("/?q=red+%22a%22&after_date=2026-01-01&before_date=2020-01-01")
    assert answer.status_code == 422
    assert "<h1>This search cannot be run</h1>" in answer.text
    assert 'href="/?q=red+%22a%22"' in answer.text


def test_a_least_score_is_in_force_only_where_something_is_scored(served):
    assert "Score 90 % and more" in served.anonymous.get("/?q=red&score_threshold=0.9").text
    for page in ("/?score_threshold=0.9", "/?source=nasa&score_threshold=0.9"):
        assert "Score 90 %" not in served.anonymous.get(page).text


def picture(color="green"):
    file = io.BytesIO()
    Image.new("RGB", (90, 60), color).save(file, "PNG")
    return {"image": ("x.png", file.getvalue(), "image/png")}


def test_a_picture_leads_to_an_address_that_holds_it(served):
    answer = served.anonymous.post("/picture?orientation=landscape", files=picture(), headers=SAME)
    assert answer.status_code == 303
    target = answer.headers["location"]
    assert dict(parse_qsl(urlsplit(target).query)).keys() == {"orientation", "picture"}
    page = open_page(served, target)
    exact = served.client.post("/api/v1/search/photos?orientation=landscape", files=picture())
    assert list(dict.fromkeys(photos_in(page))) == [p["photo_id"] for p in exact.json()["data"]]
    assert "Photos like this one" in page
    assert 'name="picture"' in page


def test_the_address_of_a_picture_cannot_be_made_up(served):
    target = served.anonymous.post("/picture", files=picture(), headers=SAME).headers["location"]
    for wrong in (
        target[:-1] + ("A" if target[-1] != "A" else "B"),
        "/?picture=x",
        "/?picture=é.é",
    ):
        assert served.anonymous.get(wrong).status_code == 422


def test_words_beside_a_picture_have_a_slider(served):
    target = served.anonymous.post("/picture?q=red", files=picture(), headers=SAME).headers[
        "location"
    ]
    page = open_page(served, f"{target}&text_alpha=4")
    assert 'name="text_alpha"' in page
    assert 'value="4.0"' in page


def test_what_is_no_picture_is_said(served):
    answer = served.anonymous.post("/picture", files={"image": ("x.png", b"text")}, headers=SAME)
    assert answer.status_code == 415
    assert "of a kind that cannot be read" in answer.text


def test_a_picture_from_another_site_is_refused(served):
    answer = served.anonymous.post(
        "/picture", files=picture(), headers={"sec-fetch-site": "cross-site"}
    )
    assert answer.status_code == 403


def test_more_like_a_photo_never_shows_the_photo_itself(served):
    photo_id = photos_in(open_page(served, "/"))[0]
    page = open_page(served, f"/?photo_id={photo_id}")
    grid = page[page.index('<ul class="grid"') :]
    assert photo_id not in photos_in(grid)
    assert "6</span> of 6" in page


def test_each_page_that_searches_counts_one(folder):
    with api(folder, visitors="counted") as server:
        client = server.make_client(account="counted", plan="scale")
        used = lambda: client.get("/api/v1/usage").json()["data"]["requests"]["used"]  # noqa: E731
        before = used()
        for address in ("/", "/?q=", "/photographers?q=ann", "/?q=red", "/?q=red&page=99"):
            server.anonymous.get(address)
        assert used() == before + 1


def test_who_is_not_signed_in_searches_nothing(folder):
    with api(folder) as server:
        assert photos_in(server.anonymous.get("/?q=red").text) == []
        assert server.anonymous.post("/picture", files=picture(), headers=SAME).status_code == 401
        assert server.anonymous.get("/photographers?q=a").status_code == 401


def test_suggestions_are_names_that_the_filter_takes(served):
    answer = served.anonymous.get("/photographers?q=ann")
    assert answer.json() == [["annlee", "Ann Lee", 6]]
    page = open_page(served, "/?photographer=annlee")
    assert len(dict.fromkeys(photos_in(page))) == 6


def test_a_part_of_one_photographers_name_leads_to_their_photos(served):
    answer = served.anonymous.get("/?q=green&photographer=Ann+L")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/?q=green&photographer=annlee"


@pytest.mark.slow
def test_a_part_of_several_names_asks_whom_and_does_not_count(tmp_path):
    people = [("annlee", "Ann Lee"), ("hannah<b>", "Hannah"), ("annlee", "Ann Lee"), ("bob", "Bob")]
    library = library_of(tmp_path, people)
    with api(library, visitors="asking") as server:
        client = server.make_client(account="asking", plan="scale")
        page = open_page(server, "/?orientation=square&photographer=ann")
        ways = re.findall(r'href="([^"]+photographer=[^"]+)"><span><bdi>([^<]+)</bdi>', page)
        assert [(unescape(address), name) for address, name in ways] == [
            ("/?orientation=square&photographer=annlee", "Ann Lee"),
            ("/?orientation=square&photographer=hannah%3Cb%3E", "Hannah"),
        ]
        assert "2 photos" in page
        assert client.get("/api/v1/usage").json()["data"]["requests"]["used"] == 0
        for address, _ in ways:
            assert photos_in(open_page(server, unescape(address)))
        assert "No photo meets all of this" in open_page(server, "/?photographer=zoe")
