import bisect
import mmap
import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from searchlab.errors import DataError, InputError, NotFoundError
from searchlab.photos.columns import Texts, join_texts, open_columns, pack_texts, save_columns
from searchlab.photos.photo import Photo
from searchlab.photos.table import (
    CODED_COLUMNS,
    NUMBER_COLUMNS,
    TEXT_COLUMNS,
    PhotoTable,
    row_of_photo,
)
from searchlab.search.filters.photo_filter import PhotoFilter
from tests.support.examples import examples

HOSTILE = "\u202eمصوّر\u200d 🐈‍⬛ e\u0301 \t\n\r\x00\x7f \u2028 <b>'\";--"
IDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


@pytest.fixture(scope="module")
def saved(tmp_path_factory, six_photos):
    path = tmp_path_factory.mktemp("table") / "photos.columns"
    six_photos.save(path)
    return path


# -- round trips ------------------------------------------------------------------------------


def test_a_saved_table_opens_as_the_same_table(saved, six_photos):
    opened = PhotoTable.open(saved)
    assert len(opened) == 6
    assert [opened.row(row) for row in range(6)] == [six_photos.row(row) for row in range(6)]
    assert [opened.photo(row) for row in range(6)] == [six_photos.photo(row) for row in range(6)]


def test_a_photo_comes_back_as_it_went_in(make_photo):
    photo = make_photo(
        3,
        source_description=HOSTILE,
        description="",
        photographer_username=HOSTILE,
        photographer_full_name="𝔄𝔫𝔫 \U0010ffff",
        source="Ünsplash",
        license_type=HOSTILE,
        color_hex="#00000a",
        uploaded_on="0001-01-01",
        width=2**31 - 1,
        file="/photos/ä ö.jpg",
        sha256="ab" * 32,
    )
    assert PhotoTable.from_photos([photo]).photo(0) == photo


def test_strange_texts_survive_the_disk(tmp_path, make_table):
    table = make_table({"description": HOSTILE}, {"description": "x" * 100_000})
    table.save(tmp_path / "t.columns")
    assert list(PhotoTable.open(tmp_path / "t.columns").texts("description")) == [
        HOSTILE,
        "x" * 100_000,
    ]


def test_the_first_and_the_last_day_survive(make_table):
    table = make_table({"uploaded_on": "9999-12-31"}, {"uploaded_on": "0001-01-01"})
    assert [table.photo(row).uploaded_on for row in (0, 1)] == ["9999-12-31", "0001-01-01"]
    assert table.uploaded_days[0] > 0 > table.uploaded_days[1]


OWNED = {
    "file": "/home/ann/Pictures/2019/a.jpg",
    "folder": "Pictures/2019",
    "title": "Ebbe 潮",
    "tags": ("sea side", "Strand"),
    "place": "Faro, Portugal",
    "latitude": 37.014_2,
    "longitude": -7.935_2,
    "rating": -1,
    "palette": (("#0a1b2c", 61), ("#ffffff", 39)),
}


def test_what_is_the_owners_survives_the_disk(tmp_path, make_table):
    make_table(OWNED, {}).save(tmp_path / "t.columns")
    table = PhotoTable.open(tmp_path / "t.columns")
    first, second = table.photos([0, 1])
    assert {name: getattr(first, name) for name in OWNED} == OWNED
    assert list(table.texts("tags")) == ["sea side\nStrand", ""]
    assert (second.tags, second.latitude, second.longitude, second.rating) == ((), None, None, 0)


def test_what_others_may_see_holds_nothing_of_the_owners(make_table):
    table = make_table(OWNED)
    [shown] = table.attributes([0], owners=False)
    assert not set(shown) & set(OWNED)
    assert shown.keys() == table.attributes([0])[0].keys() - set(OWNED)


def test_columns_are_the_numbers_that_filters_expect(make_table):
    table = make_table(
        {"color_hex": "#ffffff", "uploaded_on": "1970-01-02"},
        {"color_hex": "#010203", "uploaded_on": "1969-12-31"},
    )
    assert table.shades.tolist() == [0xFFFFFF, 0x010203]
    assert table.shades.dtype == np.uint32
    assert table.uploaded_days.tolist() == [1, -1]


# -- order and identity -----------------------------------------------------------------------


def test_photos_are_sorted_by_photo_id_whatever_order_they_come_in(make_photo):
    photos = [make_photo(number) for number in (5, 1, 9, 3)]
    table = PhotoTable.from_photos(photos)
    numbers = [int(photo_id[-2:]) for photo_id in table.photo_ids(range(4))]
    assert numbers == [1, 3, 5, 9]
    assert table.photo(2) == photos[0]


