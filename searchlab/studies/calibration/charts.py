"""Charts of the calibration study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from searchlab.evaluation.charts import look, with_intervals
from searchlab.studies.calibration.thresholds import LEAST_SHOWN

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLES = {"text": "words", "image": "a photo", "both": "a photo and words"}


def draw_reliability(axes: Axes, bars: Sequence[Mapping[str, Any]], *, title: str) -> None:
    """Draw the share of relevant photos against the score, each with its number of photos.

    Args:
        axes: Axes to draw on.
        bars: `Diagram.to_dict()["bars"]`; bins of fewer than 30 photos are drawn hollow.
        title: Title of the axes.
    """
    axes.plot([0, 1], [0, 1], color="#777777", linestyle=":", linewidth=1, label="kept exactly")
    style = look(0) | {"linestyle": "none", "capsize": 3}
    for few, label in ((False, "measured, 95 %"), (True, f"of fewer than {LEAST_SHOWN} photos")):
        some = [bar for bar in bars if (bar["n_pairs"] < LEAST_SHOWN) == few]
        if not some:
            continue
        x, y, low, high = (
            np.array([bar[name] for bar in some])
            for name in ("mean_score", "share_relevant", "low", "high")
        )
        errors = np.maximum(0, np.array([y - low, high - y]))
        filling = {"markerfacecolor": "white", "elinewidth": 0.6} if few else {}
        axes.errorbar(x, y, yerr=errors, label=label, **(style | filling))
    for bar in bars:
        place = (bar["mean_score"], -0.11)
        axes.annotate(f"{bar['n_pairs']:,}", place, rotation=90, fontsize=7, ha="center")
    axes.set(xlim=(0, 1), ylim=(-0.12, 1.02), title=title, xlabel="relevance_score")


def draw_transfer(axes: Axes, rows: Sequence[Mapping[str, Any]], *, title: str) -> None:
    """Draw the precision of thresholds after a swap of models, for calibrated scores and cosines.

    A pair of models has no mark if nothing scores above the threshold.

    Args:
        axes: Axes to draw on.
        rows: Rows of `measure_transfer` for one precision.
        title: Title of the axes.
    """
    swaps = [row for row in rows if row["chosen_on"] != row["used_with"]]
    pairs = sorted({(row["chosen_on"], row["used_with"]) for row in swaps})
    height = {pair: place for place, pair in enumerate(reversed(pairs))}
    for number, scale in enumerate(("cosine", "calibrated")):
        measured = [row for row in swaps if row["scale"] == scale and row["precision"]]
        y = [
            height[row["chosen_on"], row["used_with"]] + 0.18 * (2 * number - 1) for row in measured
        ]
        x = np.array([row["precision"]["mean"] for row in measured])
        ends = np.array([[row["precision"]["low"], row["precision"]["high"]] for row in measured])
        errors = np.maximum(0, np.abs(ends.reshape(-1, 2).T - x))
        style = look(1 - number) | {"linestyle": "none"}
        axes.errorbar(x, y, xerr=errors, capsize=2, label=scale, **style)
    axes.axvline(rows[0]["asked"], color="#000000", linestyle=":", linewidth=1)
    axes.set_yticks(list(height.values()), [f"{one} → {other}" for one, other in height])
    axes.set(xlim=(0, 1), title=title, xlabel="share relevant of what is shown")


def draw_unanswerable(axes: Axes, thresholds: Sequence[Mapping[str, Any]], *, title: str) -> None:
    """Draw the shares of queries that show any photo, with and without their answers."""
    x = [row["threshold"] for row in thresholds]
    series = (("answered", "its answers are there"), ("false_answers", "taken away"))
    for number, (name, label) in enumerate(series):
        means, lows, highs = (
            [row[name][end] for row in thresholds] for end in ("mean", "low", "high")
        )
        with_intervals(axes, x, means, lows, highs, label=label, number=number)
    axes.set(ylim=(0, 1), title=title, xlabel="score_threshold", ylabel="queries that show a photo")
    axes.legend()


def draw_alphas(axes: Axes, rows: Sequence[Mapping[str, Any]], *, title: str) -> None:
    """Draw the calibration error of steered queries over `text_alpha`, for both kinds of curve."""
    x = [row["text_alpha"] for row in rows]
    for number, (name, label) in enumerate((("ece", "moving"), ("ece_fixed", "fixed"))):
        means, lows, highs = ([row[name][end] for row in rows] for end in ("mean", "low", "high"))
        with_intervals(axes, x, means, lows, highs, label=f"{label} curve", number=number)
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xticks(x, [f"{alpha:g}" for alpha in x])
    axes.set(ylim=(0, None), title=title, xlabel="text_alpha", ylabel="calibration error")
    axes.legend()


def draw_missing(
    axes: Axes, rows: Sequence[Mapping[str, Any]], thresholds: Sequence[float], *, title: str
) -> None:
    """Draw the share of queries that show any photo by threshold, with and without an answer.

    Args:
        axes: Axes to draw on.
        rows: Of one set, those of the table `missing` of the study of relevance.
        thresholds: Of the shares in the rows.
        title: Title of the axes.
    """
    axes.plot(thresholds, rows[0]["answered"], label="with an answer", **look(0))
    for number, row in enumerate(rows, start=1):
        axes.plot(thresholds, row["false_answers"], label=row["against"], **look(number))
    areas = " and ".join(f"{row['auc']['mean']:.2f}" for row in rows)
    title = f"{title}: AUC {areas}"
    axes.set(xlim=(0, 0.75), ylim=(0, 1.02), title=title, xlabel="score_threshold")
