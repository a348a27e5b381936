import copy
import json
import sys
import types
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from searchlab.config import Config
from searchlab.errors import DataError, InputError, NotFoundError
from searchlab.evaluation.datasets import DATASETS
from searchlab.evaluation.experiments import Experiment
from searchlab.evaluation.promotion import BENCHMARK as PROMOTION
from searchlab.evaluation.promotion import promote
from searchlab.evaluation.provenance import environment
from searchlab.evaluation.provenance import verify as verifying
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.evaluation.provenance.measurement import (
    measurement_path,
    read_measurement,
    write_measurement,
)
from searchlab.evaluation.provenance.registry import STUDIES, Study, study_of
from searchlab.evaluation.provenance.reproduce import differences
from searchlab.evaluation.provenance.verify import verify, verify_result
from searchlab.evaluation.results import load_result
from searchlab.search.filters.photo_filter import PhotoFilter
from tests.support.shades import make_shades, photo_id, reseal

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def shades(tmp_path_factory):
    return make_shades(tmp_path_factory.mktemp("shades"))


@pytest.fixture(autouse=True)
def known(monkeypatch, shades):
    monkeypatch.setitem(DATASETS, "shades", lambda: shades)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def recorded(shades, cache, tmp_path):
    """A fresh result of the graph, on its way to be tampered with."""
    config = Config(model="palette", index="hnsw", step_rows=0, depth=3)
    experiment = Experiment(shades, [config], cache=cache, out=tmp_path / "results")
    (result,) = experiment.run().results
    return result.path(tmp_path / "results")


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
    assert [line.partition(":")[0] for line in verification.differences] == ["intervals.ndcg@10.macro[1]"]


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
    assert (verification.status, verification.differences) == ("differs", (f"another {part} of palette",))
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


# -- other measurements -----------------------------------------------------------------------


def toy_study(monkeypatch, recompute=None):
    """Register a study as a newcomer would: a module, and a line that names it."""
    module = types.ModuleType("toy_module")
    module.recompute = recompute
    monkeypatch.setitem(sys.modules, "toy_module", module)
    how = {"recompute": "toy_module:recompute"} if recompute else {"sealed": "it is a toy"}
    monkeypatch.setitem(STUDIES, "toy_study", Study(("searchlab.evaluation.metrics",), **how))


@pytest.fixture
def measured(tmp_path, monkeypatch):
    toy_study(monkeypatch)
    values = {
        "benchmark": "toy_study",
        "dataset": "shades",
        "name": "all",
        "parameters": {"n": 3},
        "metrics": {"share": 0.5, "p50_ms": 9.0},
        "rows": [{"ef": 10, "recall": 0.25}, {"ef": 20, "recall": 0.75}],
        "manifest": make_manifest("toy_study"),
    }
    return write_measurement(measurement_path(tmp_path, "toy_study", "shades", "all"), values)


def test_timings_are_sealed_and_name_the_command_that_measures_again(measured):
    verification = verify_result(measured)
    assert verification.status == "sealed"
    assert "it is a toy: measure again with `" in verification.remark


def test_a_study_computes_its_figures_again(measured, monkeypatch):
    def recompute(measurement):
        rows = [
            {"ef": 10, "recall": 0.25},
            {"ef": 20, "recall": 0.25 * measurement["parameters"]["n"]},
        ]
        return {"metrics": {"share": 0.5}, "rows": rows}

    toy_study(monkeypatch, recompute)
    assert verify_result(measured).status == "verified"
    assert verify_result(measured, quick=True).status == "sealed"
    reseal(measured, lambda values: values["rows"][1].update({"recall": 0.8}))
    verification = verify_result(measured)
    assert verification.differences == ("rows[1].recall: recorded 0.8, now 0.75",)


def test_a_record_that_says_why_it_comes_out_otherwise_is_told_as_sealed(measured, monkeypatch):
    toy_study(monkeypatch, lambda measurement: {"metrics": {"share": 0.75}})
    assert verify_result(measured).status == "differs"
    reseal(
        measured,
        lambda values: values["manifest"].update({"known_difference": "the toy was mended"}),
    )
    answer = verify_result(measured)
    assert answer.status == "sealed"
    assert answer.remark.endswith("known difference: the toy was mended")


def test_a_measurement_of_no_study_is_not_passed_as_sealed(measured, monkeypatch):
    monkeypatch.delitem(STUDIES, "toy_study")
    verification = verify_result(measured)
    assert verification.status == "differs"
    assert verification.differences == (
        "a benchmark must have a line in STUDIES, got 'toy_study'; add it there",
    )


def test_a_study_whose_data_is_not_here_says_so(measured, monkeypatch):
    def recompute(measurement):
        msg = "no photos"
        raise NotFoundError(msg)

    toy_study(monkeypatch, recompute)
    verification = verify_result(measured)
    assert (verification.status, verification.remark) == ("not here", "cannot be recomputed here: no photos")


