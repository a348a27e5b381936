"""Plugins: what installed packages add to searchlab's registries by entry points.

A package that brings a model names it in its own pyproject.toml, and installing it is enough:

    [project.entry-points."searchlab.models"]
    toy = "toy_package.embedder:ToyEmbedder"
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

from searchlab.errors import MismatchError


def plugin_names(group: str) -> list[str]:
    """List the names that installed packages add to a registry, such as `"searchlab.models"`."""
    return sorted(entry_points(group=group).names)


def load_plugin(group: str, name: str) -> Any | None:
    """Import what an installed package adds to a registry under a name; None where none does.

    Raises:
        MismatchError: It cannot be imported.
    """
    for entry in entry_points(group=group, name=name):
        try:
            return entry.load()
        except Exception as error:  # a stranger's code, which may raise anything
            package = entry.dist.name if entry.dist else entry.value
            msg = (
                f"the plugin {name!r} of {group} must be one that can be imported, got "
                f"{type(error).__name__}: {error}; upgrade or uninstall {package}"
            )
            raise MismatchError(msg) from error
    return None
