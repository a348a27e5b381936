import datetime
import hashlib

import numpy as np
import pytest

from searchlab.errors import NotFoundError
from searchlab.library.cache import ContentCache, Facts
from searchlab.library.catalog import (
    assign_labels,
    build_table,
    build_vectors,
    documents,
    identify,
    source_of,
    text_key,
)
from searchlab.library.roots import Root
from searchlab.library.scan import Picture
from searchlab.models.hybrid import HybridEmbedder
from searchlab.models.protocol import unit_rows
from searchlab.photos.photo import photo_id_of
from searchlab.photos.sidecar import Record
from searchlab.progress import Progress

RED = Facts(640, 480, 0xE01010, (("#e01010", 0.8), ("#ffffff", 0.2)), "LKO2?U%2Tw=w]~RBVZRi")
TALL_BLUE = Facts(30, 40, 0x1010E0, (("#1010e0", 1.0),), "LKO2?U%2Tw=w]~RBVZRi")


class Letters:
    """Embeds a text by the lengths of its words; counts the texts."""

    name = "letters"
    model_id = "letters-000000000001"
    dim = 4
    reads = "text"
    input_size = 0

    def __init__(self):
        self.texts = []

    @property
    def parts(self):
        return ((self, 1.0),)

    def encode_texts(self, texts):
        self.texts += texts
        rows = np.zeros((len(texts), 4))
        for row, text in zip(rows, texts, strict=True):
            for word in text.split():
                row[len(word) % 4] += 1
        return unit_rows(rows)


class Tagging(Letters):
    """A model of pictures that names what it sees."""

    name = "tagging"
    model_id = "tagging-000000000001"
    reads = "image"

    def tags(self, embeddings, k):
        return [[("red fox", float(row[0])), ("dingo", 0.6)][:k] for row in embeddings]


@pytest.fixture
def root(tmp_path):
    return Root(tmp_path / "p", source="local")


@pytest.fixture
def cache(tmp_path):
    with ContentCache(tmp_path / "cache.db") as opened:
        yield opened


def digest_of(name):
    return hashlib.sha256(name.encode()).hexdigest()


@pytest.fixture
def shot(root):
    """A scanned picture."""

    def make(name, content="", **record):
        return Picture(root.folder / name, digest_of(content or name), Record(**record))

    return make


@pytest.fixture
def table_of(root, cache):
    """Builds a table of pictures whose facts are known."""

    def build(pictures, *, model=None, dates=None, unreachable=()):
        pictures_by_id, _, _ = identify(pictures, [root])
        return build_table(
            pictures_by_id,
            roots=[root],
            cache=cache,
            model=model or Letters(),
            unreachable=unreachable,
            dates=dates or {},
            progress=Progress(),
        )

    return build


def test_a_photo_is_known_by_its_librarys_id_or_else_by_its_content(shot, root):
    pictures = [
        shot("a.jpg", source="unsplash", source_photo_id="x1"),
        shot("b.jpg", source="unsplash"),
        shot("c.jpg"),
    ]
    pictures_by_id, problems, copies = identify(pictures, [root])
    assert pictures_by_id == {
        photo_id_of("unsplash", "x1"): pictures[0],
        photo_id_of("unsplash", digest_of("b.jpg")): pictures[1],
        photo_id_of("local", digest_of("c.jpg")): pictures[2],
    }
    assert (problems, copies) == ([], 0)


def test_moving_and_renaming_leave_the_photo_id(shot, root):
    before, _, _ = identify([shot("a.jpg", "same")], [root])
    after, _, _ = identify([shot("deep/z.jpg", "same")], [root])
    assert list(before) == list(after)


def test_of_copies_the_first_counts_and_the_rest_are_counted(shot, root):
    pictures = [shot("a.jpg", "same"), shot("b.jpg", "same"), shot("c.jpg", "same")]
    pictures_by_id, problems, copies = identify(pictures, [root])
    assert list(pictures_by_id.values()) == pictures[:1]
    assert (problems, copies) == ([], 2)


def test_two_contents_under_one_library_id_are_a_problem_that_names_the_one_that_counts(shot, root):
    pictures = [shot("a.jpg", source_photo_id="x"), shot("b.jpg", source_photo_id="x")]
    pictures_by_id, [problem], copies = identify(pictures, [root])
    assert list(pictures_by_id.values()) == pictures[:1]
    assert problem.where.endswith("b.jpg")
    assert "a.jpg" in problem.reason
    assert copies == 0


