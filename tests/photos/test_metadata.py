"""What files and sidecars say of a photo, field by field, and what of it counts."""

import re
import struct
import time
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from searchlab.photos import metadata
from searchlab.photos.images.decode import open_rgb
from searchlab.photos.metadata import MetadataBlocks, merge_records
from searchlab.photos.metadata.exif import exif_record
from searchlab.photos.metadata.iptc import iptc_record
from searchlab.photos.metadata.xmp import MAX_PACKET, xmp_record
from searchlab.photos.sidecar import Record
from tests.support.metadata import exif, in_languages, iptc, listed, with_iptc, xmp
from tests.support.pictures import corners, encoded

LISBON = ((38, 42, 45.0, "N"), (9, 8, 24.0, "W"))
NEAR_LISBON = pytest.approx((38.7125, -9.14), abs=1e-6)


def where(record):
    return record.latitude, record.longitude


# -- EXIF -------------------------------------------------------------------------------------


def test_exif_says_who_took_a_photo_when_and_where():
    record = exif_record(
        exif(
            LISBON,
            description="The river",
            artist="Ann Lee; Bo Ek",
            copyright="© 2019 Ann Lee",
            changed="2022:01:01 00:00:00",
            taken="2019:07:04 23:59:59",
            rating=4,
        )
    )
    assert where(record) == NEAR_LISBON
    assert replace(record, latitude=None, longitude=None) == Record(
        source_description="The river",
        photographer_full_name="Ann Lee, Bo Ek",
        copyright="© 2019 Ann Lee",
        uploaded_on="2019-07-04",
        rating=4,
    )


def test_windows_writes_title_and_keywords_in_entries_of_its_own():
    record = exif_record(exif(windows_title="Río", windows_keywords="sea; Strand;sea"))
    assert (record.title, record.tags) == ("Río", ("sea", "Strand"))


@pytest.mark.parametrize("junk", ["OLYMPUS DIGITAL CAMERA", "SONY DSC", "DSC_0042", "  ", "cof"])
def test_what_cameras_write_by_themselves_is_no_description(junk):
    assert exif_record(exif(description=junk)).source_description == ""


def test_a_description_in_any_script_is_one():
    for text in ("海", "Море", "Digital art of a camera", "ß"):
        assert exif_record(exif(description=text.encode())).source_description == text


@pytest.mark.parametrize("changed", ["0000:00:00 00:00:00", "2019:13:01 00:00:00", "soon", ""])
def test_a_day_that_is_none_is_none(changed):
    assert exif_record(exif(changed=changed)).uploaded_on == ""


@pytest.mark.parametrize(
    "gps",
    [
        ((0, 0, 0, "N"), (0, 0, 0, "E")),
        ((91, 0, 0, "N"), (9, 0, 0, "E")),
        ((38, 0, 0, "N"), (181, 0, 0, "E")),
        ((38, 0, 0, "N"),),
    ],
)
def test_a_position_that_is_none_is_none(gps):
    assert where(exif_record(exif(gps))) == (None, None)


def test_a_position_with_nothing_under_the_line_is_none():
    good = exif(LISBON)
    degrees = struct.pack("<II", 38, 1)
    at = good.find(degrees) if degrees in good else good.find(struct.pack(">II", 38, 1))
    assert at > 0
    assert where(exif_record(good[: at + 4] + bytes(4) + good[at + 8 :])) == (None, None)


def test_the_copyright_of_the_editor_follows_that_of_the_photographer():
    record = exif_record(exif(copyright=b"Ann Lee\0The Paper\0"))
    assert record.copyright == "Ann Lee The Paper"


@pytest.mark.parametrize(
    ("notice", "license_type"),
    [
        ("CC BY-SA 4.0", "cc-by-sa-4.0"),
        ("Ann, http://creativecommons.org/licenses/by/2.0/.", "cc-by-2.0"),
        ("(c) Ann. All Rights Reserved", "all-rights-reserved"),
        ("© Ann", ""),
        ("by Tom", ""),
        ("SA", ""),
        ("(by)", ""),
        ("Attribution-ShareAlike 4.0", "cc-by-sa-4.0"),
    ],
)
def test_a_notice_that_names_a_licence_is_one(notice, license_type):
    assert exif_record(exif(copyright=notice)).license_type == license_type


