"""Report: a comparison that can be shown in a terminal, a notebook, Markdown or a data frame."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from searchlab.errors import NotFoundError
from searchlab.evaluation.comparison import Comparison
from searchlab.evaluation.promotion import promote
from searchlab.evaluation.reporting import leaderboard, terminal
from searchlab.evaluation.reporting.leaderboard_html import leaderboard_html
from searchlab.evaluation.reporting.rows import answer_rows, query_rows, system_rows
from searchlab.evaluation.results import load_result
from searchlab.evaluation.significance.standings import ALPHA
from searchlab.files import require_pandas

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console, ConsoleOptions, RenderResult

    from searchlab.evaluation.datasets import Dataset
    from searchlab.library.library import Library

_WIDE = 125


class Report(Comparison):
    """Results on the same queries and photos; printing it shows the leaderboard.

    `Comparison` computes the statistics; each method here is one way to show them.
    """

    @property
    def caption(self) -> str:
        """How to read the leaderboard."""
        return leaderboard.leaderboard_caption(self, leaderboard.leaderboard_columns(self))

    def rows(self) -> list[list[str]]:
        """Return the leaderboard's cells as plain text."""
        return leaderboard.leaderboard_rows(self)

    def text(self, *, languages: bool = False) -> str:
        """Return the tables without colour, for logs and plain terminals."""
        return terminal.plain_text(self, languages=languages)

    def markdown(self) -> str:
        """Return the leaderboard as a Markdown table with its caption."""
        return leaderboard.leaderboard_markdown(self)

    def frame(self) -> pd.DataFrame:
        """Return a row for each system, best first, with figures as numbers."""
        require_pandas()
        import pandas as pd

        return pd.DataFrame(system_rows(self)).set_index("system")

    def queries_frame(self, dataset: Dataset | None = None) -> pd.DataFrame:
        """Return a row for each system and query: metrics, milliseconds, words of the dataset."""
        require_pandas()
        import pandas as pd

        return pd.DataFrame(query_rows(self, dataset))

    def answers_frame(
        self, out: Path | str, dataset: Dataset | None = None, library: Library | None = None
    ) -> pd.DataFrame:
        """Return a row for each answer that is recorded in a folder of results.

        With titles and files, as far as the dataset or a library of its photos knows them.
        """
        require_pandas()
        import pandas as pd

        return pd.DataFrame(answer_rows(self, Path(out), dataset, library))

    def promote(
        self, path: Path | str, *, force: bool = False, replace_unlike: bool = False
    ) -> Path:
        """Write the chosen configuration to serve; see `searchlab.evaluation.promotion.promote`."""
        return promote(
            self.chosen,
            path,
            measured=self.results,
            tied_with=[result for result in self.groups[0] if result is not self.chosen],
            force=force,
            replace_unlike=replace_unlike,
        )

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        chosen = self.names[self.chosen.config_id]
        return f"Report({self.title!r}, {len(self.results)} systems, chosen {chosen!r})"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield terminal.leaderboard_table(self, narrow=options.max_width < _WIDE)

    def _repr_html_(self) -> str:
        return leaderboard_html(self)


def load_report(folder: Path | str, *, alpha: float = ALPHA, seed: int = 0) -> Report:
    """Read the results in a folder, `<out>/<benchmark>/<dataset>`.

    Only results that can be compared with the newest are used: same data, queries and metrics,
    measured by the same code on the same machine. The caption says how many others there are.

    Raises:
        NotFoundError: The folder holds no results.
        DataError: A file is damaged.
    """
    results = [load_result(path) for path in sorted(Path(folder).glob("*.json"))]
    if not results:
        msg = f"{folder} must hold results, got none; run `searchlab evaluate`"
        raise NotFoundError(msg)
    newest = max(results, key=lambda result: result.manifest["date"])
    comparable = [result for result in results if result.setting == newest.setting]
    return Report(comparable, alpha=alpha, seed=seed, n_left_out=len(results) - len(comparable))
