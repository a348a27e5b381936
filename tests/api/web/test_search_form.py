"""The form of the search page sends again what the address asks for."""

import re
from html import unescape
from html.parser import HTMLParser
from urllib.parse import parse_qsl, urlsplit

import pytest
from PIL import Image

from searchlab.api.web.search_state import SearchState
from searchlab.config import Config
from searchlab.config.calibration import Calibration, Curve
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library
from searchlab.library.roots import check_root
from tests.support.apis import api
from tests.support.pages import tiny_library


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with api(tiny_library(tmp_path_factory.mktemp("form")), visitors="guests") as server:
        yield server


class _Fields(HTMLParser):
    def __init__(self):
        super().__init__()
        self.pairs = []

    def handle_starttag(self, tag, attrs):
        names = dict(attrs)
        if tag != "input" or names.get("name") != "palette" or names.get("form") != "search":
            return
        if names["type"] == "hidden" or "checked" in names:
            self.pairs.append(("palette", names["value"]))


def palette_fields(page):
    """List what the form sends of the colours in the photo, as the page stands."""
    parser = _Fields()
    parser.feed(page)
    (share,) = re.findall(r'<select id="f-share".*?<option value="(\d*)" selected', page, re.DOTALL)
    return [*parser.pairs, ("palette_share", share)]


@pytest.mark.parametrize(
    "palette",
    [
        ("#1f6f8b",),
        ("red:30", "blue:5", "#1f6f8b:10"),
        ("red", "blue"),
        ("red:30", "blue:30"),
        ("red:7",),
        (),
    ],
)
def test_the_form_keeps_every_colour_in_the_photo_that_the_address_asks_for(served, palette):
    asked = SearchState(q="red", palette=palette)
    fields = [*palette_fields(served.anonymous.get(asked.address).text), ("q", "green")]
    again = served.anonymous.get("/", params=[pair for pair in fields if pair[1]])
    again = served.anonymous.get(again.headers["location"]) if again.is_redirect else again
    pairs = parse_qsl(urlsplit(str(again.url)).query)
    kept = SearchState(palette=tuple(value for name, value in pairs if name == "palette"))
    assert set(kept.filter.palette_colors) == set(asked.filter.palette_colors)


@pytest.fixture(scope="module")
def dated(tmp_path_factory):
    """A library whose scores are chances, of which .3 is asked where photos come by date."""
    curve = Curve(slope=9.0, intercept=-3.0)
    calibration = Calibration(curve, curve, curve, "a fit")
    config = Config(model="palette", words=None, newest_score=0.3, calibration=calibration)
    folder = tmp_path_factory.mktemp("dated")
    (folder / "photos").mkdir()
    for color in ("red", "green", "blue"):
        Image.new("RGB", (40, 30), color).save(folder / "photos" / f"{color}.png")
    library = create_library(folder / "library")
    index_photos(library, [check_root(folder / "photos")], config=config)
    with api(library.folder, visitors="guests") as server:
        yield server


def n_shown(page):
    return len(re.findall(r'class="score"', page))


def test_by_date_the_page_says_what_it_is_bounded_by_and_leads_to_all(dated):
    page = dated.anonymous.get("/?q=red&sort_by=newest").text
    assert "Score 30 % and more" in page
    [to_all] = set(re.findall(r'href="(/\?[^"]*score_threshold=0&amp;[^"]*)"', page))
    everything = dated.anonymous.get(unescape(to_all))
    assert everything.status_code == 200
    assert "Score 30" not in everything.text
    assert n_shown(everything.text) > n_shown(page) > 0


def test_where_nothing_scores_enough_by_date_the_way_out_is_named(dated):
    page = dated.anonymous.get("/?q=qwxz&sort_by=newest").text
    assert "Every photo is left out by a condition" in page
    assert "without <bdi>Score 30 % and more</bdi>" in page


def test_a_threshold_at_rest_is_none_and_a_chosen_one_of_0_shows_all(dated):
    relevance = dated.anonymous.get("/?q=red").text
    assert re.search(r'name="part" value="form:0"[^>]*data-rest="form:0"', relevance)
    newest = dated.anonymous.get("/?q=red&sort_by=newest").text
    assert re.search(r'name="part" value="form:0.3"', newest)
    assert re.search(r'name="score_threshold"[^>]*data-rest="0\.3"[^>]*value="0\.3"', newest)
    assert dated.anonymous.get("/?q=red&sort_by=newest&score_threshold=0").status_code == 200


@pytest.mark.parametrize(
    ("sent", "canonical"),
    [
        # from a page by relevance: nothing chosen, then by date, then with a score
        ("q=red&score_threshold=0&part=form%3A0", "q=red"),
        ("q=red&score_threshold=0&sort_by=newest&part=form%3A0", "q=red&sort_by=newest"),
        ("q=red&score_threshold=0.5&part=form%3A0", "q=red&score_threshold=0.5"),
        # from a page by date: nothing chosen, then by relevance, then all
        ("q=red&score_threshold=0.3&sort_by=newest&part=form%3A0.3", "q=red&sort_by=newest"),
        ("q=red&score_threshold=0.3&part=form%3A0.3", "q=red"),
        (
            "q=red&score_threshold=0&sort_by=newest&part=form%3A0.3",
            "q=red&score_threshold=0&sort_by=newest",
        ),
    ],
)
def test_what_a_form_sends_without_a_script_is_what_was_chosen(dated, sent, canonical):
    answer = dated.anonymous.get(f"/?{sent}")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/?{canonical}")


def test_taking_a_chosen_score_away_by_date_shows_all(dated):
    page = dated.anonymous.get("/?q=red&score_threshold=0.1&sort_by=newest").text
    assert "Score 10 % and more" in page
    assert re.search(r'class="chip" href="/\?q=red&amp;score_threshold=0&amp;sort_by', page)