def test_ids_of_two_libraries_are_two_photos_however_they_are_cut(shot, root):
    pictures = [
        shot("a.jpg", source="a", source_photo_id="b:c"),
        shot("b.jpg", source="a:b", source_photo_id="c"),
    ]
    pictures_by_id, problems, _ = identify(pictures, [root])
    assert len(pictures_by_id) == 2
    assert problems == []


def test_the_innermost_root_names_the_source(tmp_path):
    roots = [Root(tmp_path, source="outer"), Root(tmp_path / "a/b", source="inner")]
    assert source_of(tmp_path / "a/b/c.jpg", roots) == "inner"
    assert source_of(tmp_path / "a/c.jpg", roots) == "outer"
    assert source_of(tmp_path / "a/bc.jpg", roots) == "outer"


def test_a_row_holds_what_the_record_and_the_picture_say(shot, cache, table_of):
    cache.keep({digest_of("a.jpg"): RED})
    table = table_of(
        [
            shot(
                "a.jpg",
                source="wikimedia",
                source_photo_id="42",
                source_image_url="https://example.org/42",
                title="Fox & co",
                photographer_username="ana",
                photographer_full_name="Ana B.",
                photographer_url="https://example.org/ana",
                source_description="A fox",
                alt_description="fox",
                license_type="cc0",
                license_url="https://example.org/cc0",
                uploaded_on="2020-02-29",
            )
        ]
    )
    photo = table.photo(0)
    assert (photo.photo_id, photo.source, photo.source_photo_id) == (
        photo_id_of("wikimedia", "42"),
        "wikimedia",
        "42",
    )
    assert (photo.width, photo.height, photo.orientation) == (640, 480, "landscape")
    assert (photo.color_hex, photo.color_name) == ("#e01010", "red")
    assert (photo.license_type, photo.uploaded_on) == ("cc0", "2020-02-29")
    assert (photo.photographer_username, photo.photographer_full_name) == ("ana", "Ana B.")
    assert (photo.source_description, photo.alt_description) == ("A fox", "fox")
    assert photo.attribution["plain"] == "“Fox & co” by Ana B. (cc0)"
    assert "Fox &amp; co" in photo.attribution["html"]
    assert photo.sha256 == digest_of("a.jpg")
    assert set(photo.urls) == {"thumb", "small", "regular", "large", "full"}


def test_without_a_record_nothing_is_invented(shot, cache, table_of):
    cache.keep({digest_of("a.jpg"): TALL_BLUE})
    photo = table_of([shot("a.jpg")]).photo(0)
    assert (photo.source, photo.source_photo_id) == ("local", digest_of("a.jpg"))
    assert (photo.photographer_username, photo.photographer_full_name, photo.photographer_url) == (
        "",
        "",
        "",
    )
    assert (photo.license_type, photo.source_description) == ("unknown", "")
    assert photo.attribution["plain"] == ""
    assert photo.uploaded_on == datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    assert photo.orientation == "portrait"
    assert photo.alt_description == "Photo, mostly blue (generated)."


def test_links_that_are_no_web_pages_are_left_out(shot, cache, table_of):
    cache.keep({digest_of("a.jpg"): RED})
    photo = table_of(
        [
            shot(
                "a.jpg",
                title="<b>",
                source_image_url="javascript:alert(1)",
                photographer_url="file:///etc/passwd",
                photographer_username="ana",
                license_url="//example.org",
            )
        ]
    ).photo(0)
    assert (photo.source_image_url, photo.photographer_url) == ("", "")
    assert photo.attribution["html"] == "“&lt;b&gt;” by ana"


def test_a_username_stands_in_for_a_missing_name(shot, cache, table_of):
    cache.keep({digest_of("a.jpg"): RED})
    assert (
        table_of([shot("a.jpg", photographer_username="ana")]).photo(0).photographer_full_name
        == "ana"
    )


def test_refused_and_unread_pictures_have_no_row(shot, cache, table_of):
    cache.keep({digest_of("a.jpg"): Facts(problem="damaged"), digest_of("b.jpg"): RED})
    table = table_of([shot("a.jpg"), shot("b.jpg"), shot("c.jpg")])
    assert list(table.texts("sha256")) == [digest_of("b.jpg")]


