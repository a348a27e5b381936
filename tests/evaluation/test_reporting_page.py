"""The report in one file: what it holds, and that it needs nothing else."""

import base64
import html.parser
import json
import re
from dataclasses import replace

import pytest
from PIL import Image

from searchlab.config import Config
from searchlab.errors import NotFoundError
from searchlab.evaluation.datasets import Dataset, LabelledQuery
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.evaluation.provenance.measurement import write_measurement
from searchlab.evaluation.reporting.frontier import frontier, frontier_chart, frontier_rows
from searchlab.evaluation.reporting.pictures import Pictures, find_pictures
from searchlab.evaluation.reporting.reading import reading
from searchlab.evaluation.reporting.report_page import report_page
from searchlab.evaluation.reporting.samples import draw, samples_html
from searchlab.evaluation.reports import Report
from searchlab.library.ingest import index_photos
from searchlab.library.library import Library, create_library
from searchlab.library.roots import check_root
from searchlab.photos.photo import photo_id_of
from tests.support.made_results import GRAPH, MINI, PALETTE, N, result

VOID = {"meta", "img", "br", "link"}
PHOTO = photo_id_of("shades", "red")


class Parser(html.parser.HTMLParser):
    """Checks nesting outside of SVG, and collects what a browser would fetch."""

    def __init__(self, text):
        super().__init__()
        self.open, self.fetched, self.ids, self.links = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "img":
            assert values["alt"]
        self.ids += [values["id"]] if "id" in values and "svg" not in self.open else []
        self.fetched += [values[n] for n in ("src", "data", "srcset") if n in values]
        if tag in ("link", "script", "iframe"):
            self.fetched.append(tag)
        if tag == "a":
            self.links.append(values["href"])

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("results")
    runs = {f"q{n:03}": [(PHOTO, 0.9), ("<nowhere>", 0.1)] for n in range(200)}
    results = [result(MINI, noise=2, ms=9.0), result(PALETTE, shift=0.3), result(GRAPH, noise=1)]
    for one in results:
        one.save(tmp_path, run=runs)
    Report(results).promote(tmp_path / "chosen.json")
    bins = [{"mean_score": n / 4, "share": n / 5, "count": 7} for n in range(4)]
    values = {
        "benchmark": "calibration",
        "dataset": "demo",
        "name": "mini",
        "metrics": {"ece": 0.0321, "n": 1234},
        "held_out": {"bins": bins},
        "manifest": make_manifest("search_quality", seed=0),
    }
    write_measurement(tmp_path / "calibration" / "demo" / "mini.json", values)
    chart = tmp_path / "tolerance" / "demo" / "meaning.svg"
    chart.parent.mkdir(parents=True)
    chart.write_text("<svg>drawn before</svg>", encoding="utf-8")
    values |= {"benchmark": "tolerance"}
    write_measurement(tmp_path / "tolerance" / "demo" / "mini.json", values, beside=[chart])
    (tmp_path / "old.json").write_text('{"schema": 1}', encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="module")
def text(folder):
    return report_page(folder)


def test_the_page_is_whole_and_fetches_nothing(text):
    page = Parser(text)
    assert all(address.startswith("data:") for address in page.fetched)
    assert not re.search(r"url\((?!#)", text)
    assert "@import" not in text
    assert len(page.ids) == len(set(page.ids))
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)


def test_the_page_holds_what_was_measured_and_what_was_left_out(text):
    assert "In force (chosen.json): mini × hnsw" in text
    for name in ("mini × exact", "palette × exact", "mini × hnsw M=16 ef=100"):
        assert name in text
    assert "search_quality on demo@r1" in text
    assert "calibration on demo" in text
    assert "0.0321" in text
    assert base64.b64encode(b"<svg>drawn before</svg>").decode() in text
    assert "Left out" in text
    assert "old.json" in text
    assert text.count('<svg role="img" aria-label=') == 2  # the frontier, and the bins drawn
    assert "&quot;machine&quot;" in text
    assert "There are no pictures" not in text  # the demo's own photos are
    assert "<nowhere>" not in text


