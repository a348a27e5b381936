"""Collections in the browser: what an account makes of its own, and what others may see of it."""

import html
import re

import pytest

from searchlab.api.accounts import collections
from searchlab.api.accounts.collections import Collections
from tests.support import served_pages
from tests.support.apis import api
from tests.support.people import hidden, person
from tests.support.served_pages import HOSTILE, make_library

served = served_pages.served


@pytest.fixture(scope="module")
def ann(served):
    return person(served, "ann")


@pytest.fixture(scope="module")
def ben(served):
    return person(served, "ben")


@pytest.fixture(scope="module")
def photos(served):
    table = served.app.services.live_library.current.engine.table
    return table.photo_ids(range(len(table)))


@pytest.fixture
def store(served):
    return Collections(served.database)


@pytest.fixture
def make(ann):
    def make(name="dunes", **values):
        answer = ann.post("/collections/new", data={"name": name, **values})
        assert answer.status_code == 303, answer.text
        return int(answer.headers["location"].rpartition("/")[2])

    return make


@pytest.fixture
def album(make, ann, photos):
    """A private collection of the first three photos."""
    number = make()
    for photo_id in photos[:3]:
        ann.post("/collections/add", data={"photo_id": photo_id, "collection": number})
    return number


def cover(store, ann, number):
    return store.get(ann.account_id, number)["cover_photo_id"]


def links_in(answer):
    main = answer.text.partition("<main")[2].partition("</main>")[0]
    return [html.unescape(link) for link in re.findall(r'<a\s[^>]*?href="([^"]+)"', main)]


def ids(store, ann, number):
    return [entry["photo_id"] for entry in store.get(ann.account_id, number)["photos"]]


# -- made, described, deleted -----------------------------------------------------------------


def test_a_collection_is_made_private_and_the_api_knows_it(ann, make, store):
    number = make("Dünen", description="  two\r\nlines ")
    made = store.get(ann.account_id, number)
    assert (made["name"], made["description"], made["is_public"]) == ("Dünen", "two\nlines", False)
    page = ann.get(f"/collections/{number}").text
    assert "Dünen" in page
    assert "Nothing in here yet" in page


@pytest.mark.parametrize(
    "values",
    [{"name": ""}, {"name": " "}, {"name": "x" * 256}, {"description": "y" * 1001}],
)
def test_what_does_not_fit_is_said_above_a_form_that_stays_filled_in(ann, album, values):
    sent = {"name": "<b>n</b>", "description": "<i>d</i>"} | values
    for path in ("/collections/new", f"/collections/{album}/edit"):
        answer = ann.post(path, data=sent)
        assert answer.status_code == 422
        assert 'role="alert"' in answer.text
        assert not {"<b>", "<i>"} & set(re.findall(r"<\w>", answer.text))


def test_a_description_may_be_as_long_as_a_browser_counts_it(ann, album, store):
    text = "line\r\n" * 200
    assert ann.post(
        f"/collections/{album}/edit", data={"name": "x", "description": text}
    ).is_redirect
    assert len(store.get(ann.account_id, album)["description"]) == 999


def test_a_collection_gets_another_name_and_is_opened_and_closed(served, ann, album):
    sent = {"name": "قصر", "description": "", "is_public": "yes"}
    assert ann.post(f"/collections/{album}/edit", data=sent).status_code == 303
    assert "قصر" in served.anonymous.get(f"/c/{album}").text
    ann.post(f"/collections/{album}/edit", data={"name": "قصر"})
    assert served.anonymous.get(f"/c/{album}").status_code == 404


def test_deleting_asks_first_and_is_gone_in_the_other_window_too(ann, album):
    assert "Keep it" in ann.get(f"/collections/{album}/delete").text
    assert ann.get(f"/collections/{album}").status_code == 200
    assert ann.post(f"/collections/{album}/delete").headers["location"] == "/collections"
    for path in (f"/collections/{album}", f"/collections/{album}/edit"):
        assert ann.get(path).status_code == 404
    for path in ("delete", "edit", "cover", "remove"):
        assert ann.post(f"/collections/{album}/{path}", data={"name": "x"}).status_code == 404


