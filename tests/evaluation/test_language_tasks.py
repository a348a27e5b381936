"""An experiment by tasks: the figures of one process, and nothing is done twice."""

from collections import deque
from dataclasses import replace

import numpy as np
import pytest

from searchlab.cluster.runners import LocalRunner, open_runner
from searchlab.errors import ConflictError, InputError, SearchlabError
from searchlab.evaluation import language_tasks
from searchlab.evaluation.experiments import Experiment
from searchlab.evaluation.provenance.registry import STUDIES
from searchlab.evaluation.recommending import recommend
from searchlab.evaluation.reporting.frontier import frontier_rows
from searchlab.evaluation.reporting.reading import reading
from searchlab.evaluation.results import SHARED
from searchlab.library.cache import ContentCache
from searchlab.progress import Progress
from tests.support import experiment_world
from tests.support.experiment_world import EXACT, GRAPH, shades

folder = experiment_world.folder
library = experiment_world.library


@pytest.fixture
def experiment(library, folder, tmp_path):
    return Experiment(shades(folder), [EXACT, GRAPH], library=library, out=tmp_path / "out")


class Noting(LocalRunner):
    """Notes the tasks that run; stops after some of them, or lets one fail."""

    def __init__(self, most=99, failing=""):
        self.names, self.most, self.failing = [], most, failing

    def run(self, function, waiting, *shared):
        def noted(task, *rest):
            self.names.append(task.name)
            if self.failing and self.failing in task.name:
                raise OSError(5, "the disk is full")
            function(task, *rest)

        for ended in super().run(noted, waiting, *shared):
            if len(self.names) > self.most:
                raise KeyboardInterrupt
            yield ended


def languages(names):
    return [tuple(name.split(", ")[1:]) for name in names]


def files(experiment):
    return sorted(path.name for path in experiment.out.rglob("*") if path.is_file())


def test_quality_is_that_of_one_process(experiment, library, folder, tmp_path):
    alone = Experiment(shades(folder), [EXACT, GRAPH], library=library, out=tmp_path / "alone")
    here, there = alone.run(), experiment.run(runner=open_runner("local"))
    for one, other in zip(here.results, there.results, strict=True):
        assert other.intervals == one.intervals
        assert other.scores.query_ids == one.scores.query_ids
        assert {n: v.tolist() for n, v in other.scores.values.items()} == {
            n: v.tolist() for n, v in one.scores.values.items()
        }
        assert other.photos == one.photos
        rankings = [
            result.path(out).with_suffix(".run.gz").read_bytes()
            for result, out in ((one, alone.out), (other, experiment.out))
        ]
        assert rankings[0] == rankings[1]
    assert files(experiment) == files(alone)  # nothing but the results is left


def test_what_a_killed_worker_had_begun_is_deleted(experiment):
    experiment.run(runner=Noting(most=99))
    parts = experiment.out / "search_quality" / "shades" / "parts"

    class Killed(Noting):
        def run(self, function, waiting, *shared):
            for task in waiting:
                task.path.parent.mkdir(exist_ok=True)
                task.path.with_name(f"{task.path.name}.0a.part").write_bytes(b"half")
            yield from super().run(function, waiting, *shared)

    experiment.run(runner=Killed(), force=True)
    assert not parts.exists()


def test_the_folder_of_parts_stays_while_a_worker_may_write_there(experiment, monkeypatch):
    dropped = []

    def drop(tasks):
        language_tasks.drop_answers(tasks)
        dropped.append(tasks[0].path.parent.is_dir())

    monkeypatch.setattr("searchlab.evaluation.experiments.drop_answers", drop)
    experiment.run(runner=Noting())
    assert dropped == [True, True]
    assert not list(experiment.out.rglob("parts"))


def test_a_library_that_is_indexed_meanwhile_is_not_measured_on(experiment):
    class Late(Noting):
        def run(self, function, waiting, searched):
            yield from super().run(function, waiting, replace(searched, snapshot_id="earlier"))

    with pytest.raises(
        SearchlabError, match=r"must stay at snapshot earlier while measured, got \S+; run it again"
    ):
        experiment.run(runner=Late())


def test_every_language_of_a_configuration_is_a_task(experiment):
    runner = Noting()
    experiment.run(runner=runner)
    assert [lang for _, lang in languages(runner.names)] == ["de", "en", "de", "en"]
    assert len({config for config, _ in languages(runner.names)}) == 2
    assert all(name.startswith("shades, palette-") for name in runner.names)


def test_what_is_on_record_is_not_done_again(experiment):
    first, second = experiment.run(runner=Noting()), Noting()
    again = experiment.run(runner=second)
    assert second.names == []
    assert [one.to_dict() for one in again.results] == [one.to_dict() for one in first.results]
    experiment.run(runner=second, force=True)
    assert len(second.names) == 4


def test_interrupted_it_goes_on_with_the_tasks_that_were_under_way(experiment):
    with pytest.raises(KeyboardInterrupt):
        experiment.run(runner=Noting(most=2))  # the third ends, and nobody hears of it
    assert len(list(experiment.out.rglob("*.json"))) == 1
    rest = Noting()
    assert len(experiment.run(runner=rest).results) == 2
    assert [lang for _, lang in languages(rest.names)] == ["en"]


