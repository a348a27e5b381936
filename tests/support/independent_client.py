"""A stranger's client: plain HTTP, and the shapes that the specification promises. Nothing else."""

import datetime
import re

import httpx

TEXT, NUMBER, INTEGER = (str,), (int, float), (int,)
URL = re.compile(r"https?://\S+")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
HEX = re.compile(r"#[0-9a-fA-F]{6}")
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")

ENVELOPE = {"success", "data", "meta", "error", "pagination"}
URL_SIZES = {"thumb", "small", "regular", "large", "full"}
PHOTO = {
    "photo_id": TEXT,
    "source_photo_id": TEXT,
    "image_url": TEXT,
    "urls": (dict,),
    "source_image_url": TEXT,
    "width": INTEGER,
    "height": INTEGER,
    "orientation": TEXT,
    "blur_hash": TEXT,
    "color_name": TEXT,
    "color_hex": TEXT,
    "source": TEXT,
    "license_type": TEXT,
    "photographer_username": TEXT,
    "photographer_full_name": TEXT,
    "photographer_url": TEXT,
    "source_description": TEXT,
    "description": TEXT,
    "alt_description": TEXT,
    "relevance_score": NUMBER,
    "uploaded_on": TEXT,
    "attribution": (dict,),
}
COLLECTION = {
    "id": INTEGER,
    "name": TEXT,
    "description": (str, type(None)),
    "is_public": (bool,),
    "cover_photo_id": TEXT,
    "created_at": TEXT,
    "updated_at": TEXT,
    "photos_count": INTEGER,
}
COLLECTION_PHOTO = {
    "id": INTEGER,
    "photo_id": TEXT,
    "photo_thumbnail_url": TEXT,
    "photo_source": TEXT,
    "photo_photographer": TEXT,
    "added_at": TEXT,
}
PHOTOGRAPHER = {
    "username": TEXT,
    "full_name": TEXT,
    "source": TEXT,
    "url": TEXT,
    "photos_count": INTEGER,
}

SEARCH = "/search/photos"
UNKNOWN = "00000000-0000-4000-8000-000000000000"  # a photo_id of no photo


def check_record(record, shape):
    """Check that a record has the fields of a shape, no other, each of its type."""
    assert set(record) == set(shape)
    for name, kinds in shape.items():
        assert isinstance(record[name], kinds), name
        assert bool in kinds or not isinstance(record[name], bool), name


def check_photo(photo):
    """Check a whole Photo of 2.3."""
    check_record(photo, PHOTO)
    assert UUID.fullmatch(photo["photo_id"])
    assert set(photo["urls"]) == URL_SIZES
    for url in (photo["image_url"], *photo["urls"].values()):
        assert URL.fullmatch(url)
    assert photo["width"] > 0 < photo["height"]
    assert photo["orientation"] in {"landscape", "portrait", "square"}
    assert photo["blur_hash"]
    assert HEX.fullmatch(photo["color_hex"])
    assert 0 <= photo["relevance_score"] <= 1
    assert datetime.date.fromisoformat(photo["uploaded_on"])
    assert DAY.fullmatch(photo["uploaded_on"])
    check_record(photo["attribution"], {"html": TEXT, "plain": TEXT})


def check_moment(text):
    """Check an ISO 8601 timestamp with UTC offset, and return it."""
    moment = datetime.datetime.fromisoformat(text)
    assert moment.utcoffset() is not None
    assert "T" in text
    return moment


def check_meta(meta):
    check_record(meta, {"request_id": TEXT, "took_ms": NUMBER})
    assert UUID.fullmatch(meta["request_id"])
    assert meta["took_ms"] >= 0


def check_json(response):
    assert response.headers["content-type"].split(";")[0] == "application/json"
    return response.json()


def check_success(response):
    """Check a successful answer's envelope, and return it."""
    assert response.status_code == 200, response.text
    body = check_json(response)
    assert set(body) == ENVELOPE
    assert body["success"] is True
    assert body["error"] is None
    check_meta(body["meta"])
    return body


def check_page(response):
    """Check a page of photos, and return its envelope."""
    body = check_success(response)
    assert isinstance(body["data"], list)
    place = body["pagination"]
    check_record(
        place, {"per_page": INTEGER, "has_more": (bool,), "next_cursor": (str, type(None))}
    )
    assert (place["next_cursor"] is None) is (not place["has_more"])
    assert len(body["data"]) <= place["per_page"]
    return body


