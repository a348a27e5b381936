"""Recommendation: which configuration to serve and why, and which languages it serves less well.

Every language has its own frontier: the configurations that no other one beats in quality, time and
memory at once. One configuration serves all languages, so the advice names those for which another
one would be better.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import InputError, refuse_names
from searchlab.evaluation.charts import COLORS, MARKERS, chart
from searchlab.evaluation.reports import Report
from searchlab.evaluation.significance import Interval, holm, paired_test
from searchlab.evaluation.significance.standings import ALPHA

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from searchlab.evaluation.results import Result

ALL = "all languages"
_MIN_QUERIES = 20
_SAMPLES = 10_000  # combinations of signs that a test draws
_COLUMNS = 3


@dataclass(frozen=True)
class Point:
    """One configuration for one language.

    Attributes:
        name: Name of the configuration.
        config_id: Hash of the configuration.
        quality: The headline metric, 0 to 1, with its 95 % interval.
        ms: Median milliseconds for a new query, to embed its text and to rank.
        mib: Memory of the index in MiB (2^20 bytes).
        on_frontier: Whether no other configuration is as good in all three and better in one.
    """

    name: str
    config_id: str
    quality: Interval
    ms: float
    mib: float
    on_frontier: bool


@dataclass(frozen=True)
class Better:
    """A configuration that is shown to be better than the recommended one for a language.

    Attributes:
        lang: The language.
        name: Name of the configuration.
        difference: Its headline metric minus that of the recommended one.
        p_value: P-value of the paired test, with Holm's correction over languages and
            configurations.
    """

    lang: str
    name: str
    difference: float
    p_value: float


class Recommendation:
    """Advice on which configuration of a report to serve.

    Attributes:
        report: The report.
        chosen: The result of the configuration to serve; see
            `searchlab.evaluation.promotion.choose`.
    """

    def __init__(self, report: Report, *, seed: int = 0) -> None:
        """Read a report.

        Args:
            report: Report on at least one configuration.
            seed: Seed of the tests by language.
        """
        self.report = report
        self.chosen = report.chosen
        self._seed = seed
        self._names = _names(report.results)

    @property
    def name(self) -> str:
        """Name of the configuration to serve."""
        return self._names[self.chosen.config_id]

    @cached_property
    def points(self) -> dict[str, tuple[Point, ...]]:
        """For all languages together and for each, every configuration, best quality first."""
        return {lang: self._points(lang) for lang in (ALL, *self.chosen.languages)}

    def frontier(self, lang: str = ALL) -> tuple[Point, ...]:
        """Return the configurations on the frontier, best quality first.

        Args:
            lang: A language of the queries; all languages together if left out.
        """
        return tuple(point for point in self.points[lang] if point.on_frontier)

    @cached_property
    def better(self) -> tuple[Better, ...]:
        """Languages and configurations that are shown to be better than the recommended one."""
        tests = []
        n_tests = len(self.chosen.languages) * (len(self.report.results) - 1)
        for lang in self.chosen.languages:
            mine, cluster_ids = self._scores(self.chosen, lang)
            for other in self.report.results:
                if other is not self.chosen:
                    theirs, _ = self._scores(other, lang)
                    gain = float(theirs.mean() - mine.mean())
                    p = paired_test(
                        theirs, mine, samples=_SAMPLES, clusters=cluster_ids, seed=self._seed
                    )
                    # No p-value is below 1 / samples, and each counts up to n_tests times.
                    if gain > 0 and p < ALPHA and 100 * n_tests > _SAMPLES:
                        more = 100 * n_tests
                        p = paired_test(
                            theirs, mine, samples=more, clusters=cluster_ids, seed=self._seed
                        )
                    tests.append((lang, self._names[other.config_id], gain, p))
        adjusted = holm([p for *_, p in tests])
        return tuple(
            Better(lang, name, gain, p)
            for (lang, name, gain, _), p in zip(tests, adjusted, strict=True)
            if gain > 0 and p < ALPHA
        )

    def explain(self) -> str:
        """Say in words what to serve and why, and what the queries cannot show."""
        headline = self.chosen.headline
        (mine,) = (p for p in self.points[ALL] if p.config_id == self.chosen.config_id)
        n_langs = len(self.chosen.languages)
        lines = [
            f"Serve {self.name}: {headline} {mine.quality} over {n_langs} "
            f"{'language' if n_langs == 1 else 'languages'} and {self.chosen.n_queries:,} queries, "
            f"{mine.ms:.1f} ms a new query, {mine.mib:.2f} MiB of index.",
            self._against(),
        ]
        for lang in self.chosen.languages:
            lines.append(f"  {lang}: {self._for_language(lang)}")
        lines.append(self._limits())
        return "\n".join(line for line in lines if line)

    def chart(self) -> Figure:
        """Draw quality against time, for all languages together and for each, with the frontier."""
        panels = list(self.points.items())
        columns = 2 if len(panels) in (2, 4) else min(_COLUMNS, len(panels))
        rows = -(-len(panels) // columns)
        opened = chart(
            3.9 * columns, 3.4 * rows + 0.6, columns=columns, rows=rows, squeeze=False, sharey=True
        )
        with opened as (figure, axes):
            for place, axis in enumerate(axes.ravel()):
                if place >= len(panels):
                    axis.set_visible(False)
                    continue
                self._draw(axis, *panels[place], left=place % columns == 0)
            handles, labels = axes[0, 0].get_legend_handles_labels()
            figure.legend(
                handles, labels, loc="outside lower center", ncols=min(columns, len(labels))
            )
            figure.suptitle(
                f"Which configuration is worth its price? {self.chosen.headline} against time; "
                "area: memory of the index"
            )
            return figure

    def __repr__(self) -> str:
        return self.explain()

    def _repr_html_(self) -> str:
        first, *rest = self.explain().splitlines()
        body = "".join(f"<p>{html.escape(line)}</p>" for line in rest)
        return f'<div class="searchlab-page"><p><b>{html.escape(first)}</b></p>{body}</div>'

    def _points(self, lang: str) -> tuple[Point, ...]:
        rows = []
        for result in self.report.results:
            intervals = result.intervals[result.headline]
            quality = intervals.macro if lang == ALL else intervals.groups[lang]
            ms = result.metrics["text_ms"] + result.metrics["p50_ms"]
            rows.append((result, quality, ms, result.metrics["size_mib"]))
        prices = [(-quality.mean, ms, mib) for _, quality, ms, mib in rows]
        points = [
            Point(
                self._names[result.config_id],
                result.config_id,
                quality,
                ms,
                mib,
                not any(_beats(other, price) for other in prices),
            )
            for (result, quality, ms, mib), price in zip(rows, prices, strict=True)
        ]
        return tuple(sorted(points, key=lambda p: (-p.quality.mean, p.ms, p.name)))

    def _scores(self, result: Result, lang: str) -> tuple[NDArray[np.float64], list[str]]:
        scores = result.scores
        rows = [row for row, other in enumerate(scores.langs) if other == lang]
        return scores.values[result.headline][rows], [scores.cluster_ids[row] for row in rows]

    def _against(self) -> str:
        first, *others = self.report.groups
        tied = [r for r in first if r is not self.chosen]
        worse = [self._names[r.config_id] for group in others for r in group]
        sentences = []
        if tied:
            listed = ", ".join(self._names[r.config_id] for r in tied)
            sentences.append(
                f"Not told apart from the best are also {listed}; of these it is the smallest of "
                "the fast ones."
            )
        elif worse:
            sentences.append(
                "It is the best that was measured, and the others are shown to be worse."
            )
        if worse and tied:
            sentences.append(f"Shown to be worse: {', '.join(worse)}.")
        return " ".join(sentences)

    def _for_language(self, lang: str) -> str:
        points = self.points[lang]
        (mine,) = (p for p in points if p.config_id == self.chosen.config_id)
        n_queries = self.chosen.scores.langs.count(lang)
        few = ", too few to rely on" if n_queries < _MIN_QUERIES else ""
        text = f"{mine.quality} ({n_queries} queries{few})"
        better = [b for b in self.better if b.lang == lang]
        if better:
            best = max(better, key=lambda b: b.difference)
            return (
                f"{text}; {best.name} is better by {best.difference:.3f} (p = {best.p_value:.3f})"
            )
        if points[0].config_id == mine.config_id:
            return f"{text}, the best"
        gap = points[0].quality.mean - mine.quality.mean
        return f"{text}; {points[0].name} has {gap:.3f} more, which may be chance"

    def _limits(self) -> str:
        sizes = [power.detectable for power in self.report.powers.values()]
        if not sizes or not np.isfinite(max(sizes)):
            return "These queries are too few to show small differences; add some."
        shown = " to ".join(dict.fromkeys(f"{size:.3f}" for size in (min(sizes), max(sizes))))
        return (
            f"These queries show differences of {shown} four times in five; smaller ones would "
            "often be missed."
        )

    def _draw(self, axis: Any, lang: str, points: tuple[Point, ...], *, left: bool) -> None:
        from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

        order = list(self._names)
        largest = max(point.mib for point in points) or 1.0
        for point in sorted(points, key=lambda p: order.index(p.config_id)):
            number = order.index(point.config_id)
            color = COLORS[number % len(COLORS)]
            axis.vlines(point.ms, point.quality.low, point.quality.high, color=color, linewidth=1.2)
            axis.scatter(
                point.ms,
                point.quality.mean,
                s=30 + 150 * point.mib / largest,
                color=color,
                marker=MARKERS[number % len(MARKERS)],
                edgecolors="black" if point.config_id == self.chosen.config_id else "white",
                linewidths=1.8 if point.config_id == self.chosen.config_id else 0.8,
                label=f"{point.name}, {point.mib:.1f} MiB"
                + (", recommended" if point.name == self.name else ""),
                zorder=3,
            )
        # Of time and quality alone: what is there for its memory lies below.
        best = -math.inf
        edge = []
        for ms, mean in sorted((point.ms, point.quality.mean) for point in points):
            if mean > best:
                edge.append((ms, best := mean))
        axis.plot(*zip(*edge, strict=True), color="#777777", linestyle="--", linewidth=1, zorder=1)
        axis.set_xscale("log")
        times = [point.ms for point in points]
        axis.set_xlim(min(times) / 1.5, max(times) * 1.5)
        steps = [step * 10.0**power for power in range(-4, 5) for step in (1, 2, 5)]
        axis.xaxis.set_major_locator(FixedLocator(steps))
        axis.xaxis.set_major_formatter(FuncFormatter(lambda ms, _: f"{ms:g}"))
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.set_title(lang, fontsize=10)
        axis.set_xlabel("ms a new query")
        if left:
            axis.set_ylabel(f"{self.chosen.headline}, 95 %")


def recommend(report: Report, *, seed: int = 0) -> Recommendation:
    """Advise which configuration to serve.

    Raises:
        InputError: The results have no times, since they ran on machines that others used too.

    Example:
        >>> advice = recommend(Experiment(dataset, configs).run())  # doctest: +SKIP
        >>> print(advice)  # doctest: +SKIP
        >>> advice.report.promote("chosen.json")  # doctest: +SKIP
    """
    refuse_names("load_report(folder), or what an Experiment returns", report=report)
    if not all(result.is_timed for result in report.results):
        msg = "advice weighs times, got results of shared machines; measure again without a runner"
        raise InputError(msg)
    return Recommendation(report, seed=seed)


def _names(results: Sequence[Result]) -> dict[str, str]:
    """Name results by model and index, with a part of the config_id if that is ambiguous."""
    names = [result.name for result in results]
    return {
        result.config_id: result.name
        if names.count(result.name) == 1
        else f"{result.name} ({result.config_id[:6]})"
        for result in results
    }


def _beats(other: tuple[float, ...], price: tuple[float, ...]) -> bool:
    """Tell whether `other` is at most `price` in every value and less in one; less is better."""
    return other != price and all(a <= b for a, b in zip(other, price, strict=True))
