"""Pictures in calls of tools and in their answers: searched by, shown on a sheet, linked."""

import base64
import io
import json

import pytest
from PIL import Image

from searchlab.api.accounts.grants import revoke_grant_of
from searchlab.errors import NotFoundError
from tests.support.tool_clients import BASE_URL, ToolClient, ask_api, connect

# -- pictures to search by --------------------------------------------------------------------


def picture_file(color, size=(40, 30), kind="PNG"):
    file = io.BytesIO()
    Image.new("RGB", size, color).save(file, kind)
    return file.getvalue()


@pytest.mark.parametrize("head", ["", "data:image/png;base64,"], ids=["plain", "data"])
def test_a_picture_in_the_call_is_searched_by_as_one_that_is_uploaded(server, tools, head):
    content = picture_file("blue")
    form = {"image": ("x.png", content)}
    expected = server.client.post("/api/v1/search/photos", files=form).json()["data"]
    encoded = head + base64.b64encode(content).decode()
    found = tools.data("search_photos", picture=encoded, per_page=5, q="blue")
    assert found["photos"][0]["photo_id"] == expected[0]["photo_id"]
    following = tools.data("search_photos", cursor=found["pagination"]["next_cursor"])
    ids = [photo["photo_id"] for page in (found, following) for photo in page["photos"]]
    assert len(set(ids)) == len(ids) == 10


def test_a_picture_sent_to_an_address_is_searched_by_without_a_key(server, modern):
    given = modern.data("get_upload_address")
    assert given["address"].startswith(f"{BASE_URL}/mcp/pictures/")
    assert given["address"] in given["command"]
    sent = server.anonymous.put(given["address"], content=picture_file("red"))
    assert sent.status_code == 200, sent.text
    found = modern.data("search_photos", picture=sent.json()["data"]["picture"], per_page=1)
    direct = modern.data(
        "search_photos", picture=base64.b64encode(picture_file("red")).decode(), per_page=1
    )
    assert found["photos"][0]["photo_id"] == direct["photos"][0]["photo_id"]


def test_an_address_takes_pictures_alone_and_no_other_address_does(server, modern):
    address = modern.data("get_upload_address")["address"]
    refused = server.anonymous.put(address, content=b"no picture")
    assert refused.json()["error"]["code"] == "UNSUPPORTED_MEDIA_TYPE"
    changed = address[:-1] + ("A" if address[-1] != "A" else "B")
    refused = server.anonymous.put(changed, content=picture_file("red"))
    assert refused.json()["error"]["code"] == "NOT_FOUND"
    assert "ask for a new one" in refused.json()["error"]["message"]


def test_an_address_takes_nothing_once_its_app_is_disconnected(server):
    server.make_client(account="leaver")
    token = connect(server.database, "leaver")
    address = ToolClient(server, token).data("get_upload_address")["address"]
    assert server.anonymous.put(address, content=picture_file("red")).status_code == 200
    grant = server.app.services.tokens.resolve(token, f"{BASE_URL}/mcp")
    revoke_grant_of(server.database, grant.caller.account_id, grant.grant_id)
    refused = server.anonymous.put(address, content=picture_file("red"))
    assert refused.status_code == 404
    assert "must still be connected" in refused.json()["error"]["message"]


@pytest.mark.parametrize(
    ("picture", "says"),
    [
        ("https://example.org/a.jpg", "this server fetches none"),
        ("no base64!", "must be the base64"),
        ("aGVsbG8=", "JPEG, PNG, WebP or AVIF"),
        ("abc.def", "this server did not answer; send the picture again"),
    ],
)
def test_what_is_no_picture_is_refused_with_what_to_do(modern, picture, says):
    for text in (picture, f" {picture}\n"):
        assert says in modern.refusal("search_photos", picture=text)


def test_a_picture_and_a_photo_are_not_searched_by_together(modern):
    photo_id = modern.data("search_photos", q="red", per_page=1)["photos"][0]["photo_id"]
    picture = base64.b64encode(picture_file("red")).decode()
    message = modern.refusal("search_photos", picture=picture, photo_id=photo_id)
    assert "a picture or a photo_id, got both" in message


# -- pictures that are shown ------------------------------------------------------------------


def test_pictures_come_on_request_as_one_numbered_sheet_and_links(tools):
    plain = tools.call("search_photos", q="a photo")
    assert [block.type for block in plain.content] == ["text"]
    result = tools.call("search_photos", q="a photo", per_page=12, show_pictures=True)
    text, sheet, *links = result.content
    assert (text.type, sheet.type, sheet.mime_type) == ("text", "image", "image/jpeg")
    picture = Image.open(io.BytesIO(base64.b64decode(sheet.data)))
    assert picture.format == "JPEG"
    assert picture.width == 768
    photos = result.structured_content["photos"]
    assert [(link.uri, link.name) for link in links] == [
        (photo["urls"]["regular"], photo["photo_id"]) for photo in photos[:9]
    ]
    # Each address stands in the text or in a link, never in both.
    in_text = [photo["urls"]["regular"] in text.text for photo in photos]
    assert in_text == [False] * 9 + [True] * (len(photos) - 9)
    assert len(photos) > 9
    assert sheet.data[:40] not in json.dumps(result.structured_content)


def test_a_link_says_what_is_found_there(server, tools):
    photo = tools.data("search_photos", q="gold", per_page=1)["photos"][0]
    answer = server.anonymous.get(photo["urls"]["regular"])
    result = tools.call("search_photos", q="gold", per_page=1, show_pictures=True)
    link = result.content[-1]
    assert link.mime_type == answer.headers["content-type"]
    assert link.size == len(answer.content)
    assert link.title.startswith("1. ")
    (again,) = [
        block
        for block in tools.call("get_photo", photo_id=photo["photo_id"], show_pictures=True).content
        if block.type == "resource_link"
    ]
    assert (again.uri, again.mime_type, again.size) == (link.uri, link.mime_type, link.size)


def test_a_photo_that_left_the_library_keeps_its_number_on_the_sheet(modern, monkeypatch):
    shown = modern.call("search_photos", q="a photo", per_page=4)
    gone = shown.structured_content["photos"][1]["photo_id"]
    table, find = modern.server.app.services.live_library.current.engine.table, None
    find = type(table).row_of

    def row_of(table, photo_id):
        if photo_id == gone:
            raise NotFoundError(photo_id)
        return find(table, photo_id)

    monkeypatch.setattr(type(table), "row_of", row_of)
    result = modern.call("search_photos", q="a photo", per_page=4, show_pictures=True)
    assert not result.is_error
    assert [block.type for block in result.content] == ["text", "image"] + 4 * ["resource_link"]


def test_the_sheet_shows_the_photos_in_their_order(modern):
    result = modern.call("search_photos", color_name="red", per_page=2, show_pictures=True)
    sheet = Image.open(io.BytesIO(base64.b64decode(result.content[1].data))).convert("RGB")
    side = sheet.width // len(result.structured_content["photos"])
    red, green, blue = sheet.getpixel((side // 2, sheet.height // 2))
    assert red > 200 > max(green, blue) + 100


def test_one_photo_is_shown_large_whole_and_alone(server, modern):
    photo = ask_api(server, "/search/photos", q="red")["data"][0]
    result = modern.call("get_photo", photo_id=photo["photo_id"], show_pictures=True)
    width, height = Image.open(io.BytesIO(base64.b64decode(result.content[1].data))).size
    assert max(width, height) == 768
    assert width / height == pytest.approx(photo["width"] / photo["height"], rel=0.01)
