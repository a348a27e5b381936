import dataclasses
import json
import math
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from searchlab.errors import InputError
from searchlab.photos.photo import PHOTO_FIELDS
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.hits import Hit
from searchlab.search.queries import Page, Query, QueryPlan, check_count
from tests.support.examples import examples

PICTURE = Image.new("RGB", (2, 2))
HUGE = [
    pytest.param(10**400, id="10**400"),
    pytest.param(-(10**400), id="-10**400"),
    pytest.param(10**5000, id="10**5000"),
]


# -- text -------------------------------------------------------------------------------------


@pytest.mark.parametrize("character", ["a", "ä", "写", "🐈", "\U0010ffff", "\u0301", "\u202e"])
def test_500_code_points_are_the_most_whatever_their_bytes(character):
    assert Query(text=character * 500).text == character * 500
    with pytest.raises(InputError, match="text must have at most 500 characters, got 501"):
        Query(text=character * 501)


@pytest.mark.parametrize("text", [None, "", " ", "\t\n", "\u2003\u00a0"])
def test_an_empty_text_is_the_same_as_none(text):
    assert Query(text=text, photo_id="p") == Query(photo_id="p")
    assert Query(text=text, photo_id="p").kind == "image"
    with pytest.raises(InputError, match="must have a text, an image, a photo_id or a filter"):
        Query(text=text)


@pytest.mark.parametrize(
    "text", ["写真の砂丘", "كثبان رملية", "Düne bei Nacht", "🏜️", "dunes\nat  noon", "0", "'; --"]
)
def test_a_text_in_any_language_stays_as_it_is(text):
    assert Query(text=text).text == text


@pytest.mark.parametrize("text", ["a\0", "\ud800", "a\udfffb", "\ud83d\ude00", "\0"])
def test_nul_and_lone_surrogates_are_refused(text):
    with pytest.raises(InputError, match="Unicode without NUL and lone surrogates"):
        Query(text=text)


@pytest.mark.parametrize("text", [b"dunes", 5, ["dunes"], True])
def test_a_text_must_be_a_string(text):
    with pytest.raises(InputError, match="text must be a string"):
        Query(text=text)


# -- numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 2, 99, 100])
def test_limits_from_1_to_100_are_taken(limit):
    assert Query(text="a", limit=limit).limit == limit


@pytest.mark.parametrize("limit", [0, -1, 101, 1.0, 5.5, "5", True, False, math.nan, *HUGE])
def test_any_other_limit_is_refused(limit):
    with pytest.raises(InputError, match="limit must be an integer from 1 to 100, got"):
        Query(text="a", limit=limit)


@pytest.mark.parametrize("threshold", [0, 0.0, -0.0, 5e-324, 0.5, 1, 1.0])
def test_thresholds_from_0_to_1_are_taken(threshold):
    assert Query(text="a", score_threshold=threshold).score_threshold == threshold


@pytest.mark.parametrize(
    "threshold",
    [-1e-9, 1.0000001, 2, -1, math.nan, math.inf, -math.inf, True, False, "0.5", 0.5j, *HUGE],
)
def test_any_other_threshold_is_refused(threshold):
    with pytest.raises(InputError, match="score_threshold must be a number from 0 to 1, got"):
        Query(text="a", score_threshold=threshold)


@pytest.mark.parametrize("recall", [1e-9, 0.5, 0.99, 1, 1.0])
def test_a_recall_above_0_to_1_may_be_asked_for(recall):
    assert Query(text="a", min_recall=recall).min_recall == recall
    assert Query(text="a").min_recall is None


@pytest.mark.parametrize("recall", [0, 0.0, -0.1, 1.01, math.nan, math.inf, True, "0.9", *HUGE])
def test_any_other_recall_is_refused(recall):
    with pytest.raises(InputError, match="min_recall must be a number above 0, up to 1, got"):
        Query(text="a", min_recall=recall)


