"""Values that a shell offers when the tab key is pressed; the README says how to switch it on.

Whatever goes wrong here, the shell offers nothing: a command line under way is no place for errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

import click

Completer: TypeAlias = Callable[[click.Context, click.Parameter, str], list[str]]

_MOST = 200


def _completer(values: Callable[[click.Context], Iterable[str]]) -> Completer:
    def complete(context: click.Context, _: click.Parameter, begun: str) -> list[str]:
        try:
            return [value for value in values(context) if value.startswith(begun)][:_MOST]
        except Exception:  # see the docstring of the module
            return []

    return complete


def complete_words(*words: str) -> Completer:
    """Offer some words."""
    return _completer(lambda _: words)


@_completer
def complete_colors(_: click.Context) -> Iterable[str]:
    """Offer the families of colours."""
    from searchlab.photos.colors import FAMILY_NAMES

    return FAMILY_NAMES


def complete_values(column: str) -> Completer:
    """Offer the values that the library's photos have.

    Args:
        column: One of `searchlab.photos.table.CODED_COLUMNS`.
    """

    def values(context: click.Context) -> Iterable[str]:
        from searchlab.library.snapshots import current_id
        from searchlab.photos.table import PhotoTable
        from searchlab.search.filters.photo_filter import known_values

        data = Path(context.params["data"]).expanduser()
        place = data / "snapshots" / (current_id(data) or "none")
        return filter(None, known_values(PhotoTable.open(place / "photos.columns"), column))

    return _completer(values)


@_completer
def complete_libraries(_: click.Context) -> Iterable[str]:
    """Offer the upstream libraries."""
    from searchlab.plugins import plugin_names
    from searchlab.sources import PLUGINS, SOURCES

    return [*SOURCES, *plugin_names(PLUGINS)]


@_completer
def complete_models(_: click.Context) -> Iterable[str]:
    """Offer the beginnings of models' specs; most need a colon and more after them."""
    from searchlab import models  # noqa: F401 - fills the registry
    from searchlab.models.registry import model_names

    return model_names()


@_completer
def complete_indexes(_: click.Context) -> Iterable[str]:
    """Offer the kinds of indexes."""
    from searchlab.config.indexes import index_names

    return index_names()


@_completer
def complete_datasets(_: click.Context) -> Iterable[str]:
    """Offer the judged datasets."""
    from searchlab.evaluation.datasets import dataset_names

    return dataset_names()


@_completer
def complete_metrics(_: click.Context) -> Iterable[str]:
    """Offer the metrics, each over the first ten results."""
    from searchlab.evaluation.metrics import metric_names

    return [f"{name}@10" for name in metric_names()]


def complete_fields(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """Offer the fields of a photo, after each comma those that are not named yet."""
    from searchlab.photos.photo import OWNERS_FIELDS, PHOTO_FIELDS

    head, comma, last = begun.rpartition(",")
    named = {name.strip() for name in head.split(",")}
    names = [name for name in (*PHOTO_FIELDS, "title", *OWNERS_FIELDS) if name not in named]
    return [f"{head}{comma}{name}" for name in names if name.startswith(last)]
