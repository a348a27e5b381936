"""A small evaluation from a cold start: the ways agree, and medians are of the rows they name."""

import json
import math

import pytest

from benchmarks.search_quality.bench_cold_start import (
    CACHES,
    TIMES,
    check_means,
    draw_task,
    evaluate_once,
    summarise,
)
from benchmarks.search_quality.small_evaluation import DEPTH, METRICS, WAYS, score_by_searchlab
from searchlab.evaluation.datasets import load_dataset

MEANS = dict.fromkeys(METRICS, 0.25)
TASK = {
    "qrels": {"dunes": {"a": 3, "b": 1}, "harbour": {"c": 2}},
    "run": {"dunes": ["x", "b", "a"], "harbour": ["y", "c"]},
}


def row(way, means=MEANS, **more):
    return {"way": way, "cache": "empty", "means": means, **more}


def test_means_that_differ_in_the_last_bits_only_are_the_same():
    check_means([row("searchlab"), row("ranx", {**MEANS, "map@10": 0.25 + 1e-12})])


@pytest.mark.parametrize(
    ("means", "said"),
    [
        ({**MEANS, "map@10": 0.26}, r"map@10 0\.26 from ranx and 0\.25 from searchlab"),
        ({**MEANS, "mrr@10": 0.24}, r"mrr@10 0\.24 from ranx"),
        ({**MEANS, "ndcg@10": math.nan}, r"ndcg@10 nan from ranx"),
        ({name: MEANS[name] for name in METRICS[:-1]}, r"map@10 nan from ranx"),
        ({}, r"ndcg@10 nan from ranx"),
    ],
)
def test_another_mean_is_refused_and_named_and_so_is_none(means, said):
    with pytest.raises(RuntimeError, match=said):
        check_means([row("searchlab"), row("searchlab"), row("ranx", means)])


def test_means_that_no_way_has_are_refused():
    nothing = dict.fromkeys(METRICS, math.nan)
    with pytest.raises(RuntimeError, match="must give the same means"):
        check_means([row("searchlab", nothing), row("ranx", nothing)])


def test_medians_are_of_one_way_one_folder_and_one_time():
    # Each figure is of its own size: thousands the way, hundreds the folder, tens the time.
    def figure(way, cache, name):
        return 1000 * list(WAYS).index(way) + 100 * CACHES.index(cache) + 10 * TIMES.index(name)

    rows = [
        {"way": way, "cache": cache, "means": MEANS}
        | {name: figure(way, cache, name) + run for name in TIMES}
        for run in (0, 5, 1)  # the median is 1, the mean 2
        for way in WAYS
        for cache in CACHES
    ]
    assert summarise(rows) == [
        {"way": way, "cache": cache} | {name: figure(way, cache, name) + 1 for name in TIMES}
        for way in WAYS
        for cache in CACHES
    ]


@pytest.mark.slow
def test_answers_are_drawn_once_for_a_seed_and_hold_what_is_relevant_and_what_is_not():
    dataset = load_dataset("demo").sample(["en", "de"], 20, 0)
    task = draw_task(dataset, 0)
    assert task == draw_task(dataset, 0) != draw_task(dataset, 1)
    assert task["run"].keys() == task["qrels"].keys() == {q.query_id for q in dataset.queries}
    assert all(len(answer) == len(set(answer)) == DEPTH for answer in task["run"].values())
    means = score_by_searchlab(task["qrels"], task["run"])
    assert all(0.1 < mean < 0.9 for mean in means.values()), means


@pytest.mark.slow
def test_a_process_tells_means_and_seconds(tmp_path):
    path = tmp_path / "task.json"
    path.write_text(json.dumps(TASK), encoding="utf-8")
    measured = evaluate_once("searchlab", path, tmp_path / "compiled")
    assert measured["means"]["mrr@10"] == 0.5
    assert measured["means"]["ndcg@10"] == pytest.approx(
        # (1 / log2(3) + 3 / log2(4)) / (3 + 1 / log2(3)), and 1 / log2(3)
        ((0.63093 + 1.5) / 3.63093 + 0.63093) / 2,
        abs=1e-5,
    )
    assert 0 < measured["again_s"] < measured["figures_s"] < measured["process_s"]
    assert measured["cpu_s"] > 0


def test_a_process_that_fails_is_no_time(tmp_path):
    with pytest.raises(RuntimeError, match=r"must end with 0, got 1: [\s\S]*missing\.json"):
        evaluate_once("searchlab", tmp_path / "missing.json", tmp_path)


@pytest.mark.slow
def test_all_ways_give_the_same_means_for_grades_and_short_answers(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")  # compiling ranx takes a minute or more
    path = tmp_path / "task.json"
    path.write_text(json.dumps(TASK), encoding="utf-8")
    of_each = [{"way": way, **evaluate_once(way, path, tmp_path)} for way in WAYS]
    check_means(of_each)
    assert of_each[0]["means"].keys() == set(METRICS)
