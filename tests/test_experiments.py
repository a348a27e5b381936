import json

import numpy as np
import pytest
from PIL import Image

from searchlab import experiments, results
from searchlab.config import Config
from searchlab.datasets import Dataset, LabelledQuery
from searchlab.errors import InputError
from searchlab.experiments import Experiment
from searchlab.ingest import index_photos
from searchlab.judgments import read_run
from searchlab.library import create_library
from searchlab.metrics import per_query
from searchlab.photos import photo_id_of
from searchlab.progress import Progress
from searchlab.results import load_result
from searchlab.scan import check_root

SHADES = {
    "red": "#e50000",
    "green": "#15b01a",
    "blue": "#0343df",
    "yellow": "#ffff14",
    "black": "#000000",
    "white": "#ffffff",
}
EXACT = Config(model="palette")
GRAPH = Config(model="palette", index="hnsw", step_rows=0, depth=5)


def photo_id(name):
    return photo_id_of("shades", name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shades")
    lines = []
    for name, shade in SHADES.items():
        Image.new("RGB", (48, 32), shade).save(folder / f"{name}.png")
        lines.append({"file": f"{name}.png", "source": "shades", "source_photo_id": name})
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (folder / "photos.jsonl").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def library(folder, tmp_path_factory):
    library = create_library(tmp_path_factory.mktemp("library"))
    root = check_root(folder, records=folder / "photos.jsonl", source="shades")
    index_photos(library, [root], config=EXACT)
    return library


def shades(folder, names=tuple(SHADES), revision="r1"):
    """One English query for each shade; every other one again in German, where it says nothing."""
    queries = [LabelledQuery(f"en-{name}", "en", "graded", name) for name in names]
    queries += [LabelledQuery(f"de-{name}", "de", "graded", "xyzzy") for name in names[::2]]
    qrels = {query.query_id: {photo_id(query.query_id[3:]): 1} for query in queries}
    records = tuple({"source": "shades", "source_photo_id": name} for name in names)
    return Dataset("shades", revision, folder, None, tuple(queries), qrels, records)


@pytest.fixture
def counted(monkeypatch):
    """Count the configurations that are measured."""
    measured = []
    original = Experiment._measure

    def measure(self, config, progress, label):
        measured.append(config.index)
        return original(self, config, progress, label)

    monkeypatch.setattr(Experiment, "_measure", measure)
    return measured


def test_scores_are_those_of_the_engine_that_serves(library, folder):
    dataset = shades(folder)
    (result,) = Experiment(library, dataset, [EXACT], metrics=["mrr@3", "success@1"]).run().results
    engine = library.engine_for(EXACT)
    run = {
        query.query_id: [
            hit.photo.photo_id
            for hit in engine.search(experiments.Query(text=query.text), per_page=3)
        ]
        for query in dataset.queries
    }
    expected = per_query(dataset.qrels, run, ["mrr@3", "success@1"])
    assert result.scores.query_ids == tuple(sorted(dataset.qrels))
    assert result.scores.values["mrr@3"] == pytest.approx(expected["mrr@3"], abs=1e-6)
    assert result.scores.values["success@1"].tolist() == expected["success@1"].tolist()


def test_headline_is_the_macro_average_over_languages(library, folder):
    (result,) = Experiment(library, shades(folder), [EXACT]).run().results
    found = result.intervals["ndcg@10"]
    english, german = found.groups["en"].mean, found.groups["de"].mean
    assert english > 0.9
    assert found.macro.mean == pytest.approx((english + german) / 2)
    assert found.micro.mean == pytest.approx((6 * english + 3 * german) / 9)
    assert result.metrics["ndcg@10"] == found.macro.mean
    assert result.headline == "ndcg@10"


def test_record_holds_what_is_needed_to_read_it_later(library, folder, tmp_path):
    dataset = shades(folder)
    (result,) = Experiment(library, dataset, [EXACT], out=tmp_path).run().results
    path = tmp_path / "search_quality" / "shades" / f"{result.config_id}.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    assert values["schema"] == 1
    assert values["dataset_revision"] == "r1"
    assert values["config"]["model_id"].startswith("palette-")
    assert set(values["photos"]) == {"n_photos", "hash"}
    assert values["photos"]["n_photos"] == 6
    assert set(values["metrics"]) == {
        *("ndcg@10", "success@5", "p50_ms", "p95_ms", "p99_ms", "text_ms", "build_s", "size_mib")
    }
    assert {"code", "date", "machine", "python", "packages"} == set(values["environment"])
    assert Config.load(path) == result.config


def test_record_reads_back_as_it_was(library, folder, tmp_path):
    (result,) = Experiment(library, shades(folder), [EXACT], out=tmp_path).run().results
    found = load_result(result.path(tmp_path))
    assert found.to_dict() == result.to_dict()
    assert found.scores.query_ids == result.scores.query_ids
    assert found.scores.langs == result.scores.langs
    assert found.scores.about == result.scores.about
    assert found.scores.values["ndcg@10"].tolist() == result.scores.values["ndcg@10"].tolist()
    assert found.scores.ms == pytest.approx(result.scores.ms, abs=1e-4)


def test_run_beside_the_record_gives_the_same_scores(library, folder, tmp_path):
    dataset = shades(folder)
    (result,) = Experiment(library, dataset, [GRAPH], out=tmp_path).run().results
    run = read_run(result.path(tmp_path).with_suffix(".run.tsv"))
    values = per_query(dataset.qrels, run, ["ndcg@10"])["ndcg@10"]
    assert values == pytest.approx(result.scores.values["ndcg@10"], abs=1e-6)


def test_no_file_is_left_half_written(library, folder, tmp_path):
    Experiment(library, shades(folder), [EXACT], out=tmp_path).run()
    names = sorted(path.name.split(".", 1)[1] for path in tmp_path.rglob("*.*"))
    assert names == ["json", "run.tsv", "scores.tsv"]


def test_runs_are_left_out_on_demand(library, folder, tmp_path):
    Experiment(library, shades(folder), [EXACT], out=tmp_path, save_runs=False).run()
    assert not list(tmp_path.rglob("*.run.tsv"))


def test_what_is_on_record_is_not_measured_again(library, folder, tmp_path, counted):
    dataset = shades(folder)
    first = Experiment(library, dataset, [EXACT], out=tmp_path).run()
    both = Experiment(library, dataset, [EXACT, GRAPH], out=tmp_path).run()
    assert counted == ["exact", "hnsw"]
    assert first.results[0].to_dict() in [result.to_dict() for result in both.results]


def test_force_measures_again(library, folder, tmp_path, counted):
    dataset = shades(folder)
    for force in (False, True):
        Experiment(library, dataset, [EXACT], out=tmp_path).run(force=force)
    assert counted == ["exact", "exact"]


def test_other_revision_metrics_code_or_machine_are_measured_again(
    library, folder, tmp_path, counted, monkeypatch
):
    Experiment(library, shades(folder), [EXACT], out=tmp_path).run()
    Experiment(library, shades(folder, revision="r2"), [EXACT], out=tmp_path).run()
    assert len(counted) == 2
    other = {"out": tmp_path, "metrics": ["mrr@5"]}
    Experiment(library, shades(folder, revision="r2"), [EXACT], **other).run()
    assert len(counted) == 3
    for place, name in enumerate(("code_version", "machine"), start=4):
        for module in (results, experiments):
            monkeypatch.setattr(module, name, lambda: "another")
        Experiment(library, shades(folder, revision="r2"), [EXACT], **other).run()
        assert len(counted) == place


def test_damaged_record_is_measured_again(library, folder, tmp_path, counted):
    report = Experiment(library, shades(folder), [EXACT], out=tmp_path).run()
    report.results[0].path(tmp_path).write_text("{", encoding="utf-8")
    Experiment(library, shades(folder), [EXACT], out=tmp_path).run()
    assert len(counted) == 2


def test_photos_foreign_to_the_dataset_are_neither_indexed_nor_ranked(library, folder, tmp_path):
    dataset = shades(folder, names=("red", "blue"))
    experiment = Experiment(library, dataset, [GRAPH], metrics=["recall@2"], out=tmp_path)
    (result,) = experiment.run().results
    assert result.photos["n_photos"] == 2
    run = read_run(result.path(tmp_path).with_suffix(".run.tsv"))
    assert {frozenset(ranked) for ranked in run.values()} == {
        frozenset({photo_id("red"), photo_id("blue")})
    }
    assert result.metrics["recall@2"] == 1.0


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
        (among,) = Experiment(library, dataset, [config]).run().results
        (apart,) = Experiment(alone, dataset, [config]).run().results
        assert among.photos == apart.photos
        assert among.metrics["size_mib"] == apart.metrics["size_mib"]
        assert np.array_equal(among.scores.values["ndcg@10"], apart.scores.values["ndcg@10"])


def test_costs_are_those_of_the_index_alone(library, folder, monkeypatch):
    costs = {}
    for config in (EXACT, GRAPH):
        (result,) = Experiment(library, shades(folder), [config]).run().results
        costs[config.index] = result.metrics
    vectors = library.engine.index.vectors.nbytes
    assert costs["exact"]["size_mib"] * 2**20 == vectors
    assert costs["hnsw"]["size_mib"] * 2**20 > vectors
    assert 0 < costs["exact"]["build_s"] < 1


def test_a_query_is_about_its_best_photo_the_first_by_id_of_equals():
    assert experiments._best_photo({"a": 0, "d": 2, "c": 2, "b": 1}) == "c"


def test_photos_missing_from_the_library_count_as_not_found(library, folder):
    class Listener(Progress):
        said = ()

        def say(self, text):
            self.said = (*self.said, text)

    listener = Listener()
    dataset = shades(folder, names=(*SHADES, "ultraviolet"))
    (result,) = Experiment(library, dataset, [EXACT]).run(listener).results
    place = result.scores.query_ids.index("en-ultraviolet")
    assert result.scores.values["ndcg@10"][place] == 0
    assert "1 of 7 photos of shades are not in the library" in listener.said[0]


def test_library_without_the_dataset_is_refused(library, folder):
    with pytest.raises(InputError, match="got none of its 1 among 6"):
        Experiment(library, shades(folder, names=("ultraviolet",)), [EXACT])


def test_experiment_without_configs_or_with_one_twice_is_refused(library, folder):
    for configs in ([], [EXACT, Config(model="palette")]):
        with pytest.raises(InputError, match="each config once"):
            Experiment(library, shades(folder), configs)


def test_unknown_metric_is_refused_before_anything_is_measured(library, folder):
    with pytest.raises(InputError, match="a metric must be one of"):
        Experiment(library, shades(folder), [EXACT], metrics=["bleu@4"])


def test_ranking_does_not_depend_on_what_else_is_measured(library, folder):
    dataset = shades(folder)
    alone = Experiment(library, dataset, [GRAPH]).run().results[0]
    both = Experiment(library, dataset, [EXACT, GRAPH]).run()
    again = next(result for result in both.results if result.config.index == "hnsw")
    assert np.array_equal(alone.scores.values["ndcg@10"], again.scores.values["ndcg@10"])
    assert alone.intervals == again.intervals