def test_labels_stay_with_their_photos_when_these_are_sorted(make_photo):
    photos = [make_photo(number) for number in (5, 1, 3)]
    assert PhotoTable.from_photos(photos, labels=[50, 10, 30]).labels.tolist() == [10, 30, 50]


def test_labels_count_from_zero_in_the_order_given_if_left_out(make_photo):
    photos = [make_photo(number) for number in (5, 1, 3)]
    assert sorted(PhotoTable.from_photos(photos).labels.tolist()) == [0, 1, 2]


def test_other_labels_change_nothing_else(six_photos):
    relabelled = six_photos.with_labels(np.array([9, 8, 7, 6, 5, 4]))
    assert relabelled.labels.tolist() == [9, 8, 7, 6, 5, 4]
    assert relabelled.photo(2) == six_photos.photo(2)
    assert six_photos.labels.tolist() == [0, 1, 2, 3, 4, 5]


def test_the_same_photo_id_twice_is_refused(make_photo):
    with pytest.raises(InputError, match="000000000004' twice"):
        PhotoTable.from_photos([make_photo(4), make_photo(2), make_photo(4, width=1)])


@settings(max_examples=examples(60), deadline=None)
@given(st.sets(IDS, max_size=25), st.lists(IDS, max_size=10))
@example({"a", "aa", "b", "B", "", "é", "e\u0301", "\uffff", "\U00010000"}, ["a\0", "ab", "c"])
def test_a_photo_is_found_by_its_id_and_by_no_other(make_photo, present, absent):
    table = PhotoTable.from_photos(make_photo(1, photo_id=photo_id) for photo_id in present)
    rows = {photo_id: row for row, photo_id in enumerate(table.photo_ids(range(len(table))))}
    assert rows.keys() == present
    assert {photo_id: table.row_of(photo_id) for photo_id in present} == rows
    for photo_id in set(absent) - present:
        with pytest.raises(NotFoundError, match="photo_id must name an indexed photo"):
            table.row_of(photo_id)


def test_rows_come_back_as_they_went_in(make_photo):
    photos = [make_photo(number, source=f"library-{number}") for number in range(3)]
    rows = [row_of_photo(photo) | {"label": 5 - place} for place, photo in enumerate(photos)]
    table = PhotoTable.from_photos(photos, labels=[5, 4, 3])
    assert [table.row(row) for row in (2, 0)] == [rows[2], rows[0]]
    again = PhotoTable.from_rows([rows[:1], rows[1:]])
    assert [again.row(row) for row in range(3)] == rows


def test_a_row_may_be_a_number_of_numpy(six_photos):
    [row] = np.flatnonzero(six_photos.labels == 4)
    assert six_photos.photo(row) == six_photos.photo(4)
    assert {type(value) for value in six_photos.row(row).values()} == {str, int}


def test_as_many_labels_as_photos_are_wanted(make_photo):
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        PhotoTable.from_photos([make_photo(1), make_photo(2)], labels=[1])
    with pytest.raises(DataError, match=r"must be of one length, got \[1, 2\]"):
        PhotoTable.from_photos([make_photo(1), make_photo(2)]).with_labels(np.array([1]))


# -- coded columns ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", CODED_COLUMNS)
def test_codes_spell_the_column(six_photos, name):
    codes = six_photos.codes(name)
    spelt = [codes.values[code] for code in codes.rows]
    assert spelt == [getattr(six_photos.photo(row), name) for row in range(6)]
    assert len(set(codes.values)) == len(codes.values)
    assert codes.rows.dtype == np.int32


def test_batches_with_different_values_share_one_set_of_codes(make_photo, tmp_path):
    batches = [
        [row_of_photo(make_photo(0, source="b")) | {"label": 0}],
        [],
        [
            row_of_photo(make_photo(number, source=source)) | {"label": number}
            for number, source in ((1, "a"), (2, "b"), (3, "ä"))
        ],
    ]
    PhotoTable.from_rows(batches).save(tmp_path / "t.columns")
    codes = PhotoTable.open(tmp_path / "t.columns").codes("source")
    assert [codes.values[code] for code in codes.rows] == ["b", "a", "b", "ä"]
    assert sorted(codes.values) == ["a", "b", "ä"]


def test_an_unknown_coded_column_is_no_column(six_photos):
    with pytest.raises(KeyError):
        six_photos.codes("description")


# -- the empty table --------------------------------------------------------------------------


