"""Files of results are named for people, and found by the hash at the end of their names."""

import re
import shutil
from dataclasses import replace

import pytest

from searchlab.config import Config
from searchlab.errors import DataError
from searchlab.evaluation.experiments import Experiment
from searchlab.evaluation.file_names import find_result_file, is_named_by, result_stem
from searchlab.evaluation.provenance.measurement import read_measurement, write_measurement
from searchlab.evaluation.reporting.named import find_result
from searchlab.evaluation.reports import load_report
from searchlab.evaluation.results import load_result, read_run_beside
from tests.support import experiment_world
from tests.support.experiment_world import EXACT, GRAPH, shades
from tests.support.made_results import MINI, PALETTE, result

folder, library = experiment_world.folder, experiment_world.library
ENDINGS = (".json", ".scores.tsv", ".run.gz")


def name_by_hash_alone(path, config_id):
    """Make a result as earlier versions named it, with its seal over these names."""
    values = read_measurement(path)
    beside = []
    for ending in ENDINGS[1:]:
        if path.with_suffix(ending).exists():
            beside.append(path.with_name(f"{config_id}{ending}"))
            path.with_suffix(ending).rename(beside[-1])
    path.unlink()
    return write_measurement(path.with_name(f"{config_id}.json"), values, beside=beside)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("mini", "mini-exact"),
        ("hybrid:mini=0.85,palette=0.15", "hybrid-mini-0.85-palette-0.15-exact"),
        ("openclip:hf-hub:org/ViT-B-16", "openclip-hf-hub-org-vit-b-16-exact"),
        ("onnx:/home/ann lee/models/clip.v2", "onnx-clip-v2-exact"),
        ("onnx:../models/Größe", "onnx-groe-exact"),
        ("vectors:C:\\photos\\dino", "vectors-dino-exact"),
        ("夜", "exact"),
        ("../..", "exact"),
        ("m" * 300, "m" * 48 + "-exact"),
    ],
)
def test_a_name_says_the_model_and_the_index_and_ends_with_the_hash(model, words):
    config = Config(model=model)
    assert result_stem(config) == f"{words}-{config.config_id}"
    assert re.fullmatch(r"[a-z0-9][a-z0-9.-]{0,79}", result_stem(config))


def test_configurations_of_one_model_and_index_have_files_of_their_own(tmp_path):
    other = replace(MINI, ef_search=MINI.ef_search + 1)
    paths = [result(config).save(tmp_path) for config in (MINI, other)]
    assert len({path.name.rpartition("-")[0] for path in paths}) == 1
    assert [load_result(path).config for path in paths] == [MINI, other]
    assert [find_result_file(paths[0].parent, config) for config in (MINI, other)] == paths


def test_a_file_is_found_by_its_whole_hash_only(tmp_path):
    path = result(PALETTE).path(tmp_path)
    path.parent.mkdir(parents=True)
    path.with_name(f"f{PALETTE.config_id}.json").touch()
    assert not is_named_by(path.with_name(f"f{PALETTE.config_id}.json"), PALETTE.config_id)
    assert result(PALETTE).path(tmp_path) == path


def test_a_result_under_the_hash_of_another_is_refused(tmp_path):
    path = result(PALETTE).save(tmp_path)
    wrong = path.with_name(f"palette-exact-{MINI.config_id}.json")
    shutil.copy(path, wrong)
    with pytest.raises(DataError, match=f"result of {PALETTE.config_id}, whose file's name must"):
        load_result(wrong)


def test_a_result_named_by_its_hash_alone_is_read_and_not_measured_again(
    library, folder, tmp_path, monkeypatch
):
    experiment = Experiment(shades(folder), [EXACT, GRAPH], library=library, out=tmp_path)
    (first, second) = experiment.run().results
    old = name_by_hash_alone(first.path(tmp_path), first.config_id)
    assert first.path(tmp_path) == old
    assert len(read_run_beside(old)) == first.n_queries
    assert len(load_report(old.parent).results) == 2
    assert find_result(first.config_id[:6], tmp_path) == old
    monkeypatch.setattr(Experiment, "measure", None)  # would fail if anything were measured
    again = experiment.run()
    assert {one.config_id for one in again.results} == {first.config_id, second.config_id}


def test_measured_again_it_has_a_name_for_people_and_no_second_file(library, folder, tmp_path):
    experiment = Experiment(shades(folder), [EXACT], library=library, out=tmp_path)
    (first,) = experiment.run().results
    old = name_by_hash_alone(first.path(tmp_path), first.config_id)
    experiment.run(force=True)
    names = sorted(path.name for path in old.parent.iterdir())
    assert names == sorted(f"palette-exact-{first.config_id}{ending}" for ending in ENDINGS)


def test_the_name_of_its_file_names_a_result_too(library, folder, tmp_path):
    report = Experiment(shades(folder), [EXACT, GRAPH], library=library, out=tmp_path).run()
    for one in report.results:
        assert find_result(one.path(tmp_path).stem, tmp_path) == one.path(tmp_path)
