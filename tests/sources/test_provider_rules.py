"""Each library's own rules: sizes, licences, credit, and what makes a photo one of its own."""

import re

import pytest

from searchlab.errors import InputError
from searchlab.sources import SOURCES
from searchlab.sources.record import read_license
from tests.support.upstream import (
    FLICKR,
    FLICKR_ML5,
    INATURALIST,
    MET,
    NASA,
    OPEN_IMAGES,
    OPENVERSE,
    PIXABAY,
    RAWPIXEL,
    RECORDS,
    SMITHSONIAN,
    UNSPLASH,
    WIKIMEDIA,
    changed,
)


def read(name, record=None):
    """Read the first picture of a record, the library's own full one if none is given."""
    source = SOURCES[name]
    return source.record(source.entries(RECORDS[name] if record is None else record)[0])


# -- each library's own rules -----------------------------------------------------------------


def test_unsplash_links_keep_the_ixid_and_the_credit_refers_to_searchlab():
    record = read("unsplash")
    assert all("ixid=Mabc" in url for url in record.urls.values())
    assert record.urls["large"].endswith("&w=1920&fit=max&fm=jpg&q=80")
    assert record.urls["full"] == UNSPLASH["urls"]["full"]
    raw = {"raw": UNSPLASH["urls"]["raw"]}
    assert read("unsplash", changed(UNSPLASH, urls=raw)).urls["full"] == raw["raw"]
    assert record.attribution["plain"] == "Photo by Mirelle Okafor on Unsplash"
    assert (
        "https://unsplash.com/@mirelle?utm_source=searchlab&amp;utm_medium=referral"
        in record.attribution["html"]
    )


def test_pexels_sizes_and_credit():
    record = read("pexels")
    assert [url.partition("?")[2] for url in record.urls.values()] == [
        "tiny",
        "medium",
        "large",
        "large2x",
        "original",
    ]
    assert record.attribution["plain"] == "Photo by Tomas Lindqvist on Pexels"
    assert record.photographer_username == "tomas-l"
    links = re.findall(r'<a href="([^"]*)"[^>]*>([^<]*)</a>', record.attribution["html"])
    assert [text for _, text in links] == ["Photo", "Tomas Lindqvist", "Pexels"]
    assert dict(map(reversed, links))["Tomas Lindqvist"] == record.photographer_url


def test_the_address_of_a_licence_goes_before_its_name():
    """Names are abbreviated and translated; the address says which version it is."""
    address = "https://creativecommons.org/licenses/by-sa/3.0/"
    assert read_license("CC BY", version="4.0", url=address) == ("cc-by-sa-3.0", address)
    assert read_license("CC BY", version="4.0", url="https://example.org/terms")[0] == "cc-by-4.0"
    assert read_license("unheard of", "CC0")[0] == "cc0"


@pytest.mark.parametrize(
    ("day", "license_type"),
    [("2019/01/08", "cc0"), ("2019/01/09", "free"), ("2024/05/01", "free"), ("x", "free")],
)
def test_pixabay_photos_are_cc0_before_9_january_2019(day, license_type):
    link = f"https://cdn.pixabay.com/photo/{day}/00/43/pears_150.jpg"
    assert read("pixabay", changed(PIXABAY, previewURL=link)).license_type == license_type


def test_pixabay_photos_are_shown_from_a_copy_because_links_may_not_be_shown_for_good():
    record = read("pixabay")
    assert record.shown_from_copy
    assert record.urls["small"].endswith("gabc_340.jpg")
    assert record.attribution["plain"] == "Image by Berit_7 from Pixabay"


@pytest.mark.parametrize(
    ("number", "license_type"),
    [
        ("0", "all-rights-reserved"),
        ("1", "cc-by-nc-sa-2.0"),
        ("2", "cc-by-nc-2.0"),
        ("3", "cc-by-nc-nd-2.0"),
        ("4", "cc-by-2.0"),
        ("5", "cc-by-sa-2.0"),
        ("6", "cc-by-nd-2.0"),
        ("7", "no-known-copyright"),
        ("8", "us-government-work"),
        ("9", "cc0"),
        (10, "public-domain"),
    ],
)
def test_flickr_licence_numbers(number, license_type):
    assert read("flickr", changed(FLICKR, license=number)).license_type == license_type


@pytest.mark.parametrize("number", ["11", "99", "4.0", "by the sea", "-1"])
def test_a_licence_number_that_nobody_knows_is_refused(number):
    with pytest.raises(InputError, match="licence must be a known one"):
        read("flickr", changed(FLICKR, license=number))


def test_a_flickr_photo_without_a_licence_has_none():
    assert read("flickr", changed(FLICKR, license=None)).license_type == ""


