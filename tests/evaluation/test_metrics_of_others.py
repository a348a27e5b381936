"""The metrics against those of ir_measures and ranx."""

import os
import subprocess
import sys

import ir_measures
import numpy as np
import pytest

from searchlab.evaluation.metrics import per_query
from tests.support.judged_runs import random_task

# -- against ir_measures ----------------------------------------------------------------------

GAINS = {0: 0, 1: 1, 2: 3, 3: 7}


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("ndcg@10", ir_measures.nDCG @ 10),
        ("ndcg_exp@10", ir_measures.nDCG(gains=GAINS) @ 10),
        ("recall@5", ir_measures.R @ 5),
        ("success@5", ir_measures.Success @ 5),
        ("mrr@10", ir_measures.RR @ 10),
        ("map@10", ir_measures.AP @ 10),
        ("precision@10", ir_measures.P @ 10),
        ("judged@10", ir_measures.Judged @ 10),
        ("recall@5/l2", ir_measures.R(rel=2) @ 5),
        ("success@5/l2", ir_measures.Success(rel=2) @ 5),
        ("mrr@10/l2", ir_measures.RR(rel=2) @ 10),
        ("map@10/l2", ir_measures.AP(rel=2) @ 10),
        ("precision@10/l2", ir_measures.P(rel=2) @ 10),
        ("ndcg@5/condensed", ir_measures.nDCG(judged_only=True) @ 5),
        ("ndcg_exp@5/condensed", ir_measures.nDCG(gains=GAINS, judged_only=True) @ 5),
        ("recall@3/condensed", ir_measures.R(judged_only=True) @ 3),
        ("success@1/condensed", ir_measures.Success(judged_only=True) @ 1),
        ("map@5/condensed", ir_measures.AP(judged_only=True) @ 5),
        ("precision@3/condensed", ir_measures.P(judged_only=True) @ 3),
        ("map@5/condensed/l2", ir_measures.AP(rel=2, judged_only=True) @ 5),
    ],
)
def test_agrees_with_ir_measures_on_random_runs(ours, theirs):
    qrels, run = random_task(np.random.default_rng(1), n_queries=60)
    expected = by_ir_measures(theirs, qrels, run)
    assert per_query(qrels, run, [ours])[ours] == pytest.approx(expected)
    assert 0 < np.mean(expected) < 1


def by_ir_measures(measure, qrels, run):
    scored = {
        query_id: {photo_id: 1 / rank for rank, photo_id in enumerate(ranked, 1)}
        for query_id, ranked in run.items()
        if ranked
    }
    values = dict.fromkeys(qrels, 0.0)
    values |= {m.query_id: m.value for m in ir_measures.iter_calc([measure], qrels, scored)}
    return [values[query_id] for query_id in sorted(qrels)]


# -- against ranx -----------------------------------------------------------------------------


UNCOMPILED = {"NUMBA_DISABLE_JIT": "1"}  # so few queries take less time than to compile
ASK_RANX = """
import sys, warnings
warnings.simplefilter("ignore")
import numpy as np, ranx
asked = np.load(sys.argv[1])
found = ranx.evaluate(
    asked["judged"], asked["ranked"], sys.argv[3:], return_mean=False, threads=1
)
np.savez(sys.argv[2], **found)
"""


@pytest.mark.slow
def test_agrees_with_ranx_on_random_runs(tmp_path):
    pytest.importorskip("ranx")
    qrels, run = random_task(np.random.default_rng(6), n_queries=200)
    names = {"ndcg": "ndcg", "ndcg_exp": "ndcg_burges", "recall": "recall", "success": "hit_rate"}
    names |= {"mrr": "mrr", "map": "map", "precision": "precision"}
    judged = np.full((len(qrels), 12, 2), [-2.0, 0.0])  # as ranx keeps them: number, grade
    ranked = np.full((len(qrels), 25, 2), -1.0)
    for row, query_id in enumerate(sorted(qrels)):
        relevant = {p: g for p, g in qrels[query_id].items() if g}
        for place, (photo, grade) in enumerate(sorted(relevant.items(), key=lambda one: -one[1])):
            judged[row, place] = int(photo[1:]), grade
        for place, photo in enumerate(run[query_id]):
            number = int(photo[1:]) if photo in relevant else -1
            ranked[row, place] = number, 1 / (place + 1)
    theirs = {
        (name, k): f"{their_name}@{k}" for name, their_name in names.items() for k in (1, 3, 10, 25)
    }
    expected = by_ranx(tmp_path, judged, ranked, [*theirs.values()])
    for (name, k), their_name in theirs.items():
        ours = per_query(qrels, run, [f"{name}@{k}"])[f"{name}@{k}"]
        assert ours == pytest.approx(expected[their_name], abs=1e-12), f"{name}@{k}"


def by_ranx(folder, judged, ranked, metrics):
    np.savez(folder / "asked.npz", judged=judged, ranked=ranked)
    files = [str(folder / name) for name in ("asked.npz", "found.npz")]
    subprocess.run(
        [sys.executable, "-c", ASK_RANX, *files, *metrics], check=True, env=os.environ | UNCOMPILED
    )
    with np.load(folder / "found.npz") as found:
        return dict(found)
