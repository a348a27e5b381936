"""The widget of a judging session: buttons and keys in the browser, choices recorded in Python.

ipywidgets alone cannot handle keys. With anywidget, the browser side of the widget is the plain
script beside this file, which the kernel sends, so nothing is fetched from other servers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import anywidget
import traitlets

from searchlab.errors import SearchlabError
from searchlab.evaluation.judging.session import JudgingSession
from searchlab.photos.cards import script_of

_HERE = Path(__file__).parent


class JudgingWidget(anywidget.AnyWidget):
    """Shows a session in the browser, and passes on what the judge does.

    Attributes:
        view: What is shown now; see `JudgingSession.view`.
        problem: What went wrong with the last choice; empty if nothing did.
        heard: Number of messages received, so that the browser notices if Python does not answer.
        sheet_id: Id of the static sheet in the page, which a live widget hides.
    """

    _esm = script_of(_HERE / "judging.js")
    _css = (_HERE / "judging.css").read_text(encoding="utf-8")

    view = traitlets.Dict().tag(sync=True)
    problem = traitlets.Unicode("").tag(sync=True)
    heard = traitlets.Int(0).tag(sync=True)
    sheet_id = traitlets.Unicode("").tag(sync=True)

    def __init__(self, session: JudgingSession) -> None:
        super().__init__(view=session.view(), sheet_id=f"searchlab-{uuid4().hex}")
        self._session = session
        session.listeners.append(self.show)
        self.on_msg(self._heard)

    def show(self) -> None:
        """Send what the session shows to the browser."""
        self.view = self._session.view()

    def _heard(self, _widget: object, message: object, _buffers: object) -> None:
        try:
            self._session.act(message if isinstance(message, dict) else {})
            self.problem = ""
        except (SearchlabError, OSError) as error:
            # Shown in the widget, since a judge does not read a log.
            self.problem = f"not recorded: {error}"
        self.heard += 1

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        if data:
            data["text/plain"] = f"{self._session}; run this notebook to judge on"
        return bundle
