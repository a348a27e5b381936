import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.errors import DataError
from searchlab.photos.colors import FAMILY_NAMES, color_name, format_hex, within_hex, within_name
from searchlab.photos.columns import Texts, open_columns, save_columns
from searchlab.photos.table import CODED_COLUMNS, NUMBER_COLUMNS, TEXT_COLUMNS, Codes, PhotoTable
from searchlab.search.filters import bitmaps, facets, upload_order, value_sets
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.filters.facets import Facets
from searchlab.search.filters.photo_filter import PhotoFilter
from tests.support.examples import examples

SIZES = (0, 1, 63, 64, 65, 300)
VALUES = {
    "orientation": ["landscape", "portrait", "square"],
    "color_name": sorted(FAMILY_NAMES),
    "source": [f"source-{number}" for number in range(5)],
    "license_type": [f"license-{number:03d}" for number in range(160)],
    "photographer_username": [f"user-{number:05d}" for number in range(2_000)],
}


def drawn_table(n, seed=0):
    """Draw n photos: long tails of values, few days, and many shades near to each other."""
    rng = np.random.default_rng(seed)
    empty = Texts(np.zeros(n + 1, dtype=np.int64), np.zeros(0, dtype=np.uint8))
    numbers = {name: np.zeros(n, dtype=dtype) for name, dtype in NUMBER_COLUMNS.items()}
    numbers["shade"] = (rng.integers(0, 1 << 24, n) & 0x3F7FFF).astype(np.uint32)
    numbers["uploaded_day"] = rng.integers(-50, 50, n).astype(np.int32)
    codes = {}
    for name, values in VALUES.items():
        rows = (rng.integers(0, len(values), n) * rng.random(n) ** 3).astype(np.int32)
        codes[name] = Codes(rows, values)
    return PhotoTable(numbers, codes, dict.fromkeys(TEXT_COLUMNS, empty))


