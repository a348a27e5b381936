import dataclasses
import re
import sys

import numpy as np
import pytest

from searchlab.errors import InputError
from searchlab.evaluation.datasets import load_dataset
from searchlab.evaluation.provenance.manifest import data_hashes, machine, make_manifest, models_of
from searchlab.evaluation.provenance.registry import code_of
from searchlab.search.filters.photo_filter import PhotoFilter


@pytest.fixture(scope="module")
def demo():
    return load_dataset("demo")


def test_a_manifest_names_all_that_figures_depend_on():
    manifest = make_manifest(
        "search_quality", models=models_of("palette"), seed=3, threads=2, batch_size=16
    )
    assert manifest["code"] == code_of("search_quality")
    assert manifest["machine"] == machine()
    assert manifest["packages"]["numpy"] == np.__version__
    assert manifest["python"] == sys.version.split()[0]
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", manifest["date"])
    assert (manifest["seed"], manifest["threads"], manifest["batch_size"]) == (3, 2, 16)
    assert manifest["dtype"] == "float32"
    assert make_manifest("search_quality", packages=["hypothesis"])["packages"].keys() >= {
        "hypothesis",
        "numpy",
    }


def test_a_benchmark_without_a_line_among_the_studies_is_refused():
    with pytest.raises(InputError, match="must have a line in STUDIES, got 'speed'"):
        make_manifest("speed")


def test_the_command_is_kept_without_the_folders_of_this_machine(monkeypatch):
    arguments = ["--data", "/home/ann/lab/x", "--out=/tmp/out", "--model", "onnx:/opt/m", "a/b"]
    monkeypatch.setattr(sys, "argv", ["/usr/bin/bench_speed.py", *arguments])
    expected = "bench_speed.py --data x --out=out --model onnx:m a/b"
    assert make_manifest("search_quality")["command"] == expected


def test_plain_models_are_described_each_once_and_hybrids_by_their_parts():
    models = models_of("hybrid:mini=0.5,palette=0.5", "palette")
    assert [model["spec"] for model in models] == ["mini", "palette"]
    assert all(
        set(model) == {"spec", "model_id", "weights", "preprocessing", "tokenizer"}
        for model in models
    )
    assert models_of("palette") == models[1:]


# -- data -------------------------------------------------------------------------------------


def test_data_hashes_do_not_depend_on_how_queries_were_picked(demo):
    sample = demo.sample(["de", "en"], 5, seed=1)
    ids = [query.query_id for query in sample.queries]
    again = demo.select(languages=["de", "en"]).only(reversed(ids))
    one, other = data_hashes(sample), data_hashes(again)
    assert [one[name] for name in ("queries", "qrels")] == [
        other[name] for name in ("queries", "qrels")
    ]


def test_another_word_or_grade_is_another_hash(demo):
    sample = demo.sample(["en"], 3, seed=0)
    before = data_hashes(sample)
    first, *rest = sample.queries
    reworded = dataclasses.replace(sample, queries=(dataclasses.replace(first, text="x"), *rest))
    assert data_hashes(reworded)["queries"] != before["queries"]
    assert data_hashes(reworded)["qrels"] == before["qrels"]
    photo_id = max(sample.qrels[first.query_id], key=sample.qrels[first.query_id].get)
    graded = {**sample.qrels, first.query_id: {photo_id: 9}}
    judged = data_hashes(dataclasses.replace(sample, qrels=graded))
    assert judged["qrels"] != before["qrels"]
    assert judged["queries"] == before["queries"]


def test_a_filter_that_all_queries_share_is_kept(demo):
    sample = demo.sample(["en"], 3, seed=0)
    assert "filter" not in data_hashes(sample)
    condition = PhotoFilter(orientation=("landscape",), color_name="red")
    filtered = tuple(dataclasses.replace(query, filter=condition) for query in sample.queries)
    hashes = data_hashes(dataclasses.replace(sample, queries=filtered))
    assert PhotoFilter(**hashes["filter"]) == condition
    assert hashes["queries"] != data_hashes(sample)["queries"]
    mixed = dataclasses.replace(sample, queries=(filtered[0], *sample.queries[1:]))
    assert "filter" not in data_hashes(mixed)
