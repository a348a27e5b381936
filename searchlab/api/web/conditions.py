"""Conditions: what a search asks for, each as a chip, with the search as it is without it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from searchlab.api.web.search_state import SearchState
from searchlab.config import Config
from searchlab.photos.colors import DEFAULT_TOLERANCE, FAMILIES
from searchlab.photos.licenses import license_label
from searchlab.search.filters.palettes import PaletteColor

_ORIENTATIONS: Final = {"landscape": "Landscape", "portrait": "Portrait", "square": "Square"}


class ShownCondition(NamedTuple):
    """One condition of a search.

    Attributes:
        label: What it asks for.
        without: The search without it.
        shade: The colour to show beside it, `#rrggbb`; empty if it is none.
    """

    label: str
    without: SearchState
    shade: str = ""


def list_conditions(state: SearchState, config: Config) -> list[ShownCondition]:
    """List what narrows a search besides words and picture, as people read it.

    Args:
        state: The search.
        config: How the library is searched.
    """
    return [*_list_colors(state), *_list_others(state), *_list_scores(state, config)]


def _list_colors(state: SearchState) -> Iterator[ShownCondition]:
    width = "" if state.color_tolerance == DEFAULT_TOLERANCE else f" ± {state.color_tolerance}"
    if state.color_name:
        shade = FAMILIES.get(state.color_name, "")
        yield ShownCondition(
            f"{state.color_name.capitalize()}{width}", state.without("color_name"), shade
        )
    if state.color_hex:
        yield ShownCondition(
            f"{state.color_hex}{width}", state.without("color_hex"), state.color_hex
        )
    for text in state.palette:
        color = PaletteColor.parse(text)
        share = "in it" if color.percent == 1 else f"on {color.percent} %"
        shade = FAMILIES.get(color.color, color.color)
        label = f"{color.color.capitalize()} {share}{width}"
        yield ShownCondition(label, state.without("palette", text), shade)


def _list_others(state: SearchState) -> Iterator[ShownCondition]:
    for name in state.orientation:
        yield ShownCondition(_ORIENTATIONS.get(name, name), state.without("orientation", name))
    for name in state.source:
        yield ShownCondition(name, state.without("source", name))
    for name in state.license_type:
        yield ShownCondition(license_label(name), state.without("license_type", name))
    if state.photographer:
        yield ShownCondition(f"By {state.photographer}", state.without("photographer"))
    if state.after_date:
        yield ShownCondition(f"From {state.after_date}", state.without("after_date"))
    if state.before_date:
        yield ShownCondition(f"Until {state.before_date}", state.without("before_date"))


def _list_scores(state: SearchState, config: Config) -> Iterator[ShownCondition]:
    if least := state.least_score(config):
        label = f"Score {100 * least:g} % and more"
        without = state.without("score_threshold")
        if without.least_score(config):  # by date, unless the address asks for all
            without = state.moved(score_threshold=0.0)
        yield ShownCondition(label, without)