def test_known_dates_stay_and_a_records_date_wins(shot, cache, table_of):
    cache.keep({digest_of("a.jpg"): RED, digest_of("b.jpg"): RED})
    pictures = [shot("a.jpg"), shot("b.jpg", uploaded_on="2001-01-01")]
    dates = {photo_id_of("local", digest_of(name)): "1999-12-31" for name in ("a.jpg", "b.jpg")}
    table = table_of(pictures, dates=dates)
    date_of = {photo.sha256: photo.uploaded_on for photo in map(table.photo, range(2))}
    assert date_of == {digest_of("a.jpg"): "1999-12-31", digest_of("b.jpg"): "2001-01-01"}


def test_a_model_that_names_things_writes_the_description(shot, cache, table_of):
    model = Tagging()
    cache.keep(
        {digest_of("a.jpg"): RED},
        [(model.model_id, [digest_of("a.jpg")], np.eye(1, 4, dtype=np.float32))],
    )
    photo = table_of([shot("a.jpg")], model=model).photo(0)
    assert photo.description == (
        "A wide photo showing a red fox. It resembles a dingo. "
        "Its main colours are red and white. Generated description."
    )
    assert photo.alt_description == "Photo of a red fox, mostly red and white (generated)."


def test_rows_come_sorted_by_photo_id_with_kept_rows_among_them(shot, cache, table_of):
    names = [f"{i}.jpg" for i in range(20)]
    cache.keep({digest_of(name): RED for name in names})
    before = table_of([shot(name) for name in names[:10]])
    table = table_of(
        [shot(name) for name in names[10:]], unreachable=[before.row(row) for row in range(10)]
    )
    ids = list(table.texts("photo_id"))
    assert ids == sorted(photo_id_of("local", digest_of(name)) for name in names)


def test_a_photo_that_is_seen_again_replaces_its_kept_row(shot, cache, table_of):
    cache.keep({digest_of("a.jpg"): RED})
    before = table_of([shot("a.jpg", title="old")])
    table = table_of([shot("a.jpg", title="new")], unreachable=[before.row(0)])
    assert [photo.attribution["plain"] for photo in map(table.photo, range(len(table)))] == [
        "“new”"
    ]


def test_more_pictures_than_one_batch(shot, cache, table_of):
    names = [f"{i}.jpg" for i in range(2_100)]
    cache.keep({digest_of(name): RED for name in names})
    table = table_of([shot(name) for name in names])
    assert len(table) == 2_100
    assert list(table.texts("photo_id")) == sorted(table.texts("photo_id"))


@pytest.fixture
def written(shot, cache, table_of):
    """Three photos, two of which say the same."""
    cache.keep({digest_of(f"{i}.jpg"): RED for i in range(3)})
    descriptions = ["a fox", "a fox", "two birds"]
    return table_of(
        [
            shot(f"{i}.jpg", source_description=text, alt_description="x")
            for i, text in enumerate(descriptions)
        ]
    )


def test_documents_join_what_is_written_and_leave_out_what_is_withheld(written):
    rows = documents(written, frozenset({"alt_description", "description"}))
    assert sorted(rows) == ["a fox", "a fox", "two birds"]
    assert all(". x. A wide photo." in text for text in documents(written, frozenset()))
    assert (
        documents(written, frozenset({"source_description", "alt_description", "description"}))
        == [""] * 3
    )


def test_equal_texts_are_embedded_once_and_never_again(written, cache, tmp_path):
    model = Letters()
    withheld = frozenset({"alt_description", "description"})
    arguments = {"model": model, "cache": cache, "thumbnails": tmp_path / "small"}
    first = build_vectors(written, progress=Progress(), withheld=withheld, **arguments)
    assert sorted(model.texts) == ["a fox", "two birds"]
    again = build_vectors(written, progress=Progress(), withheld=withheld, **arguments)
    assert again.tolist() == first.tolist()
    assert len(model.texts) == 2
    texts = documents(written, withheld)
    assert first.tolist() == Letters().encode_texts(texts).tolist()


