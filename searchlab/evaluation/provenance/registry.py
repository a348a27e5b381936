"""Studies: the code that each benchmark runs, and the function that computes its figures again.

Each benchmark has one line here. It names the function that computes the figures again from a
record, or says why they can only be sealed. Code is given by dotted names, since this package must
not import the packages above it. What measures quality alone may share machines with other work.
"""

from __future__ import annotations

from searchlab.errors import InputError
from searchlab.evaluation.provenance.code_version import code_version
from searchlab.evaluation.provenance.study import Study
from searchlab.evaluation.provenance.tolerances import CALIBRATED, RANKED_OTHERWISE, Tolerance

_TIMES = "its figures are times and memory, those of one machine at one moment"
_MADE_BY_US = "its times, and other libraries' answers"
_ONE_IN_A_THOUSAND = Tolerance(
    "*recall*", absolute=0.002, why="a neighbour whose cosine is a tie up to its last bits"
)
_PEERS = "it asks other libraries as well, which searchlab does not install"

STUDIES: dict[str, Study] = {
    "abroad": Study(
        (
            "searchlab.studies.abroad",
            "searchlab.evaluation.config_grids",
            "searchlab.training.mini.corpora",
        ),
        recompute="benchmarks.abroad.bench_abroad:recompute",
        again="all figures; which bundled queries were taught needs packages of Unicode CLDR",
        tolerances=(
            Tolerance("*[0-9]", absolute=0.01, why="a query of a hundred and more, and intervals"),
            *RANKED_OTHERWISE,
        ),
        shares_machines=True,
    ),
    "adapt": Study(
        ("searchlab.training", "searchlab.evaluation.datasets"),
        sealed="it trains, on photos that do not ship",
    ),
    "calibration": Study(
        ("searchlab.studies.calibration.study",),
        recompute="searchlab.studies.calibration.study:recompute",
        again="all figures",
        tolerances=CALIBRATED,
        shares_machines=True,
    ),
    "cold_start": Study(
        ("searchlab.evaluation.metrics", "searchlab.evaluation.datasets"),
        sealed=f"{_TIMES}; {_PEERS}",
    ),
    "color_names": Study(
        ("searchlab.studies.color.names",),
        recompute="searchlab.studies.color.names:recompute",
        again="all figures",
        shares_machines=True,
    ),
    "color_tolerance": Study(
        ("searchlab.studies.color.tolerance",),
        recompute="searchlab.studies.color.tolerance:recompute",
        again="all figures",
        tolerances=(
            Tolerance("*srgb*", absolute=0.004, why="shades that are equally far in sRGB"),
        ),
        shares_machines=True,
    ),
    "deep_pages": Study(
        (
            "searchlab.library",
            "searchlab.studies.vectors.real",
            "searchlab.studies.vectors.scenes",
            "searchlab.studies.filters.atlas_engine",
        ),
        sealed=_TIMES,
    ),
    "descriptions": Study(
        ("searchlab.photos", "searchlab.models", "searchlab.evaluation.datasets"),
        recompute="benchmarks.descriptions.bench_descriptions:recompute",
        again="all figures",
    ),
    "dominant_color": Study(
        ("searchlab.studies.color.dominant",),
        recompute="benchmarks.color.bench_dominant_color:recompute",
        again="which colour each method names, and all shares",
        sealed="times",
    ),
    "embedding": Study(
        (
            "searchlab.library.embed",
            "searchlab.models",
            "searchlab.evaluation.datasets",
            "searchlab.search.query_reading",
        ),
        sealed=_TIMES,
    ),
    "facets": Study(("searchlab.search.filters",), sealed=_TIMES),
    "faults": Study(
        (
            "searchlab.cluster",
            "searchlab.api",
            "searchlab.cli",
            "searchlab.studies.vectors.scenes",
            "searchlab.studies.filters.atlas_engine",
        ),
        sealed=f"{_TIMES}; it needs Ray, and kills what it measures",
    ),
    "few_judgments": Study(
        ("searchlab.evaluation.judging", "searchlab.evaluation.significance"),
        recompute="benchmarks.few_judgments.bench_few_judgments:recompute",
        again="all figures",
        shares_machines=True,
    ),
    "filters": Study(
        ("searchlab.studies.filters.study",),
        recompute="searchlab.studies.filters.study:recompute",
        again="recall, short pages and plans of our own systems; summaries, from their records",
        sealed=_MADE_BY_US,
        summary="benchmarks.filters.bench_filters:recompute",
        only=("*/searchlab-*",),
        tolerances=(_ONE_IN_A_THOUSAND,),
    ),
    "graph": Study(
        (
            "searchlab.studies.vectors.real",
            "searchlab.studies.index.recall",
            "searchlab.evaluation.metrics",
            "searchlab.search.indexes",
        ),
        recompute="benchmarks.index.bench_graph:recompute",
        again="recall of the graph that one thread built",
        sealed=_TIMES,
        only=("*/hnsw",),
        tolerances=(_ONE_IN_A_THOUSAND,),
    ),
    "http": Study(
        ("searchlab.api", "searchlab.evaluation.metrics", "searchlab.library"),
        recompute="benchmarks.http.again:recompute",
        again="what an operation costs beside the base's, within a band",
        sealed=f"{_TIMES}; {_PEERS}",
        only=("*/endpoints", "*/filters"),
        tolerances=(Tolerance("metrics.*cpu_ratio", factor=2.0, why="a short, unquiet run"),),
    ),
    "index": Study(
        ("searchlab.studies.index.study", "searchlab.photos.images"),
        recompute="searchlab.studies.index.study:recompute",
        again="recall of our own systems; summaries, from their records",
        sealed=_MADE_BY_US,
        summary="benchmarks.index.bench_index:recompute",
        only=("*/searchlab-*",),
        tolerances=(_ONE_IN_A_THOUSAND,),
    ),
    "judgments": Study(
        ("searchlab.studies.judgments",),
        recompute="searchlab.studies.judgments:recompute",
        again="all figures",
        shares_machines=True,
    ),
    "mini": Study(
        ("searchlab.training", "searchlab.models", "searchlab.evaluation.datasets"),
        recompute="benchmarks.mini.bench_mini:recompute",
        again="success and nDCG of the model that ships, by language",
        sealed="other builds, and the curve of training, need the teacher",
        only=("*/shipped",),
        tolerances=(
            Tolerance("metrics.*", absolute=0.0006, why="one query of two thousand, as a share"),
            Tolerance("[!m]*", absolute=0.06, why="one query of two thousand, in percent"),
        ),
    ),
    "opening": Study(
        ("searchlab.studies.filters.atlas_engine", "searchlab.library"), sealed=_TIMES
    ),
    "pages": Study(("searchlab.api", "searchlab.evaluation.datasets"), sealed=_TIMES),
    "paging": Study(
        ("searchlab.studies.paging.study",),
        recompute="searchlab.studies.paging.study:recompute",
        again="all figures",
        shares_machines=True,
    ),
    "palette_filter": Study(
        ("searchlab.search.filters", "searchlab.search.color_order"),
        recompute="benchmarks.color.bench_palette_filter:recompute",
        again="how many photos meet each condition; orders, against the plain way",
        sealed=_TIMES,
    ),
    "planner": Study(
        ("searchlab.evaluation.tuning.tune", "searchlab.studies.vectors.made"), sealed=_TIMES
    ),
    "promotion": Study(
        ("searchlab.evaluation.experiments", "searchlab.evaluation.config_grids"),
        again="it is held to the result it names",
        sealed="that result has the figures",
    ),
    "reading": Study(
        (
            "searchlab.models.mini.embedder",
            "searchlab.evaluation.datasets",
            "searchlab.training.mini.teacher",
        ),
        recompute="benchmarks.mini.bench_reading:recompute",
        again="means over languages, of the model that ships",
        sealed="other builds; the teacher, whose packages searchlab does not install",
        only=("*/mini",),
        tolerances=(
            Tolerance("metrics.*", absolute=0.0006, why="a few sentences of twenty thousand"),
        ),
    ),
    "relevance": Study(
        ("searchlab.studies.calibration.relevance",),
        recompute="searchlab.studies.calibration.relevance:recompute",
        again="all figures",
        tolerances=(
            Tolerance("*written*", absolute=5e-5, why="the last bits of a score, summed up"),
            Tolerance("written*.bars*", absolute=0.005, why="a pair on the border of two bars"),
            Tolerance("written*.n_pairs", factor=1.02, why="a pair on the border of two bars"),
            Tolerance("thresholds*", absolute=0.001, why="a photo or two right at a threshold"),
        ),
        shares_machines=True,
    ),
    "scale": Study(
        (
            "searchlab.studies.filters.atlas_engine",
            "searchlab.studies.vectors.real",
            "searchlab.studies.vectors.scaling",
        ),
        recompute="benchmarks.scale.again:recompute",
        again="recall up to 100,000 vectors; summaries, from their records",
        sealed=f"{_TIMES}; {_PEERS}",
        summary="benchmarks.scale.again:summary",
        only=("*/searchlab-*-10k", "*/searchlab-*-30k", "*/searchlab-*-100k"),
        tolerances=(_ONE_IN_A_THOUSAND,),
    ),
    "search_quality": Study(
        ("searchlab.evaluation.experiments", "searchlab.evaluation.config_grids"),
        again="rankings, the scores of every query, intervals",
        sealed="times",
        tolerances=RANKED_OTHERWISE,
        shares_machines=True,
    ),
    "serving": Study(("searchlab.api", "searchlab.cli"), sealed=_TIMES),
    "shards": Study(
        (
            "searchlab.cluster",
            "searchlab.search.indexes",
            "searchlab.studies.vectors.real",
            "searchlab.studies.vectors.scenes",
            "searchlab.studies.filters.atlas_engine",
        ),
        sealed=f"{_TIMES}; it needs Ray",
    ),
    "small_samples": Study(
        ("searchlab.evaluation.significance", "searchlab.evaluation.results"),
        recompute="benchmarks.small_samples.bench_small_samples:recompute",
        again="all figures",
        shares_machines=True,
    ),
    "sources": Study(
        ("searchlab.sources", "searchlab.evaluation.datasets"),
        recompute="benchmarks.sources.bench_sources:recompute",
        again="how many records are read, and how many are reported",
        sealed=_TIMES,
    ),
    "steering": Study(
        ("searchlab.studies.steering.study",),
        recompute="searchlab.studies.steering.study:recompute",
        again="all figures",
        tolerances=(
            Tolerance("*curve*", absolute=5e-6, why="the last bits of a cosine, summed up"),
        ),
        shares_machines=True,
    ),
    "stopping": Study(
        (
            "searchlab.search.indexes",
            "searchlab.evaluation.metrics",
            "searchlab.studies.vectors.real",
        ),
        sealed="it takes a million texts, many minutes and gigabytes",
    ),
    "structure": Study(
        ("searchlab.api", "searchlab.evaluation.datasets", "searchlab.evaluation.metrics"),
        sealed="it counts files of one checkout",
    ),
    "targets": Study(
        ("searchlab.evaluation.reporting.lookup",),
        again="the whole table, from the records it names",
        summary="benchmarks.targets.bench_targets:recompute",
    ),
    "words": Study(
        (
            "searchlab.studies.vectors.spliced",
            "searchlab.search.engine",
            "searchlab.search.filters.photographers",
            "searchlab.studies.vectors.scenes",
            "searchlab.models",
            "searchlab.evaluation.datasets",
        ),
        recompute="benchmarks.words.bench_photographers:recompute",
        again="which photographers are suggested",
        sealed=f"{_TIMES}; a million texts, which take gigabytes; {_PEERS}",
        only=("*/photographers",),
    ),
    "tools": Study(
        ("searchlab.api",), sealed="times of one machine; the protocol's suite and its client"
    ),
    "tuning": Study(("searchlab.evaluation.tuning.tune",), sealed=_TIMES),
    "mutations": Study(
        (
            "searchlab.search",
            "searchlab.photos.colors",
            "searchlab.evaluation.calibration",
            "searchlab.evaluation.metrics",
            "searchlab.evaluation.significance",
            "searchlab.evaluation.promotion",
            "searchlab.evaluation.weighing",
            "searchlab.evaluation.judging.proportions",
            "searchlab.config.calibration",
            "searchlab.api.accounts",
            "searchlab.sources",
        ),
        again="the summary, from the records of its parts",
        sealed="it runs the tests hundreds of times",
        summary="benchmarks.mutations.bench_mutations:recompute",
    ),
    "newcomer": Study(
        (
            "searchlab.studies.words.newcomer",
            "searchlab.evaluation.datasets",
            "searchlab.library",
            "searchlab.models",
            "searchlab.search",
        ),
        recompute="benchmarks.words.bench_newcomer:recompute",
        again="all figures, from what one person judged",
        shares_machines=True,
    ),
    "word_tasks": Study(
        ("searchlab.studies.words",),
        recompute="searchlab.studies.words.tasks:recompute",
        again="quality with and without words, intervals and tests",
        sealed="times",
    ),
    "verification": Study(
        ("searchlab.evaluation.provenance",),
        sealed="it computes all other records again on another processor",
    ),
    "word_weights": Study(
        ("searchlab.studies.words",),
        recompute="benchmarks.words.bench_word_weights:recompute",
        again="all figures",
        shares_machines=True,
    ),
    "accelerator": Study(
        ("searchlab.models", "searchlab.photos.images", "searchlab.evaluation.datasets"),
        sealed=f"{_TIMES}, with an accelerator",
    ),
    "indexing": Study(
        (
            "searchlab.library.embed",
            "searchlab.models",
            "searchlab.evaluation.datasets",
            "searchlab.search.query_reading",
        ),
        sealed=f"{_TIMES}, with an accelerator",
    ),
    "device_search": Study(
        ("searchlab.search.indexes", "searchlab.search.filters", "searchlab.studies.vectors"),
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
