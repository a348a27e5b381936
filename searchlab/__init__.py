"""Research, evaluate and serve semantic search over stock photos.

The public names are listed below, each with its module. The rooms, top to bottom; each imports
only from itself and from those under it:

    cli         the command line, and the demo
    client      a Python client of the HTTP API
    api         the HTTP API: routes, wire, accounts, snapshots in force, the server, its reference
    studies     what searchlab promises about colour, paging, steering and more, measured
    training    heads for your own photos, a new model without embedding again, `mini` itself
    evaluation  datasets, metrics, significance, experiments, records that can be checked again
    cluster     more than one machine: libraries at an address, workers on Ray
    library     photos on disk: found, embedded, indexed, swapped in whole
    sources     the photo libraries: their records, fetched and read
    search      from a query to a page: embed, filter, plan, rank; the indexes
    models      the embedding models, one folder a family
    photos      what a photo is: record, pixels, colours, licence, table
    config      every choice that changes a ranking or a score, and its hash

Under all of them: `errors`, `files`, `plugins`, `progress`, and `_numba`, how kernels are compiled.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from searchlab.cli.demo import build_demo_library as build_demo_library
    from searchlab.client.serving import serve_locally as serve_locally
    from searchlab.config import Config as Config
    from searchlab.errors import SearchlabError as SearchlabError
    from searchlab.evaluation.config_grids import grid as grid
    from searchlab.evaluation.datasets import Dataset as Dataset
    from searchlab.evaluation.datasets import load_dataset as load_dataset
    from searchlab.evaluation.datasets import read_dataset as read_dataset
    from searchlab.evaluation.experiments import Experiment as Experiment
    from searchlab.evaluation.metrics import evaluate as evaluate
    from searchlab.evaluation.promotion import promote as promote
    from searchlab.evaluation.recommending import recommend as recommend
    from searchlab.evaluation.reporting.diff import compare as compare
    from searchlab.evaluation.reports import Report as Report
    from searchlab.evaluation.reports import load_report as load_report
    from searchlab.evaluation.results import Result as Result
    from searchlab.evaluation.significance import bootstrap_interval as bootstrap_interval
    from searchlab.evaluation.significance import permutation_test as permutation_test
    from searchlab.evaluation.tuning.tune import tune as tune
    from searchlab.library.ingest import index_photos as index_photos
    from searchlab.library.library import Library as Library
    from searchlab.library.library import create_library as create_library
    from searchlab.library.library import open_library as open_library
    from searchlab.models import load_model as load_model
    from searchlab.models import register_model as register_model
    from searchlab.models.vectors.writing import write_vectors as write_vectors
    from searchlab.search.filters.photo_filter import PhotoFilter as PhotoFilter
    from searchlab.search.queries import Page as Page
    from searchlab.search.queries import Query as Query
    from searchlab.studies.widgets.explorer import Explorer as Explorer
    from searchlab.studies.widgets.search_box import SearchBox as SearchBox
    from searchlab.training.adapt.adaptation import adapt as adapt
    from searchlab.training.migrate.migration import migrate as migrate

__version__ = "0.1.0"

# Name to module: each is imported when it is first used, so that `import searchlab` is quick.
_HOMES = {
    "Config": "config",
    "Dataset": "evaluation.datasets",
    "Experiment": "evaluation.experiments",
    "Explorer": "studies.widgets.explorer",
    "Library": "library.library",
    "Page": "search.queries",
    "PhotoFilter": "search.filters.photo_filter",
    "Query": "search.queries",
    "Report": "evaluation.reports",
    "Result": "evaluation.results",
    "SearchBox": "studies.widgets.search_box",
    "SearchlabError": "errors",
    "adapt": "training.adapt.adaptation",
    "bootstrap_interval": "evaluation.significance",
    "build_demo_library": "cli.demo",
    "compare": "evaluation.reporting.diff",
    "create_library": "library.library",
    "evaluate": "evaluation.metrics",
    "grid": "evaluation.config_grids",
    "index_photos": "library.ingest",
    "load_dataset": "evaluation.datasets",
    "load_model": "models",
    "load_report": "evaluation.reports",
    "migrate": "training.migrate.migration",
    "open_library": "library.library",
    "permutation_test": "evaluation.significance",
    "promote": "evaluation.promotion",
    "read_dataset": "evaluation.datasets",
    "recommend": "evaluation.recommending",
    "register_model": "models",
    "serve_locally": "client.serving",
    "tune": "evaluation.tuning.tune",
    "write_vectors": "models.vectors.writing",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"searchlab.{_HOMES[name]}"), name)
    msg = f"module 'searchlab' has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
