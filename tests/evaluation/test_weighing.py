"""Which configuration is promoted over several tasks, and what is written down for it."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from searchlab.config import Config
from searchlab.config.word_weights import USUAL_WORDS
from searchlab.errors import ConflictError, InputError
from searchlab.evaluation.provenance.measurement import read_measurement
from searchlab.evaluation.reporting.reading import promotion
from searchlab.evaluation.reports import Report
from searchlab.evaluation.weighing import TEXTS_THERE, TEXTS_WITHHELD, Task, WeighedTasks
from tests.support.made_results import MINI, PALETTE, result

HYBRID = replace(MINI, words=USUAL_WORDS)


def weighed(mini, hybrid, *, weights=(TEXTS_WITHHELD, TEXTS_THERE), folder=None):
    """Two tasks; each system loses some of the easy scores on each."""
    tasks = []
    for dataset, shifts, weight in zip(
        ("demo", "demo-written"), zip(mini, hybrid, strict=True), weights, strict=True
    ):
        results = [
            result(config, shift=shift, dataset=dataset)
            for config, shift in zip((MINI, HYBRID), shifts, strict=True)
        ]
        if folder is not None:
            for one in results:
                one.save(folder)
        tasks.append(Task(Report(results), weight))
    return WeighedTasks(tasks)


def test_the_weights_of_the_two_tasks_add_up_to_one():
    assert TEXTS_WITHHELD + TEXTS_THERE == 1


def test_a_gain_on_one_task_and_none_on_the_other_is_chosen():
    both = weighed(mini=(0.2, 0.2), hybrid=(0.2, 0.1))
    assert both.comparison.chosen.config == HYBRID
    assert both.comparison.groups[1][0].config == MINI


def test_a_small_gain_does_not_outweigh_a_large_loss():
    both = weighed(mini=(0.0, 0.2), hybrid=(0.3, 0.1))
    assert both.comparison.chosen.config == MINI
    rarely_withheld = weighed(mini=(0.0, 0.2), hybrid=(0.3, 0.1), weights=(0.1, 0.9))
    assert rarely_withheld.comparison.chosen.config == HYBRID


def test_times_are_those_of_the_last_task_whose_result_is_promoted():
    tasks = [
        Task(Report([result(MINI, dataset=name), result(HYBRID, dataset=name)]), 0.5)
        for name in ("demo", "demo-written")
    ]
    for task, p50_ms in zip(tasks, (1.0, 7.0), strict=True):
        for one in task.comparison.results:
            one.metrics["p50_ms"] = p50_ms
    assert {one.metrics["p50_ms"] for one in WeighedTasks(tasks).comparison.results} == {7.0}


def test_scores_of_each_query_are_weighed_and_results_stay():
    both = weighed(mini=(0.2, 0.0), hybrid=(0.2, 0.1), weights=(0.25, 0.75))
    one = next(r for r in both.comparison.results if r.config == HYBRID)
    parts = [
        next(r for r in task.comparison.results if r.config == HYBRID).scores.values["ndcg@10"]
        for task in both.tasks
    ]
    assert one.scores.values["ndcg@10"] == pytest.approx(0.25 * parts[0] + 0.75 * parts[1])
    assert one.metrics["ndcg@10"] == pytest.approx(one.intervals["ndcg@10"].macro.mean)
    assert one.dataset == "demo and demo-written"
    assert one.dataset_revision == hashlib.sha256(b"r1 r1").hexdigest()[:12]
    assert not np.array_equal(one.scores.values["ndcg@10"], parts[1])


def test_what_is_chosen_is_told_beside_the_next_that_is_worse_and_no_other():
    tasks = [
        Task(Report([result(MINI), *(result(c, shift=s) for c, s in others)]), 0.5)
        for others in [((HYBRID, 0.3), (PALETTE, 0.5))] * 2
    ]
    told = WeighedTasks(tasks).explain()
    assert told.count("is shown to be worse") == 1
    assert "mini × exact + words" in told
    assert "palette" not in told


def test_promotion_writes_the_figures_of_every_task(tmp_path):
    both = weighed(mini=(0.2, 0.2), hybrid=(0.2, 0.1), folder=tmp_path)
    path = both.promote(tmp_path / "chosen.json")
    assert Config.load(path) == HYBRID
    values = read_measurement(path)
    assert (values["dataset"], values["system"]) == ("demo-written", "mini × exact + words")
    tasks = values["evidence"]["tasks"]
    assert [(task["dataset"], task["weight"]) for task in tasks] == [
        ("demo", 0.5),
        ("demo-written", 0.5),
    ]
    for task in tasks:
        sealed = read_measurement(tmp_path / task["result"]["path"])
        assert sealed["digest"] == task["result"]["digest"]
        assert sealed["config_id"] == HYBRID.config_id
    assert "weighed: 50% demo" in " ".join(promotion(values))
    assert "mini × exact + words" in both.explain()


def test_of_three_tasks_the_last_one_gives_the_figures_in_force(tmp_path):
    shares = {"demo": 0.5, "demo-written": 0.25, "flickr8k": 0.25}
    tasks = [
        Task(Report([result(MINI, dataset=name, ms=ms)]), shares[name])
        for ms, name in enumerate(shares, 1)
    ]
    (weighted,) = WeighedTasks(tasks).comparison.results
    assert weighted.metrics["p50_ms"] == 3
    path = WeighedTasks(tasks).promote(tmp_path / "chosen.json")
    values = read_measurement(path)
    assert values["dataset"] == "flickr8k"
    assert [task["dataset"] for task in values["evidence"]["tasks"]] == list(shares)


def test_a_worse_one_does_not_replace_it(tmp_path):
    weighed(mini=(0.2, 0.2), hybrid=(0.2, 0.1), folder=tmp_path).promote(tmp_path / "chosen.json")
    worse = WeighedTasks(
        [
            Task(Report([result(PALETTE, shift=0.5, dataset=name)]), 0.5)
            for name in ("demo", "demo-written")
        ]
    )
    with pytest.raises(ConflictError, match="worse config"):
        worse.promote(tmp_path / "chosen.json")


def test_promotion_names_what_it_is_tied_with_and_nothing_else(tmp_path):
    tasks = [
        Task(Report([result(c, shift=s, dataset=name) for c, s in systems]), 0.5)
        for name in ("demo", "demo-written")
        for systems in [[(MINI, 0.0), (HYBRID, 0.0), (PALETTE, 0.5)]]
    ]
    values = read_measurement(WeighedTasks(tasks).promote(tmp_path / "chosen.json"))
    named = {one["config_id"] for one in values["evidence"]["tied_with"]}
    assert named | {values["config_id"]} == {MINI.config_id, HYBRID.config_id}


@pytest.mark.parametrize("weights", [(0.5, 0.6), (1.0, 0.0), (1.5, -0.5)])
def test_weights_must_be_shares(weights):
    with pytest.raises(InputError, match="add up to 1"):
        weighed(mini=(0, 0), hybrid=(0, 0), weights=weights)


def test_tasks_of_other_configurations_are_refused():
    first, second = Report([result(MINI)]), Report([result(HYBRID)])
    with pytest.raises(InputError, match="same configurations"):
        WeighedTasks([Task(first, 0.5), Task(second, 0.5)])
