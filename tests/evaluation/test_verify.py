import json
from dataclasses import replace

import pytest
from PIL import Image

from searchlab.config import Config
from searchlab.errors import DataError
from searchlab.evaluation.datasets import DATASETS
from searchlab.evaluation.experiments import Experiment
from searchlab.evaluation.provenance import environment
from searchlab.evaluation.provenance import verify as verifying
from searchlab.evaluation.provenance.verify import verify_result
from searchlab.evaluation.results import load_result
from searchlab.search.filters.photo_filter import PhotoFilter
from tests.support import recorded_results
from tests.support.shades import photo_id, reseal

pytestmark = pytest.mark.slow

shades = recorded_results.shades
known = recorded_results.known
cache = recorded_results.cache
recorded = recorded_results.recorded
measured = recorded_results.measured


def test_a_fresh_result_is_verified_and_everything_is_the_same(recorded, cache):
    verification = verify_result(recorded, cache=cache)
    assert verification.status == "verified"
    assert verification.differences == ()
    assert all(check.same for check in verification.checks)
    assert {check.what for check in verification.checks} >= {
        *("code", "machine", "python", "numpy", "config", "model_id of palette"),
        *("weights of palette", "preprocessing of palette", "tokenizer of palette"),
        *("queries of shades", "qrels of shades"),
    }
    assert str(verification).splitlines()[0] == f"verified: {recorded}"


def test_it_needs_neither_cache_nor_library_and_takes_one_that_is_given(recorded, shades, cache):
    assert verify_result(recorded).status == "verified"
    from searchlab.evaluation.datasets.dataset_library import dataset_library

    library = dataset_library(shades, cache, config=Config(model="palette"))
    assert verify_result(recorded, library=library).status == "verified"


# -- tampering ----------------------------------------------------------------------------------


def test_a_number_changed_by_hand_is_found_by_the_seal(recorded):
    text = recorded.read_text(encoding="utf-8")
    value = json.loads(text)["metrics"]["ndcg@10"]
    recorded.write_text(text.replace(f'"ndcg@10": {value}', '"ndcg@10": 0.999'), encoding="utf-8")
    verification = verify_result(recorded)
    assert verification.status == "differs"
    assert "changed after they were written" in str(verification)


@pytest.mark.parametrize("suffix", [".scores.tsv", ".run.gz"])
def test_a_changed_file_beside_it_is_found_by_the_seal(recorded, suffix):
    file = recorded.with_suffix(suffix)
    file.write_bytes(file.read_bytes() + b"\n")
    verification = verify_result(recorded)
    assert verification.status == "differs"
    assert suffix in str(verification)


def test_a_forged_mean_under_a_fresh_seal_is_found_by_computing_again(recorded, cache):
    reseal(recorded, lambda values: values["metrics"].update({"ndcg@10": 0.999}))
    verification = verify_result(recorded, cache=cache)
    assert verification.status == "differs"
    assert verification.differences[0].startswith("metrics.ndcg@10: recorded 0.999, now 0.")


def test_a_forged_interval_under_a_fresh_seal_is_found(recorded, cache):
    def narrower(values):
        values["intervals"]["ndcg@10"]["macro"][1] += 0.01

    reseal(recorded, narrower)
    verification = verify_result(recorded, cache=cache)
    assert [line.partition(":")[0] for line in verification.differences] == [
        "intervals.ndcg@10.macro[1]"
    ]


def test_a_forged_score_of_one_query_under_a_fresh_seal_is_found(recorded, cache):
    file = recorded.with_suffix(".scores.tsv")
    head, first, *rest = file.read_text(encoding="utf-8").splitlines()
    cells = first.split("\t")
    cells[3] = "0.123456"
    file.write_text("\n".join([head, "\t".join(cells), *rest]) + "\n", encoding="utf-8")
    reseal(recorded, lambda values: None)
    verification = verify_result(recorded, cache=cache)
    assert verification.status == "differs"
    assert "ndcg@10: 1 of 5 queries differ, most 'en-blue': recorded 0.123456" in str(verification)


