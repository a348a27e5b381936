import gzip
import json
from dataclasses import replace

import numpy as np
import pytest

from searchlab.config import Config
from searchlab.errors import InputError
from searchlab.evaluation import scoring
from searchlab.evaluation.datasets import LabelledQuery
from searchlab.evaluation.datasets.judgments import read_run
from searchlab.evaluation.experiments import Experiment
from searchlab.evaluation.metrics import per_query
from searchlab.evaluation.provenance.manifest import data_hashes, models_of
from searchlab.evaluation.results import load_result
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library
from searchlab.library.roots import check_root
from searchlab.models.palette.embedder import PaletteEmbedder
from searchlab.progress import Progress
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.queries import Query
from tests.support import experiment_world
from tests.support.experiment_world import EXACT, GRAPH, SHADES, photo_id, shades

folder = experiment_world.folder
library = experiment_world.library

ANYTHING = PhotoFilter()


def test_scores_are_those_of_the_engine_that_serves(library, folder):
    dataset = shades(folder)
    (result,) = (
        Experiment(dataset, [EXACT], library=library, metrics=["mrr@3", "success@1"]).run().results
    )
    engine = library.engine_for(EXACT)
    run = {
        query.query_id: [hit.photo.photo_id for hit in engine.search(query.text, per_page=3)]
        for query in dataset.queries
    }
    expected = per_query(dataset.qrels, run, ["mrr@3", "success@1"])
    assert result.scores.query_ids == tuple(sorted(dataset.qrels))
    assert result.scores.values["mrr@3"] == pytest.approx(expected["mrr@3"], abs=1e-6)
    assert result.scores.values["success@1"].tolist() == expected["success@1"].tolist()


def test_headline_is_the_macro_average_over_languages(library, folder):
    (result,) = Experiment(shades(folder), [EXACT], library=library).run().results
    interval = result.intervals["ndcg@10"]
    english, german = interval.groups["en"].mean, interval.groups["de"].mean
    assert english > 0.9
    assert interval.macro.mean == pytest.approx((english + german) / 2)
    assert interval.micro.mean == pytest.approx((6 * english + 3 * german) / 9)
    assert result.metrics["ndcg@10"] == interval.macro.mean
    assert result.headline == "ndcg@10"


def test_record_holds_what_is_needed_to_read_it_later(library, folder, tmp_path):
    dataset = shades(folder)
    (result,) = Experiment(dataset, [EXACT], library=library, out=tmp_path).run().results
    path = tmp_path / "search_quality" / "shades" / f"palette-exact-{result.config_id}.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    assert values["schema"] == 2
    assert (values["name"], values["system"]) == (result.config_id, "palette × exact")
    assert values["task"] == "text"
    assert values["dataset_revision"] == "r1"
    assert values["config"]["model_id"].startswith("palette-")
    assert set(values["photos"]) == {"n_photos", "hash"}
    assert values["photos"]["n_photos"] == 6
    assert values["answered_by"] == {"exact": 9}
    assert set(values["metrics"]) == {
        *("ndcg@10", "success@5", "p50_ms", "p95_ms", "p99_ms", "text_ms", "build_s", "size_mib")
    }
    assert values["files"].keys() == {
        f"palette-exact-{result.config_id}.run.gz",
        f"palette-exact-{result.config_id}.scores.tsv",
    }
    assert Config.load(path) == result.config


def test_record_reads_back_as_it_was(library, folder, tmp_path):
    (result,) = Experiment(shades(folder), [EXACT], library=library, out=tmp_path).run().results
    read_back = load_result(result.path(tmp_path))
    assert read_back.to_dict() == result.to_dict()
    assert read_back.scores.query_ids == result.scores.query_ids
    assert read_back.scores.langs == result.scores.langs
    assert read_back.scores.cluster_ids == result.scores.cluster_ids
    assert read_back.scores.values["ndcg@10"].tolist() == result.scores.values["ndcg@10"].tolist()
    assert read_back.scores.ms == pytest.approx(result.scores.ms, abs=1e-4)


