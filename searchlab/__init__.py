"""Research, evaluate and serve semantic search over stock photos."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from searchlab.adapting.adaptation import adapt as adapt
    from searchlab.adapting.migration import migrate as migrate
    from searchlab.config import Config as Config
    from searchlab.config_grids import grid as grid
    from searchlab.datasets import load_dataset as load_dataset
    from searchlab.errors import SearchlabError as SearchlabError
    from searchlab.experiments import Experiment as Experiment
    from searchlab.filters import PhotoFilter as PhotoFilter
    from searchlab.ingest import index_photos as index_photos
    from searchlab.labs.tuning import tune as tune
    from searchlab.library import Library as Library
    from searchlab.library import create_library as create_library
    from searchlab.library import open_library as open_library
    from searchlab.models import load_model as load_model
    from searchlab.queries import Page as Page
    from searchlab.queries import Query as Query

__version__ = "0.1.0"

# Name to module: each is imported when it is first used, so that `import searchlab` is quick.
_HOMES = {
    "Config": "config",
    "Experiment": "experiments",
    "Library": "library",
    "Page": "queries",
    "PhotoFilter": "filters",
    "Query": "queries",
    "SearchlabError": "errors",
    "adapt": "adapting.adaptation",
    "create_library": "library",
    "grid": "config_grids",
    "index_photos": "ingest",
    "load_dataset": "datasets",
    "load_model": "models",
    "migrate": "adapting.migration",
    "open_library": "library",
    "tune": "labs.tuning",
}

__all__ = [
    "Config",
    "Experiment",
    "Library",
    "Page",
    "PhotoFilter",
    "Query",
    "SearchlabError",
    "adapt",
    "create_library",
    "grid",
    "index_photos",
    "load_dataset",
    "load_model",
    "migrate",
    "open_library",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"searchlab.{_HOMES[name]}"), name)
    msg = f"module 'searchlab' has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
