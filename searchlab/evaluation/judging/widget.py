"""The widget of a judging session: buttons and keys in the browser, choices recorded in Python.

ipywidgets alone cannot handle keys; with anywidget, the browser side is the script beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from searchlab.evaluation.answering_widget import AnsweringWidget, traitlets
from searchlab.photos.cards import script_of

_HERE = Path(__file__).parent


class Judged(Protocol):
    """What a judging widget shows: one item at a time, or a grid of them."""

    listeners: list[Callable[[], None]]

    def view(self) -> dict[str, Any]:
        """Return everything that is shown, as plain values and pictures."""
        ...

    def act(self, message: Mapping[str, Any]) -> None:
        """Do what the browser asks for."""
        ...

    def _repr_html_(self) -> str: ...


class JudgingWidget(AnsweringWidget):
    """Shows a session in the browser, and passes on what the judge does.

    Attributes:
        view: What is shown now; see `JudgingSession.view`.
    """

    _esm = script_of(_HERE / "judging.js")
    _css = (_HERE / "judging.css").read_text(encoding="utf-8")
    _blame = "not recorded: "

    view = traitlets.Dict().tag(sync=True)

    def __init__(self, session: Judged) -> None:
        super().__init__(view=session.view())
        self._session = session
        session.listeners.append(self.show)

    def show(self) -> None:
        """Send what the session shows to the browser."""
        self.view = self._session.view()

    def answer(self, message: Mapping[str, Any], buffers: Sequence[bytes]) -> None:
        """Do what the judge asks for; a choice is on the disk when this returns."""
        self._session.act(message)

    @property
    def summary(self) -> str:
        """How far the judge is."""
        return f"{self._session}; run this notebook to judge on"

    def _repr_html_(self) -> str:
        return self._session._repr_html_()
