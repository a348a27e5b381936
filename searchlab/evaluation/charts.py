"""Charts: colours for every kind of colour vision, and PNG and SVG files that are reproducible."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito, Color Universal Design, 2008; yellow is left out, as it fades on white.
COLORS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", "-.", ":")
_STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
    "figure.facecolor": "white",
    "svg.fonttype": "none",
    "svg.hashsalt": "searchlab",
}


@contextmanager
def chart(
    width: float = 7.0, height: float = 4.2, *, columns: int = 1, rows: int = 1, **kwargs: Any
) -> Iterator[tuple[Figure, Any]]:
    """Make a figure in the house style, without a screen, and close it.

    Args:
        width: Inches.
        height: Inches.
        columns: Axes side by side.
        rows: Axes one above the other.
        **kwargs: For matplotlib's `subplots`, such as `sharey=True`.

    Yields:
        The figure, and its axes: one, or an array of them.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(width, height))
        yield figure, figure.subplots(rows, columns, **kwargs)


def look(number: int) -> dict[str, Any]:
    """Return colour, marker and dashes of series `number`, which differ in print as well."""
    return {
        "color": COLORS[number % len(COLORS)],
        "marker": MARKERS[number % len(MARKERS)],
        "linestyle": DASHES[number // len(COLORS) % len(DASHES)],
        "markersize": 5,
        "linewidth": 1.6,
    }


def with_intervals(
    axes: Axes,
    x: Sequence[float],
    means: Sequence[float],
    lows: Sequence[float],
    highs: Sequence[float],
    *,
    label: str,
    number: int,
) -> None:
    """Draw a curve of means and the band of their intervals, as series `number`."""
    style = look(number)
    axes.plot(x, means, label=label, **style)
    axes.fill_between(x, lows, highs, color=style["color"], alpha=0.15, linewidth=0)


def save_chart(figure: Figure, path: Path) -> list[Path]:
    """Write a figure as PNG and SVG, the same bytes for the same figure; returns both paths.

    Args:
        figure: The figure.
        path: File to write, without a suffix.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    written = []
    for suffix, metadata in ((".png", {"Software": None}), (".svg", {"Date": None})):
        file = path.with_name(path.name + suffix)
        figure.savefig(file, dpi=144, metadata=metadata)
        written.append(file)
    return written


def svg_of(figure: Figure) -> str:
    """Return a figure as SVG markup for use inside HTML."""
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]