# -- filled -----------------------------------------------------------------------------------


def test_a_photo_is_added_from_anywhere_and_the_browser_goes_back(ann, make, photos, store):
    number = make()
    page = ann.get(f"/collections/add?photo_id={photos[0]}&next=/?q=red").text
    assert hidden(page) == {"photo_id": photos[0], "next": "/?q=red"}
    assert f'<option value="{number}">dunes (0)</option>' in page
    answer = ann.post("/collections/add", data=hidden(page) | {"collection": number})
    assert (answer.status_code, answer.headers["location"]) == (303, "/?q=red")
    assert ids(store, ann, number) == [photos[0]]


@pytest.mark.parametrize(
    ("referer", "after"),
    [
        ("https://photos.test/?q=red&page=2", "/?q=red&page=2"),
        ("https://evil.test/?q=red", None),
        ("https://photos.test.evil.test/", None),
        ("https://photos.test//evil.test", "/"),
        ("https://photos.test/collections/add?photo_id=x", None),
        ("", None),
    ],
)
def test_who_came_from_results_goes_back_to_them(ann, photos, referer, after):
    page = ann.get(f"/collections/add?photo_id={photos[0]}", headers={"referer": referer}).text
    assert html.unescape(hidden(page).get("next", "")) == (after or "")


def test_results_and_photos_lead_to_collections_for_who_is_signed_in(ann, album, photos, store):
    for page in ("/?q=red", f"/photos/{photos[0]}"):
        assert f"/collections/add?photo_id={photos[0]}" in ann.get(page).text
    assert f'name="collection" value="{album}"' in ann.get(f"/photos/{photos[0]}").text


def test_a_photo_goes_to_a_new_collection_at_once_or_not_at_all(ann, photos, store):
    sent = {"photo_id": photos[1], "collection": "new"}
    before = len(store.list(ann.account_id))
    assert ann.post("/collections/add", data=sent | {"name": ""}).status_code == 422
    assert len(store.list(ann.account_id)) == before
    answer = ann.post("/collections/add", data=sent | {"name": "made for it"})
    number = int(answer.headers["location"].rpartition("/")[2])
    assert ids(store, ann, number) == [photos[1]]


def test_adding_twice_from_two_windows_is_one_photo_and_no_failure(ann, album, photos, store):
    sent = {"photo_id": photos[0], "collection": album}
    answer = ann.post("/collections/add", data=sent)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/collections/{album}")
    assert ids(store, ann, album) == photos[:3]


def test_nobody_is_sent_to_another_server_after_adding(ann, album, photos):
    for evil in ("https://evil.test", "//evil.test", "/\\evil.test", "javascript:alert(1)"):
        sent = {"photo_id": photos[0], "collection": album, "next": evil}
        assert ann.post("/collections/add", data=sent).headers["location"] == "/"


@pytest.mark.parametrize(
    "values",
    [{"photo_id": "gone"}, {"photo_id": ""}, {"collection": "99999"}, {"collection": "x"}],
)
def test_what_is_not_there_cannot_be_added(ann, album, photos, values):
    sent = {"photo_id": photos[0], "collection": album} | values
    assert ann.post("/collections/add", data=sent).status_code == 404


def test_a_full_collection_says_so_and_keeps_the_form(ann, album, photos, monkeypatch):
    monkeypatch.setattr(collections, "MAX_PHOTOS", 3)
    sent = {"photo_id": photos[5], "collection": album}
    answer = ann.post("/collections/add", data=sent)
    assert answer.status_code == 422
    assert "at most 3 photos" in answer.text


def test_a_chosen_cover_and_what_follows_when_it_is_removed(ann, album, photos, store):
    assert cover(store, ann, album) == photos[0]
    ann.post(f"/collections/{album}/cover", data={"photo_id": photos[2]})
    assert cover(store, ann, album) == photos[2]
    listed = ann.get("/collections").text
    tile = listed.partition(f'href="/collections/{album}"')[2].partition("</a>")[0]
    assert f"/media/{photos[2]}/" in tile
    ann.post(f"/collections/{album}/remove", data={"photo_id": photos[2]})
    assert cover(store, ann, album) == photos[0]