def test_flickr_credit_has_title_author_and_licence_with_their_links():
    credit = read("flickr").attribution
    assert credit["plain"] == "“Tram <28>” by Ines Duarte, CC BY 2.0, via Flickr"
    assert 'href="https://www.flickr.com/photos/12345678@N00/50000000001"' in credit["html"]
    assert 'href="https://creativecommons.org/licenses/by/2.0/"' in credit["html"]
    assert "“Tram &lt;28&gt;”" in credit["html"]


def test_flickr_descriptions_lose_their_markup():
    assert "Lisbon & its trams" in read("flickr").source_description


def test_a_flickr_photo_of_which_only_a_thumbnail_is_told_is_refused():
    small = {k: v for k, v in FLICKR.items() if k not in ("url_s", "url_m", "url_l")}
    with pytest.raises(InputError, match="thumbnail only"):
        read("flickr", small)


def test_the_full_size_on_flickr_is_the_original_or_else_the_largest_that_is_told():
    original = {**FLICKR, "url_o": "https://live.staticflickr.com/1/2_3_o.jpg"}
    assert read("flickr", original).urls["full"] == original["url_o"]
    without = {k: v for k, v in FLICKR.items() if k != "url_o"}
    for size in ("url_l", "url_h", "url_k"):
        without[size] = f"https://live.staticflickr.com/1/2_3_{size[-1]}.jpg"
        urls = read("flickr", without).urls
        assert urls["full"] == urls["large"] == without[size]


def test_flickr_sizes_come_from_a_data_sets_link_where_every_photo_has_them():
    record = read("flickr", FLICKR_ML5)
    base = "https://live.staticflickr.com/3779/50000000002_0123456789"
    assert record.source_photo_id == "50000000002"
    assert record.urls["thumb"] == f"{base}_t.jpg"
    assert record.urls["small"] == f"{base}_m.jpg"
    assert record.urls["large"] == record.urls["full"] == FLICKR_ML5["url"]
    assert record.license_type == "cc-by-sa-2.0"
    assert record.photographer_full_name == "Nils B."


def test_open_images_rows_are_flickr_photos():
    record = read("flickr", OPEN_IMAGES)
    assert record.origin == ("flickr", "50000000003")
    assert record.license_type == "cc-by-2.0"
    assert record.urls["full"] == OPEN_IMAGES["OriginalURL"]
    assert record.photographer_username == "elgar"


@pytest.mark.parametrize(
    "page", ["https://flickr.com/12345678@N00/50000000003", "https://www.flickr.com/photo.gne?s=7"]
)
def test_open_images_rows_whose_page_leads_nowhere_are_known_by_their_picture(page):
    row = changed(
        OPEN_IMAGES,
        OriginalLandingURL=page,
        AuthorProfileURL="https://www.flickr.com/people/elgar/",
    )
    record = read("flickr", row)
    assert record.source_image_url == "https://www.flickr.com/photos/elgar/50000000003"


def test_commons_markup_is_read_and_pictures_are_scaled_in_the_standard_widths():
    record = read("wikimedia")
    assert record.photographer_full_name == "Ana & Kova"
    assert record.photographer_username == "Ana Kova"
    assert record.photographer_url == "https://commons.wikimedia.org/wiki/User:Ana_Kova"
    assert record.source_description == "The mill in spring"
    assert record.license_type == "cc-by-sa-3.0"
    assert record.license_url.endswith("/by-sa/3.0/de/")
    base = "https://upload.wikimedia.org/wikipedia/commons/thumb/2/25/Old_mill_at_Verdun.jpg"
    assert [record.urls[size] for size in ("thumb", "small", "regular")] == [
        f"{base}/{width}px-Old_mill_at_Verdun.jpg" for width in (250, 500, 960)
    ]
    # 1600 pixels wide: the file itself, for nothing is scaled up.
    assert record.urls["large"] == record.urls["full"] == record.image_url


@pytest.mark.parametrize(
    ("artist", "name", "profile"),
    [
        ("Plain Name", "Plain Name", ""),
        ('<div class="fn value">\nIn A Div</div>', "In A Div", ""),
        (
            '<a href="https://e.example/x">Jo &amp; Bo</a> from Here',
            "Jo & Bo from Here",
            "https://e.example/x",
        ),
        ('<a href="javascript:alert(1)">Jo</a>', "Jo", ""),
        ("<script>alert(1)</script>Jo<style>a{}</style>", "Jo", ""),
        ('<img src=x onerror="alert(1)">', "", ""),
    ],
)
def test_commons_artists(artist, name, profile):
    page = changed(WIKIMEDIA)
    page["imageinfo"][0]["extmetadata"]["Artist"]["value"] = artist
    record = read("wikimedia", page)
    assert (record.photographer_full_name, record.photographer_url) == (name, profile)
    assert "alert(1)" not in record.attribution["html"]


