"""A chart of the languages that `mini` reads, the best first, beside its teacher."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from searchlab.evaluation.charts import chart, look, save_chart

SERIES = (("R@1", "mini"), ("teacher", "its teacher, multilingual-e5-small"))
MARKS = {"reads sentences": " **", "reads words": " *", "does not read": ""}


def draw_reading(
    by_language: Mapping[str, Mapping[str, Any]], least: float, path: Path
) -> list[Path]:
    """Draw R@1 of every language with its interval, and write the files.

    Args:
        by_language: Rows of a record of `reading`, with or without the teacher.
        least: Percent of R@1 from which a language is read in sentences.
        path: File to write, without a suffix.

    Returns:
        The paths of the PNG and the SVG.
    """
    best_first = sorted(by_language, key=lambda name: (-by_language[name]["R@1"]["mean"], name))
    half = -(-len(best_first) // 2)
    with chart(11, 1.7 + 0.2 * half, columns=2, sharex=True) as (figure, columns):
        for axes, names in zip(columns, (best_first[:half], best_first[half:]), strict=True):
            rows = [by_language[name] for name in names]
            spots = list(range(half, half - len(rows), -1))
            for number, (series, label) in enumerate(SERIES):
                told = [
                    (at, row[series]) for at, row in zip(spots, rows, strict=True) if series in row
                ]
                # A mean of none or all lies on the edge of its interval, but for rounding.
                sides = [
                    [max(0.0, one["mean"] - one["interval"][0]) for _, one in told],
                    [max(0.0, one["interval"][1] - one["mean"]) for _, one in told],
                ]
                style = look(number) | {"linestyle": "none", "markersize": 4}
                means, heights = [one["mean"] for _, one in told], [at for at, _ in told]
                axes.errorbar(means, heights, xerr=sides, label=label, **style)
            axes.axvline(least, color="#777777", linewidth=0.9, linestyle=":")
            labels = [
                f"{name}{MARKS.get(row.get('reach', ''), '')}"
                for name, row in zip(names, rows, strict=True)
            ]
            axes.set_yticks(spots, labels, fontsize=8)
            axes.set(xlim=(-2, 102), ylim=(0.3, half + 0.7), xlabel="R@1 among 300 (%)")
        drawn, named = columns[0].get_legend_handles_labels()
        figure.legend(drawn, named, loc="outside lower center", ncols=2)
        figure.suptitle(
            "Sentences that find their English counterpart first\n"
            "dotted: from here a language is read in sentences (**); those with * in words",
            fontsize=10,
        )
        return save_chart(figure, path)