@pytest.mark.parametrize("alpha", [0, 0.0, 1e-300, 1.7, 10, 10.0])
def test_alphas_from_0_to_10_are_taken(alpha):
    assert Query(text="a", text_alpha=alpha).text_alpha == alpha


@pytest.mark.parametrize(
    "alpha", [-1e-9, 10.000001, 11, math.nan, math.inf, -math.inf, True, "1.7", None, *HUGE]
)
def test_any_other_alpha_is_refused(alpha):
    with pytest.raises(InputError, match="text_alpha must be a number from 0 to 10, got"):
        Query(text="a", text_alpha=alpha)


def test_alpha_is_1_7_unless_told_otherwise():
    assert Query(text="a").text_alpha == 1.7


@pytest.mark.parametrize("value", [0, 101, 20.0, True, None, "20", *HUGE])
def test_a_page_size_must_be_an_integer_from_1_to_100(value):
    with pytest.raises(InputError, match="per_page must be an integer from 1 to 100, got"):
        check_count("per_page", value, 100)


# -- order ------------------------------------------------------------------------------------


def test_relevance_is_the_order_unless_told_otherwise():
    assert Query(text="a").sort_by == "relevance"
    assert Query(text="a", sort_by="newest").sort_by == "newest"


@pytest.mark.parametrize("order", ["oldest", "Newest", "", "relevance ", None, 5, ["newest"]])
def test_any_other_order_is_refused(order):
    with pytest.raises(InputError, match="sort_by must be relevance or newest, got"):
        Query(text="a", sort_by=order)


# -- what a query is made of ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        ({"text": "a"}, "text"),
        ({"text": "a", "text_alpha": 0}, "text"),
        ({"photo_id": "p"}, "image"),
        ({"image": PICTURE}, "image"),
        ({"image": b"bytes"}, "image"),
        ({"image": "a.jpg"}, "image"),
        ({"photo_id": "p", "text": "a"}, "both"),
        ({"image": PICTURE, "text": "a"}, "both"),
        ({"image": PICTURE, "text": "a", "text_alpha": 0}, "image"),
        ({"image": PICTURE, "text": " "}, "image"),
        ({"filter": PhotoFilter(source="nasa")}, None),
        ({"filter": PhotoFilter(source="nasa"), "text": "a"}, "text"),
    ],
)
def test_the_kind_of_a_query_follows_from_its_parts(parts, kind):
    query = Query(**parts)
    assert query.kind == kind
    assert query.has_reference == ("image" in parts or "photo_id" in parts)


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"text": ""},
        {"limit": 5},
        {"sort_by": "newest"},
        {"score_threshold": 0.5},
        {"text_alpha": 3},
        {"filter": PhotoFilter()},
        {"filter": PhotoFilter(color_tolerance=0)},
        {"filter": PhotoFilter(source=())},
        {"limit": 5, "sort_by": "newest", "score_threshold": 0.0, "text": "  "},
    ],
)
def test_a_query_must_bring_something_to_search_by(parts):
    with pytest.raises(InputError, match="a text, an image, a photo_id or a filter, got none"):
        Query(**parts)


@pytest.mark.parametrize("image", [PICTURE, b"", "a.jpg", Path("a.jpg")])
def test_image_and_photo_id_cannot_be_combined(image):
    with pytest.raises(InputError, match="cannot be combined, got photo_id 'p'; keep one"):
        Query(image=image, photo_id="p")


def test_a_path_in_words_is_a_path():
    assert Query(image="pictures/a.jpg").image == Path("pictures/a.jpg")


@pytest.mark.parametrize("image", [5, ["a.jpg"], np.zeros((2, 2, 3)), *HUGE])
def test_what_is_no_picture_is_refused(image):
    with pytest.raises(InputError, match="image must be"):
        Query(image=image)


@pytest.mark.parametrize("photo_id", [5, b"p", ("p",), *HUGE])
def test_a_photo_id_must_be_a_string(photo_id):
    with pytest.raises(InputError, match="photo_id must be"):
        Query(photo_id=photo_id)


