import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.errors import InputError
from searchlab.evaluation.metrics import (
    METRICS,
    cutoff,
    evaluate,
    parse_metric,
    per_query,
    quality,
    run_depth,
)
from tests.support.judged_runs import random_task


def read_qrels(text):
    qrels = {}
    for line in text.split("\n"):
        if line.strip():
            query_id, _, photo_id, grade = line.split()
            qrels.setdefault(query_id, {})[photo_id] = int(grade)
    return qrels


QRELS = read_qrels("""
    dunes   0  a  3
    dunes   0  b  1
    dunes   0  x  0
    harbour 0  c  2
""")
ALL = [
    "ndcg@3",
    "ndcg_exp@3",
    "recall@3",
    "success@3",
    "mrr@3",
    "map@3",
    "precision@3",
    "judged@3",
    "ndcg@3/condensed",
    "map@3/condensed",
    "recall@3/l2",
    "map@3/condensed/l2",
]


# -- by hand ----------------------------------------------------------------------------------


def test_scores_match_hand_computed_fractions():
    run = {"dunes": ["x", "a", "z", "b"], "harbour": ["c"]}
    values = per_query(QRELS, run, ALL)
    ideal = 3 / math.log2(2) + 1 / math.log2(3)
    ideal_exp = 7 / math.log2(2) + 1 / math.log2(3)
    condensed = (3 / math.log2(3) + 1 / math.log2(4)) / ideal  # x a b
    assert values["ndcg@3"] == pytest.approx([(3 / math.log2(3)) / ideal, 1.0])
    assert values["ndcg_exp@3"] == pytest.approx([(7 / math.log2(3)) / ideal_exp, 1.0])
    assert values["recall@3"] == pytest.approx([1 / 2, 1.0])
    assert values["success@3"] == pytest.approx([1.0, 1.0])
    assert values["mrr@3"] == pytest.approx([1 / 2, 1.0])
    assert values["map@3"] == pytest.approx([1 / 4, 1.0])
    assert values["precision@3"] == pytest.approx([1 / 3, 1 / 3])
    assert values["judged@3"] == pytest.approx([2 / 3, 1.0])
    assert values["ndcg@3/condensed"] == pytest.approx([condensed, 1.0])
    assert values["map@3/condensed"] == pytest.approx([(1 / 2 + 2 / 3) / 2, 1.0])
    assert values["recall@3/l2"] == pytest.approx([1.0, 1.0])
    assert values["map@3/condensed/l2"] == pytest.approx([1 / 2, 1.0])


def test_values_come_in_the_order_of_the_metrics_asked_for():
    assert list(per_query(QRELS, {}, ALL[::-1])) == ALL[::-1]


def test_a_photo_below_the_level_is_not_relevant():
    qrels = {"q": {"a": 1, "b": 2}}
    names = ["recall@1", "recall@1/l2", "success@1/l2", "mrr@2/l2", "precision@2/l2", "map@2/l2"]
    assert per_query(qrels, {"q": ["a", "b"]}, names) == {
        "recall@1": pytest.approx([1 / 2]),
        "recall@1/l2": pytest.approx([0.0]),
        "success@1/l2": pytest.approx([0.0]),
        "mrr@2/l2": pytest.approx([1 / 2]),
        "precision@2/l2": pytest.approx([1 / 2]),
        "map@2/l2": pytest.approx([1 / 2]),
    }


def test_a_condensed_list_passes_over_what_nobody_judged_however_much_it_is():
    qrels = {"q": {"a": 1, "no": 0}}
    run = {"q": [*(f"unjudged-{n}" for n in range(50)), "no", "a"]}
    values = evaluate(qrels, run, ["mrr@2", "mrr@2/condensed", "mrr@1/condensed"])
    assert values == {"mrr@2": 0.0, "mrr@2/condensed": 0.5, "mrr@1/condensed": 0.0}


def test_a_photo_judged_not_relevant_stays_in_a_condensed_list():
    qrels = {"q": {"a": 1, "no": 0}}
    assert evaluate(qrels, {"q": ["no", "a"]}, ["precision@1/condensed"]) == {
        "precision@1/condensed": 0.0
    }


