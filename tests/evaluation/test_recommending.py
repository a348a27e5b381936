import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from searchlab import Config, Experiment, create_library, index_photos
from searchlab.errors import InputError
from searchlab.evaluation import recommending
from searchlab.evaluation.datasets import read_dataset
from searchlab.evaluation.datasets.own_photos import list_photos
from searchlab.evaluation.recommending import ALL, Recommendation, recommend
from searchlab.evaluation.reports import Report
from searchlab.evaluation.results import Result, Scores
from searchlab.evaluation.significance import bootstrap_intervals
from searchlab.photos.photo import photo_id_of

LANGS = ("ar", "de", "en")
N_EACH = 40


def result(config, quality, ms=1.0, mib=1.0, seed=0):
    """Make up a result: for each language the share of 40 queries that score 1."""
    values = []
    rng = np.random.default_rng(seed)
    for lang in LANGS:
        column = np.zeros(N_EACH)
        column[: round(N_EACH * quality[lang])] = 1
        values.append(rng.permutation(column))
    ids = tuple(f"{lang}-{n:02d}" for lang in LANGS for n in range(N_EACH))
    langs = tuple(lang for lang in LANGS for _ in range(N_EACH))
    scores = Scores(ids, langs, ids, {"ndcg@10": np.concatenate(values)}, np.full(len(ids), ms))
    intervals = bootstrap_intervals(scores.values, groups=langs, clusters=ids)
    metrics = {name: interval.macro.mean for name, interval in intervals.items()}
    cost = {"p50_ms": ms, "p95_ms": ms, "p99_ms": ms, "text_ms": 1.0, "build_s": 0, "size_mib": mib}
    return Result(
        benchmark="search_quality",
        dataset="mine",
        dataset_revision="0" * 12,
        config=config,
        metrics=metrics | cost,
        intervals=intervals,
        photos={"n_photos": 10, "hash": "h"},
        manifest={"code": "c", "date": "2026-01-01", "machine": "m"},
        scores=scores,
    )


def configs(n):
    return [Config(model="palette", index="hnsw", ef_search=100 + step) for step in range(n)]


def even(share):
    return dict.fromkeys(LANGS, share)


def advice(*rows):
    made = [
        result(c, *row, seed=n) for n, (c, row) in enumerate(zip(configs(9), rows, strict=False))
    ]
    return recommend(Report(made))


def test_the_frontier_leaves_out_what_another_beats_in_everything():
    advised = advice((even(0.8), 5, 9), (even(0.5), 1, 1), (even(0.4), 2, 2), (even(0.8), 5, 10))
    qualities = [(round(p.quality.mean, 1), p.mib) for p in advised.frontier()]
    assert qualities == [(0.8, 9), (0.5, 1)]


def test_equals_in_everything_are_both_on_the_frontier():
    advised = advice((even(0.5), 1, 1), (even(0.5), 1, 1))
    assert len(advised.frontier()) == 2


def test_memory_alone_earns_a_place():
    advised = advice((even(0.8), 1, 9), (even(0.5), 1, 8))
    assert len(advised.frontier()) == 2


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.25, 0.5, 0.75]), st.integers(1, 4), st.integers(1, 4)),
        min_size=1,
        max_size=6,
    )
)
def test_the_frontier_is_what_no_other_point_dominates(rows):
    advised = advice(*((even(share), ms, mib) for share, ms, mib in rows))
    points = advised.points[ALL]

    def beaten(mine):
        return any(
            p.quality.mean >= mine.quality.mean
            and p.ms <= mine.ms
            and p.mib <= mine.mib
            and (p.quality.mean, p.ms, p.mib) != (mine.quality.mean, mine.ms, mine.mib)
            for p in points
        )

    assert [p.on_frontier for p in points] == [not beaten(p) for p in points]
    assert advised.frontier()


def test_each_language_has_a_frontier_of_its_own():
    advised = advice(
        ({"ar": 0.2, "de": 0.9, "en": 0.9}, 1, 1), ({"ar": 0.9, "de": 0.2, "en": 0.3}, 2, 2)
    )
    assert len(advised.frontier("ar")) == 2
    assert len(advised.frontier("de")) == 1
    assert advised.points["ar"][0].quality.mean == pytest.approx(0.9)


def test_a_language_that_another_serves_better_is_named():
    advised = advice(
        ({"ar": 0.2, "de": 0.9, "en": 0.9}, 1, 1), ({"ar": 0.9, "de": 0.2, "en": 0.3}, 2, 2)
    )
    (better,) = advised.better
    assert (better.lang, better.difference) == ("ar", pytest.approx(0.7))
    assert better.p_value < 0.01
    assert f"{better.name} is better by 0.700" in advised.explain()
    assert advised.explain().count("is better by") == 1


def test_a_language_is_named_however_many_tests_there_are(monkeypatch):
    """Of 78 languages and nine configurations each p counts up to 624 times."""

    def least(*_, samples=10_000, **__):
        return 1 / (samples + 1)

    monkeypatch.setattr(recommending, "paired_test", least)
    worse = {"ar": 0.0, "de": 0.9, "en": 0.9}
    better = {"ar": 1.0, "de": 0.2, "en": 0.3}
    rows = [(worse, 1, 1), *[(better, 2 + n, 2 + n) for n in range(8)]]
    monkeypatch.setattr(Result, "languages", property(lambda _: LANGS * 26))
    assert "ar" in {one.lang for one in advice(*rows).better}