def test_vectors_of_a_hybrid_are_joined_in_the_tables_order(written, cache, tmp_path):
    class Syllables(Letters):
        name = "syllables"
        model_id = "syllables-000000000001"

    hybrid = HybridEmbedder([(Letters(), 0.7), (Syllables(), 0.3)])
    vectors = build_vectors(
        written, model=hybrid, cache=cache, thumbnails=tmp_path / "small", progress=Progress()
    )
    rows = Letters().encode_texts(documents(written, frozenset()))
    assert np.abs(vectors - hybrid.join([rows, rows])).max() == 0


def test_a_text_of_any_characters_has_a_key():
    assert text_key("") != text_key(" ") != text_key("é") != text_key("e\u0301")


def test_labels_stay_with_photos_whose_vector_stays(shot, cache, table_of):
    cache.keep({digest_of(name): RED for name in "abcdef"})
    old = table_of([shot(name) for name in "abcd"]).with_labels(np.array([7, 3, 5, 0]))
    new = table_of([shot(name) for name in "bcdef"])
    label_of = dict(zip(old.texts("sha256"), old.labels.tolist(), strict=True))
    vector_of = {
        digest_of(name): row
        for name, row in zip("abcdef", np.eye(6, dtype=np.float32), strict=True)
    }
    old_vectors = np.array([vector_of[digest] for digest in old.texts("sha256")])
    vector_of[digest_of("c")] = -vector_of[digest_of("c")]
    new_vectors = np.array([vector_of[digest] for digest in new.texts("sha256")])

    labels = assign_labels(new, new_vectors, (old, old_vectors), first=8)
    new_label_of = dict(zip(new.texts("sha256"), labels.tolist(), strict=True))
    assert {name: new_label_of[digest_of(name)] for name in "bd"} == {
        name: label_of[digest_of(name)] for name in "bd"
    }
    assert sorted(new_label_of[digest_of(name)] for name in "cef") == [8, 9, 10]


def test_labels_start_anew_without_a_state_before_or_with_vectors_of_another_length(
    shot, cache, table_of
):
    cache.keep({digest_of(name): RED for name in "abc"})
    table = table_of([shot(name) for name in "abc"])
    assert assign_labels(table, np.eye(3, dtype=np.float32), None).tolist() == [0, 1, 2]
    before = (table, np.eye(3, 5, dtype=np.float32))
    assert assign_labels(table, np.eye(3, dtype=np.float32), before).tolist() == [0, 1, 2]


@pytest.mark.parametrize("written", ["cc0", "CC0", "Cc0"])
def test_a_licence_is_lower_case_however_the_record_writes_it(shot, cache, table_of, written):
    cache.keep({digest_of("a.jpg"): RED})
    photo = table_of([shot("a.jpg", license_type=written, title="Fox")]).photo(0)
    assert photo.license_type == "cc0"
    assert photo.attribution["plain"] == "“Fox” (cc0)"


def test_vectors_that_are_known_need_neither_file_nor_thumbnail(shot, cache, table_of, tmp_path):
    digests = [digest_of("a.jpg"), digest_of("b.jpg")]
    rows = unit_rows(np.array([[1.0, 2, 3, 4], [4.0, 3, 2, 1]]))
    cache.keep(dict.fromkeys(digests, RED), [(Tagging.model_id, digests, rows)])
    model = Tagging()
    table = table_of([shot("a.jpg"), shot("b.jpg")], model=model)
    thumbnails = tmp_path / "small"
    options = {"model": model, "cache": cache, "thumbnails": thumbnails, "progress": Progress()}
    vectors = build_vectors(table, **options)
    row_of = dict(zip(digests, rows.tolist(), strict=True))
    assert vectors.tolist() == [row_of[digest] for digest in table.texts("sha256")]
    assert not thumbnails.exists()


def test_only_the_photo_whose_vector_is_unknown_must_be_readable(shot, cache, table_of, tmp_path):
    known, unknown = digest_of("a.jpg"), digest_of("b.jpg")
    row = unit_rows(np.ones((1, 4)))
    both = np.vstack([row, row])
    cache.keep({known: RED, unknown: RED}, [(Tagging.model_id, [known, unknown], both)])
    table = table_of([shot("a.jpg"), shot("b.jpg")], model=Tagging())
    cache.prune({known, unknown}, {known})
    options = {"model": Tagging(), "cache": cache, "progress": Progress()}
    with pytest.raises(NotFoundError, match=r"got 1 that are not, such as .*b\.jpg"):
        build_vectors(table, thumbnails=tmp_path / "small", **options)