def test_other_code_does_everything_again(experiment, monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        experiment.run(runner=Noting(most=1))
    for module in ("experiments", "language_tasks", "provenance.manifest"):
        monkeypatch.setattr(f"searchlab.evaluation.{module}.code_of", lambda name: "another")
    rest = Noting()
    experiment.run(runner=rest)
    assert len(rest.names) == 4
    assert not list(experiment.out.rglob("*.gz"))[2:]  # the two rankings: what was left is gone


def with_a_bit_turned(content):
    return bytes([*content[:14], content[14] ^ 0xFF, *content[15:]])


@pytest.mark.parametrize("damage", [lambda content: content[:40], with_a_bit_turned])
def test_a_damaged_file_is_made_again(experiment, damage):
    with pytest.raises(KeyboardInterrupt):
        experiment.run(runner=Noting(most=1))
    for path in experiment.out.rglob("parts/*.gz"):
        path.write_bytes(damage(path.read_bytes()))
    rest = Noting()
    experiment.run(runner=rest)
    assert len(rest.names) == 4


def test_workers_find_what_was_embedded_last_though_the_cache_is_open_elsewhere(
    experiment, library
):
    class Looking(Noting):
        def run(self, function, waiting, searched):
            with ContentCache(searched.cache) as cache:
                self.known = cache.known_vectors("m", ["k"])
            yield from super().run(function, waiting, searched)

    looking = Looking()
    with ContentCache(library.folder / "cache.db") as held:
        assert not held.known_vectors("m", ["k"])
        with library.cache() as cache:
            cache.keep(vectors=[("m", ["k"], np.zeros((1, 8), np.float32))])
        experiment.run(runner=looking)
    assert looking.known == {"k"}
    assert not list(experiment.out.rglob("parts"))


def test_an_error_is_told_with_the_name_of_its_task_and_the_others_are_kept(experiment):
    said = []

    class Hearing(Progress):
        def say(self, text):
            said.append(text)

    failing = Noting(failing="hnsw")
    with pytest.raises(SearchlabError, match=r"all 4 tasks must end, got 2 .*, such as shades, "):
        experiment.run(Hearing(), runner=failing)
    assert len(said) == 2
    assert "palette-hnsw" in said[0]
    assert "the disk is full" in said[0]
    assert len(list(experiment.out.rglob("*.json"))) == 1
    rest = Noting()
    experiment.run(runner=rest)
    assert len(rest.names) == 2


def test_workers_must_write_where_the_results_lie(experiment, monkeypatch):
    class Losing(LocalRunner):
        def run(self, function, waiting, *shared):
            yield from ((task, None) for task in waiting)

    with pytest.raises(SearchlabError, match="must be a folder that all nodes mount alike"):
        experiment.run(runner=Losing())


def test_a_worker_with_other_code_is_refused(experiment, monkeypatch):
    monkeypatch.setattr(language_tasks, "code_of", lambda name: "another")
    with pytest.raises(SearchlabError, match=r"every node must have code .*, got another"):
        experiment.run(runner=LocalRunner())


def test_the_record_says_that_its_times_are_none(experiment):
    report = experiment.run(runner=LocalRunner())
    assert {result.manifest["machine"] for result in report.results} == {SHARED}
    assert not any(result.is_timed for result in report.results)
    assert [row.count("–") for row in report.rows()] == [4, 4]
    assert "no time is shown, and all systems count as fast" in report.text()


@pytest.mark.slow
def test_times_on_record_are_kept_unless_told_otherwise(experiment):
    assert experiment.run().results[0].is_timed
    with pytest.raises(ConflictError, match=r"must keep its times, .*--out.*--force"):
        experiment.run(runner=LocalRunner())
    assert not experiment.run(runner=LocalRunner(), force=True).results[0].is_timed
    assert experiment.run().results[0].is_timed  # times are worth measuring


def test_a_runner_needs_a_folder(library, folder):
    with pytest.raises(InputError, match="must have a folder that its workers write to"):
        Experiment(shades(folder), [EXACT], library=library).run(runner=LocalRunner())


def test_only_what_measures_no_times_shares_machines():
    sharing = [name for name, study in STUDIES.items() if study.shares_machines]
    assert "search_quality" in sharing
    timed = [name for name in sharing if "times" in STUDIES[name].sealed]
    assert timed == ["search_quality"]  # whose records say so


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Exception ignored in. <function Popen")  # Ray leaves them
def test_on_ray_it_is_the_same(experiment, library, folder, tmp_path):
    pytest.importorskip("ray", reason="ray: pip install 'searchlab[cluster]'")
    here = experiment.run(runner=LocalRunner())
    other = Experiment(shades(folder), [EXACT, GRAPH], library=library, out=tmp_path / "ray")
    there = other.run(runner=open_runner("ray:local"))
    assert [one.intervals for one in there.results] == [one.intervals for one in here.results]
    assert files(other) == files(experiment)
    nothing = Noting()
    other.run(runner=nothing)
    assert nothing.names == []


def test_tasks_are_taken_in_turn():
    waiting = deque([1, 2])
    assert [item for item, _ in LocalRunner().run(print, waiting)] == [1, 2]


def test_advice_needs_times(experiment):
    report = experiment.run(runner=LocalRunner())
    with pytest.raises(InputError, match="advice weighs times, got results of shared machines"):
        recommend(report)
    assert {row[3] for row in frontier_rows(report)} == {"–"}
    assert "ms for a new query" not in " ".join(reading(report))
