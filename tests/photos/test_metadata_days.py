"""When a photo was taken: days of which less is known, and which of several counts."""

import pytest

from searchlab.photos.metadata import MetadataBlocks
from searchlab.photos.metadata.exif import exif_record
from searchlab.photos.metadata.iptc import iptc_record
from searchlab.photos.metadata.xmp import xmp_record
from tests.support.metadata import exif, iptc, xmp


@pytest.mark.parametrize(
    ("created", "day"),
    [
        *[("2019", "2019-01-01"), ("2019-07", "2019-07-01"), ("2019-02-30", ""), ("20x9", "")],
        *[("1965-00-00", "1965-01-01"), ("1965-07-00", "1965-07-01"), ("0000-00-00", "")],
    ],
)
def test_a_day_may_be_less_than_known(created, day):
    record = xmp_record(xmp(attributes=f'photoshop:DateCreated="{created}"'))
    assert record.uploaded_on == day


def test_days_of_iptc_and_exif_may_be_less_than_known_too():
    assert iptc_record(iptc((55, "19650000"))).uploaded_on == "1965-01-01"
    for written, day in (
        ("1965:07:00 00:00:00", "1965-07-01"),
        ("2019:07:   :  :  ", "2019-07-01"),
        ("2019:  :     :  :  ", "2019-01-01"),
        ("2019. 3. 4", ""),
    ):
        assert exif_record(exif(changed=written)).uploaded_on == day


def test_when_a_scan_was_made_counts_where_nothing_says_when_the_photo_was_taken():
    scanned = xmp(attributes='xmp:CreateDate="2019-03-01"')
    assert MetadataBlocks(xmp=scanned).record().uploaded_on == "2019-03-01"
    changed = exif(changed="2023:07:04 12:00:00")
    assert MetadataBlocks(changed, xmp=scanned).record().uploaded_on == "2019-03-01"
    assert MetadataBlocks(changed).record().uploaded_on == "2023-07-04"
    taken = exif(changed="2023:07:04 12:00:00", taken="1965:07:04 12:00:00")
    assert MetadataBlocks(taken, xmp=scanned).record().uploaded_on == "1965-07-04"
    iptc_day = iptc((55, "19650704"))
    assert MetadataBlocks(iptc=iptc_day, xmp=scanned).record().uploaded_on == "1965-07-04"
