"""A judging session in a notebook: the widget, and a static sheet for saved notebooks."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from searchlab.evaluation.judging.html import session_html
from searchlab.evaluation.judging.session import JudgingSession

if TYPE_CHECKING:
    from searchlab.evaluation.judging.widget import JudgingWidget


class NotebookSession(JudgingSession):
    """A judging session that can be shown in a notebook."""

    @cached_property
    def widget(self) -> JudgingWidget:
        """The widget that shows this session; the same object each time.

        Raises:
            MissingExtraError: The notebook extra is not installed.
        """
        from searchlab.evaluation.judging.widget import JudgingWidget

        return JudgingWidget(self)

    def _repr_html_(self) -> str:
        return session_html(self)

    def _ipython_display_(self) -> None:
        """Show the widget, and before it a sheet that stays readable in a saved notebook."""
        self.widget._ipython_display_()
