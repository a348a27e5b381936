"""The search box of notebooks: what the browser sends is answered, kept, compared and shown."""

import io
import json

import pytest
from PIL import Image

from searchlab import Config, PhotoFilter, Query, build_demo_library
from searchlab.errors import InputError
from searchlab.studies.widgets.search_box import SearchBox

# All bundled photos are embedded.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def library():
    return build_demo_library()


@pytest.fixture
def box(library):
    return SearchBox(library, "a castle", per_page=6)


def press(box, *pictures, **message):
    before = box.heard
    box._handle_custom_msg(message, list(pictures))
    assert box.heard == before + 1


def ids(column_pages):
    return [hit.photo.photo_id for page in column_pages for hit in page.hits]


def test_typing_shows_what_the_library_finds(library, box):
    press(box, do="search", text="an owl", sort="relevance")
    wanted = library.search("an owl", per_page=6)
    assert ids(box.pages[0]) == [hit.photo.photo_id for hit in wanted.hits]
    (column,) = box.columns
    assert (column["total"], column["more"], box.problem) == (wanted.total, True, "")
    assert (column["first"], len(column["photos"])) == (1, 6)
    assert all(photo["picture"][8:12] == b"WEBP" for photo in column["photos"])
    assert box.page.query == Query(text="an owl") == box.query
    assert "an owl" in repr(box)


def test_scrolling_goes_on_in_the_same_ranking_until_its_end(library, box):
    while box.columns[0]["more"]:
        press(box, do="more")
    whole = library.search("a castle", per_page=100)
    assert ids(box.pages[0])[:100] == [hit.photo.photo_id for hit in whole.hits]
    assert len(ids(box.pages[0])) == whole.total
    last = box.columns[0]
    assert last["first"] + len(last["photos"]) - 1 == whole.total
    assert len(last["photos"]) <= 6  # pictures that are there already are not sent again
    n_pages = len(box.pages[0])
    press(box, do="more")
    assert len(box.pages[0]) == n_pages
    press(box, do="again")
    assert (box.columns[0]["first"], len(box.columns[0]["photos"])) == (1, whole.total)


def test_filters_order_and_least_score_are_those_of_a_query(box):
    press(
        box, do="search", text="", orientation="landscape", color="blue", tolerance=12, least=0,
        sort="newest",
    )  # fmt: skip
    wanted = PhotoFilter(orientation=("landscape",), color_name="blue", color_tolerance=12)
    assert box.query == Query(filter=wanted, sort_by="newest")
    press(box, do="search", text="sea", color="#1f6f8b", least=0.2)
    assert box.query.filter.color_hex == "#1f6f8b"
    assert box.query.score_threshold == 0.2
    assert all(photo["score"] >= 0.2 for photo in box.columns[0]["photos"])


def test_a_dropped_picture_is_searched_by_and_text_goes_with_it(library, box):
    photo = library.search("a castle", per_page=1).hits[0]
    press(box, photo.thumbnail.read_bytes(), do="search", text="")
    assert box.query.image is not None
    assert photo.photo.photo_id in ids(box.pages[0])[:3]
    press(box, memoryview(photo.thumbnail.read_bytes()), do="search", text="at night")
    assert box.query.kind == "both"


def test_two_configurations_stand_side_by_side_and_say_what_both_found(library):
    box = SearchBox(library, "red", other=Config(model="palette"), per_page=40)
    first, second = box.columns
    assert first["name"] != second["name"]
    places = {photo: n for n, photo in enumerate(ids(box.pages[1]), start=1)}
    assert first["elsewhere"] == [places.get(photo_id) for photo_id in ids(box.pages[0])]
    assert any(first["elsewhere"])
    assert len(second["elsewhere"]) == 40
    press(box, do="more")
    assert len(box.columns[0]["elsewhere"]) == 80


def test_a_query_is_kept_once_and_python_reads_it(box):
    press(box, do="keep")
    press(box, do="keep")
    press(box, do="search", text="an owl", orientation="portrait")
    press(box, do="keep")
    assert box.kept == [
        Query(text="a castle"),
        Query(text="an owl", filter=PhotoFilter(orientation=("portrait",))),
    ]
    assert box.texts == ["a castle", "an owl, orientation is portrait"]


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"do": "search", "text": ""}, "a query must have a text"),
        ({"do": "search", "text": "x" * 501}, "500"),
        ({"do": "search", "text": 7}, "text"),
        ({"do": "search", "text": "sea", "color": "mauvish"}, "color_name"),
        ({"do": "search", "text": "sea", "orientation": ["landscape"]}, "orientation"),
        ({"do": "search", "text": "sea", "tolerance": "wide", "color": "red"}, "color_tolerance"),
        ({"do": "search", "text": "sea", "least": 7}, "score_threshold"),
        ({"do": "search", "text": "sea", "sort": {}}, "sort_by"),
        ({"do": "fly"}, "do must be"),
        ({}, "do must be"),
        ("nonsense", "do must be"),
    ],
)
def test_what_cannot_be_asked_is_said_in_words_and_changes_nothing(box, message, said):
    before = (box.query, box.columns)
    box._handle_custom_msg(message, [])
    assert said in box.problem
    assert (box.query, box.columns) == before
    press(box, do="search", text="an owl")
    assert box.problem == ""


def test_bytes_that_are_no_picture_are_said_to_be_none(box):
    press(box, b"no picture", do="search", text="")
    assert "picture" in box.problem


def test_a_saved_notebook_shows_the_photos_and_no_markup_of_others(library):
    box = SearchBox(library, "<script>alert(1)</script> castle", per_page=3)
    sheet = box._repr_html_()
    assert sheet.count("<figure") == 3
    assert "data:image/webp;base64," in sheet
    assert "<script>" not in sheet
    assert "&lt;script&gt;" in sheet


def test_an_empty_box_waits(library):
    box = SearchBox(library)
    assert (box.query, box.columns, box.kept) == (None, [], [])
    press(box, do="more")
    press(box, do="keep")
    assert box.kept == []
    assert "nothing searched yet" in box._repr_html_()
    with pytest.raises(InputError, match="no query"):
        _ = box.page


@pytest.mark.parametrize("per_page", [0, 101])
def test_a_page_has_some_photos(library, per_page):
    with pytest.raises(InputError, match="per_page must be from 1 to 100"):
        SearchBox(library, per_page=per_page)


def test_what_the_browser_gets_is_plain_and_needs_nothing_from_elsewhere(box):
    plain = [
        {name: value for name, value in photo.items() if name != "picture"}
        for photo in box.columns[0]["photos"]
    ]
    json.dumps(plain)
    assert "http" not in box._esm.replace("http://www.w3.org", "")
    assert "import " not in box._esm


def test_a_large_picture_of_a_phone_is_taken(box):
    file = io.BytesIO()
    Image.new("RGB", (3000, 2000), "navy").save(file, "JPEG")
    press(box, file.getvalue(), do="search", text="")
    assert box.problem == ""