def test_an_attribution_that_a_commons_author_asks_for_is_used():
    page = changed(WIKIMEDIA)
    page["imageinfo"][0]["extmetadata"]["Attribution"] = {"value": "Foto: <b>A. Kova</b>"}
    credit = read("wikimedia", page).attribution["plain"]
    assert credit == "“Old mill at Verdun”. Foto: A. Kova, CC BY-SA 3.0, via Wikimedia Commons"


def test_openverse_photos_have_the_identity_that_they_have_at_their_origin():
    record = read("openverse")
    assert record.origin == ("flickr", "50000000001") == read("flickr").origin
    assert record.attribution["plain"] == (
        "“Tram” by Ines Duarte is licensed under CC BY 2.0, via Openverse"
    )


@pytest.mark.parametrize(
    ("library", "page", "origin"),
    [
        ("wikimedia", "https://commons.wikimedia.org/w/index.php?curid=12", ("wikimedia", "12")),
        (
            "stocksnap",
            "https://stocksnap.io/photo/clinic-doctor-6C4YTOELUE",
            ("stocksnap", "6C4YTOELUE"),
        ),
        ("stocksnap", "https://stocksnap.io/photo/XNVBVXO3B7", ("stocksnap", "XNVBVXO3B7")),
        ("rawpixel", "https://www.rawpixel.com/image/41/elk", ("rawpixel", "41")),
        ("wordpress", "https://wordpress.org/photos/photo/abc/", ("wordpress", "abc")),
        ("nowhere", "https://example.org/photos/1", ("openverse", OPENVERSE["id"])),
        ("flickr", "https://www.flickr.com/", ("openverse", OPENVERSE["id"])),
    ],
)
def test_the_origin_of_an_openverse_photo_is_told_by_its_page(library, page, origin):
    record = changed(OPENVERSE, source=library, foreign_landing_url=page)
    assert read("openverse", record).origin == origin


@pytest.mark.parametrize(
    ("label", "license_type"),
    [
        ("Free CC0 Image", "cc0"),
        ("Free U.S. Government Image", "us-government-work"),
        ("Free Public Domain Image", "public-domain"),
        ("Free Image", "free"),
        ("Premium Image", "all-rights-reserved"),
    ],
)
def test_rawpixel_labels_count_where_no_licence_is_told(label, license_type):
    record = changed(RAWPIXEL, info_label=label)
    del record["metadata"]["license"], record["metadata"]["licenseUrl"]
    assert read("rawpixel", record).license_type == license_type


def test_nasa_sizes_that_are_listed_come_before_those_that_follow_from_the_name():
    base = "https://images-assets.nasa.gov/image/ZZ/ZZ"
    listed = [
        {"href": f"{base}~orig.tif", "width": 6000, "height": 4000},
        {"href": f"{base}~thumb.jpg", "width": 640, "height": 427},
    ]
    record = read("nasa", changed(NASA, links=listed))
    assert record.urls["full"] == f"{base}~orig.tif"
    assert record.urls["regular"] == f"{base}~orig.tif"
    assert (record.width, record.height) == (6000, 4000)
    assert read("nasa").urls["regular"].endswith("~medium.jpg")
    assert read("nasa").attribution["plain"] == "“Liftoff”. Credit: NASA/ZZC/Jo Example"


def test_an_observation_has_several_photos_each_with_its_own_licence():
    other = {**INATURALIST["photos"][0], "id": 61000002, "license_code": None}
    both = changed(INATURALIST, photos=[INATURALIST["photos"][0], other])
    photos = [SOURCES["inaturalist"].record(e) for e in SOURCES["inaturalist"].entries(both)]
    assert [one.license_type for one in photos] == ["cc-by-4.0", "all-rights-reserved"]
    assert photos[0].urls["large"].endswith("/photos/61000001/large.jpg")
    assert photos[0].attribution["plain"] == (
        "“Common frog” © Leo Marsh, CC BY 4.0, via iNaturalist"
    )


def test_further_pictures_of_the_met_are_photos_of_their_own():
    photos = [SOURCES["met"].record(entry) for entry in SOURCES["met"].entries(MET)]
    assert [one.source_photo_id for one in photos] == ["990001", "990001-DP0002"]
    assert photos[1].urls["thumb"].endswith("/web-large/DP0002.jpg")
    assert read("met", changed(MET, isPublicDomain=False)).license_type == "all-rights-reserved"


def test_smithsonian_pictures_are_scaled_by_the_delivery_service_and_may_be_restricted():
    assert read("smithsonian").urls["small"].endswith("id=ZZ-1&max=480")
    row = changed(SMITHSONIAN)
    about = row["content"]["descriptiveNonRepeating"]
    about["online_media"]["media"][0]["usage"]["access"] = "Usage conditions apply"
    assert read("smithsonian", row).license_type == "all-rights-reserved"