def test_removing_twice_from_two_windows_is_no_failure(ann, album, photos, store):
    for _ in range(2):
        answer = ann.post(f"/collections/{album}/remove", data={"photo_id": photos[1], "page": "1"})
        assert answer.headers["location"] == f"/collections/{album}?page=1"
    assert ids(store, ann, album) == [photos[0], photos[2]]


def test_photos_that_left_the_library_are_listed_and_can_be_removed(ann, served, album, store):
    with served.database.writing() as connection:
        store.add_photo(
            connection,
            ann.account_id,
            album,
            photo_id="gone",
            photo_thumbnail_url="https://tracker.test/x.png",
            photo_source="nasa",
            photo_photographer=HOSTILE,
        )
    ann.post(f"/collections/{album}/edit", data={"name": "x", "is_public": "yes"})
    for page in (ann.get(f"/collections/{album}"), served.anonymous.get(f"/c/{album}")):
        assert html.escape(HOSTILE, quote=False).partition("&lt;")[2] in html.unescape(
            page.text
        ).replace("<", "&lt;").replace(">", "&gt;")
        assert "tracker.test" not in page.text
        assert "<script>" not in page.text
    credits = served.anonymous.get(f"/c/{album}/credits.html").text
    assert "<script>" not in credits
    assert ann.post(f"/collections/{album}/remove", data={"photo_id": "gone"}).is_redirect


# -- many -------------------------------------------------------------------------------------


def test_long_lists_come_page_by_page(ann, served, photos, store):
    rich = person(served, "rich")
    with served.database.writing() as connection:
        for number in range(30):
            store.create(connection, rich.account_id, name=f"album {number:02d}")
    first, second = rich.get("/collections").text, rich.get("/collections?page=2").text
    names = [re.findall(r"album \d\d", page) for page in (first, second)]
    assert list(map(len, names)) == [24, 6]
    assert names[0][0] == "album 29"
    assert rich.get("/collections?page=99").text.count("album 0") == 6
    for page in ("0", "-1", "x", "1" * 30, ""):
        assert rich.get(f"/collections?page={page}").status_code == 422


def test_a_large_collection_comes_page_by_page(ann, served, store, monkeypatch):
    number = int(ann.post("/collections/new", data={"name": "large"}).headers["location"][13:])
    with served.database.writing() as connection:
        for place in range(70):
            store.add_photo(
                connection,
                ann.account_id,
                number,
                photo_id=f"p{place}",
                photo_thumbnail_url=None,
                photo_source="nasa",
                photo_photographer=f"person {place:02d}",
            )
    ann.post(f"/collections/{number}/edit", data={"name": "large", "is_public": "yes"})
    pages = [served.anonymous.get(f"/c/{number}?page={page}").text for page in (1, 2)]
    assert ["person 59" in page for page in pages] == [True, False]
    assert ["person 60" in page for page in pages] == [False, True]
    assert served.anonymous.get(f"/c/{number}/credits.txt").text.count("\n") == 70


# -- who may ----------------------------------------------------------------------------------


def test_a_public_page_needs_no_account_and_credits_every_photo(served, ann, album, photos):
    ann.post(f"/collections/{album}/edit", data={"name": HOSTILE, "is_public": "yes"})
    answer = served.anonymous.get(f"/c/{album}")
    assert answer.status_code == 200
    assert "<script>alert" not in answer.text
    table = served.app.services.live_library.current.engine.table
    credits = served.anonymous.get(f"/c/{album}/credits.txt")
    assert credits.headers["content-type"] == "text/plain; charset=utf-8"
    for photo in table.photos([table.row_of(photo_id) for photo_id in photos[:3]]):
        assert f"/media/{photo.photo_id}/" in answer.text
        assert " ".join(photo.attribution["plain"].split()) in credits.text
        assert html.escape(photo.attribution["html"], quote=False)[:20] in answer.text
    assert f"http://photos.test/c/{album}" in answer.text
    assert served.anonymous.get(f"/c/{album}/else.txt").status_code == 404


