"""Judgments of several people are merged by rule; simulated judges err as told."""

import numpy as np
import pytest

from searchlab.errors import InputError, MismatchError
from searchlab.evaluation.judging.agreement import agreement
from searchlab.evaluation.judging.grading import Grading
from searchlab.evaluation.judging.merge import (
    build_judged_dataset,
    merge_grades,
    missed,
    read_grades,
)
from searchlab.evaluation.judging.pools import Pair, pool_runs
from searchlab.evaluation.judging.simulated import simulate_judge
from searchlab.evaluation.metrics import per_query
from tests.support import judging_world
from tests.support.judging_world import IDS, RUNS, TEXTS, picture, run_of

dataset = judging_world.dataset
pool = judging_world.pool
grading = judging_world.grading

# -- merging ----------------------------------------------------------------------------------

P, Q = Pair("dunes", IDS["a"]), Pair("dunes", IDS["b"])


@pytest.mark.parametrize(
    ("grades", "rule", "merged"),
    [
        ([0, 2, 3], "median", 2),
        ([1, 2], "median", 1),
        ([0, 0, 3, 3], "median", 0),
        ([2, 2, 0], "majority", 2),
        ([2, 0], "majority", None),
        ([1, 1, 0, 0], "majority", None),
        ([2, 2, 2], "strict", 2),
        ([2, 2, 1], "strict", None),
        ([2], "strict", 2),
    ],
)
def test_grades_are_merged_by_rule(grades, rule, merged):
    by_judge = {str(judge): {P: grade} for judge, grade in enumerate(grades)}
    expected = {} if merged is None else {"dunes": {IDS["a"]: merged}}
    assert merge_grades(by_judge, rule=rule) == expected


def test_what_a_judge_has_not_graded_is_not_strict_and_not_zero():
    by_judge = {"ann": {P: 2, Q: 3}, "ben": {P: 2}}
    assert merge_grades(by_judge, rule="strict") == {"dunes": {IDS["a"]: 2}}
    assert merge_grades(by_judge, rule="median") == {"dunes": {IDS["a"]: 2, IDS["b"]: 3}}


def test_an_unknown_rule_is_refused():
    with pytest.raises(
        InputError, match="rule must be one of majority, median, strict, got 'mean'"
    ):
        merge_grades({"ann": {P: 2}}, rule="mean")


def test_journals_of_other_pools_or_of_one_judge_twice_are_not_mixed(pool, dataset, tmp_path):
    for judge in ("ann", "ben"):
        Grading(pool, tmp_path / judge, judge=judge, pictures=picture).choose(3)
    grades = read_grades([tmp_path / "ann", tmp_path / "ben"])
    assert {judge: list(by_pair.values()) for judge, by_pair in grades.items()} == {
        "ann": [3],
        "ben": [3],
    }
    Grading(pool, tmp_path / "ann2", judge="ann", pictures=picture)
    small = pool_runs(dataset, RUNS, depth=1)
    Grading(small, tmp_path / "cyd", judge="cyd", pictures=picture)
    for wrong in ("ann2", "cyd"):
        with pytest.raises(MismatchError, match="grades of one pool, one file a judge"):
            read_grades([tmp_path / "ann", tmp_path / wrong])
    with pytest.raises(InputError, match="at least one"):
        read_grades([])


def test_new_judgments_make_a_dataset_and_say_what_they_leave_out(dataset):
    made = build_judged_dataset(
        dataset, {"dunes": {IDS["a"]: 3, IDS["b"]: 0}, "qasr": {IDS["c"]: 0}}
    )
    assert [query.query_id for query in made.queries] == ["dunes"]
    assert made.qrels == {"dunes": {IDS["a"]: 3, IDS["b"]: 0}}
    assert (made.name, made.n_dropped) == ("shelf-judged", 1)
    assert made.revision != dataset.revision
    assert made.photo_ids == dataset.photo_ids
    graded = {"dunes": {IDS["a"]: 3}, "meer": {IDS["a"]: 1}}
    assert [q.query_id for q in build_judged_dataset(dataset, graded).queries] == ["dunes", "meer"]
    assert [q.query_id for q in build_judged_dataset(dataset, graded, least=2).queries] == ["dunes"]
    with pytest.raises(InputError):
        build_judged_dataset(dataset, {"dunes": {"nowhere": 1}})
    with pytest.raises(InputError):
        build_judged_dataset(dataset, {"dunes": {IDS["a"]: 0}})


def test_random_photos_bound_what_the_pool_has_missed(dataset):
    pool = pool_runs(dataset, {"one": run_of(dunes="ab")}, random_share=1)
    first, second = sorted(pool.drawn)
    bound = missed(pool, {"dunes": {first.photo_id: 0, second.photo_id: 2, IDS["a"]: 3}})
    assert (bound.n_drawn, bound.n_relevant) == (2, 1)
    assert bound.most == pytest.approx(0.95**0.5)  # above it, one or none of two is rarer than 5 %
    assert missed(pool, {}).most == 1


# -- simulated judges -------------------------------------------------------------------------

TRUTH = {"dunes": {IDS["a"]: 3, IDS["d"]: 2}, "qasr": {IDS["f"]: 3}, "meer": {IDS["b"]: 1}}


def test_a_judge_without_errors_gives_back_the_truth(pool, grading):
    assert simulate_judge(grading, TRUTH, error=0) == len(pool)
    truth = {pair: TRUTH[pair.query_id].get(pair.photo_id, 0) for pair in pool.pairs}
    assert grading.grades == truth
    qrels = merge_grades({"ann": grading.grades})
    judged = per_query(qrels, RUNS["qqq-other"], ["judged@3"])["judged@3"]
    assert judged.tolist() == [1, 1, 1]


def test_a_judge_errs_as_often_as_told_and_by_one_grade(dataset, tmp_path):
    runs = {"one": {query_id: list(IDS.values()) for query_id in TEXTS}}
    grades = dict(zip(IDS.values(), (1, 2, 3, 1, 2, 3, 3, 0), strict=True))
    truth = dict.fromkeys(TEXTS, grades)
    n_off = {True: [], False: []}
    for seed in range(12):
        pool = pool_runs(dataset, runs, depth=8, seed=seed)
        grading = Grading(pool, tmp_path / f"{seed}", judge="ann", pictures=picture)
        simulate_judge(grading, truth, error=0.25, seed=seed)
        off = {p: abs(g - truth[p.query_id].get(p.photo_id, 0)) for p, g in grading.grades.items()}
        assert max(off.values()) <= 1
        assert all(0 <= grade <= 3 for grade in grading.grades.values())
        for pair, steps in off.items():
            n_off[pair.photo_id == IDS["h"]].append(steps)
    assert np.mean(n_off[False]) == pytest.approx(0.25, abs=0.06)
    assert np.mean(n_off[True]) == pytest.approx(0.025, abs=0.05)


def test_a_judge_goes_home_and_comes_back(pool, grading, tmp_path):
    assert simulate_judge(grading, TRUTH, error=0, most=3) == 3
    again = Grading(pool, tmp_path / "ann.jsonl", judge="ann", pictures=picture)
    assert simulate_judge(again, TRUTH, error=0) == len(pool) - 3
    ben = Grading(pool, tmp_path / "ben.jsonl", judge="ben", pictures=picture)
    simulate_judge(ben, TRUTH, error=0)
    assert agreement({"ann": again.grades, "ben": ben.grades}).alpha.mean == 1
