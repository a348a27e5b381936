"""EncodedPhotos: records as bytes, filled in with score and address, and not too many of them."""

import msgspec
import pytest

from searchlab.api.snapshots import encoded_photos
from searchlab.api.snapshots.encoded_photos import EncodedPhotos
from searchlab.photos.photo import PHOTO_FIELDS


@pytest.fixture
def photos(six_photos):
    return EncodedPhotos(six_photos)


def decoded(photos, row, score=0.5, base_url="http://here", **options):
    return msgspec.json.decode(photos.record(row, score, base_url=base_url, **options))


def test_a_record_is_that_of_the_table_with_its_score(photos, six_photos):
    record = decoded(photos, 2, 0.25)
    assert record["relevance_score"] == 0.25
    assert record["photo_id"] == six_photos.photo(2).photo_id
    assert decoded(photos, 2, 1.0) == record | {"relevance_score": 1.0}


def test_a_record_without_its_score_has_just_what_was_asked_for(photos):
    assert decoded(photos, 0, fields=("source", "license_type")) == {
        "source": "unsplash",
        "license_type": "cc0",
    }


def test_what_is_kept_has_a_limit_in_bytes_and_changes_no_record(photos, monkeypatch):
    first = [decoded(photos, row) for row in range(6)]
    monkeypatch.setattr(encoded_photos, "_CACHED_BYTES", 6_000)
    assert [decoded(photos, row, fields=("source", "width")) for row in range(6)]
    records = [record for kept in photos._records.values() for record in kept.values()]
    assert 1 <= len(records) < 12
    assert photos._n_bytes == sum(record.n_bytes for record in records) <= 6_000
    assert [decoded(photos, row) for row in range(6)] == first


def test_a_record_larger_than_the_limit_is_made_all_the_same(photos, monkeypatch):
    monkeypatch.setattr(encoded_photos, "_CACHED_BYTES", 1)
    assert decoded(photos, 0)["source"] == "unsplash"
    assert decoded(photos, 1)["source"] == "pexels"
    assert len(photos._places) == 1


@pytest.mark.parametrize("fields", [PHOTO_FIELDS, ("source", "width"), ("relevance_score",)])
@pytest.mark.parametrize("kept_bytes", [1, 2_000, 2**20])
def test_a_page_is_a_list_of_its_records(photos, monkeypatch, fields, kept_bytes):
    monkeypatch.setattr(encoded_photos, "_CACHED_BYTES", kept_bytes)
    options = {"fields": fields, "base_url": "http://here"}
    for rows, scores in (([], []), ([3], [1.0]), ([4, 0, 3], [0.9, 1e-7, 0.0]), ([1, 2], [0.5, 1])):
        page = b"".join(photos.records(rows, scores, **options))
        each = [bytes(photos.record(*one, **options)) for one in zip(rows, scores, strict=True)]
        assert page == b"[" + b",".join(each) + b"]"
