"""Sections 4.1 to 4.3: whatever is combined, held against a list comprehension over all photos."""

from functools import cache

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.independent_client import PHOTO, SEARCH, check_page
from tests.support.spec_server import LICENSES, PEOPLE, SHADES, corpus

WORDS = ["sea", "a yellow flower", "красный", "🌼 %_", "plain"]
SOURCES = ["scikit-learn", "palapeli-data", "mate-backgrounds", "scikit-image"]
DAYS = ["0001-01-01", "2020-01-01", "2020-01-17", "2020-02-10", "9999-12-31"]

FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "orientation": st.lists(st.sampled_from(["landscape", "portrait", "square"]), min_size=1),
        "source": st.lists(st.sampled_from(SOURCES), min_size=1, max_size=4),
        "license_type": st.lists(st.sampled_from([*LICENSES, "free"]), min_size=1, max_size=3),
        "photographer": st.sampled_from([name for name, _ in PEOPLE[:5]] + ["nobody"]),
        "after_date": st.sampled_from(DAYS),
        "color": st.one_of(
            st.tuples(st.just("color_name"), st.sampled_from(["red", "green", "white", "brown"])),
            st.tuples(st.just("color_hex"), st.sampled_from(SHADES)),
        ),
    },
)
SHOWN = st.fixed_dictionaries(
    {"per_page": st.sampled_from([7, 20, 100])},
    optional={
        "fields": st.lists(st.sampled_from(sorted(PHOTO)), min_size=1, max_size=4, unique=True),
        "limit": st.sampled_from([1, 2, 7, 20, 100]),
        "sort_by": st.sampled_from(["relevance", "newest"]),
        "score_threshold": st.sampled_from([0, 0.001, 0.005, 0.01, 0.5, 1]),
    },
)
many = settings(
    max_examples=examples(40),
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],  # a smaller example would not be worth the requests
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@cache
def ranking(how, what):
    """Return every photo by what a search without filters says of it, best first."""
    api = corpus().api()
    if how == "text":
        return api.all_photos(q=what)
    first = api.image_page(photo_id=what, per_page=100)
    pages = api.follow(first, lambda cursor: api.image_page(cursor=cursor))
    return [photo for page in pages for photo in page["data"]]


def meets(photo, filters):
    for name in ("orientation", "source", "license_type"):
        if name in filters and photo[name] not in filters[name]:
            return False
    if photo["photographer_username"] != filters.get(
        "photographer", photo["photographer_username"]
    ):
        return False
    color, value = filters.get("color", ("color_hex", photo["color_hex"]))
    return photo[color] == value and photo["uploaded_on"] >= filters.get("after_date", "")


def expected(whole, filters, shown, *, ranked):
    photos = [photo for photo in whole if meets(photo, filters)]
    photos = [p for p in photos if p["relevance_score"] >= shown.get("score_threshold", 0)]
    if ranked:  # either order shows the same photos: the nearest ones
        photos = photos[: shown.get("limit")]
    if shown.get("sort_by") == "newest":
        photos.sort(key=lambda photo: photo["photo_id"])
        photos.sort(key=lambda photo: photo["uploaded_on"], reverse=True)
    names = shown.get("fields", PHOTO)
    return [{name: photo[name] for name in names} for photo in photos[: shown.get("limit")]]


def query_parameters(filters, shown):
    """Write conditions as query parameters."""
    params = filters | shown
    if "color" in params:
        color, value = params.pop("color")
        params |= {color: value} | ({"color_tolerance": 0} if color == "color_hex" else {})
    if "fields" in params:
        params["fields"] = ",".join(params["fields"])
    return params


def photos_of(pages):
    return [photo for page in pages for photo in page["data"]]


@many
@given(q=st.sampled_from(WORDS), filters=FILTERS, shown=SHOWN)
def test_a_search_by_text_holds_to_all_that_it_is_asked(known, q, filters, shown):
    pages = known.api().pages(q=q, **query_parameters(filters, shown))
    assert photos_of(pages) == expected(ranking("text", q), filters, shown, ranked=True)


@many
@given(filters=FILTERS.filter(bool), shown=SHOWN)
def test_a_search_by_filters_alone_does(known, filters, shown):
    pages = known.api().pages(**query_parameters(filters, shown))
    whole = sorted(known.everything, key=lambda photo: photo["photo_id"])
    assert photos_of(pages) == expected(whole, filters, shown, ranked=False)


@many
@given(number=st.integers(0, 5), filters=FILTERS, shown=SHOWN)
def test_a_search_by_photo_does(known, number, filters, shown):
    api, photo_id = known.api(), known.plain(number)["photo_id"]
    params = query_parameters(filters, shown)
    fields = {"fields": params["fields"]} if "fields" in params else {}
    first = check_page(api.post(SEARCH, photo_id=photo_id, **params))
    pages = api.follow(first, lambda cursor: api.image_page(cursor=cursor, **fields))
    assert photos_of(pages) == expected(ranking("photo", photo_id), filters, shown, ranked=True)
