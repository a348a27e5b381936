"""Weights & Biases: a run for each system, with its configuration and a summary of its metrics."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from searchlab.errors import MissingExtraError

if TYPE_CHECKING:
    from searchlab.evaluation.reports import Report


def export_wandb(report: Report, folder: Path) -> list[str]:
    """Log to where wandb's own settings say; `WANDB_MODE=offline` keeps it in the folder.

    Args:
        report: The results.
        folder: Where wandb writes its files.

    Returns:
        A line for each run.

    Raises:
        MissingExtraError: wandb is not installed.
    """
    try:
        import wandb  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        msg = "runs must be logged by wandb, got none; pip install wandb"
        raise MissingExtraError(msg) from error
    folder.mkdir(parents=True, exist_ok=True)
    for result in report.results:
        run = wandb.init(
            project="searchlab",
            group=f"{result.benchmark}/{result.dataset}",
            name=report.names[result.config_id],
            config=result.config.to_dict() | {"dataset_revision": result.dataset_revision},
            dir=str(folder),
            reinit=True,
        )
        for name, value in result.metrics.items():
            run.summary[name] = value
        for name, intervals in result.intervals.items():
            run.summary[f"{name} low"] = intervals.macro.low
            run.summary[f"{name} high"] = intervals.macro.high
        run.summary["rank"] = report.ranks[result.config_id]
        run.finish()
    return [f"{report.names[one.config_id]}: a run of wandb" for one in report.results]
