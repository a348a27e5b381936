"""The widget of a grid of photos to grade: buttons and keys in the browser, grades in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from searchlab.evaluation.answering_widget import AnsweringWidget, traitlets
from searchlab.evaluation.judging.widget import Judged
from searchlab.photos.cards import script_of

_HERE = Path(__file__).parent


class Grid(Judged, Protocol):
    """What the widget shows: the photos of one query."""

    @property
    def query_id(self) -> str:
        """The query that is shown."""
        ...

    def pictures(self) -> dict[str, Any]:
        """Return the pictures of the query that is shown."""
        ...


class GridWidget(AnsweringWidget):
    """Shows a grid in the browser, and passes on what the judge does.

    Attributes:
        view: What is shown now; see `GradingGrid.view`.
        pictures: Pictures of the query that is shown, which are sent once; see
            `GradingGrid.pictures`.
    """

    _esm = script_of(_HERE / "grid.js")
    _css = "\n".join(
        (_HERE / name).read_text(encoding="utf-8") for name in ("judging.css", "grid.css")
    )
    _blame = "not recorded: "

    view = traitlets.Dict().tag(sync=True)
    pictures = traitlets.Dict().tag(sync=True)

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._pictured = grid.query_id
        super().__init__(view=grid.view(), pictures=grid.pictures())
        grid.listeners.append(self.show)

    def show(self) -> None:
        """Send what the grid shows; its pictures only if they are of another query."""
        if self._pictured != self._grid.query_id:
            self._pictured = self._grid.query_id
            self.pictures = self._grid.pictures()
        self.view = self._grid.view()

    def answer(self, message: Mapping[str, Any], buffers: Sequence[bytes]) -> None:
        """Do what the judge asks for; a grade is on the disk when this returns."""
        self._grid.act(message)

    @property
    def summary(self) -> str:
        """How far the judge is."""
        return f"{self._grid}; run this notebook to judge on"

    def _repr_html_(self) -> str:
        return self._grid._repr_html_()