def test_run_beside_the_record_gives_the_same_scores(library, folder, tmp_path):
    dataset = shades(folder)
    (result,) = Experiment(dataset, [GRAPH], library=library, out=tmp_path).run().results
    assert (result.answered_by, result.index_unused) == ({"graph": 9}, False)
    path = result.path(tmp_path).with_suffix(".run.gz")
    run = read_run(path)
    values = per_query(dataset.qrels, run, ["ndcg@10"])["ndcg@10"]
    assert values == pytest.approx(result.scores.values["ndcg@10"], abs=1e-6)
    engine = library.engine_for(GRAPH)
    expected = engine.rank(dataset.queries[0].query(), 1).scores[0]
    lines = [line.split() for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
    first = next(line for line in lines if line[0] == dataset.queries[0].query_id)
    assert first[3:] == ["1", str(expected), result.config_id]


def test_no_file_is_left_half_written(library, folder, tmp_path):
    Experiment(shades(folder), [EXACT], library=library, out=tmp_path).run()
    names = sorted(path.name.split(".", 1)[1] for path in tmp_path.rglob("*.*"))
    assert names == ["json", "run.gz", "scores.tsv"]


def test_the_manifest_says_what_the_figures_depend_on(library, folder):
    dataset = shades(folder)
    (result,) = Experiment(dataset, [EXACT], library=library, seed=3).run().results
    manifest = result.manifest
    assert manifest["models"] == models_of("palette")
    assert manifest["data"] == {**data_hashes(dataset), "photos": result.photos["hash"]}
    assert (manifest["seed"], manifest["threads"], manifest["dtype"]) == (3, 1, "float32")
    assert manifest["batch_size"] == 16


def test_photos_foreign_to_the_dataset_are_neither_indexed_nor_ranked(library, folder, tmp_path):
    dataset = shades(folder, names=("red", "blue"))
    experiment = Experiment(dataset, [GRAPH], library=library, metrics=["recall@2"], out=tmp_path)
    (result,) = experiment.run().results
    assert result.photos["n_photos"] == 2
    run = read_run(result.path(tmp_path).with_suffix(".run.gz"))
    assert {frozenset(ranked) for ranked in run.values()} == {
        frozenset({photo_id("red"), photo_id("blue")})
    }
    assert result.metrics["recall@2"] == 1.0


@pytest.mark.slow
def test_photos_foreign_to_the_dataset_change_nothing_that_is_measured(library, folder, tmp_path):
    names = ("red", "green", "blue")
    lines = []
    for name in names:
        (tmp_path / "photos").mkdir(exist_ok=True)
        (tmp_path / "photos" / f"{name}.png").write_bytes((folder / f"{name}.png").read_bytes())
        lines.append({"file": f"{name}.png", "source": "shades", "source_photo_id": name})
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (tmp_path / "photos" / "photos.jsonl").write_text(text, encoding="utf-8")
    alone = create_library(tmp_path / "library")
    root = check_root(
        tmp_path / "photos", records=tmp_path / "photos" / "photos.jsonl", source="shades"
    )
    index_photos(alone, [root], config=EXACT)
    dataset = shades(folder, names=names)
    for config in (EXACT, GRAPH):
        (among,) = Experiment(dataset, [config], library=library).run().results
        (apart,) = Experiment(dataset, [config], library=alone).run().results
        assert among.photos == apart.photos
        assert among.metrics["size_mib"] == apart.metrics["size_mib"]
        assert np.array_equal(among.scores.values["ndcg@10"], apart.scores.values["ndcg@10"])


def test_costs_are_those_of_the_index_alone(library, folder, monkeypatch):
    costs = {}
    for config in (EXACT, GRAPH):
        (result,) = Experiment(shades(folder), [config], library=library).run().results
        costs[config.index] = result.metrics
    vectors = library.engine.index.vectors.nbytes
    assert costs["exact"]["size_mib"] * 2**20 == vectors
    assert costs["hnsw"]["size_mib"] * 2**20 > vectors
    assert 0 < costs["exact"]["build_s"] < 1


def test_a_query_is_about_its_best_photo_the_first_by_id_of_equals():
    grades = {"a": 0, "d": 2, "c": 2, "b": 1}
    assert scoring._cluster_id(LabelledQuery("q", "en", "graded", "x"), grades) == "c"
    by_photo = LabelledQuery("q", "zxx", "graded", photo_id="z")
    assert scoring._cluster_id(by_photo, grades) == "z"


def test_photos_missing_from_the_library_count_as_not_found(library, folder):
    class Listener(Progress):
        lines = ()

        def say(self, text):
            self.lines = (*self.lines, text)

    listener = Listener()
    dataset = shades(folder, names=(*SHADES, "ultraviolet"))
    (result,) = Experiment(dataset, [EXACT], library=library).run(listener).results
    place = result.scores.query_ids.index("en-ultraviolet")
    assert result.scores.values["ndcg@10"][place] == 0
    assert "1 of 7 photos of shades are not in the library" in listener.lines[0]


def test_library_without_the_dataset_is_refused(library, folder):
    with pytest.raises(InputError, match="got none of its 1 among 6"):
        Experiment(shades(folder, names=("ultraviolet",)), [EXACT], library=library)


def test_experiment_without_configs_or_with_one_twice_is_refused(library, folder):
    for configs in ([], [EXACT, Config(model="palette")]):
        with pytest.raises(InputError, match="each config once"):
            Experiment(shades(folder), configs, library=library)


def test_unknown_metric_is_refused_before_anything_is_measured(library, folder):
    with pytest.raises(InputError, match="a metric must be one of"):
        Experiment(shades(folder), [EXACT], library=library, metrics=["bleu@4"])


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("recall@5/l2", "must have a photo of grade 2"),
        ("ndcg@5/condensed", "photos that were judged not relevant"),
    ],
)
def test_judgments_that_give_a_metric_no_meaning_are_refused_before_anything_is_measured(
    library, folder, metric, message
):
    with pytest.raises(InputError, match=message):
        Experiment(shades(folder), [EXACT], library=library, metrics=[metric])