def test_two_photos_that_changed_places_under_a_fresh_seal_are_found(recorded, cache):
    from searchlab.evaluation.datasets.judgments import read_run, write_run

    file = recorded.with_suffix(".run.gz")
    run = read_run(file)
    run["en-red"][1:3] = run["en-red"][2:0:-1]
    write_run(run, file)
    reseal(recorded, lambda values: None)
    verification = verify_result(recorded, cache=cache)
    assert verification.differences == ("run: 1 of 5 rankings differ, first 'en-red'",)


@pytest.mark.parametrize(("column", "name"), [(1, "langs"), (2, "about")])
def test_a_forged_label_of_a_query_under_a_fresh_seal_is_found(recorded, cache, column, name):
    """What belongs together says how much the evidence is worth; the scores stay as they were."""
    file = recorded.with_suffix(".scores.tsv")
    head, first, *rest = file.read_text(encoding="utf-8").splitlines()
    cells = first.split("\t")
    cells[column] = "other"
    file.write_text("\n".join([head, "\t".join(cells), *rest]) + "\n", encoding="utf-8")
    reseal(recorded, lambda values: None)
    verification = verify_result(recorded, cache=cache)
    assert verification.differences == (f"{name} of the queries: not those of the dataset",)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"n_queries": 5000}, "n_queries: recorded 5000, now 5"),
        ({"dataset_revision": "r0"}, "dataset_revision: recorded r0, now r1"),
        ({"task": "text"}, "task: recorded text, now mixed"),
        ({"system": "clip × exact"}, "system: recorded clip × exact, now palette × hnsw"),
    ],
)
def test_whatever_else_prose_may_quote_is_compared_too(recorded, cache, change, line):
    reseal(recorded, lambda values: values.update(change))
    verification = verify_result(recorded, cache=cache)
    assert verification.status == "differs"
    assert verification.differences[0].startswith(line)


def test_scores_taken_off_the_seal_do_not_pass_for_another_kind_of_measurement(recorded, cache):
    def forged(values):
        values["metrics"]["ndcg@10"] = 0.999
        del values["files"][recorded.with_suffix(".scores.tsv").name]

    reseal(recorded, forged)
    verification = verify_result(recorded, cache=cache)
    assert verification.status == "differs"
    assert "scores.tsv under its seal" in str(verification)
    with pytest.raises(DataError, match=r"scores\.tsv under its seal"):
        load_result(recorded)


@pytest.mark.parametrize("part", ["config", "manifest"])
def test_a_sealed_file_without_a_part_is_said_and_ends_nothing(recorded, measured, part):
    reseal(recorded, lambda values: values.update({part: None}))
    reseal(measured, lambda values: values.update({"config_id": "0" * 12, part: None}))
    for path in (recorded, measured):
        assert verify_result(path).status == "differs"


def test_a_file_of_endless_nesting_is_refused_like_any_other_damage(tmp_path):
    path = tmp_path / "deep.json"
    path.write_text("[" * 200_000, encoding="utf-8")
    assert verify_result(path).status == "differs"


# -- surroundings -------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["model_id", "weights", "preprocessing", "tokenizer"])
def test_another_part_of_the_model_is_named_and_nothing_is_computed(recorded, monkeypatch, part):
    reseal(recorded, lambda values: values["manifest"]["models"][0].update({part: "0" * 12}))
    monkeypatch.setattr(verifying, "recompute_result", None)
    verification = verify_result(recorded)
    assert (verification.status, verification.differences) == (
        "differs",
        (f"another {part} of palette",),
    )
    assert f"{part} of palette: recorded 000000000000, here " in str(verification)


def test_another_configuration_than_its_hash_is_named(recorded):
    reseal(recorded, lambda values: values["config"].update({"steering": 0.7}))
    assert "of another config" in verify_result(recorded).differences[0]


def test_a_configuration_of_another_version_is_named(recorded):
    reseal(recorded, lambda values: values["config"].update({"speed": 0.7}))
    verification = verify_result(recorded)
    assert verification.status == "differs"
    assert "must have only the fields" in verification.differences[0]


