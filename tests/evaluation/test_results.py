import dataclasses
import gzip
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from searchlab.config import Config
from searchlab.errors import DataError
from searchlab.evaluation.datasets.judgments import read_run
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.evaluation.results import Result, Scores, incompatibility, load_result, system_name
from searchlab.evaluation.significance import bootstrap_intervals
from searchlab.files import digest_of
from tests.support.examples import examples

N = 12
IDS = tuple(f"q{number:02}" for number in range(N))
LANGS = ("de", "en") * (N // 2)
RUN = {query_id: [("b", 0.75), ("a", 0.25)] for query_id in IDS}


def result(**changes):
    values = {"ndcg@10": np.round(np.linspace(0, 1, N), 6), "success@5": np.ones(N)}
    intervals = bootstrap_intervals(values, groups=LANGS, clusters=IDS, samples=50)
    values_by_name = {
        "benchmark": "search_quality",
        "dataset": "demo",
        "dataset_revision": "r1",
        "config": Config(model="palette", model_id="palette-1"),
        "metrics": {"ndcg@10": 0.5, "success@5": 1.0, "p50_ms": 0.123456789},
        "intervals": intervals,
        "photos": {"n_photos": 6, "hash": "abc"},
        "manifest": make_manifest("search_quality", seed=0),
        "scores": Scores(IDS, LANGS, IDS, values, np.full(N, 0.5)),
        "task": "text",
    }
    return Result(**values_by_name | changes)


@pytest.fixture
def saved(tmp_path):
    return result().save(tmp_path, run=RUN)


def test_a_result_reads_back_as_it_was(saved, tmp_path):
    read_back = load_result(saved)
    assert read_back.to_dict() == result(manifest=read_back.manifest).to_dict()
    assert read_back.scores.query_ids == IDS
    assert read_back.scores.values["ndcg@10"].tolist() == result().scores.values["ndcg@10"].tolist()
    folder = tmp_path / "search_quality" / "demo"
    assert saved == folder / f"palette-exact-{read_back.config_id}.json"
    assert Config.load(saved) == read_back.config


def test_the_run_beside_it_is_trec_with_scores_and_the_config_as_its_system(saved):
    file, config_id = saved.with_suffix(".run.gz"), load_result(saved).config_id
    assert read_run(file) == {query_id: ["b", "a"] for query_id in IDS}
    lines = gzip.decompress(file.read_bytes()).decode().splitlines()
    assert lines[:2] == [f"q00 Q0 b 1 0.75 {config_id}", f"q00 Q0 a 2 0.25 {config_id}"]


def test_equal_results_are_equal_files(tmp_path):
    same = result()
    first, second = (same.save(tmp_path / name, run=RUN) for name in ("one", "two"))
    for suffix in (".json", ".scores.tsv", ".run.gz"):
        assert first.with_suffix(suffix).read_bytes() == second.with_suffix(suffix).read_bytes()


def test_without_a_run_there_is_none(tmp_path):
    path = result().save(tmp_path)
    assert not path.with_suffix(".run.gz").exists()
    assert load_result(path).n_queries == N


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 10**6), byte=st.integers(0, 255))
def test_any_changed_byte_of_scores_or_run_is_found(saved, place, byte):
    for suffix in (".scores.tsv", ".run.gz"):
        file = saved.with_suffix(suffix)
        before = file.read_bytes()
        mutant = bytearray(before)
        mutant[place % len(mutant)] = byte
        if bytes(mutant) != before:
            file.write_bytes(bytes(mutant))
            with pytest.raises(DataError, match="changed after it was written"):
                load_result(saved)
            file.write_bytes(before)
    assert load_result(saved).n_queries == N


def test_a_better_figure_written_by_hand_is_found(saved):
    text = saved.read_text(encoding="utf-8")
    assert '"ndcg@10": 0.5,' in text
    saved.write_text(text.replace('"ndcg@10": 0.5,', '"ndcg@10": 0.6,'), encoding="utf-8")
    with pytest.raises(DataError, match="changed after they were written"):
        load_result(saved)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"config_id": "0" * 12}, "of another config"),
        ({"manifest": {"code": "1", "date": "2026-01-01"}}, "manifest without machine"),
        ({"photos": {"n_photos": 6}}, "photos without hash"),
        ({"intervals": {"ndcg@10": {"macro": [1, 2]}}}, "must hold a result"),
        ({"config": {"model": "palette", "speed": 1}}, "must hold a result"),
    ],
)
def test_a_sealed_file_that_is_no_result_is_refused(saved, change, message):
    values = json.loads(saved.read_text(encoding="utf-8")) | change
    saved.write_text(json.dumps({**values, "digest": digest_of(values)}), encoding="utf-8")
    with pytest.raises(DataError, match=message):
        load_result(saved)


def test_results_of_one_setting_can_be_compared_whatever_their_configuration():
    one, other = result(), result(config=Config(model="mini", model_id="mini-1"))
    assert incompatibility(one, other) is None
    assert one.setting == other.setting


def elsewhere(**changes):
    return {**make_manifest("search_quality", seed=0), **changes}


def fewer():
    scores = result().scores
    return dataclasses.replace(scores, query_ids=(*IDS[:-2], "other", "others"))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"benchmark": "adapt"}, "benchmark search_quality and adapt"),
        ({"dataset": "stamps"}, "dataset demo and stamps"),
        ({"dataset_revision": "r2"}, "revision r1 and r2"),
        ({"photos": {"n_photos": 6, "hash": "def"}}, "photos abc and def"),
        (lambda: {"scores": fewer()}, "queries 12 and 12, 10 of them the same"),
        (lambda: {"manifest": elsewhere(machine="Amiga")}, " and Amiga"),
        (lambda: {"manifest": elsewhere(code="0.9+old")}, " and 0.9+old"),
    ],
)
def test_what_cannot_be_compared_is_said_with_both_values(change, reason):
    other = result(**change() if callable(change) else change)
    difference = incompatibility(result(), other)
    assert difference.endswith(reason)
    assert ";" not in difference
    assert result().setting != other.setting


def test_all_that_differs_is_named():
    other = result(dataset="stamps", dataset_revision="r2")
    assert incompatibility(result(), other) == "dataset demo and stamps; revision r1 and r2"
    swapped = dict(reversed(result().intervals.items()))
    difference = incompatibility(result(), result(intervals=swapped))
    assert difference == "metrics ndcg@10, success@5 and success@5, ndcg@10"


def test_quality_of_two_machines_can_be_compared_their_times_cannot():
    other = result(manifest=elsewhere(machine="Amiga"))
    assert incompatibility(result(), other, timings=False) is None
    assert incompatibility(result(), other) is not None


def test_a_system_is_named_in_words():
    assert system_name(Config(model="mini")) == "mini × exact"
    assert system_name(Config(index="hnsw", M=8, ef_search=20)) == "mini × hnsw M=8 ef=20"