def test_a_folder_without_measurements_is_refused(tmp_path):
    (tmp_path / "old.json").write_text('{"schema": 1}', encoding="utf-8")
    with pytest.raises(NotFoundError, match=r"none that can be read .*schema 1"):
        report_page(tmp_path)


def test_the_reading_says_who_is_chosen_who_is_tied_and_what_cannot_be_seen():
    report = Report(
        [result(MINI, noise=2, ms=9.0), result(GRAPH, noise=1), result(PALETTE, shift=0.3)]
    )
    choice, order, unseen, languages, *_ = reading(report)
    assert choice.startswith("Serve mini × hnsw M=16 ef=100: ndcg@10 0.")
    assert "cannot be told apart from mini × exact" in choice
    assert "2 groups" in order
    assert "palette × exact" in order
    assert f"{report.detectable[1]:.3f}" in unseen
    assert "of the 2" in languages
    alone = Report([result(MINI), result(PALETTE, shift=0.3)])
    assert "shown to be better than all others" in reading(alone)[0]
    assert "one system" in reading(Report([result(MINI)]))[1]


# -- frontier ---------------------------------------------------------------------------------


def test_a_system_is_on_the_frontier_unless_another_is_nowhere_worse_and_somewhere_better():
    best = result(MINI, noise=2, ms=2.0, mib=1.0)
    larger = result(GRAPH, noise=1, ms=2.0, mib=3.0)
    quick = result(PALETTE, shift=0.3, ms=0.1, mib=1.0)
    points = {point.name: point for point in frontier(Report([best, larger, quick]))}
    assert points["mini × exact"].is_efficient
    assert not points["mini × hnsw M=16 ef=100"].is_efficient
    assert points["palette × exact"].is_efficient
    assert points["palette × exact"].rank == 2
    assert points["mini × exact"].ms == 2.5
    assert points["mini × exact"].languages == 2


def test_systems_alike_in_everything_are_both_on_the_frontier():
    report = Report([result(MINI), result(PALETTE)])
    assert [row[-1] for row in frontier_rows(report)] == ["yes", "yes"]


def test_the_chart_draws_every_system_in_both_panels():
    report = Report([result(MINI), result(PALETTE, shift=0.3)])
    with frontier_chart(report) as figure:
        left, right = figure.axes
        assert left.get_xscale() == "log"
        assert len(left.collections) >= 2
        assert len(right.lines) == 2
        assert figure.legends[0].get_texts()[0].get_text().startswith("mini ×")
        assert all(float(tick).is_integer() for tick in right.get_xticks())


# -- samples and pictures ---------------------------------------------------------------------


def test_samples_are_drawn_by_chance_english_first_and_each_language_once():
    one = result(MINI)
    places = draw(one, 6)
    langs = [one.scores.langs[place] for place in places]
    assert langs[:3] == ["en", "en", "de"]
    assert len(set(places)) == 6
    assert draw(one, 3) == places[:3]
    assert draw(one, 0) == []


def shades(folder):
    Image.new("RGB", (600, 400), "#e50000").save(folder / "red.png")
    queries = (LabelledQuery("q001", "en", "graded", "<red>"),)
    record = {"source": "shades", "source_photo_id": "red", "file": str(folder / "red.png")}
    records = ({**record, "title": "A red one", "source_description": None},)
    return Dataset("shades", "r1", folder, None, queries, {"q001": {PHOTO: 2}}, records)


def test_pictures_are_small_embedded_and_named(tmp_path):
    pictures = Pictures(dataset=shades(tmp_path))
    address = pictures.data_uri(PHOTO)
    assert address.startswith("data:image/webp;base64,")
    assert len(address) < 4000
    assert pictures.words(PHOTO) == "A red one"
    assert pictures.at_hand
    strip = pictures.strip([PHOTO, "<nowhere>"], {PHOTO: 2})
    assert 'class="good"' in strip
    assert "✓ grade 2" in strip
    assert "&lt;nowhere&gt;" in strip
    assert pictures.data_uri("<nowhere>") == ""


def test_a_picture_that_cannot_be_read_is_left_out(tmp_path):
    dataset = shades(tmp_path)
    (tmp_path / "red.png").write_bytes(b"no picture")
    assert Pictures(dataset=dataset).data_uri(PHOTO) == ""


