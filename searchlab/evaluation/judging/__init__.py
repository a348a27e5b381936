"""Judging: pool results of several systems, grade them blind in a notebook, measure agreement."""

from searchlab.evaluation.judging.agreement import agreement, disagreements
from searchlab.evaluation.judging.grading import GRADES, Grading, pictures_of
from searchlab.evaluation.judging.grid import GradingGrid
from searchlab.evaluation.judging.journal import Journal
from searchlab.evaluation.judging.merge import (
    build_judged_dataset,
    merge_grades,
    missed,
    read_grades,
)
from searchlab.evaluation.judging.model_judges import Judge, judge_by_model
from searchlab.evaluation.judging.pools import Pair, Pool, pool_runs, runs_of
from searchlab.evaluation.judging.preferences import BlindComparison
from searchlab.evaluation.judging.sampling import JudgingPlan, plan_judging
from searchlab.evaluation.judging.simulated import simulate_judge, simulate_preferences

__all__ = [
    "GRADES",
    "BlindComparison",
    "Grading",
    "GradingGrid",
    "Journal",
    "Judge",
    "JudgingPlan",
    "Pair",
    "Pool",
    "agreement",
    "build_judged_dataset",
    "disagreements",
    "judge_by_model",
    "merge_grades",
    "missed",
    "pictures_of",
    "plan_judging",
    "pool_runs",
    "read_grades",
    "runs_of",
    "simulate_judge",
    "simulate_preferences",
]
