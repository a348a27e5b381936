"""What an experiment has on record is not measured again, unless it must be."""

from contextlib import contextmanager

import pytest

from searchlab.errors import ConflictError
from searchlab.evaluation import experiments
from searchlab.evaluation.experiments import Experiment
from searchlab.evaluation.provenance import manifest
from searchlab.progress import Progress, Step
from tests.support import experiment_world
from tests.support.experiment_world import EXACT, GRAPH, shades

folder = experiment_world.folder
library = experiment_world.library


@pytest.fixture
def counted(monkeypatch):
    """Count the configurations that are measured."""
    measured = []
    original = Experiment.measure

    def measure(self, config, *rest, **named):
        measured.append(config.index)
        return original(self, config, *rest, **named)

    monkeypatch.setattr(Experiment, "measure", measure)
    return measured


def test_what_is_on_record_is_not_measured_again(library, folder, tmp_path, counted):
    dataset = shades(folder)
    first = Experiment(dataset, [EXACT], library=library, out=tmp_path).run()
    both = Experiment(dataset, [EXACT, GRAPH], library=library, out=tmp_path).run()
    assert counted == ["exact", "hnsw"]
    assert first.results[0].to_dict() in [result.to_dict() for result in both.results]


def test_force_measures_again(library, folder, tmp_path, counted):
    dataset = shades(folder)
    for force in (False, True):
        Experiment(dataset, [EXACT], library=library, out=tmp_path).run(force=force)
    assert counted == ["exact", "exact"]


@pytest.mark.parametrize("way", ["force", "replace_unlike"])
def test_what_was_measured_on_other_data_is_replaced_only_when_told_so(
    library, folder, tmp_path, counted, way
):
    Experiment(shades(folder), [GRAPH], library=library, out=tmp_path).run()
    other = Experiment(shades(folder, revision="r2"), [EXACT, GRAPH], library=library, out=tmp_path)
    with pytest.raises(ConflictError, match=r"revision r1 on record and r2 here; .*--out.*--force"):
        other.run()
    assert counted == ["hnsw"]
    assert len(list(tmp_path.rglob("*.json"))) == 1
    report = other.run(**{way: True})
    assert counted == ["hnsw", "exact", "hnsw"]
    assert {result.dataset_revision for result in report.results} == {"r2"}


def test_other_revision_metrics_code_or_machine_are_measured_again(
    library, folder, tmp_path, counted, monkeypatch
):
    Experiment(shades(folder), [EXACT], library=library, out=tmp_path).run()
    renewed = Experiment(shades(folder, revision="r2"), [EXACT], library=library, out=tmp_path)
    renewed.run(replace_unlike=True)
    renewed.run(replace_unlike=True)
    assert len(counted) == 2
    other = {"out": tmp_path, "metrics": ["mrr@5"]}
    Experiment(shades(folder, revision="r2"), [EXACT], library=library, **other).run()
    assert len(counted) == 3
    for place, name in enumerate(("code_of", "machine"), start=4):
        for module in (manifest, experiments):
            monkeypatch.setattr(module, name, lambda *names: "another")
        Experiment(shades(folder, revision="r2"), [EXACT], library=library, **other).run()
        assert len(counted) == place


def test_intervals_of_another_seed_are_drawn_again(library, folder, tmp_path, counted):
    for seed in (0, 1, 1):
        Experiment(shades(folder), [EXACT], library=library, out=tmp_path, seed=seed).run()
    assert len(counted) == 2


def test_damaged_record_is_measured_again(library, folder, tmp_path, counted):
    report = Experiment(shades(folder), [EXACT], library=library, out=tmp_path).run()
    report.results[0].path(tmp_path).write_text("{", encoding="utf-8")
    Experiment(shades(folder), [EXACT], library=library, out=tmp_path).run()
    assert len(counted) == 2


class Interrupting(Progress):
    """Stops the work at a moment, as Ctrl-C does."""

    def __init__(self, moment):
        self.moment = moment

    @contextmanager
    def step(self, name, total=None, *, unit=""):
        if self.moment in name:
            raise KeyboardInterrupt
        yield Step(advance=lambda count: None, note=self.noted)

    def noted(self, text):
        if self.moment in text:
            raise KeyboardInterrupt


@pytest.mark.parametrize("moment", ["system 2 of 2", "hnsw M=16 ef=100, scoring"])
def test_interrupted_it_goes_on_with_the_configuration_that_it_was_at(
    library, folder, tmp_path, counted, moment
):
    experiment = Experiment(shades(folder), [EXACT, GRAPH], library=library, out=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        experiment.run(Interrupting(moment))
    assert len(list(tmp_path.rglob("*.json"))) == 1
    counted.clear()
    assert len(experiment.run().results) == 2
    assert counted == ["hnsw"]


def test_a_record_whose_ranking_is_gone_is_measured_again(library, folder, tmp_path, counted):
    experiment = Experiment(shades(folder), [EXACT], library=library, out=tmp_path)
    (result,) = experiment.run().results
    result.path(tmp_path).with_suffix(".run.gz").unlink()
    experiment.run()
    assert len(counted) == 2


@pytest.mark.slow
def test_on_record_no_library_is_made(folder, tmp_path, monkeypatch):
    experiment = Experiment(shades(folder), [EXACT], out=tmp_path)
    first = experiment.run()
    monkeypatch.setattr(experiments, "open_dataset_library", None)
    assert experiment.run().results[0].to_dict() == first.results[0].to_dict()
