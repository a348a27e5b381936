"""A table's documents, vectors and labels: embedded once, kept with their photos."""

import numpy as np
import pytest

from searchlab.errors import NotFoundError
from searchlab.library.catalog import (
    assign_labels,
    build_vectors,
    documents,
    text_key,
)
from searchlab.models.hybrid import HybridEmbedder
from searchlab.models.protocol import unit_rows
from searchlab.progress import Progress
from tests.support.catalog_world import RED, Letters, Tagging, digest_of


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
