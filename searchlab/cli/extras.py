"""Extras: what a command needs beyond searching, and what to install where it is missing."""

from __future__ import annotations

from importlib.util import find_spec

from searchlab.errors import InputError

MODULES = {
    "sources": ("bs4", "httpcore", "httpx"),
    "serve": (
        *("alembic", "granian", "httpx", "jinja2", "litestar"),
        *("multipart", "prometheus_client", "sqlalchemy"),
    ),
}
"""What each extra of the package brings, by the names that are imported."""


def require_extra(extra: str) -> None:
    """Check that what an extra brings is installed.

    Raises:
        InputError: It is not; says what to do.
    """
    for module in MODULES[extra]:
        if find_spec(module) is None:
            raise InputError(_explain(module, extra))


def explain_missing(error: ModuleNotFoundError) -> str | None:
    """Say what to install for a module that was missing; None if no extra brings it."""
    missing = (error.name or "").partition(".")[0]
    extras = [extra for extra, modules in MODULES.items() if missing in modules]
    return _explain(missing, extras[0]) if extras else None


def _explain(module: str, extra: str) -> str:
    return f"{module} must be installed, got none; run pip install 'searchlab[{extra}]'"