def test_a_query_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Query(text="a").limit = 5


@settings(max_examples=examples(200), deadline=None)
@given(
    st.none() | st.text() | st.text("ab ", min_size=499, max_size=502) | st.binary(max_size=3),
    *[st.none() | st.integers() | st.floats() | st.booleans()] * 3,
)
def test_a_query_is_within_its_ranges_or_refused(text, limit, threshold, alpha):
    values = {"text": text, "limit": limit, "score_threshold": threshold}
    try:
        query = Query(photo_id="p", text_alpha=1.7 if alpha is None else alpha, **values)
    except InputError:
        return
    assert query.text is None or 0 < len(query.text) <= 500
    assert query.limit is None or query.limit in range(1, 101)
    assert query.score_threshold is None or 0 <= query.score_threshold <= 1
    assert 0 <= query.text_alpha <= 10


# -- plans and pages --------------------------------------------------------------------------


def plan(**changes):
    values = {
        "mode": "exact",
        "n_photos": 1_200,
        "n_allowed": 30,
        "filter": PhotoFilter(source="nasa"),
        "reason": "few photos",
        "scored_by": "toy, calibration uncalibrated",
    }
    return QueryPlan(**values | changes)


def test_a_plan_explains_itself():
    assert plan().explain() == (
        "exact: few photos\n"
        "filter: source is nasa: 30 of 1,200 photos (2.50 %); toy, calibration uncalibrated"
    )


def test_selectivity_is_a_share_also_where_there_are_no_photos():
    assert plan().selectivity == 0.025
    assert plan(n_photos=0, n_allowed=0).selectivity == 1.0
    assert plan(n_allowed=0).selectivity == 0.0


def page_of(*hits, **changes):
    values = {"hits": hits, "query": Query(text="sea"), "start": 1, "total": 349, "per_page": 20}
    return Page(**values | {"next_cursor": None, "plan": plan()} | changes)


def test_a_page_has_more_exactly_where_it_has_a_cursor(make_photo):
    hit = Hit(photo=make_photo(1), relevance_score=0.5)
    assert not page_of(hit).has_more
    assert page_of(hit, next_cursor="token").has_more
    assert (len(page_of(hit)), list(page_of(hit))) == (1, [hit])


def test_a_hit_gives_the_whole_record_or_the_named_fields_in_order(make_photo):
    hit = Hit(photo=make_photo(1, width=30), relevance_score=0.25)
    assert tuple(hit.to_dict()) == PHOTO_FIELDS
    assert hit.to_dict(["relevance_score", "width"]) == {"width": 30, "relevance_score": 0.25}
    assert list(hit.to_dict(["relevance_score", "width"])) == ["width", "relevance_score"]
    with pytest.raises(InputError, match="'file'"):
        hit.to_dict(["width", "file"])


class _Tags(HTMLParser):
    def __init__(self, markup):
        super().__init__()
        self.tags, self.handlers, self.values = [], [], []
        self.feed(markup)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        self.values += [value for _, value in attrs]


def test_a_page_in_a_notebook_shows_hostile_texts_as_text(make_photo, make_picture, tmp_path):
    evil = "</b></figcaption><script>alert(1)</script><img src=x onerror=alert(1)>\" onload='x'"
    photo = make_photo(1, source_description=evil, alt_description=evil, source=evil)
    unnamed = make_photo(2, source_description="", alt_description=evil, color_name=evil)
    picture = make_picture(tmp_path / "thumb.webp")
    page = page_of(
        Hit(photo=photo, relevance_score=0.5, thumbnail=picture),
        Hit(photo=unnamed, relevance_score=0.5),
        plan=plan(filter=PhotoFilter(photographer=evil), reason=evil),
        next_cursor="token",
    )
    read = _Tags(page._repr_html_())
    assert "script" not in read.tags
    assert read.handlers == []
    assert read.tags.count("img") == 1
    assert ">2 of 349<" in page._repr_html_()


