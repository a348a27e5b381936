"""AnsweringWidget: what the widgets of notebooks share, so that each says only what it shows.

The browser side is a script that the kernel sends, after `photos/dom.js`; nothing is fetched from
elsewhere. It sends a message, Python answers by changing traits, and counts the message last, so
that the browser notices when nobody answers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from searchlab.errors import MissingExtraError, SearchlabError

try:
    import anywidget
    import traitlets as traitlets
except ImportError as error:
    _MSG = f"a widget must have anywidget, got {str(error)!r}; pip install 'searchlab[notebooks]'"
    raise MissingExtraError(_MSG) from error


class AnsweringWidget(anywidget.AnyWidget):
    """A widget that answers what is done in the browser, and stays readable in a saved notebook.

    Attributes:
        problem: What went wrong with the last message, in words; empty if nothing did.
        heard: Number of messages received, so that the browser notices if Python does not answer.
        sheet_id: Id of the static sheet in the page, which a live widget hides.
    """

    _blame = ""  # before what went wrong

    problem = traitlets.Unicode("").tag(sync=True)
    heard = traitlets.Int(0).tag(sync=True)
    sheet_id = traitlets.Unicode("").tag(sync=True)

    def __init__(self, **state: Any) -> None:
        super().__init__(sheet_id=f"searchlab-{uuid4().hex}", **state)
        self.on_msg(self._heard)

    @abstractmethod
    def answer(self, message: Mapping[str, Any], buffers: Sequence[bytes]) -> None:
        """Do what the browser asks for.

        Raises:
            SearchlabError: It cannot be done; the browser shows the message.
        """

    @property
    @abstractmethod
    def summary(self) -> str:
        """What is shown, as a line of text."""

    @abstractmethod
    def _repr_html_(self) -> str:
        """Render what is shown, for a saved notebook."""

    def _heard(self, _widget: object, message: object, buffers: Sequence[Any]) -> None:
        content = message if isinstance(message, dict) else {}
        try:
            self.answer(content, [bytes(one) for one in buffers or ()])
            self.problem = ""
        except (SearchlabError, OSError) as error:
            # Shown in the widget, since nobody there reads a log.
            self.problem = f"{self._blame}{error}"
        self.heard += 1

    def __repr__(self) -> str:
        return self.summary

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        if data:
            data["text/plain"] = self.summary
        return bundle

    def _ipython_display_(self) -> None:
        """Show the widget, and before it a sheet that stays readable in a saved notebook."""
        from IPython.display import HTML, display

        display(HTML(f'<div id="{self.sheet_id}">{self._repr_html_()}</div>'))  # type: ignore[no-untyped-call]
        bundle = self._repr_mimebundle_()
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        display(data or {"text/plain": self.summary}, raw=True)  # type: ignore[no-untyped-call]