def test_judged_counts_grades_of_zero_and_only_what_was_found():
    qrels = {"q": {"a": 1, "no": 0}, "silent": {"a": 1}}
    run = {"q": ["no", "x", "a"], "silent": []}
    values = per_query(qrels, run, ["judged@1", "judged@2", "judged@10"])
    assert values["judged@1"].tolist() == [1.0, 0.0]
    assert values["judged@2"].tolist() == [0.5, 0.0]
    assert values["judged@10"].tolist() == pytest.approx([2 / 3, 0.0])


def test_short_runs_are_not_stretched():
    qrels = {"q": {"a": 1, "b": 1}}
    values = evaluate(qrels, {"q": ["a"]}, ["precision@10", "recall@10", "map@10", "ndcg@10"])
    assert values["precision@10"] == pytest.approx(1 / 10)
    assert values["recall@10"] == pytest.approx(1 / 2)
    assert values["map@10"] == pytest.approx(1 / 2)
    assert values["ndcg@10"] == pytest.approx(1 / (1 + 1 / math.log2(3)))


def test_more_relevant_photos_than_the_cut_off_can_be_answered_perfectly_by_ndcg_alone():
    qrels = {"q": {"a": 1, "b": 1, "c": 1, "d": 1}}
    values = evaluate(qrels, {"q": ["a", "b"]}, ["ndcg@2", "recall@2", "precision@2"])
    assert values == pytest.approx({"ndcg@2": 1.0, "recall@2": 1 / 2, "precision@2": 1.0})


def test_gain_is_linear():
    swapped = evaluate({"q": {"a": 3, "b": 1}}, {"q": ["b", "a"]}, ["ndcg@2"])
    linear = (1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3))
    assert swapped == {"ndcg@2": pytest.approx(linear)}


def test_unanswered_query_counts_as_zero():
    assert evaluate(QRELS, {"harbour": ["c"]}, ["ndcg@10"]) == {"ndcg@10": pytest.approx(0.5)}


def test_system_that_says_nothing_scores_zero():
    assert evaluate(QRELS, {}, ALL) == dict.fromkeys(ALL, 0.0)
    assert evaluate(QRELS, {"dunes": [], "harbour": []}, ALL) == dict.fromkeys(ALL, 0.0)


def test_gain_of_ndcg_exp_is_two_to_the_grade_less_one():
    swapped = evaluate({"q": {"a": 3, "b": 1}}, {"q": ["b", "a"]}, ["ndcg_exp@2"])
    burges = (1 + 7 / math.log2(3)) / (7 + 1 / math.log2(3))
    assert swapped == {"ndcg_exp@2": pytest.approx(burges)}


def test_the_highest_grade_has_a_finite_gain():
    qrels = {"q": {"a": 1000, "b": 1000}}
    assert evaluate(qrels, {"q": ["a", "b"]}, ["ndcg_exp@2"]) == {"ndcg_exp@2": pytest.approx(1.0)}


def test_answers_to_unjudged_queries_are_left_out():
    run = {"harbour": ["c"], "dunes": ["a", "b"], "nobody asked": ["a"]}
    assert evaluate(QRELS, run, ["ndcg@10"]) == {"ndcg@10": pytest.approx(1.0)}


def test_values_stand_in_the_order_of_sorted_query_ids():
    qrels = {f"q{n}": {f"p{m}": 1 for m in range(n + 1)} for n in (3, 0, 2, 1)}
    run = {"q3": ["p0"], "q0": ["p0"], "q2": ["p0"], "q1": ["p0"]}
    assert per_query(qrels, run, ["recall@5"])["recall@5"] == pytest.approx(
        [1, 1 / 2, 1 / 3, 1 / 4]
    )


def test_order_of_equally_good_photos_is_the_order_of_the_run():
    qrels = {"q": {"c": 1}}
    assert evaluate(qrels, {"q": ["a", "b", "c"]}, ["mrr@3"]) == {"mrr@3": pytest.approx(1 / 3)}
    assert evaluate(qrels, {"q": ["c", "a", "b"]}, ["mrr@3"]) == {"mrr@3": pytest.approx(1.0)}


def test_photos_behind_the_cut_off_do_not_count():
    run = {"dunes": ["x", "y", "z", "a"], "harbour": ["c"]}
    assert per_query(QRELS, run, ["success@3", "success@4"])["success@3"].tolist() == [0, 1]
    assert per_query(QRELS, run, ["success@3", "success@4"])["success@4"].tolist() == [1, 1]