def test_a_block_of_many_entries_that_share_their_bytes_takes_no_time():
    entry = struct.pack("<HHII", 0x010E, 2, 60_000, 8)
    block = b"II*\0" + struct.pack("<I", 8) + struct.pack("<H", 65_535) + entry * 65_535
    started = time.process_time()
    exif_record(block)
    assert time.process_time() - started < 5


@given(st.binary(max_size=400), st.integers(0, 300))
def test_exif_of_any_bytes_is_read_or_refused(noise, at):
    good = exif(LISBON, artist="Ann", taken="2019:07:04 00:00:00")
    for block in (noise, b"II*\0" + noise, b"MM\0*" + noise, good[:at] + noise + good[at:]):
        MetadataBlocks(exif=block).record()


# -- IPTC -------------------------------------------------------------------------------------


def test_iptc_says_title_caption_keywords_credit_and_place():
    block = iptc(
        (5, "Low tide"),
        (120, "Ebbe am Río"),
        (25, "sea"),
        (25, "Strand"),
        (80, "Ann Lee"),
        (116, "CC BY 4.0"),
        (55, "20190704"),
        (92, "Alfama"),
        (90, "Lisbon"),
        (95, "Lisbon"),
        (101, "Portugal"),
    )
    assert iptc_record(block) == Record(
        title="Low tide",
        source_description="Ebbe am Río",
        tags=("sea", "Strand"),
        photographer_full_name="Ann Lee",
        copyright="CC BY 4.0",
        license_type="cc-by-4.0",
        license_url="https://creativecommons.org/licenses/by/4.0/",
        uploaded_on="2019-07-04",
        place="Alfama, Lisbon, Portugal",
    )


def test_iptc_without_a_named_encoding_is_utf8_if_it_can_be():
    assert iptc_record(iptc((5, "Río"), utf8=False)).title == "Río"
    assert iptc_record(iptc((5, "Río".encode("cp1252")), utf8=False)).title == "Río"


def test_a_headline_stands_in_for_a_title():
    assert iptc_record(iptc((105, "Flood"))).title == "Flood"


@given(st.binary(max_size=300))
def test_iptc_of_any_bytes_is_read_or_refused(noise):
    MetadataBlocks(iptc=noise).record()
    assert iptc_record(iptc((5, "kept")) + noise).title == "kept"


# -- XMP --------------------------------------------------------------------------------------


def test_what_is_said_of_the_pictures_in_a_montage_is_not_said_of_it():
    of_one = "<rdf:Description><dc:title>Sky</dc:title><dc:creator>Eve</dc:creator>"
    space = "xmlns:xmpMM='http://ns.adobe.com/xap/1.0/mm/'"
    pantry = listed("xmpMM:Pantry", f"{of_one}</rdf:Description>")
    pantry = pantry.replace("<xmpMM:Pantry>", f"<xmpMM:Pantry {space}>")
    assert xmp_record(xmp("<dc:source>us</dc:source>" + pantry)) == Record()


def test_xmp_says_all_of_it():
    record = xmp_record(
        xmp(
            in_languages("dc:title", en="Low tide", x_default="Ebbe")
            + in_languages("dc:description", x_default="The Tejo at noon")
            + in_languages("dc:rights", x_default="© Ann Lee")
            + in_languages("Iptc4xmpCore:AltTextAccessibility", x_default="A wide river")
            + listed("dc:creator", "Ann Lee", "Bo Ek", kind="Seq")
            + listed("dc:subject", "sea", "Strand")
            + listed("lr:hierarchicalSubject", "places|Portugal", "darktable|format|jpg")
            + listed("Iptc4xmpExt:PersonInImage", "Eve"),
            'xmp:Rating="4" photoshop:City="Lisbon" photoshop:Country="Portugal"'
            ' photoshop:DateCreated="2019-07-04T10:00:00+01:00"'
            ' xmpRights:WebStatement="http://creativecommons.org/licenses/by/4.0/"'
            ' exif:GPSLatitude="38,42.75N" exif:GPSLongitude="9,8,24W"',
        )
    )
    assert where(record) == NEAR_LISBON
    assert replace(record, latitude=None, longitude=None) == Record(
        title="Ebbe",
        source_description="The Tejo at noon",
        alt_description="A wide river",
        photographer_full_name="Ann Lee, Bo Ek",
        copyright="© Ann Lee",
        license_type="cc-by-4.0",
        license_url="http://creativecommons.org/licenses/by/4.0/",
        tags=("sea", "Strand", "Eve", "Portugal", "places"),
        rating=4,
        place="Lisbon, Portugal",
        uploaded_on="2019-07-04",
    )


