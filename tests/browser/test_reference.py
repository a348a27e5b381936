"""The reference at /docs, on a phone and in the dark."""

import itertools
import json

import pytest

from tests.support.browsing import OTHERWISE
from tests.support.spec_server import BUNDLED

pytestmark = pytest.mark.slow

OPENED = ("searchPhotosByText", "searchPhotosByImage", "createCollection", "getPicture")


@pytest.fixture(scope="module")
def key(served):
    return served.new_account("reading", plan="scale").key


@pytest.fixture
def read(window, key):
    """Opens the reference with the forms of some operations, and a key in it."""

    def opened(**options):
        one = window(**options)
        one.page.goto("/docs")
        for name in OPENED:
            one.page.locator(f"#{name} > summary").click()
        one.page.get_by_label("API key").fill(key)
        return one

    return opened


def ask(one, name, **values):
    """Send the form of an operation; returns the place of its answer, once that is there."""
    operation = one.page.locator(f"#{name}")
    for label, value in values.items():
        field = operation.locator(f"[name='{label}']")
        if field.evaluate("field => field.localName") == "select":
            field.select_option(value)
        else:
            field.fill(value)
    with one.page.expect_response(lambda answer: answer.request.resource_type == "fetch"):
        operation.get_by_role("button", name="Send").click()
    operation.get_by_text("Headers", exact=True).wait_for()
    return operation.locator(".answer")


def data_of(answer):
    """The data of an answer that is shown."""
    return json.loads(answer.get_by_role("group", name="Answer", exact=True).inner_text())["data"]


def test_axe_finds_nothing_in_open_forms_and_their_answers(read):
    one = read(viewport={"width": 1280, "height": 844})
    ask(one, "searchPhotosByText", q="a castle")
    one.expect("404")
    ask(one, "getPicture", photo_id="nothing", size="thumb").locator("summary").click()
    one.page.locator("#schema-Photo > summary").click()
    one.page.locator("#searchPhotosByText .answers summary").first.click()
    one.page.locator("#searchPhotosByText .photos img").first.wait_for()
    assert one.violations() == []
    one.page.emulate_media(color_scheme="dark")
    one.page.set_viewport_size({"width": 390, "height": 844})
    assert one.violations(OTHERWISE) == []


MEASURED = """fields => fields.map(field => {
  const { x, width, height } = field.getBoundingClientRect();
  return { x, width, height, size: parseFloat(getComputedStyle(field).fontSize) };
})"""


def test_on_a_phone_nothing_is_cut_off_and_fields_are_fit_for_fingers(read):
    one = read(viewport={"width": 390, "height": 844})
    ask(one, "searchPhotosByText", q="a castle")
    fields = one.page.locator("details[open] :is(input:not([type=checkbox]), select, textarea)")
    for width in (390, 320):
        one.page.set_viewport_size({"width": width, "height": 844})
        assert one.overflow() <= 0
        measured = fields.evaluate_all(MEASURED)
        assert len(measured) > 30
        assert min(field["width"] for field in measured) > 200
        assert min(field["height"] for field in measured) >= 40
        assert all(field["x"] >= 0 and field["x"] + field["width"] <= width for field in measured)
        assert min(field["size"] for field in measured) >= 16


def test_the_header_stays_in_one_line_on_a_phone(window):
    one = window(viewport={"width": 390, "height": 844})
    for path in ("/docs", "/docs/errors", "/docs/mcp", "/docs/security"):
        one.page.goto(path)
        for width in (390, 320):
            one.page.set_viewport_size({"width": width, "height": 844})
            boxes = [link.bounding_box() for link in one.page.locator("body > header a").all()]
            assert len(boxes) == 5, path
            assert len({box["y"] for box in boxes}) == 1, (path, width)
            assert boxes[-1]["x"] + boxes[-1]["width"] <= width, (path, width)
            for left, right in itertools.pairwise(boxes):
                assert left["x"] + left["width"] < right["x"], (path, width)


def test_an_operation_is_tried_with_a_key_and_shows_its_photos(read, served):
    one = read()
    answer = ask(one, "searchPhotosByText", q="a castle", per_page="3", source="scikit-image")
    assert answer.locator("[role=status]").inner_text().startswith("200 in ")
    pictures = answer.locator(".photos img")
    assert pictures.count() == 3
    pictures.first.evaluate("picture => picture.decode()")
    assert {photo["source"] for photo in data_of(answer)} == {"scikit-image"}
    line = answer.get_by_role("group", name="The request for a shell").inner_text()
    assert f"{served.base_url}/api/v1/search/photos?q=a+castle&" in line
    assert "$SEARCHLAB_KEY" in line