def test_small_batches_give_the_same_values(monkeypatch):
    rng = np.random.default_rng(0)
    qrels, run = random_task(rng, n_queries=40)
    whole = per_query(qrels, run, ALL)
    monkeypatch.setattr(quality, "_CELLS", 20)
    parts = per_query(qrels, run, ALL)
    assert all(whole[name].tolist() == parts[name].tolist() for name in ALL)


# -- condensed lists ------------------------------------------------------------------------


@pytest.mark.parametrize("ours", ["mrr@5/condensed", "recall@2/condensed", "ndcg@2/condensed"])
def test_a_condensed_list_is_the_list_without_what_nobody_judged(ours):
    qrels, run = random_task(np.random.default_rng(4), n_queries=60)
    shorter = {i: [photo for photo in answer if photo in qrels[i]] for i, answer in run.items()}
    plain = ours.removesuffix("/condensed")
    assert per_query(qrels, run, [ours])[ours].tolist() == (
        per_query(qrels, shorter, [plain])[plain].tolist()
    )


# -- invariance -------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ALL)
def test_a_metric_has_the_same_values_alone_and_among_others(metric):
    qrels, run = random_task(np.random.default_rng(5), n_queries=20)
    together = per_query(qrels, run, ALL)[metric].tolist()
    assert per_query(qrels, run, [metric])[metric].tolist() == together


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.randoms(use_true_random=False))
def test_order_of_queries_and_photos_in_the_mappings_does_not_matter(random):
    qrels, run = random_task(np.random.default_rng(2), n_queries=12)
    shuffled = {
        query_id: dict(random.sample(sorted(qrels[query_id].items()), len(qrels[query_id])))
        for query_id in random.sample(sorted(qrels), len(qrels))
    }
    assert per_query(shuffled, run, ALL)["ndcg@3"].tolist() == (
        per_query(qrels, run, ALL)["ndcg@3"].tolist()
    )


# -- names ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "ndcg",
        "ndcg@0",
        "ndcg@-1",
        "hit_rate@5",
        "ndcg@10 ",
        "",
        "recall@10/l1",
        "recall@10/l0",
        "recall@10/l2/condensed",
        "recall@10/condensed/condensed",
        "recall@10/",
        "ndcg@1٣",
    ],
)
def test_unknown_metric_is_refused_with_the_list(name):
    listed = "ndcg@k, ndcg_exp@k, recall@k, success@k, mrr@k, map@k, precision@k, judged@k"
    with pytest.raises(InputError, match=f"one of {listed}, with k from 1"):
        evaluate(QRELS, {}, [name])


@pytest.mark.parametrize("name", ["ndcg@10/l2", "ndcg_exp@10/condensed/l2", "judged@10/l2"])
def test_a_metric_that_does_not_ask_what_is_relevant_takes_no_level(name):
    with pytest.raises(InputError, match="must have no level"):
        parse_metric(name)


def test_judged_is_not_condensed():
    with pytest.raises(InputError, match="judged must not be condensed"):
        parse_metric("judged@10/condensed")


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_has_a_line_in_the_description_of_the_names(name):
    assert f"\n    {name}@k " in sys.modules[parse_metric.__module__].__doc__


def test_cutoff_is_the_number_behind_the_at():
    assert cutoff("recall@100") == 100
    assert cutoff("recall@7/condensed/l3") == 7


def test_a_run_is_as_deep_as_its_deepest_metric_and_as_the_collection_for_condensed_lists():
    assert run_depth(["ndcg@10", "recall@100"], 349) == 100
    assert run_depth(["ndcg@10", "recall@500"], 349) == 349
    assert run_depth(["ndcg@10", "map@5/condensed"], 349) == 349


# -- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [{"b": 0.1, "a": 0.9}, "a", ""])
def test_scores_by_photo_and_one_text_are_no_ranking(answer):
    with pytest.raises(InputError, match="must list photo_ids, best first, got"):
        evaluate({"q": {"a": 1}}, {"q": answer}, ["mrr@10"])
    with pytest.raises(InputError, match="qrels must be no name or path"):
        evaluate("qrels.tsv", {"q": ["a"]}, ["mrr@10"])


def test_photo_named_twice_is_refused():
    with pytest.raises(InputError, match="got 'a' twice for 'dunes'"):
        evaluate(QRELS, {"dunes": ["a", "a"]}, ["ndcg@10"])


