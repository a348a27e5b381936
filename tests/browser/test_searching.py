"""Somebody looks for photos: words, pictures, colours, filters, further pages, one photo."""

from base64 import b64encode
from urllib.parse import parse_qs, urlsplit

import pytest

pytestmark = pytest.mark.slow


def shown(one):
    return one.page.locator("ul.grid > li.photo")


def ids_of(one):
    links = shown(one).locator("a[href*='/photos/']")
    return [link.rpartition("/")[2] for link in links.evaluate_all("all => all.map(a => a.href)")]


def ids_of_first(one):
    one.page.goto("/?q=a+cat")
    return ids_of(one)[0]


@pytest.mark.parametrize("scripts", [True, False])
def test_words_are_typed_and_photos_are_shown_as_the_api_ranks_them(signed_in, served, scripts):
    one = signed_in(java_script_enabled=scripts)
    one.page.goto("/")
    field = one.page.get_by_role("searchbox", name="Search photos")
    field.fill("a cat")
    field.press("Enter")
    one.page.wait_for_url("**/?q=a+cat*")
    ranked = [photo["photo_id"] for photo in served.api().search(q="a cat", per_page=10)]
    assert ids_of(one)[:10] == ranked
    first = shown(one).first.locator("img:not(.blur)")
    first.scroll_into_view_if_needed()
    if scripts:
        one.page.wait_for_function(
            "e => e.complete && e.naturalWidth > 0", arg=first.element_handle()
        )


def test_the_form_leads_straight_to_the_results(signed_in):
    one = signed_in()
    one.page.goto("/?q=a+cat&photo_id=" + ids_of_first(one))
    answers = []
    one.page.on("response", lambda response: answers.append((response.status, response.url)))
    field = one.page.get_by_role("searchbox", name="Search photos")
    field.fill("a bird")
    field.press("Enter")
    one.page.wait_for_url("**q=a+bird*")
    assert not [url for status, url in answers if 300 <= status < 400 and "?q=" in url]
    assert "alpha" not in one.page.url


def test_a_filter_becomes_a_chip_that_goes_with_a_click(signed_in):
    one = signed_in()
    one.page.goto("/")
    one.page.locator("details.filters > summary").click()
    one.page.get_by_role("checkbox", name="landscape").check()
    one.page.get_by_role("button", name="Show photos").click()
    one.page.wait_for_url("**orientation=landscape*")
    one.page.get_by_role("link", name="Remove landscape").click()
    one.page.wait_for_url(lambda url: "orientation" not in url)


@pytest.mark.parametrize("scripts", [True, False])
def test_a_part_of_a_photographers_name_is_enough(signed_in, scripts):
    one = signed_in(java_script_enabled=scripts)
    one.page.goto("/?q=picture")
    one.page.locator("details.filters > summary").click()
    one.page.get_by_label("Photographer").fill("ann lee")
    if scripts:
        one.page.locator("#photographers option[value=ann]").wait_for(state="attached")
    one.page.get_by_role("button", name="Show photos").click()
    one.page.get_by_role("heading", name="Which photographer?").wait_for()
    one.follow(one.page.get_by_role("link", name="Ann Lee-Straße"))
    one.page.get_by_role("link", name="Remove By a/b?c#d").wait_for()
    assert shown(one).count() > 0


def test_scrolling_brings_the_next_photos_and_none_twice(signed_in):
    one = signed_in(viewport={"width": 1280, "height": 900})
    one.page.goto("/?after_date=2000-01-01")
    one.page.locator(".pager").scroll_into_view_if_needed()
    one.page.wait_for_function("() => document.querySelectorAll('li.photo').length > 60")
    ids = ids_of(one)
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("height", [700, 900])
def test_who_does_not_scroll_searches_once(signed_in, height):
    one = signed_in(viewport={"width": 1280, "height": height})

    def used():
        one.page.goto("/account")
        return int(one.page.locator(".figures .number").first.inner_text().replace(",", ""))

    before = used()
    one.page.goto("/?after_date=2000-01-01")
    one.page.wait_for_timeout(1_000)  # as long as pages ahead took to come
    assert used() == before + 1