def test_samples_say_plainly_what_is_not_at_hand(tmp_path):
    one = result(MINI)
    names = {one.config_id: "mini"}
    assert "No samples" in samples_html([(one, {})], names, dataset=None, pictures=Pictures())
    run = {query_id: [PHOTO] for query_id in one.scores.query_ids}
    bare = samples_html([(one, run)], names, dataset=None, pictures=Pictures())
    assert "There are no pictures" in bare
    assert "named by their ids" in bare
    dataset = shades(tmp_path)
    whole = samples_html(
        [(one, run)], names, dataset=dataset, pictures=Pictures(dataset=dataset), n_queries=200
    )
    assert "&lt;red&gt;" in whole
    assert "There are no" not in whole


def test_what_no_system_shows_is_shown_apart_and_equal_answers_once(tmp_path):
    dataset, pictures = shades(tmp_path), Pictures(dataset=shades(tmp_path))
    one, two = result(MINI), result(GRAPH)
    names = {one.config_id: "mini", two.config_id: "graph"}
    place = one.scores.query_ids.index("q001")
    about = tuple(PHOTO if n == place else name for n, name in enumerate(one.scores.cluster_ids))
    one = replace(one, scores=replace(one.scores, cluster_ids=about))
    run = {"q001": ["x1", "x2"]}
    systems = [(one, run), (two, run)]
    whole = samples_html(systems, names, dataset=dataset, pictures=pictures, n_queries=N)
    (case,) = [part for part in whole.split('class="case"') if "&lt;red&gt;" in part]
    assert case.count("x1") == 1
    assert "the same photos as mini" in case
    assert "not among these, though judged best" in case
    assert "✓ grade 2" in case
    run["q001"].append(PHOTO)
    whole = samples_html(systems, names, dataset=dataset, pictures=pictures, n_queries=N)
    assert "not among these" not in whole


def test_a_dataset_of_ones_own_is_found_by_its_name(tmp_path):
    own = shades(tmp_path)
    pictures, dataset = find_pictures(None, "shades", [own])
    assert dataset is own
    assert pictures.data_uri(PHOTO).startswith("data:")
    assert find_pictures(None, "others", [own])[1] is None


def test_manifests_and_values_are_in_the_page_as_they_are_on_disk(folder, text):
    path = next((folder / "search_quality" / "demo").glob("*.json"))
    digest = json.loads(path.read_text(encoding="utf-8"))["digest"]
    assert f'"digest": "{digest}"' in html.unescape(text)


def test_a_librarys_pictures_need_no_model(tmp_path, monkeypatch):
    """The library may hold vectors of weights that are no longer installed."""
    dataset = shades(tmp_path)
    (tmp_path / "photos.jsonl").write_text(
        '{"file": "red.png", "source": "shades", "source_photo_id": "red", "title": "Mine"}\n'
    )
    library = create_library(tmp_path / "library")
    root = check_root(tmp_path, records=tmp_path / "photos.jsonl", source="shades")
    index_photos(library, [root], config=Config(model="palette"))
    monkeypatch.setattr(Library, "engine", property(lambda self: pytest.fail("opened the engine")))
    pictures = Pictures(library)
    assert pictures.at_hand
    assert pictures.words(PHOTO) != ""
    assert pictures.data_uri(PHOTO).startswith("data:image/webp;base64,")
    assert pictures.data_uri("<nowhere>") == ""
    assert not Pictures(create_library(tmp_path / "empty")).at_hand
    assert Pictures(library, dataset).data_uri(PHOTO) == pictures.data_uri(PHOTO)


def test_each_row_of_a_leaderboard_has_the_hash_that_commands_take():
    report = Report([result(config) for config in (MINI, PALETTE)])
    rows = re.findall(r"<tr.*?</tr>", report._repr_html_(), re.DOTALL)
    assert "<th" in rows[0]
    assert re.search(r">hash</th></tr>$", rows[0])
    for row, one in zip(rows[1:], report.results, strict=True):
        assert row.endswith(f"<td>{one.config_id}</td></tr>")
    assert f"{report.results[0].dataset}@{report.results[0].dataset_revision}" in (
        report._repr_html_()
    )