def test_an_empty_page_can_be_shown():
    assert ">0 of 0<" in page_of(total=0)._repr_html_()


def test_a_further_page_says_where_it_begins_and_ends(make_photo):
    hits = [Hit(photo=make_photo(i), relevance_score=0.5) for i in range(3)]
    assert page_of(*hits, total=1_200).extent == "3 of 1,200"
    assert page_of(*hits, start=1_001, total=1_200).extent == "1,001 to 1,003 of 1,200"


def test_a_hit_has_the_file_of_its_photo_and_its_record_has_not(make_photo):
    here = Hit(photo=make_photo(1, file="/home/ann/a b.jpg"), relevance_score=0.5)
    assert here.file == Path("/home/ann/a b.jpg")
    assert "/home" not in json.dumps(here.to_dict())
    assert Hit(photo=make_photo(1), relevance_score=0.5).file is None


def test_files_are_linked_only_in_a_page_for_oneself(make_photo, make_picture, tmp_path):
    file = make_picture(tmp_path / 'Ann\'s 100% "new" <b>photos</b> #1' / "é ü.webp")
    hit = Hit(photo=make_photo(1, file=str(file)), relevance_score=0.5, thumbnail=file)
    page = page_of(hit, query=Query(image=file), picture=file)
    for markup in (page.to_html(), page.to_html(document=True), page._repr_html_(), repr(page)):
        assert not any(part in markup for part in ("file:", "Ann's", "é ü", "%C3%A9", "pytest"))
    own = _Tags(page.to_html(files=True))
    assert own.values.count(file.as_uri()) == 2  # of the picture and of its name
    assert "é ü.webp" in page.to_html(files=True)


def test_a_document_has_title_language_viewport_and_the_plan_below_the_photos(make_photo):
    hit = Hit(photo=make_photo(1), relevance_score=0.5)
    text = page_of(hit, query=Query(text="<sea> & sky")).to_html(document=True)
    assert text.startswith('<!doctype html>\n<html lang="en">')
    assert "<title>&lt;sea&gt; &amp; sky · searchlab</title>" in text
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in text
    above, _, below = text.partition("<figure")
    assert ">1 of 349<" in above
    assert "calibration" not in above
    assert "few photos" in below.partition("<details")[2]


def test_a_page_shows_the_picture_it_was_searched_by(make_photo, make_picture, tmp_path):
    picture = make_picture(tmp_path / "query.png")
    query = Query(image=picture)
    shown = page_of(query=query, picture=picture).to_html()
    assert 'src="data:image/webp;base64,' in shown
    assert "Photos like the query&#x27;s picture" in shown
    assert page_of(query=query, picture=picture.read_bytes()).to_html() == shown
    picture.unlink()
    assert "<img" not in page_of(query=query, picture=picture).to_html()


def test_a_page_of_conditions_alone_is_headed_by_them():
    query = Query(filter=PhotoFilter(source=("nasa",)))
    assert ">source is nasa</h4>" in page_of(query=query).to_html()


# -- plans in words, filters of the right kind, places ----------------------------------------


def test_a_plan_is_printed_in_words(capsys):
    print(plan())  # noqa: T201 - what a notebook does
    assert capsys.readouterr().out == plan().explain() + "\n"


@pytest.mark.parametrize("condition", [None, {}, {"source": "nasa"}, "nasa", ()])
def test_a_filter_that_is_none_is_refused(condition):
    with pytest.raises(InputError, match="filter must be a PhotoFilter, got"):
        Query(text="a", filter=condition)


def test_the_results_of_a_page_have_places(make_photo):
    hits = [Hit(photo=make_photo(i), relevance_score=0.5) for i in range(3)]
    page = page_of(*hits, start=21)
    assert (page[0], page[-1]) == (hits[0], hits[2])
    shown = page._repr_html_()
    assert [f"<b>{place}.</b>" in shown for place in (1, 20, 21, 23, 24)] == [
        False,
        False,
        True,
        True,
        False,
    ]