def test_a_stranger_can_follow_every_link_of_a_public_page(served, ann, album, photos):
    ann.post(f"/collections/{album}/edit", data={"name": "dunes", "is_public": "yes"})
    links = links_in(served.anonymous.get(f"/c/{album}"))
    assert len([link for link in links if link.startswith(f"/media/{photos[0]}/full?v=")]) == 1
    assert {served.anonymous.get(link).status_code for link in links} == {200}
    assert links_in(ann.get(f"/c/{album}")).count(f"/photos/{photos[0]}") == 2


@pytest.mark.slow
def test_a_credit_leads_a_stranger_to_the_photo_at_its_library(tmp_path):
    library = make_library(tmp_path, 1, source_image_url="https://nasa.test/1")
    with api(library) as server:
        ann = person(server, "ann")
        (photo_id,) = server.app.services.live_library.current.engine.table.photo_ids([0])
        sent = {"photo_id": photo_id, "collection": "new", "name": "dunes"}
        number = ann.post("/collections/add", data=sent).headers["location"].rpartition("/")[2]
        ann.post(f"/collections/{number}/edit", data={"name": "dunes", "is_public": "yes"})
        theirs, own = (links_in(one.get(f"/c/{number}")) for one in (server.anonymous, ann))
        assert ("https://nasa.test/1" in theirs, "https://nasa.test/1" in own) == (True, False)


def test_a_private_page_and_none_at_all_are_alike(served, ann, ben, album):
    for path in (f"/c/{album}", f"/c/{album}/credits.txt"):
        none = path.replace(str(album), "999999")
        for browser in (served.anonymous, ann, ben):
            private, missing = browser.get(path), browser.get(none)
            assert private.status_code == missing.status_code == 404
            texts = [
                re.sub(rf"Request \S+|999999|\b{album}\b", "", answer.text)
                for answer in (private, missing)
            ]
            assert texts[0] == texts[1]


def test_another_accounts_collection_is_as_if_there_were_none(ann, ben, album, photos, store):
    for is_public in ("no", "yes"):
        ann.post(f"/collections/{album}/edit", data={"name": "dunes", "is_public": is_public})
        for path in ("", "/edit", "/delete"):
            assert ben.get(f"/collections/{album}{path}").status_code == 404
        sent = {"name": "mine", "photo_id": photos[1], "collection": album}
        for path in (
            f"{album}/edit",
            f"{album}/delete",
            f"{album}/cover",
            f"{album}/remove",
            "add",
        ):
            assert ben.post(f"/collections/{path}", data=sent).status_code == 404
    assert store.get(ann.account_id, album)["name"] == "dunes"
    assert ids(store, ann, album) == photos[:3]
    assert f"/collections/{album}" not in ben.get("/collections").text


def test_only_who_is_signed_in_has_collections(served, album, photos):
    browser = served.make_browser()
    for path in ("", "/new", f"/{album}", f"/{album}/edit", f"/add?photo_id={photos[0]}"):
        assert browser.get(f"/collections{path}").status_code == 401
    for path in ("new", f"{album}/edit", f"{album}/delete", "add"):
        assert browser.post(f"/collections/{path}", data={"name": "x"}).status_code == 401


def test_a_form_from_elsewhere_changes_nothing(ann, album, photos, store):
    elsewhere = {"sec-fetch-site": "cross-site"}
    sent = {"name": "theirs", "photo_id": photos[0], "collection": album}
    for path in (f"{album}/edit", f"{album}/delete", f"{album}/remove", "new", "add"):
        answer = ann.post(f"/collections/{path}", data=sent, headers=elsewhere)
        assert answer.status_code == 403
    assert ids(store, ann, album) == photos[:3]


@pytest.mark.parametrize("number", ["0", "-1", "x", "1e3", "9" * 30, "1%00", "٣"])
def test_a_number_that_is_none_is_a_page_that_says_so(served, ann, number):
    assert ann.get(f"/collections/{number}").status_code == 404
    assert served.anonymous.get(f"/c/{number}").status_code == 404


def test_a_collection_has_one_address(served, ann, make):
    number = make(is_public="yes")
    assert served.anonymous.get(f"/c/{number}").status_code == 200
    assert served.anonymous.get(f"/c/0{number}").status_code == 404
    assert ann.get(f"/collections/00{number}").status_code == 404