def check_failure(response, status, code=None):
    """Check the envelope of a failure, and return its error."""
    assert response.status_code == status, response.text
    body = check_json(response)
    assert set(body) == ENVELOPE
    assert body["success"] is False
    assert body["data"] is None
    assert body["pagination"] is None
    check_meta(body["meta"])
    error = body["error"]
    assert set(error) == {"code", "message", "details"}
    assert isinstance(error["code"], str)
    assert isinstance(error["message"], str)
    assert error["code"]
    assert error["message"]
    assert code in {None, error["code"]}
    return error


def check_invalid(response, *loc):
    """Check a failed validation, and that it names a place; return its details."""
    assert response.status_code == 422, response.text
    body = check_json(response)
    assert set(body) == {"detail"}
    assert body["detail"]
    for detail in body["detail"]:
        check_record(detail, {"loc": (list,), "msg": TEXT, "type": TEXT})
        assert detail["msg"]
        assert detail["type"]
        assert all(isinstance(part, str | int) for part in detail["loc"])
    if loc:
        assert list(loc) in [detail["loc"] for detail in body["detail"]]
    return body["detail"]


def check_refused(response):
    """Check that a request is refused cleanly, in whichever of the two shapes."""
    assert 400 <= response.status_code < 500, response.text
    if response.status_code == 422:
        return check_invalid(response)
    return check_failure(response, response.status_code)


class Api:
    """Sends requests below /api/v1 with a key."""

    def __init__(self, base_url, key=None, **headers):
        self.base_url = base_url
        self.key = key
        if key is not None:
            headers["x-api-key"] = key
        # A connection for each request: any process of the server may get the next one.
        self.http = httpx.Client(
            base_url=f"{base_url}/api/v1",
            headers=headers,
            timeout=30,
            verify=False,  # nothing here is encrypted; to read the authorities takes its time
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    def get(self, path, **params):
        return self.http.get(path, params=params or None)  # an empty dict would cut the query off

    def post(self, path, body=None, **params):
        return self.http.post(path, json=body, params=params)

    def upload(self, data, *, name="image", file="photo.jpg", kind="image/jpeg", **params):
        return self.http.post(SEARCH, files={name: (file, data, kind)}, params=params)

    def delete(self, path):
        return self.http.delete(path)

    def data(self, path, **params):
        return check_success(self.get(path, **params))["data"]

    def page(self, **params):
        return check_page(self.get(SEARCH, **params))

    def image_page(self, **params):
        return check_page(self.http.post(SEARCH, params=params))

    def search(self, **params):
        return self.page(**params)["data"]

    def ids(self, **params):
        return [photo["photo_id"] for photo in self.search(**params)]

    def pages(self, **params):
        """Follow the cursors of a text search to the end."""
        return self.follow(self.page(**params), lambda cursor: self.page(**params, cursor=cursor))

    def follow(self, page, ask):
        pages = [page]
        while page["pagination"]["has_more"]:
            page = ask(page["pagination"]["next_cursor"])
            pages.append(page)
            assert len(pages) < 1000
        return pages

    def all_photos(self, **params):
        return [p for page in self.pages(**{"per_page": 100} | params) for p in page["data"]]

    def all_ids(self, **params):
        return [p["photo_id"] for p in self.all_photos(**params | {"fields": "photo_id"})]


def refusal(api, **params):
    """Search with parameters that are invalid."""
    return check_invalid(api.get(SEARCH, **params))


def create_collection(api, **body):
    return check_success(api.post("/collections", {"name": "Autumn"} | body))["data"]


def add_photo(api, collection_id, photo_id, **body):
    answer = api.post(f"/collections/{collection_id}/photos", {"photo_id": photo_id} | body)
    return check_success(answer)["data"]


def read_collection(api, collection_id):
    return api.data(f"/collections/{collection_id}")


def ids_of(response):
    return [photo["photo_id"] for photo in check_page(response)["data"]]


def follow(api, first):
    """Follow the cursors of an image search, with nothing but the cursor."""
    return api.follow(first, lambda cursor: api.image_page(cursor=cursor))


def found_in(pages):
    return [photo["photo_id"] for page in pages for photo in page["data"]]