def test_without_a_default_the_first_language_counts():
    assert xmp_record(xmp(in_languages("dc:title", de="Ebbe", en="Low tide"))).title == "Ebbe"


def test_properties_are_attributes_or_elements_and_may_stand_in_several_descriptions():
    element = xmp("<xmp:Rating>3</xmp:Rating><photoshop:City>Faro</photoshop:City>")
    assert (xmp_record(element).rating, xmp_record(element).place) == (3, "Faro")
    two = xmp("<dc:title>plain</dc:title>").replace(
        b"</rdf:RDF>",
        xmp(attributes='xmp:Rating="2"').split(b'syntax-ns#">')[1].split(b"</rdf:RDF>")[0]
        + b"</rdf:RDF>",
    )
    assert (xmp_record(two).title, xmp_record(two).rating) == ("plain", 2)


def test_a_place_may_be_told_as_one_thing():
    struct_ = (
        "<Iptc4xmpExt:LocationCreated><rdf:Bag><rdf:li rdf:parseType='Resource'>"
        "<Iptc4xmpExt:City>Oulu</Iptc4xmpExt:City>"
        "<Iptc4xmpExt:CountryName>Finland</Iptc4xmpExt:CountryName>"
        "</rdf:li></rdf:Bag></Iptc4xmpExt:LocationCreated>"
    )
    assert xmp_record(xmp(struct_)).place == "Oulu, Finland"


@pytest.mark.parametrize(
    ("text", "stars"), [("5", 5), ("3.0", 3), ("-1", -1), ("0", 0), ("9", 0), ("", 0), ("two", 0)]
)
def test_a_rating_is_one_to_five_or_rejected(text, stars):
    assert xmp_record(xmp(attributes=f'xmp:Rating="{text}"')).rating == stars


def test_of_many_attributes_and_parts_each_takes_as_long():

    def seconds(n):
        parts = "".join(f"<xmp:a{number}/>" for number in range(n))
        place = f"<Iptc4xmpExt:LocationCreated>{parts}</Iptc4xmpExt:LocationCreated>"
        abouts = "".join(f"<rdf:Description rdf:b{number}='1'/>" for number in range(n))
        packet = xmp(place).replace(b"</rdf:RDF>", abouts.encode() + b"</rdf:RDF>")
        started = time.process_time()
        xmp_record(packet)
        return time.process_time() - started

    few, many = (min(seconds(n) for _ in range(3)) for n in (3_000, 30_000))
    assert many < 40 * few  # each with each, it would be a hundred


def test_packets_end_in_blanks_and_come_in_other_encodings():
    packet = xmp("<dc:title>Río</dc:title>")
    assert xmp_record(packet + b" " * 2_000 + b"\0").title == "Río"
    assert xmp_record(packet.decode().encode("utf-16")).title == "Río"


BOMB = (
    b'<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">'
    b'<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]>'
)


@pytest.mark.parametrize(
    "packet",
    [
        BOMB + xmp("<dc:title>&c;</dc:title>"),
        b'<!DOCTYPE x SYSTEM "file:///etc/passwd">' + xmp(),
        b'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>' + xmp("<dc:title>&e;</dc:title>"),
        xmp("<dc:title>&undefined;</dc:title>"),
        xmp() + b"x",
        b"",
        b"not xml",
        b"<a",
        b'<?xml version="1.0" encoding="martian"?><a/>',
        b" " * 10 + b"<a>" * 50_000,
        xmp("x" * MAX_PACKET),
    ],
)
def test_what_is_no_xmp_or_would_expand_is_refused(packet):
    with pytest.raises(ValueError, match="XMP must"):
        xmp_record(packet)