def test_a_chosen_configuration_is_held_to_the_result_that_it_names(recorded, cache, tmp_path):
    chosen = promote(load_result(recorded), recorded.parents[2] / "chosen.json")
    verification = verify_result(chosen)
    assert verification.status == "sealed"
    assert verification.remark == "sealed, as is the result that it was chosen by"
    reseal(recorded, lambda values: values["metrics"].update({"p50_ms": 0.001}))
    assert verify_result(chosen).status == "differs"
    chosen = promote(load_result(recorded), chosen)
    reseal(chosen, lambda values: values["metrics"].update({"ndcg@10": 0.999}))
    assert verify_result(chosen).differences[0].startswith("metrics.ndcg@10: recorded 0.999, now")
    recorded.unlink()
    verification = verify_result(chosen)
    assert verification.status == "not here"
    assert "must be kept beside it" in verification.remark


def test_a_dataset_of_ones_own_is_given(recorded, shades, cache, monkeypatch):
    monkeypatch.delitem(DATASETS, "shades")
    assert verify_result(recorded, dataset=shades, cache=cache).status == "verified"
    other = replace(shades, name="others")
    assert verify_result(recorded, dataset=other, cache=cache).status == "not here"


# -- comparing ----------------------------------------------------------------------------------

FIGURES = {"metrics": {"a": 0.5, "b": 3}, "rows": [{"x": 1.0, "name": "n"}, {"x": None}]}
NUMBERS = (("metrics", "a"), ("metrics", "b"), ("rows", 0, "x"))


def test_a_figure_that_rounds_to_the_other_side_is_the_same():
    assert differences({"skill": 0.025092}, {"skill": 0.025091}) == []
    assert len(differences({"skill": 0.025092}, {"skill": 0.025090})) == 1


@given(way=st.sampled_from(NUMBERS), off=st.floats(-1e6, 1e6))
def test_each_number_may_be_off_by_a_millionth_and_no_more(way, off):
    now = copy.deepcopy(FIGURES)
    *above, last = way
    inner = now
    for key in above:
        inner = inner[key]
    old = inner[last]
    inner[last] = old + off
    lines = differences(FIGURES, now)
    assert len(lines) == (abs(inner[last] - old) > 1.01e-6 * max(1, abs(old)))


@pytest.mark.parametrize(
    ("now", "line"),
    [
        ({"metrics": {"c": 1}}, "metrics.c: not recorded, now 1"),
        ({"rows": [{"x": 1.0}]}, "rows: recorded 2 values, now 1"),
        ({"rows": [{"name": "m"}, {}]}, "rows[0].name: recorded n, now m"),
        ({"rows": [{}, {"x": 0.0}]}, "rows[1].x: recorded None, now 0.0"),
        ({"metrics": {"a": True}}, "metrics.a: recorded 0.5, now True"),
        ({"metrics": {"a": float("nan")}}, "metrics.a: recorded 0.5, now nan"),
        ({"metrics": [0.5, 3]}, "metrics: recorded {'a': 0.5, 'b': 3}, now [0.5, 3]"),
    ],
)
def test_whatever_else_differs_has_a_line(now, line):
    assert differences(FIGURES, now) == [line]


def test_what_is_not_computed_again_is_not_compared():
    assert differences(FIGURES, {"metrics": {"b": 3}}) == []


# -- folders ------------------------------------------------------------------------------------


def test_a_folder_is_verified_file_by_file_and_a_file_once(recorded, measured, tmp_path, cache):
    verifications = list(verify([tmp_path, recorded], cache=cache))
    assert [one.status for one in verifications] == ["verified", "sealed"]
    assert [one.path for one in verifications] == [recorded, measured]


def test_a_path_without_results_is_refused(tmp_path):
    with pytest.raises(NotFoundError, match="must be a result or a folder of results, got no "):
        list(verify([tmp_path / "none"]))
    (tmp_path / "README.md").write_text("# Results")
    with pytest.raises(NotFoundError, match=r"must hold a measurement \(\.json\), got none"):
        list(verify([tmp_path]))
    with pytest.raises(InputError, match=r"got .*README\.md"):
        list(verify([tmp_path / "README.md"]))


def test_a_measurement_of_an_earlier_schema_is_not_verified(tmp_path):
    path = tmp_path / "old.json"
    path.write_text('{"schema": 1}')
    assert verify_result(path).status == "differs"


@pytest.mark.parametrize(
    "path", sorted(RESULTS.rglob("*.json")), ids=lambda path: str(path.relative_to(RESULTS))
)
def test_every_committed_result_is_sealed_and_its_study_is_known(path):
    values = read_measurement(path)
    study_of(values["benchmark"])
    place = measurement_path(RESULTS, values["benchmark"], values["dataset"], values["name"])
    # What is in force lies on top; it is found by its name, not by its data.
    assert path == (RESULTS / "chosen.json" if values["benchmark"] == PROMOTION else place)