def test_other_judgments_and_other_queries_are_told_apart(recorded, shades, monkeypatch):
    other = replace(shades, qrels={**shades.qrels, "like-red": {photo_id("white"): 2}})
    monkeypatch.setitem(DATASETS, "shades", lambda: other)
    assert verify_result(recorded).differences == ("another qrels of shades",)
    reworded = replace(shades.queries[0], text="scarlet")
    other = replace(shades, queries=(reworded, *shades.queries[1:]))
    monkeypatch.setitem(DATASETS, "shades", lambda: other)
    assert verify_result(recorded).differences == ("another queries of shades",)
    monkeypatch.setitem(DATASETS, "shades", lambda: shades.only(["en-red"]))
    verification = verify_result(recorded)
    assert verification.status == "differs"
    assert "must be ids of queries of 'shades'" in verification.differences[0]


def test_another_photo_is_found_by_computing_again(recorded, shades, tmp_path):
    file = tmp_path / "other.png"
    Image.new("RGB", (32, 24), "#777777").save(file)
    records = (shades.records[0] | {"file": str(file)}, *shades.records[1:])
    DATASETS["shades"] = lambda: replace(shades, records=records)
    verification = verify_result(recorded)
    assert verification.status == "differs"
    assert verification.differences[0].startswith("photos: recorded")


def test_other_code_and_another_machine_are_said_and_do_no_harm(recorded, cache, monkeypatch):
    monkeypatch.setattr(environment, "code_of", lambda *names: "9.9+new")
    monkeypatch.setattr(environment, "machine", lambda: "Amiga")
    verification = verify_result(recorded, cache=cache)
    assert verification.status == "verified"
    assert "here 9.9+new, differs" in str(verification)
    assert "here Amiga, differs" in str(verification)


def test_a_package_that_is_gone_is_said(recorded, cache):
    reseal(recorded, lambda values: values["manifest"]["packages"].update({"no-such": "1.0"}))
    verification = verify_result(recorded, cache=cache)
    assert verification.status == "verified"
    assert "no-such: recorded 1.0, here none, differs" in str(verification)


# -- what cannot be done, or is not to be ---------------------------------------------------------


def test_a_dataset_that_is_not_here_is_said_and_not_passed_silently(recorded, monkeypatch):
    monkeypatch.delitem(DATASETS, "shades")
    verification = verify_result(recorded)
    assert verification.status == "not here"
    assert verification.remark.startswith("cannot be recomputed here: a dataset must be one of")
    assert "got 'shades'; name the folder of your own dataset with `--dataset FOLDER`" in (
        verification.remark
    )


def test_a_model_that_cannot_be_had_is_said(recorded):
    reseal(recorded, lambda values: values["manifest"]["models"][0].update({"spec": "onnx:/no"}))
    verification = verify_result(recorded)
    assert verification.status == "not here"
    assert "cannot be recomputed here: an onnx model must be a folder" in verification.remark


def test_a_dataset_that_is_not_here_hides_no_other_weights(recorded, monkeypatch):
    reseal(recorded, lambda values: values["manifest"]["models"][0].update({"weights": "0" * 12}))
    monkeypatch.delitem(DATASETS, "shades")
    assert verify_result(recorded).status == "differs"


def test_quick_computes_nothing_and_still_finds_other_data(recorded, shades, monkeypatch):
    monkeypatch.setattr(verifying, "recompute_result", None)
    assert verify_result(recorded, quick=True).status == "sealed"
    other = replace(shades, qrels={**shades.qrels, "like-red": {photo_id("white"): 2}})
    monkeypatch.setitem(DATASETS, "shades", lambda: other)
    assert verify_result(recorded, quick=True).status == "differs"


def test_a_result_under_a_filter_is_asked_again_under_it(shades, cache, tmp_path):
    from searchlab.evaluation.datasets.dataset_library import dataset_library

    config = Config(model="palette")
    table = dataset_library(shades, cache, config=config).engine.table
    filtered = shades.under(PhotoFilter(color_hex="#ffffff", color_tolerance=5), table)
    assert {query.query_id for query in filtered.queries} == {"en-white", "like-red"}
    (result,) = Experiment(filtered, [config], cache=cache, out=tmp_path).run().results
    path = result.path(tmp_path)
    assert verify_result(path, cache=cache).status == "verified"
    assert verify_result(path, quick=True).status == "sealed"
    reseal(path, lambda values: values["manifest"]["data"].update({"filter": {"source": ["x"]}}))
    assert verify_result(path, cache=cache).status != "verified"
