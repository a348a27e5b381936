"""Records in the shapes of upstream libraries, with invented ids, names and pictures."""

import json

UNSPLASH = {
    "id": "Zx-Quay_001",
    "created_at": "2021-03-04T05:06:07Z",
    "width": 6000,
    "height": 4000,
    "color": "#A68059",
    "blur_hash": "LEHV6nWB2yk8pyo0adR*.7kCMdnj",
    "description": "Fishing boats at dawn",
    "alt_description": "two boats on calm water",
    "urls": {
        name: f"https://images.unsplash.com/photo-1-quay?{rest}ixid=Mabc&ixlib=rb-4.0.3"
        for name, rest in {
            "raw": "",
            "full": "fm=jpg&q=85&",
            "regular": "w=1080&",
            "small": "w=400&",
            "thumb": "w=200&",
        }.items()
    },
    "links": {"html": "https://unsplash.com/photos/Zx-Quay_001"},
    "user": {
        "username": "mirelle",
        "name": "Mirelle Okafor",
        "links": {"html": "https://unsplash.com/@mirelle"},
    },
}
PEXELS = {
    "id": 7000001,
    "width": 3000,
    "height": 4500,
    "url": "https://www.pexels.com/photo/red-kite-7000001/",
    "photographer": "Tomas Lindqvist",
    "photographer_url": "https://www.pexels.com/@tomas-l",
    "photographer_id": 42,
    "avg_color": "#5C575E",
    "src": {
        size: f"https://images.pexels.com/photos/7000001/kite.jpeg?{size}"
        for size in ("original", "large2x", "large", "medium", "small", "tiny")
    },
    "alt": "Red kite over a beach",
}
PIXABAY = {
    "id": 8000001,
    "pageURL": "https://pixabay.com/photos/pears-8000001/",
    "tags": "pears, fruit, green",
    "previewURL": "https://cdn.pixabay.com/photo/2020/02/13/00/43/pears-8000001_150.jpg",
    "webformatURL": "https://pixabay.com/get/gabc_640.jpg",
    "largeImageURL": "https://pixabay.com/get/gdef_1280.jpg",
    "imageWidth": 3345,
    "imageHeight": 5017,
    "user_id": 99,
    "user": "Berit_7",
}
FLICKR = {
    "id": "50000000001",
    "owner": "12345678@N00",
    "ownername": "Ines Duarte",
    "pathalias": "inesd",
    "license": "4",
    "title": "Tram <28>",
    "description": {"_content": 'Lisbon &amp; its <a href="https://example.org">trams</a>'},
    "tags": "lisbon tram",
    "dateupload": "1581318235",
    "o_width": "4000",
    "o_height": "3000",
    "url_t": "https://live.staticflickr.com/65535/50000000001_0a1b2c3d4e_t.jpg",
    "url_s": "https://live.staticflickr.com/65535/50000000001_0a1b2c3d4e_m.jpg",
    "url_m": "https://live.staticflickr.com/65535/50000000001_0a1b2c3d4e.jpg",
    "url_l": "https://live.staticflickr.com/65535/50000000001_0a1b2c3d4e_b.jpg",
}
FLICKR_ML5 = {
    "clean_name": "50000000002_0123456789.jpg",
    "url": "https://farm4.staticflickr.com/3779/50000000002_0123456789.jpg",
    "license": "5",
    "title": "Harbour",
    "owner": "Nils B.",
    "owner_id": "87654321@N05",
    "keyword": "harbour",
}
OPEN_IMAGES = {
    "ImageID": "00aa11bb22cc33dd",
    "OriginalURL": "https://farm4.staticflickr.com/8524/50000000003_aabbccddee_o.jpg",
    "OriginalLandingURL": "https://www.flickr.com/photos/elgar/50000000003",
    "License": "https://creativecommons.org/licenses/by/2.0/",
    "Author": "Elga R.",
    "Title": "Pier",
    "Thumbnail300KURL": "https://c5.staticflickr.com/9/8524/50000000003_73c0252260_z.jpg",
}
WIKIMEDIA = {
    "pageid": 900001,
    "title": "File:Old mill at Verdun.jpg",
    "imageinfo": [
        {
            "width": 1600,
            "height": 1200,
            "timestamp": "2019-09-01T00:38:47Z",
            "url": "https://upload.wikimedia.org/wikipedia/commons/2/25/Old_mill_at_Verdun.jpg",
            "descriptionurl": "https://commons.wikimedia.org/wiki/File:Old_mill_at_Verdun.jpg",
            "extmetadata": {
                "Artist": {
                    "value": '<b><a href="//commons.wikimedia.org/wiki/User:Ana_Kova"'
                    ' title="User:Ana Kova">Ana &amp; Kova</a></b>'
                },
                "ImageDescription": {"value": "<p>The mill<br>in <i>spring</i></p>"},
                "LicenseShortName": {"value": "CC BY-SA 3.0 de"},
                "LicenseUrl": {"value": "https://creativecommons.org/licenses/by-sa/3.0/de/"},
                "ObjectName": {"value": "Old mill at Verdun"},
            },
        }
    ],
}
OPENVERSE = {
    "id": "0d9b8f6e-0000-4000-8000-000000000001",
    "title": "Tram",
    "indexed_on": "2022-08-27T17:39:48Z",
    "foreign_landing_url": "https://www.flickr.com/photos/inesd/50000000001",
    "url": "https://live.staticflickr.com/65535/50000000001_0a1b2c3d4e_b.jpg",
    "creator": "Ines Duarte",
    "creator_url": "https://www.flickr.com/photos/inesd",
    "license": "by",
    "license_version": "2.0",
    "source": "flickr",
    "tags": [{"name": "tram"}, {"name": "yellow"}],
    "width": 1024,
    "height": 768,
    "thumbnail": "https://api.openverse.org/v1/images/0d9b8f6e-0000-4000-8000-000000000001/thumb/",
}
STOCKSNAP = {
    "img_id": "ABCDE12345",
    "img_width": 6000,
    "img_height": 4000,
    "author_id": 77,
    "author_name": "Priya Nair",
    "author_profile": "https://stocksnap.io/author/77",
    "keywords": ["field", "barley"],
}
RAWPIXEL = {
    "id": 4100001,
    "url": "https://www.rawpixel.com/image/4100001/elk",
    "width": 8272,
    "height": 5515,
    "info_label": "Free CC0 Image",
    "artist_names": "Forest Service (Source)",
    "style_uri": "https://images.rawpixel.com/{}/cHJpdmF0ZS9.jpg",
    "metadata": {
        "title": "Elk in snow | Free Photo - rawpixel",
        "description_text": "Elk searches for food",
        "image_alt": "Elk in snow",
        "popular_keywords": ["elk", "winter"],
        "artists": [{"account_url": "forest"}],
        "license": "cc0",
        "licenseUrl": "https://creativecommons.org/publicdomain/zero/1.0/",
    },
}
NASA = {
    "data": [
        {
            "nasa_id": "ZZC-20170418-PH_0015",
            "title": "Liftoff",
            "photographer": "Jo Example",
            "center": "ZZC",
            "description": "A rocket lifts off.",
            "description_508": "Rocket above clouds",
            "keywords": ["launch"],
            "date_created": "2017-04-18T00:00:00Z",
        }
    ],
    "links": [
        {
            "href": "https://images-assets.nasa.gov/image/ZZC-20170418-PH_0015/ZZC-20170418-PH_0015~thumb.jpg",
            "rel": "preview",
        }
    ],
}
INATURALIST = {
    "created_at": "2023-06-01T10:00:00+02:00",
    "description": "By the pond",
    "taxon": {"name": "Rana temporaria", "preferred_common_name": "Common frog"},
    "user": {"login": "frogger", "name": "Leo Marsh"},
    "photos": [
        {
            "id": 61000001,
            "license_code": "cc-by",
            "url": "https://inaturalist-open-data.s3.amazonaws.com/photos/61000001/square.jpg",
            "original_dimensions": {"width": 2048, "height": 1536},
        }
    ],
}
MET = {
    "objectID": 990001,
    "isPublicDomain": True,
    "primaryImage": "https://images.metmuseum.org/CRDImages/as/original/DP0001.jpg",
    "primaryImageSmall": "https://images.metmuseum.org/CRDImages/as/web-large/DP0001.jpg",
    "additionalImages": ["https://images.metmuseum.org/CRDImages/as/original/DP0002.jpg"],
    "objectURL": "https://www.metmuseum.org/art/collection/search/990001",
    "title": "Bowl",
    "objectName": "Bowl",
    "medium": "Porcelain",
    "artistDisplayName": "Kenji Example",
    "artistWikidata_URL": "https://www.wikidata.org/wiki/Q1",
    "creditLine": "Gift of Nobody, 1936",
    "metadataDate": "2020-02-07T15:50:59.677Z",
    "tags": [{"term": "Leaves"}],
}
SMITHSONIAN = {
    "id": "edanmdm-zz_1",
    "timestamp": "1653672694",
    "title": "Elephant",
    "content": {
        "descriptiveNonRepeating": {
            "record_ID": "zz_1",
            "record_link": "https://collections.example.org/zz_1",
            "data_source": "Example Archives",
            "title": {"content": "Elephant"},
            "online_media": {
                "media": [
                    {
                        "content": "https://ids.si.edu/ids/deliveryService?id=ZZ-1",
                        "thumbnail": "https://ids.si.edu/ids/deliveryService?id=ZZ-1&max=150",
                        "usage": {"access": "CC0"},
                    }
                ]
            },
        },
        "freetext": {"name": [{"label": "Creator", "content": "Gruber, Example"}]},
    },
}
EUROPEANA = {
    "id": "/90001/zz_1",
    "guid": "https://www.europeana.eu/item/90001/zz_1?utm_source=api&utm_medium=api",
    "title": ["Harbour with ships"],
    "dcCreator": ["http://example.org/agent/1", "Anna Example"],
    "dcCreatorLangAware": {"en": ["Anna Example"]},
    "dcDescription": ["An engraving"],
    "dataProvider": ["Example Collection"],
    "edmIsShownBy": ["https://iiif.example.org/zz_1.jpg"],
    "edmPreview": ["https://api.europeana.eu/thumbnail/v2/url.json?uri=x&type=IMAGE"],
    "rights": ["http://creativecommons.org/licenses/by/4.0/"],
    "timestamp_created": "2019-06-09T11:48:32.594Z",
}
WORDPRESS = {
    "slug": "abc123def4",
    "link": "https://wordpress.org/photos/photo/abc123def4/",
    "date_gmt": "2022-05-16T18:50:55",
    "content": {"rendered": "<p>Coffee &#8211; beans</p>\n"},
    "_embedded": {
        "author": [
            {
                "name": "Sho Example",
                "slug": "shoex",
                "link": "https://wordpress.org/photos/author/shoex/",
            }
        ],
        "wp:featuredmedia": [
            {
                "alt_text": "Beans in bags",
                "source_url": "https://pd.w.org/2022/05/abc.jpg",
                "media_details": {
                    "width": 4000,
                    "height": 2667,
                    "sizes": {
                        "medium": {"source_url": "https://pd.w.org/2022/05/abc-300x200.jpg"},
                        "large": {"source_url": "https://pd.w.org/2022/05/abc-1024x683.jpg"},
                        "2048x2048": {"source_url": "https://pd.w.org/2022/05/abc-2048x1366.jpg"},
                    },
                },
            }
        ],
        "wp:term": [[{"taxonomy": "photo_tag", "name": "coffee"}]],
    },
}

RECORDS = {
    "unsplash": UNSPLASH,
    "pexels": PEXELS,
    "pixabay": PIXABAY,
    "flickr": FLICKR,
    "wikimedia": WIKIMEDIA,
    "openverse": OPENVERSE,
    "stocksnap": STOCKSNAP,
    "rawpixel": RAWPIXEL,
    "nasa": NASA,
    "inaturalist": INATURALIST,
    "met": MET,
    "smithsonian": SMITHSONIAN,
    "europeana": EUROPEANA,
    "wordpress": WORDPRESS,
}
"""One record of each library that tells all that its records can tell."""


def changed(record, **values):
    """Copy a record deeply with some top-level values changed."""
    return {**json.loads(json.dumps(record)), **values}
