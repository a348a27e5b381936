"""Quality against judgments, recall of an index against exact search, and latency.

Quality is computed by `per_query`; `searchlab.evaluation.metrics.names` has the metrics.
"""

from __future__ import annotations

from searchlab.evaluation.metrics.names import (
    METRICS,
    Metric,
    MetricKind,
    cutoff,
    metric_kind,
    metric_names,
    parse_metric,
    run_depth,
)
from searchlab.evaluation.metrics.quality import Qrels, Run, check_judgments, evaluate, per_query
from searchlab.evaluation.metrics.search import latency, recall_at_k, recall_of_each

__all__ = [
    "METRICS",
    "Metric",
    "MetricKind",
    "Qrels",
    "Run",
    "check_judgments",
    "cutoff",
    "evaluate",
    "latency",
    "metric_kind",
    "metric_names",
    "parse_metric",
    "per_query",
    "recall_at_k",
    "recall_of_each",
    "run_depth",
]
