"""Report: results side by side, which of them can be told apart, and which one to serve."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import InputError, NotFoundError
from searchlab.evaluation.metrics import parse_metric
from searchlab.evaluation.promotion import choose, promote
from searchlab.evaluation.reporting import terminal
from searchlab.evaluation.results import Result, incompatibility, load_result
from searchlab.evaluation.significance import leader_tests, tie_groups
from searchlab.evaluation.significance.power import POWER, Power, power_of

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table

ALPHA = 0.05
_CHOSEN = "*"
_WIDE = 125


class Report:
    """Results on the same queries and photos, measured by the same code on one machine.

    Attributes:
        results: By rank group, then by headline metric, best first.
        groups: The same in groups; members cannot be told apart from the first of their group.
    """

    def __init__(
        self,
        results: Iterable[Result],
        *,
        alpha: float = ALPHA,
        seed: int = 0,
        n_left_out: int = 0,
    ) -> None:
        """Check that the results can be compared.

        Args:
            results: At least one, each configuration once.
            alpha: Chance of calling any of a leader's equals worse than it, at most.
            seed: Of the tests.
            n_left_out: Results that could not be compared with these; the caption says so.

        Raises:
            InputError: They are of different data, queries, metrics, code or machines, or a
                configuration is there twice.
        """
        given = list(results)
        kinds = {result.setting for result in given}
        if len(kinds) != 1 or len({result.config_id for result in given}) < len(given):
            reasons = [incompatibility(given[0], other) for other in given[1:]]
            listed = [r.name for r in given] if not any(reasons) else next(filter(None, reasons))
            msg = (
                "a report must have results of one dataset, revision, photos, queries, metrics, "
                f"code and machine, each config once, got {listed}; evaluate them together"
            )
            raise InputError(msg)
        self._given = {result.config_id: result for result in given}
        self._alpha = alpha
        self._seed = seed
        self._n_left_out = n_left_out

    @cached_property
    def groups(self) -> list[list[Result]]:
        """Results in groups from best to worst."""
        found = tie_groups(
            {name: result.scores.values[result.headline] for name, result in self._given.items()},
            alpha=self._alpha,
            seed=self._seed,
            **self._labels,
        )
        return [[self._given[name] for name in group] for group in found]

    @cached_property
    def results(self) -> tuple[Result, ...]:
        """All results, best first."""
        return tuple(result for group in self.groups for result in group)

    @cached_property
    def names(self) -> dict[str, str]:
        """Config_id -> model and index in words, with a part of the id where that is not enough."""
        names = [result.name for result in self.results]
        return {
            result.config_id: result.name
            if names.count(result.name) == 1
            else f"{result.name} ({result.config_id[:6]})"
            for result in self.results
        }

    @cached_property
    def chosen(self) -> Result:
        """The result that `choose` picks."""
        return choose(self.groups[0])

    @cached_property
    def p_values(self) -> dict[str, float]:
        """Config_id -> p-value of the paired test against the leader, with Holm's correction."""
        leader, *others = self.results
        best, *scores = self._scored(leader, *others)
        found = leader_tests(best, scores, **self._labels, seed=self._seed)
        return {other.config_id: p for other, p in zip(others, found, strict=True)}

    @cached_property
    def powers(self) -> dict[str, Power]:
        """Config_id -> what a test against the leader can show; left out where all is equal.

        At the level of the first step of Holm's correction, which is what a lone difference takes.
        """
        leader, *others = self.results
        level = self._alpha / max(1, math.comb(len(self.results), 2))
        return {
            other.config_id: power_of(*self._scored(leader, other), **self._labels, alpha=level)
            for other in others
            if (leader.scores.values[leader.headline] != other.scores.values[leader.headline]).any()
            and len(set(leader.scores.about)) > 1
        }

    @property
    def detectable(self) -> tuple[float, float] | None:
        """The least difference from the leader that can be shown, of the systems tied with it.

        From the most to the least favourable pair; of all systems where none is tied, and None
        where there is nothing to estimate from.
        """
        tied = [result.config_id for result in self.groups[0] if result.config_id in self.powers]
        found = [self.powers[name].detectable for name in tied or self.powers]
        return (min(found), max(found)) if found else None

    def leaderboard(self, *, narrow: bool = False) -> Table:
        """Lay out quality, speed and size for a terminal; `narrow` fits into 80 columns."""
        return terminal.leaderboard(self, narrow=narrow)

    def language_table(self) -> Table:
        """Lay out the headline metric for each language for a terminal."""
        return terminal.language_table(self)

    @property
    def title(self) -> str:
        """Name of the data."""
        first = self.results[0]
        return f"{first.benchmark} on {first.dataset}@{first.dataset_revision}"

    @property
    def caption(self) -> str:
        """How to read the leaderboard."""
        return self.caption_of(self.columns)

    def caption_of(self, columns: Collection[str]) -> str:
        """Say how to read a leaderboard of which only some columns are shown."""
        first = self.results[0]
        about, n_langs = len(set(first.scores.about)), len(first.languages)
        left_out = (
            f" Results on file that are of other data, code or machines: {self._n_left_out}, left "
            "out."
            if self._n_left_out
            else ""
        )
        queries = "1 query" if first.n_queries == 1 else f"{first.n_queries:,} queries"
        mean = "mean" if n_langs == 1 else f"mean over {n_langs} languages, each counting the same"
        p_told = "; p is that against the very first" if "p" in columns else ""
        compared = (
            " Systems of one rank (=) cannot be told apart from the first of them (paired "
            f"permutation test with Holm's correction over all pairs, {100 * self._alpha:g} %)"
            f"{p_told}.{self._sensitivity()} {_CHOSEN} is the one to serve: the smallest of the "
            "fast ones in the first rank."
            if len(self.results) > 1
            else ""
        )
        return (
            f"{queries} about {about:,} of {first.photos['n_photos']:,} photos. Quality: {mean}; "
            f"95 % intervals by bootstrap, queries about one photo drawn together{self._gain()}."
            f"{compared} ms: to rank one query on one thread, and to embed its text. "
            f"{'build s, ' if 'build s' in columns else ''}MiB: of the index alone.{left_out}"
        )

    @property
    def columns(self) -> list[str]:
        """Headings of the leaderboard."""
        metrics = [f"{name} [95 %]" for name in self.results[0].intervals]
        return [
            "rank",
            "system",
            *metrics,
            "p",
            "langs",
            "p50 ms",
            "p95 ms",
            "text ms",
            "build s",
            "MiB",
        ]

    def rows(self) -> list[list[str]]:
        """Return the leaderboard's cells as plain text."""
        names = self.names
        rows = []
        for rank, group in enumerate(self.groups, start=1):
            for result in group:
                mark = f"{_CHOSEN} " if result is self.chosen else ""
                tie = "=" if len(group) > 1 else ""
                m = result.metrics
                rows.append(
                    [
                        f"{mark}{rank}{tie}",
                        names[result.config_id],
                        *(str(found.macro) for found in result.intervals.values()),
                        p_text(self.p_values.get(result.config_id)),
                        str(len(result.languages)),
                        f"{m['p50_ms']:.2f}",
                        f"{m['p95_ms']:.2f}",
                        f"{m['text_ms']:.1f}",
                        f"{m['build_s']:.1f}",
                        f"{m['size_mib']:.1f}",
                    ]
                )
        return rows

    @property
    def language_columns(self) -> list[str]:
        """Headings of the table by language."""
        names = self.names
        return ["language", "queries", *(names[result.config_id] for result in self.results)]

    def language_rows(self) -> list[list[str]]:
        """Return the cells by language: mean, and half the width of its 95 % interval."""
        first = self.results[0]
        rows = []
        for lang in first.languages:
            found = [result.intervals[first.headline].groups[lang] for result in self.results]
            best = max(0.001, *(round(interval.mean, 3) for interval in found))
            cells = [
                f"{interval.mean:.3f} ±{(interval.high - interval.low) / 2:.3f}"
                + (_CHOSEN if round(interval.mean, 3) == best else " ")
                for interval in found
            ]
            rows.append([lang, str(first.scores.langs.count(lang)), *cells])
        return rows

    def text(self, *, languages: bool = False) -> str:
        """Return the tables without colour, for logs and terminals that have none."""
        return terminal.plain_text(self, languages=languages)

    def markdown(self) -> str:
        """Return the leaderboard as a Markdown table with its caption."""
        sides = [":---" if name == "system" else "---:" for name in self.columns]
        rows = [[cell.strip() for cell in row] for row in [self.columns, sides, *self.rows()]]
        table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
        text = f"{table}\n{self.caption}\n".replace(_CHOSEN, f"\\{_CHOSEN}")
        return f"**{self.title}**\n\n{text}"

    def promote(
        self, path: Path | str, *, force: bool = False, replace_unlike: bool = False
    ) -> Path:
        """Write the chosen configuration to serve; see `searchlab.evaluation.promotion.promote`."""
        tied = [result for result in self.groups[0] if result is not self.chosen]
        return promote(
            self.chosen,
            path,
            measured=self.results,
            tied_with=tied,
            force=force,
            replace_unlike=replace_unlike,
        )

    def frame(self) -> pd.DataFrame:
        """Return a row for each system, best first, with figures as numbers."""
        import pandas as pd

        rows = []
        for values in self.to_dict()["systems"]:
            intervals = values.pop("intervals")
            for metric, (mean, low, high) in intervals.items():
                values |= {metric: mean, f"{metric} low": low, f"{metric} high": high}
            rows.append(values | values.pop("metrics"))
        return pd.DataFrame(rows).set_index("system")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: what was asked, and every system with rank, figures and p-value."""
        first = self.results[0]
        ranks = {r.config_id: n for n, group in enumerate(self.groups, start=1) for r in group}
        names = self.names
        systems = [
            {
                "system": names[result.config_id],
                "config_id": result.config_id,
                "rank": ranks[result.config_id],
                "is_chosen": result is self.chosen,
                "p_value": self.p_values.get(result.config_id),
                "n_languages": len(result.languages),
                "intervals": {name: list(i.macro) for name, i in result.intervals.items()},
                "metrics": {k: v for k, v in result.metrics.items() if k not in result.intervals},
            }
            for result in self.results
        ]
        return {
            "benchmark": first.benchmark,
            "dataset": first.dataset,
            "dataset_revision": first.dataset_revision,
            "n_queries": first.n_queries,
            "languages": list(first.languages),
            "alpha": self._alpha,
            "detectable": {name: power.to_dict() for name, power in self.powers.items()},
            "systems": systems,
        }

    @property
    def _labels(self) -> dict[str, Any]:
        scores = next(iter(self._given.values())).scores
        return {"groups": scores.langs, "clusters": scores.about}

    def _scored(self, *results: Result) -> list[NDArray[np.float64]]:
        return [result.scores.values[result.headline] for result in results]

    def _gain(self) -> str:
        """Say what a grade is worth in those of the metrics that weigh grades."""
        names = {parse_metric(name).name for name in self.results[0].intervals}
        gains = {"ndcg": "linear gain in ndcg", "ndcg_exp": "gain 2^grade - 1 in ndcg_exp"}
        return "".join(f"; {gain}" for name, gain in gains.items() if name in names)

    def _sensitivity(self) -> str:
        if self.detectable is None:
            return ""
        if math.isinf(self.detectable[1]):
            return " These queries are too few to show a difference of any size."
        sizes = " to ".join(dict.fromkeys(f"{size:.3f}" for size in self.detectable))
        return (
            f" Differences from the first below {sizes}{', by system,' if 'to' in sizes else ''} "
            f"are often missed with these queries (power {100 * POWER:g} %)."
        )

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        chosen = self.names[self.chosen.config_id]
        return f"Report({self.title!r}, {len(self.results)} systems, chosen {chosen!r})"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.leaderboard(narrow=options.max_width < _WIDE)

    def _repr_html_(self) -> str:
        from searchlab.evaluation.reporting.board import board_html

        return board_html(self)


def load_report(folder: Path | str, *, alpha: float = ALPHA, seed: int = 0) -> Report:
    """Read the results in a folder, `<out>/<benchmark>/<dataset>`.

    Only those that can be compared with the newest are taken: of the same data, queries and
    metrics, measured by the same code on the same machine. The caption counts the others.

    Raises:
        NotFoundError: There is none.
        DataError: A file is damaged.
    """
    results = [load_result(path) for path in sorted(Path(folder).glob("*.json"))]
    if not results:
        msg = f"{folder} must hold results, got none; run `searchlab evaluate`"
        raise NotFoundError(msg)
    newest = max(results, key=lambda result: result.manifest["date"])
    kept = [result for result in results if result.setting == newest.setting]
    return Report(kept, alpha=alpha, seed=seed, n_left_out=len(results) - len(kept))


def p_text(p_value: float | None) -> str:
    """Print a p-value, or a dash where there is none."""
    if p_value is None:
        return "-"
    return "<0.001" if p_value < 0.001 else f"{p_value:.3f}"
