"""GradingGrid: all photos of a query at once, each graded where it lies.

A grid shows at a glance what differs and is quicker where most photos are not relevant; a large
picture alone shows more of each. Both write the same journal, so a judge may change between them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from searchlab.errors import InputError, quote
from searchlab.evaluation.judging.grading import Grading
from searchlab.evaluation.judging.html import session_html
from searchlab.evaluation.judging.journal import Choice

if TYPE_CHECKING:
    from searchlab.evaluation.judging.grid_widget import GridWidget


class GradingGrid:
    """Shows a grading session as grids in a notebook, one for each query.

    Example:
        >>> small = pictures_of(library, small=True)  # doctest: +SKIP
        >>> grading = Grading(pool, "ann.jsonl", judge="ann", pictures=small)  # doctest: +SKIP
        >>> GradingGrid(grading)  # doctest: +SKIP

    Attributes:
        grading: The session, whose journal every grade goes to at once.
        place: Which of the queries is shown, from 0.
        listeners: Functions to call whenever something else is to be shown.
    """

    def __init__(self, grading: Grading) -> None:
        """Open a session at the first query with a photo that has no grade.

        Args:
            grading: The session; small pictures are enough.
        """
        self.grading = grading
        self.listeners: list[Callable[[], None]] = []
        self._query_ids = tuple(grading.pool.places)
        self.place = 0
        self._since = time.perf_counter()
        self.resume()

    @property
    def query_id(self) -> str:
        """The query that is shown."""
        return self._query_ids[self.place]

    @property
    def open_numbers(self) -> list[int]:
        """Places, in the session's items, of the shown photos that have no choice yet."""
        judged, items = self.grading.journal.latest, self.grading.items
        return [n for n in self.grading.pool.places[self.query_id] if items[n] not in judged]

    def choose(self, number: int, choice: Choice) -> None:
        """Record a grade, or None to skip, for a photo of the query that is shown.

        Args:
            number: Place of the photo in the session's items.
            choice: A grade from 0 to 3; None to skip.

        Raises:
            InputError: It is no grade, or the photo is not one of those shown.
        """
        shown = self.grading.pool.places[self.query_id]
        if isinstance(number, bool) or number not in shown:
            msg = f"number must be a photo of the query that is shown, got {quote(number)}"
            raise InputError(msg)
        self._record(number, choice)
        self._tell()

    def choose_rest(self, choice: Choice) -> int:
        """Record one choice for every photo of the shown query that has none yet.

        Returns:
            How many these were.

        Raises:
            InputError: It is no grade.
        """
        numbers = self.open_numbers
        for number in numbers:
            self._record(number, choice)
        self._tell()
        return len(numbers)

    def undo(self) -> None:
        """Take the last choice back, and show its query; does nothing if there is no choice."""
        self.grading.undo()
        if self.grading.current is not None:
            self.place = self._query_ids.index(self.grading.current[0])
        self._tell()

    def move(self, steps: int) -> None:
        """Show an earlier (below 0) or later query, or the first or last one."""
        self.place = min(max(self.place + steps, 0), len(self._query_ids) - 1)
        self._tell()

    def resume(self) -> None:
        """Show the first query with a photo that has no grade."""
        self.grading.resume()
        if self.grading.current is not None:
            self.place = self._query_ids.index(self.grading.current[0])
        self._tell()

    def act(self, message: Mapping[str, Any]) -> None:
        """Do what a widget requests: `do` is choose, skip, rest, undo, back, next or resume.

        What is for the whole query has its `place`, so that a key that was pressed twice does not
        count for the next query, which the judge has not seen yet.

        Raises:
            InputError: `do`, the choice or the photo is unknown.
        """
        do, place = message.get("do"), message.get("place")
        if do in ("choose", "skip", "rest") and place != self.place:
            return
        if do == "choose":
            self.choose(message.get("number", -1), self._read_grade(message))
        elif do == "skip":
            self.choose(message.get("number", -1), None)
        elif do == "rest":
            self.choose_rest(self._read_grade(message))
        elif do == "undo":
            self.undo()
        elif do in ("back", "next"):
            self.move(1 if do == "next" else -1)
        elif do == "resume":
            self.resume()
        else:
            listed = "choose, skip, rest, undo, back, next or resume"
            msg = f"do must be {listed}, got {quote(do)}"
            raise InputError(msg)

    def view(self) -> dict[str, Any]:
        """Return what a widget shows, as plain values; `pictures` has the pictures of `photos`."""
        session = self.grading
        numbers = session.pool.places[self.query_id]
        scene = session.scene(session.items[numbers[0]])
        entries = [session.journal.latest.get(session.items[number]) for number in numbers]
        return {
            "place": self.place,
            "n_queries": len(self._query_ids),
            "total": len(session.items),
            "done": session.n_done,
            "skipped": session.n_skipped,
            "choices": [[value, name] for value, name in session.choices.items()],
            "query": scene["query"],
            "lang": scene["lang"],
            "photos": [
                {
                    "number": number,
                    "chosen": None if entry is None else entry.choice,
                    "judged": entry is not None,
                }
                for number, entry in zip(numbers, entries, strict=True)
            ],
        }

    def pictures(self) -> dict[str, Any]:
        """Return the pictures of the query that is shown: `asked`, and those of the `photos`."""
        session = self.grading
        scenes = [session.scene(session.items[n]) for n in session.pool.places[self.query_id]]
        return {"asked": scenes[0]["asked"], "photos": [one["sides"][0][0] for one in scenes]}

    @cached_property
    def widget(self) -> GridWidget:
        """The widget that shows this grid; the same object each time.

        Raises:
            MissingExtraError: The notebook extra is not installed.
        """
        from searchlab.evaluation.judging.grid_widget import GridWidget

        return GridWidget(self)

    def _read_grade(self, message: Mapping[str, Any]) -> Choice:
        choice: Choice = message.get("choice")
        if choice is None:
            msg = f"a choice must be one of {', '.join(map(str, self.grading.choices))}, got none"
            raise InputError(msg)
        return choice

    def _record(self, number: int, choice: Choice) -> None:
        now = time.perf_counter()
        self.grading.go(number)
        self.grading.choose(choice, seconds=now - self._since)
        self._since = now

    def _tell(self) -> None:
        self._since = time.perf_counter()
        for show in self.listeners:
            show()

    def __str__(self) -> str:
        return str(self.grading)

    def _repr_html_(self) -> str:
        return session_html(self.grading)

    def _ipython_display_(self) -> None:
        """Show the widget, and before it a sheet that stays readable in a saved notebook."""
        self.widget._ipython_display_()
