"""Extras: the packages that some commands need, and how to install missing ones."""

from __future__ import annotations

from importlib.util import find_spec

from searchlab.errors import InputError

MODULES = {
    "mcp": ("mcp",),
    "sources": ("bs4", "httpcore", "httpx"),
    "serve": (
        *("alembic", "granian", "httpx", "jinja2", "litestar"),
        *("multipart", "prometheus_client", "sqlalchemy"),
    ),
}
"""The modules that each extra of the package installs, by their import names."""


def require_extra(extra: str) -> None:
    """Check that the modules of an extra are installed.

    Raises:
        InputError: One is missing; says how to install it.
    """
    for module in MODULES[extra]:
        if find_spec(module) is None:
            raise InputError(_explain(module, extra))


def explain_missing(error: ModuleNotFoundError) -> str | None:
    """Say how to install a missing module; None if it belongs to no extra."""
    missing = (error.name or "").partition(".")[0]
    extras = [extra for extra, modules in MODULES.items() if missing in modules]
    return _explain(missing, extras[0]) if extras else None


def _explain(module: str, extra: str) -> str:
    return f"{module} must be installed, got none; run pip install 'searchlab[{extra}]'"
