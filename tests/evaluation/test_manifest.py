import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from searchlab.errors import InputError
from searchlab.evaluation.provenance import manifest as manifests
from searchlab.evaluation.provenance.manifest import (
    data_hashes,
    machine,
    make_manifest,
    models_of,
    refuse_changes,
)
from searchlab.evaluation.provenance.registry import code_of
from searchlab.search.filters.photo_filter import PhotoFilter
from tests.support.bundled import bundled


@pytest.fixture(scope="module")
def demo():
    return bundled("demo")


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


# -- the commit -------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A checkout whose `searchlab/manifest.py` takes the place of the module."""
    cached = (manifests.commit, manifests.checkout, manifests.changed_files)
    for one in cached:
        one.cache_clear()
    code = tmp_path / "tree/searchlab/manifest.py"
    code.parent.mkdir(parents=True)
    code.write_text("x = 1\n")
    root = tmp_path / "tree"
    monkeypatch.setattr(manifests, "__file__", str(code))

    def git(*arguments):
        who = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
        subprocess.run(["git", "-C", str(root), *who, *arguments], check=True, capture_output=True)
        for one in cached:
            one.cache_clear()

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "the first one")
    yield root, git
    for one in cached:
        one.cache_clear()


def test_a_clean_tree_may_record_and_names_its_commit(tree):
    root, _ = tree
    (root / "results").mkdir()
    (root / "results/a.json").write_text("{}")  # records and documents change no figure
    (root / "README.md").write_text("words")
    refuse_changes(root / "results")
    assert re.fullmatch(r"[0-9a-f]{12}", manifests.commit())
    assert "changes" not in make_manifest("search_quality")


@pytest.mark.parametrize("name", ["searchlab/manifest.py", "searchlab/new.py", "benchmarks/b.py"])
def test_changed_and_new_code_may_not_record_into_its_own_checkout(tree, name):
    root, git = tree
    file = root / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("x = 2\n")
    with pytest.raises(InputError, match=f"got changes in {name}; commit them, or give --allow"):
        refuse_changes(root / "results/deep")
    refuse_changes(root.parent / "elsewhere")
    assert manifests.commit().endswith("+")
    assert make_manifest("search_quality")["changes"] == [name]
    git("add", ".")
    git("commit", "-qm", "the second one")
    refuse_changes(root / "results")
    assert not manifests.commit().endswith("+")


def test_outside_of_a_checkout_nothing_is_refused_and_no_commit_is_named(tmp_path, monkeypatch):
    for one in (manifests.commit, manifests.checkout, manifests.changed_files):
        one.cache_clear()
    monkeypatch.setattr(manifests, "__file__", str(Path(tmp_path) / "searchlab/manifest.py"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    refuse_changes(tmp_path)
    assert manifests.commit() == ""
    manifests.checkout.cache_clear()
    manifests.commit.cache_clear()


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


def test_queries_hashed_when_filters_had_fewer_fields_are_known_again(demo):
    sample = demo.sample(["en"], 5, 0)
    today = data_hashes(sample)["queries"]

    def older(changed=""):
        described = []
        for query in sorted(sample.queries, key=lambda query: query.query_id):
            texts = {name: repr(getattr(query, name)) for name in ("query_id", "lang", "kind")}
            conditions = repr(query.filter).replace(" palette=(),", "")
            texts["filter"] = conditions.replace(", before_date=None", "")
            described.append(texts | {"text": repr(query.text + changed)})
        return manifests._hash_of(described)

    assert older() != today
    assert data_hashes(sample, recorded=older())["queries"] == older()
    assert data_hashes(sample, recorded=older("!"))["queries"] == today
    assert data_hashes(sample, recorded=today)["queries"] == today