def test_a_small_lead_is_called_what_it_may_be():
    advised = advice((even(0.5), 1, 1), (even(0.525), 9, 9))
    assert advised.better == ()
    assert advised.chosen.metrics["size_mib"] == 1
    assert "has 0.025 more, which may be chance" in advised.explain()
    assert "Not told apart from the best are also" in advised.explain()


def test_words_name_the_choice_its_price_and_what_is_worse():
    advised = advice((even(0.9), 1, 1), (even(0.1), 1, 1))
    text = advised.explain()
    assert text.startswith(f"Serve {advised.name}: ndcg@10 0.900 [")
    assert "over 3 languages and 120 queries, 2.0 ms a new query, 1.00 MiB of index." in text
    assert "the others are shown to be worse" in text
    assert text.count(", the best") == 3
    assert "four times in five" in text
    assert not re.search(r"differences of (\d\.\d+) to \1 ", text)


def test_one_configuration_alone_is_recommended_without_comparison():
    text = advice((even(0.5), 1, 1)).explain()
    assert text.startswith("Serve palette")
    assert "worse" not in text


def test_the_advice_shows_as_html_with_its_names_escaped():
    advised = advice((even(0.5), 1, 1), (even(0.1), 1, 1))
    advised._names = dict.fromkeys(advised._names, "<script>")
    assert "<script>" not in Recommendation._repr_html_(advised)


@pytest.mark.slow
def test_the_chart_has_a_panel_for_each_language_and_one_for_all():
    figure = advice((even(0.9), 1, 1), (even(0.5), 3, 2)).chart()
    titles = [axis.get_title() for axis in figure.axes if axis.get_visible()]
    assert titles == [ALL, *LANGS]
    assert any("recommended" in text.get_text() for text in figure.legends[0].get_texts())


# -- photos of one's own ----------------------------------------------------------------------


@pytest.fixture
def mine(tmp_path):
    """A user's folder: pictures, one of them in a folder below, queries and who answers them."""
    folder = tmp_path / "mine"
    shades = {"red.png": "#e50000", "trip/blue.jpg": "#0343df", "green.png": "#15b01a"}
    for name, shade in shades.items():
        (folder / "photos" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (48, 32), shade).save(folder / "photos" / name)
    queries = "query_id\tlang\ttext\nr\ten\tred\nb\tde\tblau\n"
    (folder / "queries.tsv").write_text(queries, encoding="utf-8")
    qrels = "query_id\tphoto_id\trelevance\nr\tphotos/red.png\t2\nb\tphotos/trip/blue.jpg\t1\n"
    (folder / "qrels.tsv").write_text(qrels, encoding="utf-8")
    return folder


@pytest.fixture
def library(mine, tmp_path):
    library = create_library(tmp_path / "library")
    index_photos(library, [mine / "photos"], config=Config(model="palette"))
    return library


def test_a_plain_folder_becomes_a_dataset_that_can_be_measured_and_served(mine, library):
    list_photos(library, mine)
    dataset = read_dataset(mine)
    assert dataset.photo_ids == set(library.engine.table.photo_ids(range(3)))
    report = Experiment(dataset, [Config(model="palette")], library=library).run()
    chosen = recommend(report).report.promote(mine / "chosen.json")
    assert report.results[0].metrics["ndcg@10"] == 1
    assert Config.load(chosen) == report.results[0].config


def test_ids_stay_when_the_folder_is_indexed_with_the_list(mine, library):
    before = library.engine.table.photo_ids(range(3))
    list_photos(library, mine / "photos")
    index_photos(library)
    assert library.engine.table.photo_ids(range(3)) == before


def test_the_list_grows_and_keeps_what_people_wrote(mine, library, make_picture):
    sidecar = mine / "photos.jsonl"
    line = {"file": "photos/red.png", "source": "me", "source_photo_id": "1", "title": "Rot"}
    sidecar.write_text(json.dumps(line))  # without an end of line
    assert list_photos(library, mine) == sidecar.resolve()
    assert json.loads(sidecar.read_text().splitlines()[0]) == line
    assert len(sidecar.read_text().splitlines()) == 3
    make_picture(mine / "photos" / "black.png", "#000000")
    index_photos(library)
    list_photos(library, mine)
    files = [json.loads(text)["file"] for text in sidecar.read_text().splitlines()]
    assert files[0] == "photos/red.png"
    assert sorted(files[1:]) == ["photos/black.png", "photos/green.png", "photos/trip/blue.jpg"]
    before = sidecar.read_bytes()
    list_photos(library, mine)
    assert sidecar.read_bytes() == before


def test_a_listed_photo_has_the_id_that_it_has_in_the_library(mine, library):
    records = [json.loads(text) for text in list_photos(library, mine).read_text().splitlines()]
    ids = {photo_id_of(record["source"], record["source_photo_id"]) for record in records}
    assert ids == set(library.engine.table.photo_ids(range(3)))


def test_a_folder_without_indexed_photos_and_a_damaged_list_are_refused(mine, library, tmp_path):
    with pytest.raises(InputError, match=r"must hold photos below .*; index that folder first"):
        list_photos(library, tmp_path / "elsewhere")
    (mine / "photos.jsonl").write_text("nonsense\n")
    with pytest.raises(InputError, match=r"photos\.jsonl:1 must be a record"):
        list_photos(library, mine)
    assert (mine / "photos.jsonl").read_text() == "nonsense\n"
