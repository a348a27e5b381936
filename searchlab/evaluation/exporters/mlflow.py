"""MLflow: a run for each system, with parameters, metrics and the hash of the configuration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from searchlab.errors import MissingExtraError
from searchlab.evaluation.exporters import plain_metric

if TYPE_CHECKING:
    from searchlab.evaluation.reports import Report


def export_mlflow(report: Report, folder: Path) -> list[str]:
    """Log to where MLflow's own settings say (`MLFLOW_TRACKING_URI`).

    Args:
        report: The results.
        folder: Not used: MLflow knows where it writes.

    Returns:
        A line for each run.

    Raises:
        MissingExtraError: MLflow is not installed.
    """
    try:
        import mlflow  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        msg = "runs must be logged by MLflow, got none; pip install mlflow"
        raise MissingExtraError(msg) from error
    first = report.results[0]
    mlflow.set_experiment(f"{first.benchmark}-{first.dataset}")
    for result in report.results:
        with mlflow.start_run(run_name=report.names[result.config_id]):
            mlflow.log_params({name: str(v) for name, v in result.config.to_dict().items()})
            metrics = {plain_metric(name): value for name, value in result.metrics.items()}
            for name, intervals in result.intervals.items():
                metrics[f"{plain_metric(name)}_low"] = intervals.macro.low
                metrics[f"{plain_metric(name)}_high"] = intervals.macro.high
            mlflow.log_metrics(metrics)
            mlflow.set_tags(
                {
                    "config_id": result.config_id,
                    "dataset_revision": result.dataset_revision,
                    "code": result.code,
                    "rank": str(report.ranks[result.config_id]),
                }
            )
    return [f"{report.names[one.config_id]}: a run of MLflow" for one in report.results]
