"""Report: results side by side, which of them can be told apart, and which one to serve."""

from __future__ import annotations

import html
import io
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from searchlab.errors import InputError, NotFoundError
from searchlab.promotion import choose, promote
from searchlab.results import Result, load_result
from searchlab.significance import tie_groups

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table

ALPHA = 0.05
_CHOSEN = "*"
_TEXT_WIDTH = 200
_WIDE = 125
_LEFT_OUT_IF_NARROW = ("langs", "p95 ms", "build s")

# Okabe and Ito's blue and orange, which all kinds of colour vision tell apart.
_BLUE, _ORANGE = "#0072b2", "#e69f00"
_STYLE = f"""
.searchlab-report{{font:13px/1.4 system-ui,sans-serif;color:#222;background:#fff;padding:8px}}
.searchlab-report table{{border-collapse:collapse}}
.searchlab-report th,.searchlab-report td{{padding:3px 10px;text-align:right;white-space:nowrap}}
.searchlab-report th{{border-bottom:1px solid #888;vertical-align:bottom}}
.searchlab-report .name{{text-align:left;white-space:normal}}
.searchlab-report .chosen{{font-weight:bold;border-left:3px solid {_ORANGE}}}
.searchlab-track{{position:relative;height:8px;width:160px;background:#e4e4e4;border-radius:4px}}
.searchlab-track div{{position:absolute;height:8px;background:{_BLUE};border-radius:4px}}
.searchlab-report p{{max-width:60em;font-size:12px;color:#444}}
"""


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
            alpha: Chance of calling any two equal systems different, for each leader.
            seed: Of the tests.
            n_left_out: Results that could not be compared with these; the caption says so.

        Raises:
            InputError: They are of different data, queries, metrics, code or machines, or a
                configuration is there twice.
        """
        given = list(results)
        kinds = {result.setting for result in given}
        if len(kinds) != 1 or len({result.config_id for result in given}) < len(given):
            listed = [f"{r.name} on {r.dataset}@{r.dataset_revision} by {r.code}" for r in given]
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
        first = next(iter(self._given.values()))
        found = tie_groups(
            {name: result.scores.values[result.headline] for name, result in self._given.items()},
            alpha=self._alpha,
            seed=self._seed,
            groups=first.scores.langs,
            clusters=first.scores.about,
        )
        return [[self._given[name] for name in group] for group in found]

    @cached_property
    def results(self) -> tuple[Result, ...]:
        """All results, best first."""
        return tuple(result for group in self.groups for result in group)

    @cached_property
    def chosen(self) -> Result:
        """The result that `choose` picks."""
        return choose(self.groups[0])

    def leaderboard(self, *, narrow: bool = False) -> Table:
        """Lay out quality, speed and size for a terminal.

        Args:
            narrow: Fit into 80 columns: intervals below the means, and three columns less.
        """
        left_out = _LEFT_OUT_IF_NARROW if narrow else ()
        kept = [place for place, name in enumerate(self.columns) if name not in left_out]
        rows = [[cells[place] for place in kept] for cells in self.rows()]
        if narrow:
            rows = [
                [rank, system.replace(",", ", "), *(cell.replace(" [", "\n[") for cell in cells)]
                for rank, system, *cells in rows
            ]
        columns = [self.columns[place] for place in kept]
        styles = ["bold" if result is self.chosen else "" for result in self.results]
        table = _table(self.title, columns, rows, styles)
        table.caption = self.caption
        return table

    def language_table(self) -> Table:
        """Lay out the headline metric for each language; `*` marks the best of a row."""
        title = f"{self.results[0].headline} by language; {_CHOSEN} is the best of a row"
        rows = self.language_rows()
        return _table(title, self.language_columns, rows, [""] * len(rows))

    @property
    def title(self) -> str:
        """Name of the data."""
        first = self.results[0]
        return f"{first.benchmark} on {first.dataset}@{first.dataset_revision}"

    @property
    def caption(self) -> str:
        """How to read the leaderboard."""
        first = self.results[0]
        about = len(set(first.scores.about))
        left_out = (
            f" Results on file that are of other data, code or machines: {self._n_left_out}, left "
            "out."
            if self._n_left_out
            else ""
        )
        return (
            f"{first.n_queries:,} queries about {about:,} of {first.photos['n_photos']:,} photos. "
            f"Quality: mean over {len(first.languages)} languages, each counting the same; 95 % "
            "intervals by bootstrap, queries about one photo drawn together; linear gain in nDCG. "
            "Systems of one rank (=) cannot be told apart from the first of them (paired "
            f"permutation test with Holm's correction, {self._alpha:.0%}). {_CHOSEN} is the one to "
            "serve: the smallest of the fast ones in the first rank. ms: to rank one query on one "
            f"thread, and to embed its text. build s, MiB: of the index alone.{left_out}"
        )

    @property
    def columns(self) -> list[str]:
        """Headings of the leaderboard."""
        metrics = [f"{name} [95 %]" for name in self.results[0].intervals]
        return [
            "rank",
            "system",
            *metrics,
            "langs",
            "p50 ms",
            "p95 ms",
            "text ms",
            "build s",
            "MiB",
        ]

    def rows(self) -> list[list[str]]:
        """Return the leaderboard's cells as plain text."""
        names = _distinct_names(self.results)
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
        names = _distinct_names(self.results)
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
        from rich.console import Console

        file = io.StringIO()
        console = Console(file=file, width=_TEXT_WIDTH, no_color=True, color_system=None)
        console.print(self.leaderboard())
        if languages:
            console.print(self.language_table())
        return "\n".join(line.rstrip() for line in file.getvalue().splitlines())

    def markdown(self) -> str:
        """Return the leaderboard as a Markdown table with its caption."""
        sides = [":---" if name == "system" else "---:" for name in self.columns]
        rows = [[cell.strip() for cell in row] for row in [self.columns, sides, *self.rows()]]
        table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
        text = f"{table}\n{self.caption}\n".replace(_CHOSEN, f"\\{_CHOSEN}")
        return f"**{self.title}**\n\n{text}"

    def promote(self, path: Path | str, *, force: bool = False) -> Path:
        """Write the chosen configuration to serve; see `promote`."""
        tied = [result for result in self.groups[0] if result is not self.chosen]
        return promote(self.chosen, path, tied_with=tied, force=force)

    def __str__(self) -> str:
        return self.text()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.leaderboard(narrow=options.max_width < _WIDE)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in ["", *self.columns])
        top = max(result.intervals[result.headline].macro.high for result in self.results) or 1.0
        lines = []
        for result, cells in zip(self.results, self.rows(), strict=True):
            plain = [f"<td>{html.escape(cell)}</td>" for cell in cells]
            plain[1] = f'<td class="name">{html.escape(cells[1])}</td>'
            found = result.intervals[result.headline].macro
            left, width = 100 * found.low / top, max(1.0, 100 * (found.high - found.low) / top)
            bar = f'<div style="left:{min(left, 99):.1f}%;width:{width:.1f}%"></div>'
            track = f'<td><div class="searchlab-track">{bar}</div></td>'
            mark = ' class="chosen"' if result is self.chosen else ""
            lines.append(f"<tr{mark}>{track}{''.join(plain)}</tr>")
        title, caption = html.escape(self.title), html.escape(self.caption)
        table = f"<table><tr>{head}</tr>{''.join(lines)}</table>"
        body = f'<div class="searchlab-report"><h4>{title}</h4>{table}<p>{caption}</p></div>'
        return f"<style>{_STYLE}</style>{body}"


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
    newest = max(results, key=lambda result: result.environment["date"])
    kept = [result for result in results if result.setting == newest.setting]
    return Report(kept, alpha=alpha, seed=seed, n_left_out=len(results) - len(kept))


def _table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[str]
) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", caption_justify="left", box=None)
    for name in columns:
        left = name in ("system", "language")
        table.add_column(
            Text(name), justify="left" if left else "right", overflow="fold", no_wrap=name == "rank"
        )
    for cells, style in zip(rows, styles, strict=True):
        table.add_row(*(Text(cell) for cell in cells), style=style)
    return table


def _distinct_names(results: Sequence[Result]) -> dict[str, str]:
    """Name results by model and index, with the config_id where that is not enough."""
    names = [result.name for result in results]
    return {
        result.config_id: result.name
        if names.count(result.name) == 1
        else f"{result.name} ({result.config_id[:6]})"
        for result in results
    }