def test_photo_named_twice_behind_the_cut_off_is_refused_too():
    with pytest.raises(InputError, match="got 'b' twice for 'dunes'"):
        evaluate(QRELS, {"dunes": ["a", "b", "b"]}, ["ndcg@1"])


@pytest.mark.parametrize("padding", [None, "", "-1", -1, "None", "nan", float("nan"), "NULL", " a"])
def test_padding_in_a_run_is_refused(padding):
    with pytest.raises(InputError, match=r"a run must name photos, no padding, got .* for 'dunes'"):
        evaluate(QRELS, {"dunes": ["a", padding], "harbour": ["c"]}, ["ndcg@1"])


@pytest.mark.parametrize("grade", [-1, 0.5, True, "1", None, float("nan"), 1001])
def test_grades_that_are_no_whole_numbers_from_0_are_refused(grade):
    with pytest.raises(InputError, match=r"whole numbers from 0 to 1000, got .* for 'b' of 'q'"):
        evaluate({"q": {"a": 1, "b": grade}}, {"q": ["a"]}, ["ndcg@10"])


def test_padding_is_named_with_the_query_that_has_it():
    with pytest.raises(InputError, match=r"no padding, got '-1' for 'harbour'"):
        evaluate(QRELS, {"dunes": ["a"], "harbour": ["c", "-1"]}, ["ndcg@1"])


@pytest.mark.parametrize("padding", ["", "-1", "None"])
def test_judgments_of_padding_are_refused(padding):
    with pytest.raises(InputError, match="qrels must give photos whole numbers"):
        evaluate({"q": {"a": 1, padding: 1}}, {"q": ["a"]}, ["ndcg@10"])


@pytest.mark.parametrize("grades", [{}, {"x": 0}])
def test_a_query_that_no_system_can_answer_is_an_error_not_a_zero(grades):
    with pytest.raises(InputError, match="must have a photo of grade 1 or above, got none for 'r'"):
        evaluate({"q": {"a": 1}, "r": grades}, {"q": ["a"]}, ["ndcg@10"])


@pytest.mark.parametrize("metric", ["ndcg@10/condensed", "map@10/condensed/l2"])
def test_condensing_to_relevant_photos_alone_is_an_error_not_a_perfect_score(metric):
    with pytest.raises(InputError, match=f"judged not relevant for '{metric}'"):
        evaluate({"q": {"a": 2}, "r": {"b": 3}}, {"q": ["x", "a"]}, [metric])
    assert evaluate({"q": {"a": 2, "no": 0}}, {"q": ["no", "a"]}, [metric])[metric] < 1


def test_a_query_that_no_system_can_answer_at_the_level_is_an_error_not_a_zero():
    with pytest.raises(InputError, match="must have a photo of grade 2 or above, got none for 'q'"):
        evaluate({"q": {"a": 1}}, {"q": ["a"]}, ["recall@10", "recall@10/l2"])


def test_condensing_mostly_to_relevant_photos_says_for_how_many_queries():
    qrels = {"a": {"x": 1, "y": 0}} | {f"q{number}": {"x": 1} for number in range(3)}
    run = {query_id: ["x"] for query_id in qrels}
    with pytest.raises(InputError, match="got relevant ones alone for 3 of 4 queries"):
        evaluate(qrels, run, ["ndcg@10/condensed"])
    qrels |= {"q0": {"x": 1, "y": 0}}
    assert evaluate(qrels, run, ["ndcg@10/condensed"]) == {"ndcg@10/condensed": 1.0}


def test_grades_of_numpy_are_whole_numbers():
    qrels = {"a": {"x": np.int64(2), "y": np.uint8(0)}}
    assert evaluate(qrels, {"a": ["x"]}, ["ndcg@10"]) == {"ndcg@10": 1.0}
    with pytest.raises(InputError, match="whole numbers from 0"):
        evaluate({"a": {"x": True}}, {"a": ["x"]}, ["ndcg@10"])


def test_one_name_is_no_list_of_metrics():
    with pytest.raises(InputError, match=r"must be a list of names, got 'ndcg@10'; give \['ndcg"):
        evaluate({"a": {"x": 1}}, {"a": ["x"]}, "ndcg@10")


def test_no_judgments_or_no_metrics_are_refused():
    with pytest.raises(InputError, match="must not be empty"):
        evaluate({}, {}, ["ndcg@10"])
    with pytest.raises(InputError, match="must not be empty"):
        evaluate(QRELS, {}, [])
