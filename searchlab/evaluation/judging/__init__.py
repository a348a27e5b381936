"""Judging: pool what several systems found, grade it blind in a notebook, measure agreement."""

from searchlab.judging.agreement import agreement, disagreements
from searchlab.judging.grading import GRADES, Grading, pictures_of
from searchlab.judging.journal import Journal
from searchlab.judging.merging import judged_dataset, merge_grades, missed, read_grades
from searchlab.judging.pools import Pair, Pool, pool_runs, runs_of
from searchlab.judging.preferences import BlindComparison
from searchlab.judging.simulating import simulate_judge, simulate_preferences

__all__ = [
    "GRADES",
    "BlindComparison",
    "Grading",
    "Journal",
    "Pair",
    "Pool",
    "agreement",
    "disagreements",
    "judged_dataset",
    "merge_grades",
    "missed",
    "pictures_of",
    "pool_runs",
    "read_grades",
    "runs_of",
    "simulate_judge",
    "simulate_preferences",
]
