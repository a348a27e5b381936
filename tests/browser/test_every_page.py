"""Every page, as people meet it: narrow and wide, dark, zoomed, right to left, without a script."""

from urllib.parse import urlencode

import httpx
import pytest

from tests.support.browsing import AXE, OTHERWISE
from tests.support.independent_client import add_photo, create_collection

pytestmark = pytest.mark.slow

# Notes after each key what has the focus then: its name, its place in the page, whether that shows.
NOTE_FOCUS = """() => {
  window.focused = [];
  addEventListener("keyup", () => {
    const one = document.activeElement;
    const frame = one.closest("li, label, .search, .swatch");
    const around = [one, one.parentElement, frame].filter(Boolean);
    const dot = one.nextElementSibling;
    const isShown = [...around, ...(dot ? [dot] : [])].some((each) => {
      return [null, "::after"].some((part) => {
        const { outlineStyle, boxShadow } = getComputedStyle(each, part);
        return outlineStyle !== "none" || boxShadow !== "none";
      });
    });
    const isEnd = one === document.body;
    const place = isEnd ? null : [...document.querySelectorAll("*")].indexOf(one);
    focused.push([one.textContent.trim().slice(0, 30) || one.name, place, isShown]);
  }, true);
}"""
PUBLIC = (
    *("/sign-in", "/c/{collection}", "/nothing-here"),
    *("/docs", "/docs/errors", "/docs/mcp", "/docs/security"),
)
OWN = (
    "/",
    "/?q=castle",
    "/?q=%D7%A2%D7%A5",
    "/?color_name=blue&orientation=landscape",
    "/?color_name=teal&orientation=portrait&license_type=cc0&source=scikit-image",
    "/?photo_id={photo}&q=snow",
    "/?photographer=ann%20lee",
    "/photos/{photo}",
    "/collections",
    "/collections/new",
    "/collections/add?photo_id={photo}",
    "/collections/{collection}",
    "/collections/{collection}/edit",
    "/collections/{collection}/delete",
    "/judge",
    "/judge/new",
    "/judge/{task}",
    "/judge/{task}/one",
    "/judge/{task}/grid",
    "/judge/{task}/results",
    "/judge/{task}/delete",
    "/account",
    "/account/close",
    "/account/apps",
    "/connect?{connect}",
    "/connect?{connect}&response_mode=fragment",
)


@pytest.fixture(scope="module")
def names(served):
    """What stands for the braces of the addresses: a photo, a collection of it, a judging task."""
    api = served.new_account("pages", plan="scale")
    photo = next(each for each in served.everything if each["source"] == "scikit-image")
    collection = create_collection(api, name="Old <towns>", is_public=True)
    for each in (photo, *served.everything[:2]):
        add_photo(api, collection["id"], each["photo_id"])
    return {
        "photo": photo["photo_id"],
        "collection": collection["id"],
        "task": "landscapes",
        "connect": ask_for_consent(served),
    }


def ask_for_consent(served):
    """Register an app, and return the query with which it asks to be connected."""
    back = "http://127.0.0.1:8765/callback"
    body = {"redirect_uris": [back], "client_name": "Finder of <old> towns"}
    app = httpx.post(f"{served.base_url}/oauth/register", json=body).json()
    wish = {
        "response_type": "code",
        "client_id": app["client_id"],
        "redirect_uri": back,
        "scope": "search collections:read collections:write",
        "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
        "code_challenge_method": "S256",
        "resource": f"{served.base_url}/mcp",
    }
    return urlencode(wish)


@pytest.fixture
def visit(signed_in, names):
    """Opens each page in turn in a window with these options."""

    def pages(until="load", **options):
        one = signed_in("pages", **options)
        if one.page.goto(f"/judge/{names['task']}").status == 404:
            one.page.goto("/judge/new")
            one.page.get_by_label("Title").fill("landscapes")
            one.page.get_by_label("Queries, one a line").fill("a castle\nde\talte Brücke")
            one.page.get_by_role("button", name="Make the task").click()
            one.page.wait_for_url("**/judge/landscapes")
        one.expect("404")
        one.expect("422")  # the page for an app that asks for what does not work
        for path in (*OWN, *PUBLIC):
            address = path.format(**names)
            one.page.goto(address, wait_until=until)
            yield one, address

    return pages


WIDE = {"width": 1280, "height": 900}
# Twice as large on a screen of 1,280 pixels is as wide as 640.
WIDTHS = (("ltr", 1920), ("ltr", 640), ("ltr", 320), ("rtl", 390))


def found_on_a_phone_in_the_dark(one):
    one.page.emulate_media(color_scheme="dark")
    one.page.set_viewport_size({"width": 390, "height": 844})
    one.page.evaluate("document.getAnimations().forEach(each => each.finish())")
    return one.violations(OTHERWISE)


def widths_that_overflow(one):
    wide = []
    for direction, width in WIDTHS:
        one.page.set_viewport_size({"width": width, "height": 800})
        one.page.evaluate("direction => { document.documentElement.dir = direction; }", direction)
        if one.overflow() > 0:
            wide.append((direction, width))
    one.page.evaluate("document.documentElement.dir = 'ltr'")
    return wide


def lost_by_the_keyboard(one):
    """Tab goes through what there is, in order, shows where it is, and is caught nowhere."""
    one.page.evaluate(NOTE_FOCUS)
    for _ in range(25):
        one.page.keyboard.press("Tab")
    places, lost = [], []
    for name, place, is_shown in one.page.evaluate("focused"):
        if place is None or [place] == places[:1]:
            break  # the end of the page, and its beginning again
        if place in places or not is_shown:
            lost.append(name)
        places.append(place)
    return lost if len(places) >= 4 else [*lost, f"only {len(places)} places"]


def test_every_page_suits_everybody(visit):
    """By day or in the dark on a phone, of any width, from right to left, by the keyboard alone."""
    found = {}
    for one, address in visit(viewport=WIDE):
        found[address] = {
            "by day": one.violations(),
            "too wide": widths_that_overflow(one),
            "in the dark, narrow": found_on_a_phone_in_the_dark(one),
        }
        one.page.emulate_media(color_scheme="light")
        one.page.set_viewport_size(WIDE)
        found[address]["by keys"] = lost_by_the_keyboard(one)
    assert len(found) == len((*OWN, *PUBLIC))
    assert {address: kinds for address, kinds in found.items() if any(kinds.values())} == {}


def test_arrows_point_the_other_way_from_right_to_left(signed_in):
    page = signed_in("pages").page
    page.goto("/account")
    arrow = page.get_by_role("button", name="Sign out").first.locator(".icon")
    widths = []
    for direction in ("ltr", "rtl"):
        page.evaluate("direction => document.documentElement.dir = direction", direction)
        look = "arrow => new DOMMatrix(getComputedStyle(arrow).transform).a"
        widths.append(arrow.evaluate(look))
    assert widths == [1, -1]


def test_every_page_says_its_main_thing_without_javascript(visit):
    for one, address in visit(until="domcontentloaded", java_script_enabled=False):
        assert one.page.locator("h1").count() >= 1, address
        assert one.page.locator("main").inner_text().strip(), address


def test_the_tool_that_looks_for_faults_finds_some(window):
    """Else the tests above say nothing."""
    one = window()
    one.page.goto("/sign-in")
    one.page.evaluate("document.querySelector('main').innerHTML = '<img src=data:,><input>'")
    one.expect("data:")
    assert AXE.stat().st_size > 500_000
    assert {line.split(" ")[0] for line in one.violations()} >= {"image-alt", "label"}