def test_an_empty_table_has_empty_columns_also_after_the_disk(tmp_path):
    PhotoTable.from_photos([]).save(tmp_path / "empty.columns")
    table = PhotoTable.open(tmp_path / "empty.columns")
    assert len(table) == 0
    assert table.photo_ids([]) == []
    assert (len(table.shades), len(table.uploaded_days), len(table.labels)) == (0, 0, 0)
    assert table.codes("source").values == []
    assert list(table.texts("description")) == []
    with pytest.raises(NotFoundError):
        table.row_of("")


# -- size -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large(tmp_path_factory, make_photo):
    n_photos, block = 200_000, 1000
    path = tmp_path_factory.mktemp("large") / "photos.columns"
    PhotoTable.from_photos(make_photo(number) for number in range(block)).save(path)
    arrays = open_columns(path)
    for name in (*NUMBER_COLUMNS, *CODED_COLUMNS):
        arrays[name] = np.tile(arrays[name], n_photos // block)
    for name in TEXT_COLUMNS:
        texts = Texts(arrays[f"{name}.starts"], arrays[f"{name}.data"])
        texts = join_texts([texts] * (n_photos // block))
        if name == "photo_id":
            texts = pack_texts(
                f"00000000-0000-4000-8000-{number:012d}" for number in range(n_photos)
            )
        arrays[f"{name}.starts"], arrays[f"{name}.data"] = texts.starts, texts.data
    arrays["label"] = np.arange(n_photos)
    save_columns(path.with_name("large.columns"), arrays)
    return path.with_name("large.columns")


def test_opening_and_filtering_200000_photos_makes_no_object_per_photo(large):
    chosen = PhotoFilter(orientation=("landscape",), after_date="2020-01-01", color_hex="#e50000")
    PhotoTable.open(large)
    tracemalloc.start()
    table = PhotoTable.open(large)
    table.row_of("00000000-0000-4000-8000-000000123456")
    assert [len(table.shades), len(table.uploaded_days), len(table.labels)] == [200_000] * 3
    assert len(table.codes("photographer_username").rows) == 200_000
    opened_bytes, _ = tracemalloc.get_traced_memory()
    mask = chosen.mask(table)
    after, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert opened_bytes < 200_000  # under a byte a photo
    assert after - opened_bytes < 400_000  # the mask
    assert peak < 10_000_000
    assert np.count_nonzero(mask) == 33_400


def test_photos_of_a_large_table_are_found_by_row_and_by_id(large):
    table = PhotoTable.open(large)
    photo_id = "00000000-0000-4000-8000-000000199999"
    assert table.row_of(photo_id) == 199_999
    assert table.photo(199_999).photo_id == photo_id
    assert table.photo_ids(np.array([0, 199_999]))[1] == photo_id
    assert bisect.bisect_left(range(200_000), 7, key=lambda row: table.labels[row]) == 7


def test_what_filters_read_is_a_memory_map(large):
    table = PhotoTable.open(large)
    columns = [table.shades, table.uploaded_days, table.labels]
    columns += [table.codes(name).rows for name in CODED_COLUMNS]
    for column in columns:
        owner = column
        while isinstance(owner, np.ndarray):
            assert not owner.flags.owndata
            assert not owner.flags.writeable
            owner = owner.base
        assert isinstance(owner, mmap.mmap)


def test_what_photos_are_made_of_comes_for_many_rows_at_once(six_photos, tmp_path):
    six_photos.save(tmp_path / "photos.columns")
    for table in (six_photos, PhotoTable.open(tmp_path / "photos.columns")):
        rows = [4, 0, 4, 5]
        assert [Photo(**about) for about in table.attributes(rows)] == [*map(table.photo, rows)]
        assert table.attributes([]) == []
        for beyond in ([0, 6], [-1]):
            with pytest.raises(IndexError):
                table.attributes(beyond)


def test_a_row_below_0_is_refused_and_never_counted_from_the_end(six_photos):
    for rows in ([-1], [0, -1], np.array([2, -6])):
        with pytest.raises(InputError, match="rows must be 0 or more, got -"):
            six_photos.photo_ids(rows)


def test_a_selection_holds_just_the_photos_that_are_there(six_photos, make_table):
    ids = six_photos.photo_ids([4, 1])
    chosen = six_photos.select([*ids, "nowhere"])
    assert [chosen.photo(row) for row in range(len(chosen))] == [
        six_photos.photo(1),
        six_photos.photo(4),
    ]
    assert len(six_photos.select([])) == len(make_table()) == 0