def test_a_filter_with_several_values_is_sent_with_each(read):
    one = read()
    one.page.locator("#searchPhotosByText [value=portrait]").check()
    one.page.locator("#searchPhotosByText [value=square]").check()
    sources = "scikit-learn\npalapeli-data\n"
    answer = ask(one, "searchPhotosByText", color_name="blue", source=sources, fields="source")
    line = answer.get_by_role("group", name="The request for a shell").inner_text()
    filters = "color_name=blue&orientation=portrait&orientation=square"
    assert f"{filters}&source=scikit-learn&source=palapeli-data&fields=source" in line
    assert {photo["source"] for photo in data_of(answer)} <= {"scikit-learn", "palapeli-data"}


def test_a_picture_is_searched_by_and_a_photo_asked_for_with_its_picture(read):
    one = read()
    picture = next((BUNDLED / "images").glob("*.jpg"))
    one.page.locator("#searchPhotosByImage [name=image]").set_input_files(picture)
    answer = ask(one, "searchPhotosByImage", per_page="4")
    assert answer.locator(".photos img").count() == 4
    photo_id = data_of(answer)[0]["photo_id"]
    line = answer.get_by_role("group", name="The request for a shell").inner_text()
    assert f"-F 'image=@{picture.name}'" in line
    one.page.locator("#getPhoto > summary").click()
    photo = ask(one, "getPhoto", photo_id=photo_id)
    assert data_of(photo)["photo_id"] == photo_id
    assert photo.locator(".photos img").count() == 1
    shown = ask(one, "getPicture", photo_id=photo_id, size="small").locator("img")
    assert shown.evaluate("picture => picture.decode().then(() => picture.naturalWidth)") > 0


def test_a_collection_is_made_filled_shown_and_deleted(read, served):
    one = read()
    made = data_of(ask(one, "createCollection", body='{"name": "Old towns"}'))
    assert made["name"] == "Old towns"
    number, photo_id = str(made["id"]), served.everything[0]["photo_id"]
    operations = ("addCollectionPhoto", "getCollection", "removeCollectionPhoto")
    for name in (*operations, "deleteCollection"):
        one.page.locator(f"#{name} > summary").click()
    body = json.dumps({"photo_id": photo_id})
    added = ask(one, "addCollectionPhoto", collection_id=number, body=body)
    assert data_of(added)["photo_id"] == photo_id
    full = ask(one, "getCollection", collection_id=number)
    assert full.locator(".photos img").count() == 1
    ask(one, "removeCollectionPhoto", collection_id=number, photo_id=photo_id)
    assert data_of(ask(one, "getCollection", collection_id=number))["photos"] == []
    gone = ask(one, "deleteCollection", collection_id=number)
    assert gone.locator("[role=status]").inner_text().startswith("200 in ")
    one.expect("404")
    missing = ask(one, "getCollection", collection_id=number)
    assert missing.locator("[role=status]").inner_text().startswith("404 in ")


def test_what_needs_no_key_is_asked_without_one_and_text_is_shown_as_it_is(read):
    one = read()
    one.page.locator("#getMetrics > summary").click()
    answer = ask(one, "getMetrics")
    assert (
        "x-api-key" not in answer.get_by_role("group", name="The request for a shell").inner_text()
    )
    assert "# TYPE" in answer.get_by_role("group", name="Answer", exact=True).inner_text()


def test_a_key_is_typed_once_for_as_long_as_the_tab_is_open(read):
    one = read()
    key = one.page.get_by_label("API key").input_value()
    one.page.reload()
    assert one.page.get_by_label("API key").input_value() == key
    assert one.page.evaluate("localStorage.length") == 0
    assert one.context.cookies() == []


def test_an_address_of_an_operation_or_a_schema_opens_it(window):
    one = window()
    one.page.goto("/docs#getUsage")
    one.page.locator("#getUsage[open]").wait_for()
    one.page.locator("#getUsage .answers a", has_text="Usage").first.click()
    one.page.locator("#schema-Usage[open]").wait_for()


def test_it_follows_the_scheme_of_the_system(window):
    one = window(color_scheme="dark")
    one.page.goto("/docs")
    ground = one.page.locator("body").evaluate("body => getComputedStyle(body).backgroundColor")
    assert ground == "rgb(17, 19, 21)"
