"""A result by what the last leaderboard called it."""

import pytest

from searchlab import grid
from searchlab.errors import InputError, NotFoundError
from searchlab.evaluation.experiments import Experiment
from searchlab.evaluation.reporting.named import find_result
from tests.support import experiment_world

folder, library = experiment_world.folder, experiment_world.library


@pytest.fixture(scope="module")
def measured(folder, library, tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    configs = grid(["palette", "hybrid:palette=1"], ["exact", "hnsw"])
    report = Experiment(
        experiment_world.shades(folder), configs[:3], library=library, out=out
    ).run()
    return out, report


def test_a_place_a_name_a_model_and_a_hash_name_a_result(measured):
    out, report = measured
    for place, result in enumerate(report.results, start=1):
        file = result.path(out)
        names = (str(place), report.names[result.config_id], result.config_id[:6], str(file))
        assert [find_result(name, out) for name in names] == [file] * 4


def test_a_model_that_stands_there_once_is_enough(measured):
    out, report = measured
    models = [result.config.model for result in report.results]
    once = next(model for model in models if models.count(model) == 1)
    (result,) = [one for one in report.results if one.config.model == once]
    assert find_result(once, out) == result.path(out)
    twice = next(model for model in models if models.count(model) == 2)
    with pytest.raises(InputError, match=f"'{twice}' must be a result .* got 2 of them"):
        find_result(twice, out)


def test_an_unknown_name_lists_the_leaderboard(measured):
    out, report = measured
    first = report.results[0]
    with pytest.raises(NotFoundError, match=rf"none of them: 1 .* \({first.config_id}\)"):
        find_result("clip", out)
    with pytest.raises(NotFoundError, match="none of them"):
        find_result("9", out)


def test_a_path_stays_what_it_is(measured, tmp_path):
    assert find_result("no/such.json", measured[0]).as_posix() == "no/such.json"
    assert find_result("mini", tmp_path).as_posix() == "mini"


def test_commands_take_names_and_places(measured, run, monkeypatch):
    out, report = measured
    models = [result.config.model for result in report.results]
    once = next(model for model in models if models.count(model) == 1)
    other = 1 if models[0] != once else 2
    done = run("diff", once, other, "--results", out)
    assert done.code == 0, done.err
    assert once in done.out
    monkeypatch.delenv("SEARCHLAB_DATA", raising=False)
    done = run("promote", once, "--results", out, "--force")
    assert done.code == 0, done.err
    assert (out / "chosen.json").is_file()
