"""Studies: the code that each benchmark runs, and the function that computes its figures again.

Each benchmark has one line here. It names the function that computes the figures again from a
record, or says why they can only be sealed. Code is given by dotted names, since this package must
not import the packages above it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from searchlab.errors import InputError
from searchlab.evaluation.provenance.code_version import code_version

Recompute: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]

_TIMES = "its figures are times and memory, those of one machine at one moment"
_PEERS = "it asks other libraries as well, which searchlab does not install"


@dataclass(frozen=True)
class Study:
    """How the figures of one benchmark are computed.

    Attributes:
        code: Dotted names of modules; the figures depend on these and on what they import.
        recompute: `"module:function"`, which takes a recorded measurement and returns figures that
            must equal the recorded ones of the same names, so without times.
        sealed: Without `recompute`, why the figures are not computed again.
    """

    code: tuple[str, ...]
    recompute: str = ""
    sealed: str = ""

    def load_recompute(self) -> Recompute | None:
        """Import the function that computes the figures again; None if there is none."""
        if not self.recompute:
            return None
        module, _, function = self.recompute.partition(":")
        recompute: Recompute = getattr(importlib.import_module(module), function)
        return recompute


STUDIES: dict[str, Study] = {
    "adapt": Study(
        ("searchlab.training", "searchlab.evaluation.datasets"),
        sealed="it trains, on photos that do not ship",
    ),
    "calibration": Study(
        ("searchlab.studies.calibration.study",),
        recompute="searchlab.studies.calibration.study:recompute",
    ),
    "color_names": Study(
        ("searchlab.studies.color.names",), recompute="searchlab.studies.color.names:recompute"
    ),
    "color_tolerance": Study(
        ("searchlab.studies.color.tolerance",),
        recompute="searchlab.studies.color.tolerance:recompute",
    ),
    "descriptions": Study(
        ("searchlab.photos", "searchlab.models", "searchlab.evaluation.datasets"),
        sealed="its photos do not ship",
    ),
    "dominant_color": Study(
        ("searchlab.studies.color.dominant",), sealed="most of its photos do not ship"
    ),
    "embedding": Study(
        (
            "searchlab.library.embed",
            "searchlab.models",
            "searchlab.evaluation.datasets",
            "searchlab.search.query_embedding",
        ),
        sealed=_TIMES,
    ),
    "facets": Study(("searchlab.search.filters",), sealed=_TIMES),
    "filters": Study(
        ("searchlab.studies.filters.study",), recompute="searchlab.studies.filters.study:recompute"
    ),
    "graph": Study(
        (
            "searchlab.studies.vectors.made",
            "searchlab.evaluation.metrics",
            "searchlab.evaluation.datasets",
            "searchlab.search.indexes",
        ),
        sealed=_TIMES,
    ),
    "http": Study(
        ("searchlab.api", "searchlab.evaluation.metrics", "searchlab.library"), sealed=_TIMES
    ),
    "index": Study(
        ("searchlab.studies.index.study", "searchlab.photos.images"),
        recompute="searchlab.studies.index.study:recompute",
    ),
    "judgments": Study(
        ("searchlab.studies.judgments",), recompute="searchlab.studies.judgments:recompute"
    ),
    "mini": Study(("searchlab.training", "searchlab.models"), sealed="it needs the teacher"),
    "opening": Study(
        ("searchlab.studies.filters.atlas_engine", "searchlab.library"), sealed=_TIMES
    ),
    "paging": Study(
        ("searchlab.studies.paging.study",), recompute="searchlab.studies.paging.study:recompute"
    ),
    "palette_filter": Study(
        ("searchlab.search.filters", "searchlab.search.color_order"), sealed=_TIMES
    ),
    "planner": Study(
        ("searchlab.evaluation.tuning.tune", "searchlab.studies.vectors.made"), sealed=_TIMES
    ),
    "promotion": Study(
        ("searchlab.evaluation.experiments", "searchlab.evaluation.config_grids"),
        sealed="it is held to the result it names",
    ),
    "relevance": Study(
        ("searchlab.studies.calibration.relevance",),
        recompute="searchlab.studies.calibration.relevance:recompute",
    ),
    "scale": Study(
        ("searchlab.studies.filters.atlas_engine", "searchlab.studies.vectors.scaling"),
        sealed=f"{_TIMES}; {_PEERS}",
    ),
    "search_quality": Study(
        ("searchlab.evaluation.experiments", "searchlab.evaluation.config_grids"),
        sealed="results are ranked again",
    ),
    "serving": Study(("searchlab.api", "searchlab.cli"), sealed=_TIMES),
    "sources": Study(("searchlab.sources", "searchlab.evaluation.datasets"), sealed=_TIMES),
    "steering": Study(
        ("searchlab.studies.steering.study",),
        recompute="searchlab.studies.steering.study:recompute",
    ),
    "structure": Study(
        ("searchlab.api", "searchlab.evaluation.datasets", "searchlab.evaluation.metrics"),
        sealed="it counts files of one checkout",
    ),
    "targets": Study(("searchlab.evaluation.reporting.lookup",), sealed="it reads other records"),
    "words": Study(
        (
            "searchlab.search.engine",
            "searchlab.studies.vectors.scenes",
            "searchlab.models",
            "searchlab.evaluation.datasets",
        ),
        sealed=_PEERS,
    ),
    "tuning": Study(("searchlab.evaluation.tuning.tune",), sealed=_TIMES),
    "newcomer": Study(
        (
            "searchlab.studies.words.newcomer",
            "searchlab.evaluation.datasets",
            "searchlab.library",
            "searchlab.models",
            "searchlab.search",
        ),
        sealed="one person looked at the photos",
    ),
    "word_tasks": Study(("searchlab.studies.words",), sealed="half of its photos do not ship"),
    "word_weights": Study(("searchlab.studies.words",), sealed="its photos do not ship"),
    "accelerator": Study(
        ("searchlab.models", "searchlab.photos.images", "searchlab.evaluation.datasets"),
        sealed=f"{_TIMES}, with an accelerator",
    ),
}
"""Name of a benchmark -> its study."""


def study_of(benchmark: str) -> Study:
    """Return the study of a benchmark.

    Raises:
        InputError: It has no line in `STUDIES`.
    """
    if benchmark not in STUDIES:
        msg = f"a benchmark must have a line in STUDIES, got {benchmark!r}; add it there"
        raise InputError(msg)
    return STUDIES[benchmark]


def code_of(benchmark: str) -> str:
    """Return the `code_version` of the code that a benchmark runs.

    Raises:
        InputError: It has no line in `STUDIES`.
    """
    return code_version(*study_of(benchmark).code)
