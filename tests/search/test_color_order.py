"""Where colour is all that is asked for, the nearest photos come first."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.photos.colors import family_margin, hex_distance, parse_hex, shades_to_oklab
from searchlab.search import color_order
from searchlab.search.color_order import describe_color_order, rank_by_color
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.filters.facets import Facets
from searchlab.search.filters.palettes import cover_plainly
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.queries import Query
from tests.support import engine_world
from tests.support.engine_world import all_pages, ids, photo_id

build = engine_world.build
vectors = engine_world.vectors
N = engine_world.N


@pytest.fixture(scope="module")
def table(make_table):
    """Photos of shades at random, some of them the same, and a palette each."""
    rng = np.random.default_rng(3)
    shades = [f"#{shade:06x}" for shade in rng.integers(0, 1 << 24, 90).tolist()]
    return make_table(
        *(
            {
                "color_hex": shades[rng.integers(90)],
                "palette": tuple(
                    (shades[rng.integers(90)], int(rng.integers(1, 50))) for _ in "ab"
                ),
                "uploaded_on": f"2024-01-{rng.integers(1, 10):02d}",
            }
            for _ in range(N)
        )
    )


@pytest.fixture(scope="module")
def engine(build):
    return build(index="exact")


@pytest.fixture(params=["few", "many"])
def _few_or_many(request, monkeypatch):
    monkeypatch.setattr(color_order, "_FEW", 10_000 if request.param == "few" else 0)


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        ({"color_hex": "#1f6f8b"}, "distance from #1f6f8b"),
        ({"color_name": "red"}, "the tolerance that they need to be red"),
        ({"palette": ("red:30",)}, "how much of them is of these colours"),
    ],
)
def test_the_order_is_said_in_words(conditions, words):
    assert describe_color_order(PhotoFilter(**conditions)) == words


def expected_order(table, condition):
    """Sort the photos that the filter lets through, one by one."""

    palettes = [
        cover_plainly(table, color, condition.color_tolerance)
        for color, _ in condition.palette_colors
    ]

    def away(row):
        shade = table.photo(row).color_hex
        if condition.color_hex is not None:
            return hex_distance(shade, condition.color_hex)
        if condition.color_name is not None:
            lab = shades_to_oklab(np.array([parse_hex(shade)], dtype=np.uint32))
            return max(math.ceil(family_margin(lab, condition.color_name)[0]), 0)
        return -sum(int(covered[row]) for covered in palettes)

    rows = np.flatnonzero(condition.mask(table)).tolist()
    return sorted(rows, key=lambda row: (away(row), row))


CONDITIONS = [
    PhotoFilter(color_hex="#4682b4", color_tolerance=60),
    PhotoFilter(color_hex="#000000", color_tolerance=255),
    PhotoFilter(color_hex="#808080"),
    PhotoFilter(color_name="blue"),
    PhotoFilter(color_name="green", color_tolerance=90, palette="pink"),
    PhotoFilter(palette=("blue", "green"), color_tolerance=60),
    PhotoFilter(palette="purple:20"),
]


@pytest.mark.slow
@pytest.mark.usefixtures("_few_or_many")
@pytest.mark.parametrize("condition", CONDITIONS, ids=str)
def test_photos_come_nearest_first_and_ties_by_photo_id(engine, table, condition):
    expected = expected_order(table, condition)
    whole = engine.rank(Query(filter=condition))
    assert whole.rows.tolist() == expected
    assert whole.total == len(expected)
    assert whole.scores.tolist() == [1.0] * len(expected)
    assert "photos come by" in whole.plan.reason
    assert "photo_id" in whole.plan.reason


@pytest.mark.slow
@pytest.mark.parametrize("condition", CONDITIONS, ids=str)
@pytest.mark.parametrize("per_page", [1, 7, 100])
def test_pages_are_slices_of_one_ranking(engine, table, condition, per_page):
    query = Query(filter=condition)
    if per_page == 1:
        query = Query(filter=condition, limit=5)
    pages = all_pages(engine, query, per_page)
    expected = [photo_id(row) for row in expected_order(table, condition)]
    assert ids(pages) == expected[: query.limit]
    assert [page.has_more for page in pages] == [True] * (len(pages) - 1) + [False]


@pytest.mark.usefixtures("_few_or_many")
@settings(deadline=None)
@given(st.integers(0, N), st.integers(0, N), st.integers(0, 2**24 - 1), st.integers(0, 255))
def test_any_slice_is_cut_from_the_whole(table, start, stop, shade, tolerance):
    made, condition = (
        Facets(table),
        PhotoFilter(color_hex=f"#{shade:06x}", color_tolerance=tolerance),
    )
    allowed = condition.allowed(made)
    whole = rank_by_color(condition, made, allowed, 0, N)
    assert sorted(whole.tolist()) == allowed.rows().tolist()
    assert (
        rank_by_color(condition, made, allowed, start, stop).tolist() == whole[start:stop].tolist()
    )


@pytest.mark.parametrize("colour", [{"color_hex": "#4682b4"}, {"color_name": "green"}], ids=str)
def test_a_smaller_tolerance_gives_the_first_photos_of_a_larger_one(engine, colour):
    condition = PhotoFilter(**colour, color_tolerance=255)
    whole = engine.rank(Query(filter=condition)).rows.tolist()
    assert len(whole) == N
    lengths = []
    for tolerance in (20, 45, 90, 180):
        narrower = replace(condition, color_tolerance=tolerance)
        rows = engine.rank(Query(filter=narrower)).rows.tolist()
        assert rows == whole[: len(rows)]
        lengths.append(len(rows))
    assert 0 < lengths[0] < lengths[1] < lengths[2] < lengths[3]


def test_newest_first_is_as_it_was(engine, table):
    condition = PhotoFilter(color_name="blue", color_tolerance=60)
    rows = engine.rank(Query(filter=condition, sort_by="newest")).rows
    days = table.uploaded_days[rows]
    assert len(rows) > 10
    assert rows.tolist() == sorted(rows.tolist(), key=lambda row: (-table.uploaded_days[row], row))
    assert days.tolist() == sorted(days.tolist(), reverse=True)


def test_words_rank_by_content_whatever_colour_is_asked_for(engine):
    condition = PhotoFilter(color_name="blue", color_tolerance=90)
    ranking = engine.rank(Query(text="a boat", filter=condition))
    assert (np.diff(ranking.scores) <= 0).all()
    assert ranking.rows.tolist() != engine.rank(Query(filter=condition)).rows.tolist()


def test_without_a_colour_photos_come_by_photo_id(engine):
    condition = PhotoFilter(after_date="2024-01-05")
    rows = engine.rank(Query(filter=condition)).rows
    assert rows.tolist() == sorted(rows.tolist())


def test_no_photo_is_ranked_where_none_is_left(table):
    condition = PhotoFilter(color_hex="#4682b4")
    empty = Bitmap.empty(len(table))
    assert rank_by_color(condition, Facets(table), empty, 0, 10).tolist() == []