def test_a_shade_that_is_none_is_pointed_at_also_in_a_closed_panel(signed_in):
    one = signed_in()
    one.page.goto("/?q=bird")
    one.page.locator("details.filters > summary").click()
    one.page.get_by_label("Exact shade", exact=True).fill("red")
    one.page.keyboard.press("Escape")
    assert not one.page.get_by_label("Exact shade", exact=True).is_visible()
    one.page.get_by_label("Search photos").fill("snow")
    one.page.keyboard.press("Enter")
    one.page.get_by_label("Exact shade", exact=True).wait_for()
    assert one.page.evaluate("document.activeElement.id") == "f-hex"
    assert "q=bird" in one.page.url


def test_a_long_condition_makes_no_page_wider(signed_in):
    one = signed_in(viewport={"width": 390, "height": 800})
    one.expect("404")
    for length in (40, 60, 200):
        one.page.goto(f"/?photographer={'x' * length}")
        assert one.overflow() <= 0


def test_the_last_day_is_none_before_the_first(signed_in):
    one = signed_in()
    one.page.goto("/?q=bird&after_date=2020-01-01")
    one.page.locator("details.filters > summary").click()
    assert one.page.locator("#f-before").get_attribute("min") == "2020-01-01"
    one.page.locator("#f-after").fill("2024-05-06")
    assert one.page.locator("#f-before").get_attribute("min") == "2024-05-06"


def test_without_a_script_the_next_page_is_a_link(signed_in):
    one = signed_in(java_script_enabled=False)
    one.page.goto("/?after_date=2000-01-01")
    first = ids_of(one)
    one.follow(one.page.get_by_role("link", name="More photos"))
    second = ids_of(one)
    assert second
    assert not set(first) & set(second)
    one.follow(one.page.get_by_role("link", name="Previous"))
    assert ids_of(one) == first


@pytest.mark.parametrize("scripts", [True, False])
def test_a_picture_is_chosen_and_finds_itself(signed_in, served, scripts):
    photo = next(each for each in served.everything if each["source"] == "scikit-image")
    file = served.photos / served.record_of[photo["photo_id"]]["file"]
    one = signed_in(java_script_enabled=scripts)
    one.page.goto("/")
    one.page.locator("details.by-picture > summary").click()
    one.page.get_by_label("Picture to search by").set_input_files(file)
    if not scripts:
        one.page.locator("form.drop").get_by_role("button", name="Search", exact=True).click()
    one.page.wait_for_url("**picture=*")
    assert ids_of(one)[0] == photo["photo_id"]
    address = one.page.url
    one.page.goto("/")
    one.page.goto(address)  # shared, or opened again
    assert ids_of(one)[0] == photo["photo_id"]


# What a browser gives to a page on which a file was dropped, or pasted from the clipboard.
GIVE = """([kind, base64]) => {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const data = new DataTransfer();
  data.items.add(new File([bytes], "seen.png", { type: "image/png" }));
  const how = { bubbles: true, cancelable: true };
  if (kind === "paste") dispatchEvent(new ClipboardEvent("paste", { ...how, clipboardData: data }));
  else for (const type of ["dragover", "drop"]) {
    document.body.dispatchEvent(new DragEvent(type, { ...how, dataTransfer: data }));
  }
}"""


@pytest.mark.parametrize("kind", ["paste", "drop"])
def test_a_picture_that_is_dropped_or_pasted_finds_itself(signed_in, served, kind):
    photo = next(each for each in served.everything if each["source"] == "scikit-image")
    file = served.photos / served.record_of[photo["photo_id"]]["file"]
    one = signed_in()
    one.page.goto("/?q=snow")
    with one.page.expect_navigation(url="**picture=*"):
        one.page.evaluate(GIVE, [kind, b64encode(file.read_bytes()).decode()])
    assert ids_of(one)[0] == photo["photo_id"]
    shown_copy = one.page.get_by_alt_text("The picture that you chose")
    assert shown_copy.evaluate("picture => picture.src").startswith("data:image/jpeg")