def test_ranking_does_not_depend_on_what_else_is_measured(library, folder):
    dataset = shades(folder)
    alone = Experiment(dataset, [GRAPH], library=library).run().results[0]
    both = Experiment(dataset, [EXACT, GRAPH], library=library).run()
    again = next(result for result in both.results if result.config.index == "hnsw")
    assert np.array_equal(alone.scores.values["ndcg@10"], again.scores.values["ndcg@10"])
    assert alone.intervals == again.intervals


@pytest.mark.slow
def test_without_a_cache_it_makes_a_library_and_leaves_nothing_behind(
    library, folder, tmp_path, monkeypatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    dataset = shades(folder)
    (alone,) = Experiment(dataset, [EXACT], cache=None).run().results
    (on_library,) = Experiment(dataset, [EXACT], library=library).run().results
    assert alone.photos == on_library.photos
    assert alone.intervals == on_library.intervals
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_kept_library_embeds_nothing_twice(folder, tmp_path, monkeypatch):
    dataset = shades(folder)
    Experiment(dataset, [EXACT], cache=tmp_path).run()
    embedded = []
    monkeypatch.setattr(
        PaletteEmbedder, "encode_images", lambda self, images: embedded.append(len(images))
    )
    other = replace(dataset.select(languages=["en"]), name="others")
    report = Experiment(other, [EXACT, GRAPH], cache=tmp_path).run()
    assert len(report.results) == 2
    assert embedded == []


def test_texts_are_embedded_once_for_all_configurations_of_a_model(library, folder, monkeypatch):
    embedded = []
    original = PaletteEmbedder.encode_texts

    def encode(self, texts):
        embedded.extend(texts if len(texts) > 1 else [])
        return original(self, texts)

    monkeypatch.setattr(PaletteEmbedder, "encode_texts", encode)
    fresh = create_library(library.folder)
    Experiment(shades(folder), [EXACT, GRAPH], library=fresh).run()
    assert sorted(embedded) == sorted([*SHADES, "xyzzy"])


def by_photo(folder, *, text=None, condition=ANYTHING):
    """Red and yellow ask for what is like them."""
    queries = tuple(
        LabelledQuery(f"like-{name}", "zxx", "graded", text, photo_id(name), condition)
        for name in ("red", "yellow")
    )
    qrels = {"like-red": {photo_id("yellow"): 1}, "like-yellow": {photo_id("white"): 2}}
    return replace(shades(folder), queries=queries, qrels=qrels)


def test_photo_queries_are_asked_with_their_photo_which_is_never_found(library, folder, tmp_path):
    dataset = by_photo(folder)
    (result,) = Experiment(dataset, [EXACT], library=library, out=tmp_path).run().results
    assert (result.task, result.metrics["text_ms"]) == ("photo", 0)
    assert load_result(result.path(tmp_path)).task == "photo"
    run = read_run(result.path(tmp_path).with_suffix(".run.gz"))
    assert photo_id("red") not in run["like-red"]
    assert run["like-red"] == library.engine_for(EXACT).table.photo_ids(
        library.engine_for(EXACT).rank(Query(photo_id=photo_id("red")), 10).rows
    )
    assert result.scores.cluster_ids == (photo_id("red"), photo_id("yellow"))


def test_a_photo_query_steered_by_text_and_filtered_is_asked_so(library, folder, tmp_path):
    condition = PhotoFilter(color_hex="#ffffff", color_tolerance=10)
    dataset = by_photo(folder, text="white", condition=condition)
    dataset = dataset.only(["like-yellow"])
    (result,) = Experiment(dataset, [EXACT], library=library, out=tmp_path).run().results
    assert result.task == "photo+text"
    run = read_run(result.path(tmp_path).with_suffix(".run.gz"))
    assert run == {"like-yellow": [photo_id("white")]}
    assert result.manifest["data"]["filter"] == condition.to_dict()


def test_a_photo_that_the_filter_of_its_own_query_shuts_out_is_no_ground_truth(library, folder):
    """Nothing could find it: an error, not a zero."""
    dataset = by_photo(folder, condition=PhotoFilter(color_hex="#ffffff", color_tolerance=10))
    with pytest.raises(InputError, match=r"pass the filter of their query, .* for 'like-red'"):
        Experiment(dataset, [EXACT], library=library).run()


def test_a_query_whose_photo_the_library_lacks_scores_zero(library, folder):
    queries = (LabelledQuery("q", "zxx", "graded", photo_id=photo_id("ultraviolet")),)
    dataset = replace(
        shades(folder, names=(*SHADES, "ultraviolet")),
        queries=queries,
        qrels={"q": {photo_id("red"): 1}},
    )
    (result,) = Experiment(dataset, [EXACT], library=library).run().results
    assert result.metrics["ndcg@10"] == 0


def test_a_name_in_place_of_a_dataset_or_a_configuration_is_told_what_to_give(folder):
    with pytest.raises(InputError, match=r"must be a Dataset, got 'demo'; give load_dataset"):
        Experiment("demo", [EXACT])
    for configs in ("mini", ["mini"], EXACT, [EXACT, "mini"], None):
        with pytest.raises(InputError, match=r"must be a list of Config, got .*; give grid"):
            Experiment(shades(folder), configs)
