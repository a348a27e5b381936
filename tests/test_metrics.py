import math
import subprocess
import sys
from typing import NamedTuple

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab import metrics
from searchlab.errors import InputError
from searchlab.metrics import cutoff, evaluate, latency, per_query, recall_at_k


class Neighbors(NamedTuple):
    rows: np.ndarray
    scores: np.ndarray


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
ALL = ["ndcg@3", "recall@3", "success@3", "mrr@3", "map@3", "precision@3"]


def test_scores_match_hand_computed_fractions():
    run = {"dunes": ["x", "a", "z", "b"], "harbour": ["c"]}
    values = per_query(QRELS, run, ALL)
    ideal = 3 / math.log2(2) + 1 / math.log2(3)
    assert values["ndcg@3"] == pytest.approx([(3 / math.log2(3)) / ideal, 1.0])
    assert values["recall@3"] == pytest.approx([1 / 2, 1.0])
    assert values["success@3"] == pytest.approx([1.0, 1.0])
    assert values["mrr@3"] == pytest.approx([1 / 2, 1.0])
    assert values["map@3"] == pytest.approx([1 / 4, 1.0])
    assert values["precision@3"] == pytest.approx([1 / 3, 1 / 3])


def test_gain_is_linear():
    swapped = evaluate({"q": {"a": 3, "b": 1}}, {"q": ["b", "a"]}, ["ndcg@2"])
    linear = (1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3))
    assert swapped == {"ndcg@2": pytest.approx(linear)}


def test_unanswered_query_counts_as_zero():
    assert evaluate(QRELS, {"harbour": ["c"]}, ["ndcg@10"]) == {"ndcg@10": pytest.approx(0.5)}


def test_system_that_says_nothing_scores_zero():
    assert evaluate(QRELS, {}, ALL) == dict.fromkeys(ALL, 0.0)
    assert evaluate(QRELS, {"dunes": [], "harbour": []}, ALL) == dict.fromkeys(ALL, 0.0)


def test_query_without_a_relevant_photo_scores_zero():
    assert evaluate({"q": {"x": 0}}, {"q": ["x", "y"]}, ALL) == dict.fromkeys(ALL, 0.0)


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
    monkeypatch.setattr(metrics, "_CELLS", 20)
    parts = per_query(qrels, run, ALL)
    assert all(whole[name].tolist() == parts[name].tolist() for name in ALL)


def random_task(rng, *, n_queries):
    photos = [f"p{number:02}" for number in range(30)]
    qrels, run = {}, {}
    for number in range(n_queries):
        judged = rng.choice(photos, size=rng.integers(1, 12), replace=False)
        qrels[f"q{number:02}"] = {str(p): int(rng.integers(0, 4)) for p in judged}
        ranked = rng.permutation(photos)[: rng.integers(0, 25)]
        run[f"q{number:02}"] = [str(p) for p in ranked]
    return qrels, run


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("ndcg@10", ir_measures.nDCG @ 10),
        ("recall@5", ir_measures.R @ 5),
        ("success@5", ir_measures.Success @ 5),
        ("mrr@10", ir_measures.RR @ 10),
        ("map@10", ir_measures.AP @ 10),
        ("precision@10", ir_measures.P @ 10),
    ],
)
def test_agrees_with_ir_measures_on_random_runs(ours, theirs):
    qrels, run = random_task(np.random.default_rng(1), n_queries=60)
    scored = {
        query_id: {photo_id: 1 / rank for rank, photo_id in enumerate(ranked, 1)}
        for query_id, ranked in run.items()
    }
    expected = dict.fromkeys(qrels, 0.0)
    expected |= {m.query_id: m.value for m in ir_measures.iter_calc([theirs], qrels, scored)}
    assert per_query(qrels, run, [ours])[ours] == pytest.approx(
        [expected[q] for q in sorted(qrels)]
    )


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


@pytest.mark.parametrize("name", ["ndcg", "ndcg@0", "ndcg@-1", "hit_rate@5", "ndcg@10 ", ""])
def test_unknown_metric_is_refused_with_the_list(name):
    with pytest.raises(InputError, match=r"ndcg@k, recall@k, success@k, mrr@k, map@k, precision@k"):
        evaluate(QRELS, {}, [name])


def test_cutoff_is_the_number_behind_the_at():
    assert cutoff("recall@100") == 100


def test_photo_named_twice_is_refused():
    with pytest.raises(InputError, match="got 'a' twice for 'dunes'"):
        evaluate(QRELS, {"dunes": ["a", "a"]}, ["ndcg@10"])


def test_no_judgments_or_no_metrics_are_refused():
    with pytest.raises(InputError, match="must not be empty"):
        evaluate({}, {}, ["ndcg@10"])
    with pytest.raises(InputError, match="must not be empty"):
        evaluate(QRELS, {}, [])


def test_importing_the_module_does_not_import_ranx():
    code = "import sys, searchlab.metrics; assert not {'ranx', 'numba', 'scipy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_recall_counts_a_tie_as_found():
    exact = Neighbors(np.array([[4, 7]]), np.array([[0.9, 0.5]], dtype=np.float32))
    found = Neighbors(np.array([[4, 9]]), np.array([[0.9, 0.5]], dtype=np.float32))
    assert recall_at_k(found, exact) == 1.0


def test_recall_counts_a_worse_photo_and_padding_as_missed():
    exact = Neighbors(np.array([[4, 7], [1, 2]]), np.array([[0.9, 0.5], [0.8, 0.7]]))
    found = Neighbors(np.array([[4, 9], [1, -1]]), np.array([[0.9, 0.4], [0.8, -np.inf]]))
    assert recall_at_k(found, exact) == 0.5


def test_recall_counts_a_repeated_row_once():
    exact = Neighbors(np.array([[4, 7]]), np.array([[0.9, 0.5]]))
    found = Neighbors(np.array([[4, 4]]), np.array([[0.9, 0.9]]))
    assert recall_at_k(found, exact) == 0.5


def test_recall_wants_no_more_than_exact_search_has():
    exact = Neighbors(np.array([[4, -1], [-1, -1]]), np.array([[0.9, -np.inf], [-np.inf, -np.inf]]))
    assert recall_at_k(exact, exact) == 1.0


def test_recall_refuses_different_shapes():
    one = Neighbors(np.zeros((1, 2), dtype=int), np.zeros((1, 2)))
    two = Neighbors(np.zeros((1, 3), dtype=int), np.zeros((1, 3)))
    with pytest.raises(InputError, match=r"got \(1, 2\) and \(1, 3\)"):
        recall_at_k(one, two)


def test_latency_is_in_milliseconds():
    assert latency(np.arange(101) / 1000) == {"p50_ms": 50.0, "p95_ms": 95.0, "p99_ms": 99.0}


def test_latency_of_nothing_is_refused():
    with pytest.raises(InputError, match="at least one duration"):
        latency([])