@pytest.fixture(params=["numpy", "compiled"], scope="module", autouse=True)
def _both_ways(request):
    """Everything must hold below and above the size from which on numba is used."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (bitmaps, facets, upload_order, value_sets):
            first = 0 if request.param == "compiled" else 2**40
            patch.setattr(module, "COMPILED_FROM", first)
        yield


@pytest.fixture(scope="module", params=["made", "opened"])
def facets_of(request, tmp_path_factory):
    """Gives the facets of a table, as they are made or as they come back from a file."""

    def build(table):
        made = Facets(table)
        if request.param == "made":
            return made
        path = tmp_path_factory.mktemp("facets") / "facets.columns"
        made.save(path)
        return Facets.open(path, table)

    return build


@pytest.mark.parametrize("n", SIZES)
def test_values_are_the_rows_that_have_them(facets_of, n):
    table = drawn_table(n)
    facets = facets_of(table)
    for name in CODED_COLUMNS:
        codes = table.codes(name)
        for places in ([], [0], [1, 2], [0, len(codes.values) - 1], range(len(codes.values))):
            mask = np.isin(codes.rows, list(places))
            values = [codes.values[value] for value in places]
            assert facets.any_of(name, values).mask().tolist() == mask.tolist()


def test_values_that_no_photo_has_have_no_rows(facets_of):
    facets = facets_of(drawn_table(65))
    for value in ("", "source-9", "~", "source-0\0", "\ud800"):
        assert facets.any_of("source", [value]).count == 0
    assert facets.any_of("source", ["source-0", "~"]) == facets.any_of("source", ["source-0"])


@pytest.mark.parametrize("n", SIZES)
def test_days_are_the_rows_since_then(facets_of, n):
    table = drawn_table(n)
    facets = facets_of(table)
    for day in (-(10**6), -51, -50, -49, 0, 1, 48, 49, 50, 10**6):
        assert facets.since(day).mask().tolist() == (table.uploaded_days >= day).tolist()
        assert facets.until(day).mask().tolist() == (table.uploaded_days <= day).tolist()


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.5, 1.0])
def test_newest_are_those_allowed_by_day_then_by_row(facets_of, n, share):
    table = drawn_table(n)
    facets = facets_of(table)
    allowed = Bitmap.of_mask(np.random.default_rng(1).random(n) < share)
    days = table.uploaded_days
    for some in (allowed, None):
        rows = range(n) if some is None else some.rows().tolist()
        ordered = sorted(rows, key=lambda row: (-days[row], row))
        for start, stop in ((0, 0), (0, 1), (0, 20), (20, 40), (5, 3), (0, 10**6), (n, n + 5)):
            page = facets.newest(some, stop, start)
            assert page.dtype == np.int64
            assert page.tolist() == ordered[start:stop]


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.integers(-3, 3), max_size=140), st.integers(-5, 5), st.randoms())
def test_an_order_is_what_sorting_says(days, day, random):
    order = upload_order.UploadOrder.from_days(np.array(days, dtype=np.int32))
    rows = [row for row in range(len(days)) if random.random() < 0.3]
    expected = sorted(rows, key=lambda row: (-days[row], row))
    some = Bitmap.of_rows(rows, len(days))
    assert order.newest(some, len(days)).tolist() == expected
    assert order.newest(some, 4, 1).tolist() == expected[1:4]
    assert order.since(day).rows().tolist() == [r for r, d in enumerate(days) if d >= day]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("share", [0.0, 0.02, 0.2, 0.7, 1.0])
def test_counts_are_what_a_counter_counts(facets_of, n, share):
    table = drawn_table(n)
    facets = facets_of(table)
    mask = np.random.default_rng(2).random(n) < share
    for name in CODED_COLUMNS:
        codes = table.codes(name)
        for allowed, rows in ((None, codes.rows), (Bitmap.of_mask(mask), codes.rows[mask])):
            counts = facets.counts(name, allowed)
            counter = Counter(rows.tolist())
            assert counts.tolist() == [counter[value] for value in range(len(codes.values))]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("tolerance", [0, 1, 5, 20, 60, 254, 255])
def test_shades_are_those_of_the_mask(facets_of, n, tolerance):
    table = drawn_table(n)
    facets = facets_of(table)
    some = Bitmap.of_mask(np.arange(n) % 9 == 0)
    for shade in ("#203040", *map(format_hex, table.shades[:3].tolist())):
        mask = within_hex(table.shades, shade, tolerance=tolerance)
        assert facets.within_hex(shade, tolerance).mask().tolist() == mask.tolist()
        assert facets.within_hex(shade, tolerance, some) == Bitmap.of_mask(mask) & some


@pytest.mark.parametrize("n", SIZES)
def test_families_are_those_of_the_mask(facets_of, n):
    table = drawn_table(n)
    facets = facets_of(table)
    for family in ("black", "green", "pink"):
        for tolerance in (0, 10, 19, 20, 21, 60, 254, 255):
            mask = within_name(table.shades, family, tolerance=tolerance)
            assert facets.within_name(family, tolerance).mask().tolist() == mask.tolist()


def test_equal_oklab_is_not_an_equal_shade_at_tolerance_0(facets_of):
    table = drawn_table(300)
    shade = format_hex(int(table.shades[7]))
    rows = np.flatnonzero(table.shades == table.shades[7])
    assert facets_of(table).within_hex(shade, 0).rows().tolist() == rows.tolist()


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(st.data())
def test_five_conditions_together_are_what_the_plain_mask_says(facets_of, data):
    table = drawn_table(300)
    facets = facets_of(table)
    conditions = {
        "orientation": data.draw(st.lists(st.sampled_from(VALUES["orientation"]))),
        "source": data.draw(st.lists(st.sampled_from(VALUES["source"]))),
        "license_type": data.draw(st.lists(st.sampled_from(VALUES["license_type"][:20]))),
        "photographer": data.draw(st.none() | st.sampled_from(["user-00000", "nobody"])),
        "after_date": data.draw(st.none() | st.sampled_from(["1969-12-31", "1970-01-10"])),
        "color_tolerance": data.draw(st.integers(0, 255)),
    }
    colour = data.draw(st.sampled_from(["name", "hex", "none"]))
    if colour == "name":
        conditions["color_name"] = data.draw(st.sampled_from(FAMILY_NAMES))
    if colour == "hex":
        conditions["color_hex"] = format_hex(data.draw(st.integers(0, 0xFFFFFF)))
    chosen = PhotoFilter(**conditions)
    allowed = chosen.allowed(facets)
    assert (allowed is None) == chosen.is_empty
    if allowed is not None:
        assert allowed.mask().tolist() == chosen.mask(table).tolist()


# -- the file ---------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path):
    return tmp_path / "facets.columns"


def test_the_same_photos_give_the_same_bytes(path, tmp_path):
    Facets(drawn_table(300)).save(path)
    other = tmp_path / "other.columns"
    Facets(drawn_table(300)).save(other)
    assert path.read_bytes() == other.read_bytes()


def test_opened_facets_are_views_of_the_file(path):
    table = drawn_table(300)
    Facets(table).save(path)
    facets = Facets.open(path, table)
    assert not facets.any_of("orientation", ["landscape"]).words.flags.writeable
    assert not facets.counts("source").flags.writeable


def test_facets_of_other_photos_are_refused(path):
    Facets(drawn_table(300)).save(path)
    with pytest.raises(DataError, match=r"must hold the facets of 299 photos, got: .*index"):
        Facets.open(path, drawn_table(299))


def test_facets_of_other_values_are_refused(path):
    table = drawn_table(300)
    Facets(table).save(path)
    few = {name: table.codes(name) for name in CODED_COLUMNS}
    few["source"] = Codes(few["source"].rows, [*few["source"].values, "zoo"])
    texts = {name: table.column(name) for name in TEXT_COLUMNS}
    numbers = {name: np.zeros(300, dtype=dtype) for name, dtype in NUMBER_COLUMNS.items()}
    with pytest.raises(DataError, match="for 6 values"):
        Facets.open(path, PhotoTable(numbers, few, texts))


def test_a_file_that_lacks_a_part_is_refused(path):
    table = drawn_table(300)
    Facets(table).save(path)
    whole = open_columns(path)
    for number, name in enumerate(whole):
        other = path.with_name(f"{number}.columns")
        save_columns(other, {key: array for key, array in whole.items() if key != name})
        with pytest.raises(DataError, match="must hold the facets of 300 photos"):
            Facets.open(other, table)


def test_planes_of_another_column_are_refused(path):
    table = drawn_table(300)
    Facets(table).save(path)
    whole = dict(open_columns(path).items())
    other = path.with_name("other.columns")
    save_columns(other, whole | {"color_name.planes": whole["color_name.planes"][1:]})
    with pytest.raises(DataError, match="19 words for 4 planes of 300 rows"):
        Facets.open(other, table)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.sampled_from([1, 2, 5, 6, 8, 9, 40, 64, 127, 128, 129, 130, 300]),
    st.sampled_from([0, 1, 63, 64, 65, 511, 512, 513, 3000]),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.integers(0, 2**32 - 1),
)
def test_counts_are_bincount_for_any_number_of_values(n_values, n, share, seed):
    rng = np.random.default_rng(seed)
    codes = (n_values * rng.random(n) ** 2).astype(np.int32)
    sets = value_sets.ValueSets.from_codes(codes, n_values)
    mask = rng.random(n) < share
    expected = np.bincount(codes[mask], minlength=n_values).tolist()
    assert sets.counts(Bitmap.of_mask(mask)).tolist() == expected


def test_a_column_takes_little_room_however_its_values_are_spread():
    n = 64 * 200
    for codes, most in (
        (np.arange(n) % 3, 4),
        (np.arange(n) % 120, 17),
        (np.arange(n) % 4_000, 17.5),
        (np.arange(n), 25),  # of them 20 for a million names, each with a size and a place
    ):
        sets = value_sets.ValueSets.from_codes(codes.astype(np.int32), int(codes.max()) + 1)
        assert sum(array.nbytes for array in sets.arrays().values()) <= most * n


# -- small libraries stay light ---------------------------------------------------------------


@pytest.mark.slow
def test_small_tables_are_filtered_without_numba():
    code = """
import sys
import numpy as np
from searchlab.search.filters.facets import Facets
from searchlab.search.filters.photo_filter import PhotoFilter, facet_counts
from searchlab.photos.photo import Photo
from searchlab.photos.table import *
from searchlab.photos.columns import Texts
n = 500
empty = Texts(np.zeros(n + 1, dtype=np.int64), np.zeros(0, dtype=np.uint8))
numbers = {name: np.zeros(n, dtype=dtype) for name, dtype in NUMBER_COLUMNS.items()}
codes = {name: Codes(np.zeros(n, dtype=np.int32), ["square"]) for name in CODED_COLUMNS}
found = Facets(PhotoTable(numbers, codes, dict.fromkeys(TEXT_COLUMNS, empty)))
allowed = PhotoFilter(orientation="square", color_hex="#000000", after_date="1970-01-01")
assert facet_counts(found, "source", allowed.allowed(found)) == {"square": n}
assert found.newest(allowed.allowed(found), 3).tolist() == [0, 1, 2]
assert "numba" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_drawn_shades_have_names_of_many_families():
    table = drawn_table(300)
    assert len({color_name(format_hex(shade)) for shade in table.shades.tolist()}) > 4
