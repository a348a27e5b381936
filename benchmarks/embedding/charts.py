"""Charts of embedding: where the time of a photo goes, and what a text costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.ticker import LogLocator, NullFormatter

from benchmarks.embedding.worker import IMAGE_STAGES
from searchlab.evaluation.charts import COLORS, chart, save_chart

_HATCHES = ("", "///", "...", "xx")
Rows = Sequence[Mapping[str, Any]]


def draw_stages(rows: Rows, path: Path) -> list[Path]:
    """Draw CPU milliseconds per photo as stacked stages, a panel for each kind of pictures.

    Args:
        rows: Rows of pictures, for one number of cores and one batch.
        path: File to write, without a suffix.
    """
    kinds = list(dict.fromkeys(row["pictures"] for row in rows))
    models = list(dict.fromkeys(row["model"] for row in rows))
    with chart(10, 1.5 + 0.42 * len(models), columns=len(kinds), sharey=True) as (figure, panels):
        for axes, kind in zip(panels, kinds, strict=True):
            row_of = {row["model"]: row for row in rows if row["pictures"] == kind}
            left = [0.0] * len(models)
            for place, stage in enumerate(IMAGE_STAGES):
                widths = [row_of[name][f"{stage}_ms"] for name in models]
                bars = axes.barh(
                    range(len(models)),
                    widths,
                    left=left,
                    color=COLORS[place],
                    hatch=_HATCHES[place],
                    edgecolor="white",
                    linewidth=0.4,
                    label=stage,
                )
                left = [start + width for start, width in zip(left, widths, strict=True)]
            axes.bar_label(bars, [f"{total:.0f}" for total in left], padding=4, fontsize=8)
            axes.set_xlabel("CPU ms a photo, one core")
            axes.set_title(f"photos of {kind}", loc="left", fontsize=10)
            axes.margins(x=0.12)
        panels[0].set_yticks(range(len(models)), models)
        panels[0].invert_yaxis()
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        figure.suptitle("Where the time of a photo goes: the model, or what comes before it?")
        return save_chart(figure, path)


def draw_texts(rows: Rows, path: Path) -> list[Path]:
    """Draw CPU milliseconds of a query's text on a logarithmic scale.

    Args:
        rows: Rows of texts, for one number of cores and batches of one.
        path: File to write, without a suffix.
    """
    models = [row["model"] for row in rows]
    with chart(7.5, 1.3 + 0.36 * len(models)) as (figure, axes):
        widths = [row["cpu_ms"] for row in rows]
        axes.hlines(range(len(models)), [min(widths) / 3] * len(models), widths, color=COLORS[0])
        axes.plot(widths, range(len(models)), linestyle="", marker="o", color=COLORS[0])
        for place, width in enumerate(widths):
            axes.annotate(
                f"{width:.3g}", (width, place), (6, -3), textcoords="offset points", fontsize=8
            )
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1,)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlim(min(widths) / 3, 3 * max(widths))
        axes.set_xlabel("CPU ms a text, one core, one text at a time, log scale")
        axes.set_yticks(range(len(models)), models)
        axes.invert_yaxis()
        axes.set_title("What does it cost to embed the text of a query?", loc="left")
        return save_chart(figure, path)
