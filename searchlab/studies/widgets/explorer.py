"""Explorer: a leaderboard to sort and click into, the worst queries of a system, and what it found.

What is shown stays in Python: `explorer.queries` are those that are listed, and `explorer.kept`
those that were worth keeping, such as to judge or to measure them alone.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from searchlab.errors import InputError, NotFoundError, quote
from searchlab.evaluation.answering_widget import AnsweringWidget, traitlets
from searchlab.evaluation.comparison import Comparison
from searchlab.evaluation.datasets import Dataset
from searchlab.evaluation.reporting.leaderboard import (
    leaderboard_caption,
    leaderboard_columns,
    leaderboard_rows,
)
from searchlab.evaluation.reporting.leaderboard_html import leaderboard_section
from searchlab.evaluation.reporting.markup import note, piece, table
from searchlab.evaluation.reporting.named import find_system
from searchlab.evaluation.reporting.pictures import Pictures
from searchlab.evaluation.reporting.query_scores import ORDERS, QueryScore, list_query_scores
from searchlab.evaluation.results import Result, read_run_beside
from searchlab.files import require_pandas
from searchlab.library.library import Library
from searchlab.photos.cards import script_of

if TYPE_CHECKING:
    import pandas as pd

_HERE = Path(__file__).parent
_LISTED = 40
_SIDE_BY_SIDE = 3  # systems, where none was named to compare with
_SAVED = 8  # queries of the sheet in a saved notebook


class Explorer(AnsweringWidget):
    """An explorer of results, for a notebook.

    Example:
        >>> report = Experiment(dataset, configs, out="mine").run()  # doctest: +SKIP
        >>> explorer = Explorer(report, dataset, "mine", library=library)  # doctest: +SKIP
        >>> explorer.rank("mini", against="palette", lang="de")  # doctest: +SKIP

    Attributes:
        system: The result whose queries are listed.
        against: The result that it is compared with; None without one.
        metric: What the queries are ordered by.
        queries: The queries that are listed, all of them, in order.
        shown: The query whose photos are shown; None before one was chosen.
        kept: Ids of the queries that were kept, in order, each once.
        board: What the browser shows of the systems; made from the report.
        listing: What it shows of the queries.
        case: What it shows of one query.
        words: Words of the queries that were kept.
    """

    _esm = script_of(_HERE / "explorer.js")
    _css = (_HERE / "explorer.css").read_text(encoding="utf-8")

    board = traitlets.Dict().tag(sync=True)
    listing = traitlets.Dict().tag(sync=True)
    case = traitlets.Dict().tag(sync=True)
    words = traitlets.List(traitlets.Unicode()).tag(sync=True)

    def __init__(
        self,
        report: Comparison,
        dataset: Dataset,
        out: Path | str | None = None,
        *,
        library: Library | None = None,
        depth: int = 8,
    ) -> None:
        """Open an explorer on the worst queries of the best system.

        Args:
            report: The results, such as an `Experiment` or `load_report` returns.
            dataset: What they were measured on: words, judgments and pictures.
            out: Folder of results, where their rankings lie; without it there are scores alone.
            library: A library of the photos, for their pictures; the dataset's files if left out.
            depth: Photos that are shown of each ranking, 1 to 100.

        Raises:
            InputError: `depth` is out of range, or the dataset has other queries.
            DataError: A ranking is damaged.
        """
        if not 1 <= depth <= 100:
            msg = f"depth must be from 1 to 100, got {depth!r}"
            raise InputError(msg)
        self._queries = {query.query_id: query for query in dataset.queries}
        measured = report.results[0].scores.query_ids
        missing = [one for one in measured if one not in self._queries]
        if missing:
            msg = (
                f"dataset must hold the {len(measured):,} queries of the report, got "
                f"{dataset.name}@{dataset.revision} without {len(missing):,} of them"
            )
            raise InputError(msg)
        self._report, self._dataset, self._depth = report, dataset, depth
        self._texts = {query_id: query.text or "" for query_id, query in self._queries.items()}
        self._pictures = Pictures(library, dataset)
        self._runs = {
            result.config_id: {} if out is None else read_run_beside(result.path(Path(out)))
            for result in report.results
        }
        self.system: Result = report.results[0]
        self.against: Result | None = None
        self.metric = self.system.headline
        self.queries: list[QueryScore] = []
        self.shown: QueryScore | None = None
        self.kept: list[str] = []
        super().__init__(board=_board(report))
        self.rank(self.system.config_id)

    def rank(
        self,
        system: str,
        *,
        against: str = "",
        metric: str | None = None,
        lang: str = "",
        contains: str = "",
        order: str = "worst",
    ) -> list[QueryScore]:
        """List the queries of a system, worst first, and show the first of them.

        Args:
            system: Its name, its model, or the beginning of its hash.
            against: A system to compare it with, if it is given: worst losses first.
            metric: What to order by; the headline metric if left out.
            lang: Only queries of this language, if it is given.
            contains: Only queries whose words contain this.
            order: `worst` or `best` first.

        Returns:
            The queries, which are then `queries`.

        Raises:
            InputError: There is no such metric or order, or several systems are called so.
            NotFoundError: No system is called so.
        """
        result = find_system(system, self._report)
        other = find_system(against, self._report) if against else None
        queries = list_query_scores(
            result,
            against=other,
            metric=metric,
            lang=lang,
            contains=contains,
            order=order,
            texts=self._texts,
        )
        self.system, self.against, self.queries = result, other, queries
        self.metric = metric or result.headline
        self._asked = {"lang": lang, "contains": contains, "order": order}
        self._list(0)
        self._show(queries[0] if queries else None)
        return queries

    def show(self, query_id: str) -> None:
        """Show what each system found for a query.

        Raises:
            NotFoundError: It is not one of those that are listed.
        """
        found = next((one for one in self.queries if one.query_id == query_id), None)
        if found is None:
            msg = f"a query must be one of the {len(self.queries):,} listed, got {quote(query_id)}"
            raise NotFoundError(msg)
        self._show(found)

    def keep(self) -> None:
        """Keep the query that is shown, once."""
        if self.shown is not None and self.shown.query_id not in self.kept:
            self.kept.append(self.shown.query_id)
            self.words = [self._texts[one] or one for one in self.kept]

    def frame(self) -> pd.DataFrame:
        """Return a row for each query that is listed, in order."""
        require_pandas()
        import pandas as pd

        columns = ["query_id", "lang", "text", "about", "score", "other"]
        rows = [[getattr(one, name) for name in columns] for one in self.queries]
        return pd.DataFrame(rows, columns=columns).set_index("query_id")

    def answer(self, message: Mapping[str, Any], buffers: Sequence[bytes]) -> None:
        """List, go on listing, show or keep, as the browser asks."""
        do = message.get("do")
        if do == "rank":
            names = ("against", "metric", "lang", "contains", "order")
            given = {name: _word(message, name) for name in names if message.get(name)}
            self.rank(_word(message, "system"), **given)
        elif do == "more":
            self._list(self.listing["first"] + len(self.listing["rows"]))
        elif do == "again":  # asked by a second view of the same explorer
            self._list(0)
        elif do == "show":
            self.show(_word(message, "query_id"))
        elif do == "keep":
            self.keep()
        else:
            msg = f"do must be rank, more, again, show or keep, got {quote(do)}"
            raise InputError(msg)

    def _list(self, first: int) -> None:
        """Send the next of the queries that are listed; the browser has those before."""
        self.listing = {
            "system": self.system.config_id,
            "against": "" if self.against is None else self.against.config_id,
            "metric": self.metric,
            **self._asked,
            "total": len(self.queries),
            "first": first,
            "rows": [
                [one.query_id, one.lang, one.text or one.query_id, one.score, one.other]
                for one in self.queries[first : first + _LISTED]
            ],
        }

    def _show(self, shown: QueryScore | None) -> None:
        self.shown = shown
        self.case = {} if shown is None else self._case(shown)

    def _case(self, shown: QueryScore) -> dict[str, Any]:
        query, grades = self._queries[shown.query_id], self._grades(shown)
        strips = []
        for result in self._compared():
            scores = result.scores
            place = scores.query_ids.index(shown.query_id)
            strips.append(
                {
                    "name": self._report.names[result.config_id],
                    "score": float(scores.values[self.metric][place]),
                    "photos": [
                        self._photo(photo_id, grades) for photo_id in self._found(result, shown)
                    ],
                }
            )
        seen = {photo for result in self._compared() for photo in self._found(result, shown)}
        missed = shown.about in grades and shown.about not in seen
        return {
            "query_id": shown.query_id,
            "lang": shown.lang,
            "text": shown.text or shown.query_id,
            "asked": self._pictures.data_uri(query.photo_id) if query.photo_id else "",
            "strips": strips,
            "missed": [self._photo(shown.about, grades)] if missed and any(seen) else [],
        }

    def _compared(self) -> list[Result]:
        """Return the systems whose photos are shown: the one listed, then others."""
        others = [self.against] if self.against is not None else self._report.results
        return [self.system, *(one for one in others if one is not self.system)][:_SIDE_BY_SIDE]

    def _found(self, result: Result, shown: QueryScore) -> list[str]:
        return self._runs[result.config_id].get(shown.query_id, [])[: self._depth]

    def _grades(self, shown: QueryScore) -> dict[str, int]:
        return dict(self._dataset.qrels.get(shown.query_id, {}))

    def _photo(self, photo_id: str, grades: Mapping[str, int]) -> dict[str, Any]:
        return {
            "picture": self._pictures.data_uri(photo_id),
            "words": self._pictures.words(photo_id) or photo_id,
            "grade": grades.get(photo_id),
        }

    @property
    def summary(self) -> str:
        """Which queries are listed, in words."""
        name = self._report.names[self.system.config_id]
        beside = "" if self.against is None else f" against {self._report.names[_id(self.against)]}"
        one = "query" if len(self.queries) == 1 else "queries"
        return f"Explorer: {len(self.queries):,} {one} of {name}{beside} by {self.metric}"

    def _repr_html_(self) -> str:
        """Render the leaderboard, the first queries and the photos that are shown."""
        heads = ["query", "language", self.metric, *(["other"] if self.against else [])]
        rows = [
            [
                one.text or one.query_id,
                one.lang,
                f"{one.score:.3f}",
                *([] if one.other is None else [f"{one.other:.3f}"]),
            ]
            for one in self.queries[:_SAVED]
        ]
        parts = [
            f"<h3>{html.escape(self._report.title)}</h3>",
            leaderboard_section(self._report),
            f"<h4>{html.escape(self.summary)}</h4>",
            table(heads, rows, left=["query"]),
        ]
        if self.shown is not None:
            grades = self._grades(self.shown)
            parts.append(f'<h4 dir="auto">{html.escape(self.case["text"])}</h4>')
            for result in self._compared():
                found = self._found(result, self.shown)
                parts.append(f"<small>{html.escape(self._report.names[_id(result)])}</small>")
                parts.append(self._pictures.strip(found, grades))
            seen = {one for result in self._compared() for one in self._found(result, self.shown)}
            parts.append(self._pictures.missed(self.shown.about, seen, grades))
        if not any(self._runs.values()):
            parts.append(note("There are no rankings: name the folder of the results as `out`."))
        return piece("".join(parts))


def _board(report: Comparison) -> dict[str, Any]:
    first = report.results[0]
    columns = leaderboard_columns(report)
    return {
        "title": report.title,
        "columns": columns,
        "rows": leaderboard_rows(report),
        "ids": [_id(result) for result in report.results],
        "names": [report.names[_id(result)] for result in report.results],
        "chosen": _id(report.chosen),
        "caption": leaderboard_caption(report, columns),
        "metrics": list(first.scores.values),
        "languages": list(first.languages),
        "orders": list(ORDERS),
    }


def _id(result: Result) -> str:
    return result.config_id


def _word(message: Mapping[str, Any], name: str) -> str:
    value = message.get(name)
    if not isinstance(value, str):
        msg = f"{name} must be a string, got {quote(value)}"
        raise InputError(msg)
    return value