def test_deep_nesting_is_no_trouble():
    assert xmp_record(xmp("<dc:title>" + "<dc:a>" * 50_000 + "</dc:a>" * 50_000 + "</dc:title>"))


def test_texts_come_without_control_characters_and_cut_to_ten_thousand():
    record = xmp_record(
        xmp(f"<dc:title>a&#x85;b</dc:title><dc:description>{'x' * 30_000}</dc:description>")
    )
    assert record.title == "ab"
    assert len(record.source_description) == 10_000


@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=60))
def test_any_title_that_xml_can_hold_comes_back(title):
    title = re.sub(r"[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "", title)
    escaped = title.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    shown = re.sub(r"[\x7f-\x9f]", "", title).strip()
    assert xmp_record(xmp(f"<dc:title>{escaped}</dc:title>")).title == shown


# -- files ------------------------------------------------------------------------------------

EXIF = exif(LISBON, artist="Exif", description="of exif", taken="2001:01:01 00:00:00")
XMP = xmp("<dc:title>of xmp</dc:title>")


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "AVIF", "HEIF"])
def test_each_format_carries_exif_and_xmp(kind):
    options = {"exif": EXIF, "xmp": XMP}
    if kind == "PNG":
        options["pnginfo"] = PngInfo()
        options["pnginfo"].add_itxt("XML:com.adobe.xmp", XMP.decode())
    record = open_rgb(encoded(corners(), kind, **options)).metadata.record()
    assert (record.title, record.photographer_full_name) == ("of xmp", "Exif")
    assert record.uploaded_on == "2001-01-01"
    assert where(record) == NEAR_LISBON


def test_tiff_carries_them_too():
    block = Image.Exif()
    block[0x013B], block[700], block[33723] = "Exif", XMP, iptc((120, "of iptc"))
    record = open_rgb(encoded(corners(), "TIFF", exif=block)).metadata.record()
    assert (record.title, record.photographer_full_name) == ("of xmp", "Exif")
    assert record.source_description == "of iptc"


def test_jpeg_carries_iptc():
    content = with_iptc(encoded(corners(), "JPEG", exif=EXIF), iptc((120, "of iptc")))
    record = open_rgb(content).metadata.record()
    assert (record.source_description, record.photographer_full_name) == ("of iptc", "Exif")


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "AVIF", "HEIF", "GIF", "TIFF"])
def test_a_file_without_any_says_nothing(kind):
    assert open_rgb(encoded(corners(), kind)).metadata.record() == Record()


def test_damage_in_one_block_leaves_the_others():
    blocks = MetadataBlocks(exif=EXIF, iptc=b"\x1c\x02", xmp=b"<broken")
    assert blocks.record().photographer_full_name == "Exif"


# -- precedence -------------------------------------------------------------------------------


def test_the_first_that_says_anything_counts_field_by_field():
    merged = merge_records(
        [Record(title="a"), Record(title="b", place="b"), Record(title="c", place="c", rating=3)]
    )
    assert merged == Record(title="a", place="b", rating=3)


def test_within_a_file_xmp_goes_before_iptc_and_that_before_exif():
    blocks = MetadataBlocks(EXIF, iptc((5, "of iptc"), (120, "of iptc")), XMP)
    record = blocks.record()
    assert (record.title, record.source_description) == ("of xmp", "of iptc")
    assert record.uploaded_on == "2001-01-01"


def test_a_licence_keeps_its_own_address_and_a_name_its_own_profile():
    first = Record(license_type="cc0", photographer_username="ann")
    second = Record(license_url="https://example.org/by", photographer_full_name="Bo")
    merged = merge_records([first, second])
    assert (merged.license_url, merged.photographer_full_name) == ("", "")


@given(st.lists(st.builds(Record, title=st.sampled_from(["", "a"]), rating=st.integers(-1, 5))))
def test_merging_invents_nothing(records):
    merged = merge_records(records)
    for one in fields(Record):
        said = {getattr(record, one.name) for record in records} | {one.default}
        assert getattr(merged, one.name) in said


def test_the_order_is_written_down():
    places = [metadata.__doc__.index(word) for word in ("photos.jsonl", "darktable", "EXIF")]
    assert places == sorted(places)