@pytest.mark.parametrize("scripts", [True, False])
@pytest.mark.parametrize(
    "address",
    [
        "/?q=castle&color_hex=%231f6f8b&color_tolerance=200",
        "/?q=castle&color_name=blue&color_tolerance=33",
        "/?q=castle&score_threshold=0.33&sort_by=newest",
    ],
)
def test_a_filter_that_is_not_touched_stays_as_it_was(signed_in, scripts, address):
    one = signed_in(java_script_enabled=scripts)
    one.page.goto(address)
    before = parse_qs(urlsplit(one.page.url).query)
    one.page.locator("details.filters > summary").click()
    one.page.get_by_role("checkbox", name="landscape").check()
    one.page.get_by_role("button", name="Show photos").click()
    one.page.wait_for_url("**orientation=landscape*")
    after = parse_qs(urlsplit(one.page.url).query)
    assert after == {**before, "orientation": ["landscape"]}


def test_an_empty_result_leads_out(signed_in):
    one = signed_in()
    one.page.goto("/?color_name=teal&orientation=portrait&license_type=cc0&source=scikit-image")
    assert shown(one).count() == 0
    one.follow(one.page.locator("ul.ways a").first)
    assert shown(one).count() > 0


def test_by_keyboard_alone_one_searches_filters_and_opens_a_photo(signed_in):
    one = signed_in()
    one.page.goto("/")
    one.page.keyboard.press("Tab")
    assert one.page.evaluate("document.activeElement.textContent") == "Skip to the content"
    for _ in range(8):
        one.page.keyboard.press("Tab")
        if one.page.evaluate("document.activeElement.id") == "q":
            break
    one.page.keyboard.type("a cat")
    one.page.keyboard.press("Enter")
    one.page.wait_for_url("**/?q=a+cat*")
    for _ in range(60):
        one.page.keyboard.press("Tab")
        if "/photos/" in (one.page.evaluate("document.activeElement.href") or ""):
            break
    assert one.page.evaluate(
        "[document.activeElement, document.activeElement.closest('li')]"
        ".some(each => getComputedStyle(each).outlineStyle !== 'none')"
    )
    one.page.keyboard.press("Enter")
    one.page.wait_for_url("**/photos/*")


def test_a_photos_page_gives_the_credit_and_photos_like_it(signed_in, served):
    photo = next(each for each in served.everything if each["source"] == "scikit-image")
    one = signed_in()
    one.context.grant_permissions(["clipboard-read", "clipboard-write"])
    one.page.goto(f"/photos/{photo['photo_id']}")
    assert one.page.get_by_text(photo["attribution"]["plain"]).first.is_visible()
    one.page.get_by_role("button", name="Copy").first.click()
    copied = one.page.evaluate("navigator.clipboard.readText()")
    assert copied.strip() == photo["attribution"]["plain"]
    assert one.page.locator("a[href*='/photos/']").count() > 3


def test_a_slow_network_shows_placeholders_and_nothing_moves(signed_in):
    one = signed_in(viewport={"width": 1280, "height": 900})
    tools = one.context.new_cdp_session(one.page)
    tools.send("Network.enable")
    slow = {"offline": False, "latency": 150, "downloadThroughput": 60_000, "uploadThroughput": 9e4}
    tools.send("Network.emulateNetworkConditions", slow)
    one.page.add_init_script(
        "window.shift = 0; new PerformanceObserver(list => { for (const entry of list.getEntries())"
        " if (!entry.hadRecentInput) window.shift += entry.value; })"
        ".observe({type: 'layout-shift', buffered: true});"
    )
    one.page.goto("/?q=a+cat", wait_until="load")
    one.page.wait_for_timeout(500)
    assert one.page.evaluate("window.shift") < 0.01
