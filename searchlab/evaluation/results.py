"""Result: the scores of one configuration on one dataset, and the files that record them.

<out>/<benchmark>/<dataset>/<name>.json        figures, configuration, code and machine
<out>/<benchmark>/<dataset>/<name>.scores.tsv  one line for each query, for paired tests
<out>/<benchmark>/<dataset>/<name>.run.gz      the ranking of each query, TREC (`read_run`)

The name is read by people and ends with the configuration's hash, as in
`mini-exact-3b46c8f38ff9.json`; see `searchlab.evaluation.file_names`.

The JSON is a sealed measurement (`searchlab.evaluation.provenance.measurement`), written last:
if it exists, the other files are complete.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from searchlab.config import Config
from searchlab.config.indexes import load_index
from searchlab.errors import DataError
from searchlab.evaluation.datasets.judgments import read_run, write_run
from searchlab.evaluation.file_names import find_result_file, is_named_by, result_stem
from searchlab.evaluation.provenance.measurement import read_measurement, write_measurement
from searchlab.evaluation.significance import GroupedIntervals
from searchlab.files import write_atomically

_LABELS = ("query_id", "lang", "about")
_ENDINGS = (".json", ".scores.tsv", ".run.gz")  # the JSON first: without it, there is no result

SHARED = "shared machines"
"""Stands for the machine in the manifest of a result whose times say nothing."""

Ranked: TypeAlias = Mapping[str, Sequence[tuple[str, float]]]
"""query_id -> (photo_id, relevance score 0 to 1), best first."""


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of each query, for paired tests.

    Attributes:
        query_ids: (n_queries,) ids, sorted.
        langs: (n_queries,) languages.
        cluster_ids: (n_queries,) the photo that each query is about; queries about the same photo
            are not independent evidence.
        values: Metric -> (n_queries,) scores.
        ms: (n_queries,) time to rank, in milliseconds.
    """

    query_ids: tuple[str, ...]
    langs: tuple[str, ...]
    cluster_ids: tuple[str, ...]
    values: dict[str, NDArray[np.float64]]
    ms: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Result:
    """The scores of one configuration on one dataset.

    Attributes:
        benchmark: Kind of measurement, such as `"search_quality"`.
        dataset: Name of the dataset.
        dataset_revision: Hash over its photos, queries and judgments.
        config: The configuration.
        metrics: The figures: quality as macro averages over languages, then `p50_ms`, `p95_ms`,
            `p99_ms` to rank, `text_ms` to embed one text (0 if no query has one), `build_s` and
            `size_mib` of the index.
        intervals: Quality metric -> its averages with intervals. The first is the headline.
        photos: `n_photos` of the dataset that were searched, and their `hash`.
        manifest: Everything that the figures depend on; see
            `searchlab.evaluation.provenance.manifest.make_manifest`.
        scores: The scores of each query.
        task: What the queries consist of: `text`, `photo` or `photo+text`.
        judged_by: Number of judgments of relevant photos by origin, as the dataset records it.
        answered_by: Number of queries by the mode of their plan; empty where it was not recorded.
    """

    benchmark: str
    dataset: str
    dataset_revision: str
    config: Config
    metrics: dict[str, float]
    intervals: dict[str, GroupedIntervals]
    photos: dict[str, Any]
    manifest: dict[str, Any]
    scores: Scores
    task: str = "text"
    judged_by: dict[str, int] = field(default_factory=dict)
    answered_by: dict[str, int] = field(default_factory=dict)

    @property
    def config_id(self) -> str:
        """The configuration's hash."""
        return self.config.config_id

    @property
    def headline(self) -> str:
        """The metric that systems are ranked by."""
        return next(iter(self.intervals))

    @property
    def name(self) -> str:
        """Model and index in words; see `system_name`."""
        return system_name(self.config)

    @property
    def code(self) -> str:
        """Version and hash of the code that measured it."""
        return str(self.manifest["code"])

    @property
    def is_timed(self) -> bool:
        """Whether its times are those of one machine; on shared ones they say nothing."""
        return bool(self.manifest["machine"] != SHARED)

    @property
    def index_unused(self) -> bool:
        """Whether all photos were scanned for every query, with an index that is made not to."""
        approximate = load_index(self.config.index).approximate
        return approximate and self.answered_by.keys() == {"exact"}

    @property
    def setting(self) -> tuple[object, ...]:
        """What two results must share to be compared, such as data, queries, code and machine."""
        return tuple(_setting(self).values())

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages of the queries, sorted."""
        return tuple(sorted(set(self.scores.langs)))

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.scores.query_ids)

    def path(self, out: Path) -> Path:
        """Return the path of the JSON in a folder of results, whether it is there or not."""
        return find_result_file(out / self.benchmark / self.dataset, self.config)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON's values; quality to six digits."""
        return {
            "benchmark": self.benchmark,
            "dataset": self.dataset,
            "dataset_revision": self.dataset_revision,
            "name": self.config_id,
            "system": self.name,
            "config_id": self.config_id,
            "config": self.config.to_dict(),
            "task": self.task,
            "parameters": {"metrics": list(self.intervals), "seed": self.manifest.get("seed")},
            "metrics": {name: round(value, 6) for name, value in self.metrics.items()},
            "intervals": {name: intervals.to_dict() for name, intervals in self.intervals.items()},
            "n_queries": self.n_queries,
            **({"judged_by": self.judged_by} if self.judged_by else {}),
            **({"answered_by": self.answered_by} if self.answered_by else {}),
            "photos": self.photos,
            "manifest": self.manifest,
        }

    def save(self, out: Path, *, run: Ranked | None = None) -> Path:
        """Write run, scores and JSON, each atomically and in this order.

        A result of the configuration that has another name, as of an earlier version, is replaced.

        Args:
            out: Folder of results.
            run: The ranking of each query; if left out, no `.run.gz` is written.

        Returns:
            The path of the JSON.
        """
        before = self.path(out)
        path = before.with_name(f"{result_stem(self.config)}.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = [path.with_suffix(".scores.tsv")]
        if run is not None:
            beside.append(path.with_suffix(".run.gz"))
            photos = {query_id: [photo for photo, _ in ranked] for query_id, ranked in run.items()}
            scores = {query_id: [score for _, score in ranked] for query_id, ranked in run.items()}
            write_run(photos, beside[-1], tag=self.config_id, scores=scores)
        write_atomically(beside[0], _scores_text(self.scores).encode())
        if before != path:
            for ending in _ENDINGS:
                before.with_suffix(ending).unlink(missing_ok=True)
        return write_measurement(path, self.to_dict(), beside=beside)


def system_name(config: Config) -> str:
    """Name a model and an index, and the text index where it is read, in words.

    >>> system_name(Config(model="mini", index="hnsw"))
    'mini × hnsw M=16 ef=100'
    """
    name = f"{config.model} × {load_index(config.index).describe(config)}"
    return name if config.words is None else f"{name} + words"


def load_result(path: Path | str) -> Result:
    """Read a result and its scores of each query.

    Raises:
        DataError: A file is missing, damaged, changed since it was written, or of another schema.
    """
    path = Path(path)
    values = read_measurement(path)
    try:
        config = Config.from_dict(values["config"])
        if config.config_id != values["config_id"]:
            msg = f"config_id {values['config_id']!r} of another config"
            raise ValueError(msg)
        if not is_named_by(path, config.config_id):
            msg = f"the result of {config.config_id}, whose file's name must end so"
            raise ValueError(msg)
        for part, needed in (("manifest", {"code", "date", "machine"}), ("photos", {"hash"})):
            if missing := sorted(needed - values[part].keys()):
                msg = f"{part} without {', '.join(missing)}"
                raise ValueError(msg)
        scores = path.with_suffix(".scores.tsv")
        if scores.name not in values["files"]:
            msg = f"no {scores.name} under its seal"
            raise ValueError(msg)
        return Result(
            benchmark=values["benchmark"],
            dataset=values["dataset"],
            dataset_revision=values["dataset_revision"],
            config=config,
            metrics=dict(values["metrics"]),
            intervals={
                name: GroupedIntervals.from_dict(values_of)
                for name, values_of in values["intervals"].items()
            },
            photos=dict(values["photos"]),
            manifest=dict(values["manifest"]),
            scores=_read_scores(scores),
            task=str(values["task"]),
            judged_by=dict(values.get("judged_by", {})),
            answered_by=dict(values.get("answered_by", {})),
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        msg = f"{path} must hold a result, got: {error}; evaluate again"
        raise DataError(msg) from error


def read_run_beside(path: Path) -> dict[str, list[str]]:
    """Read the ranking that lies beside a result's JSON; empty if none was recorded."""
    file = path.with_suffix(".run.gz")
    return read_run(file) if file.exists() else {}


def incompatibility(a: Result, b: Result, *, timings: bool = True) -> str | None:
    """Say why two results cannot be compared; None if they can.

    Args:
        a: One of them.
        b: The other one.
        timings: Whether times are compared too, so that the machine must be the same.

    Returns:
        What differs, each with both values, such as `"dataset demo and stamps"`.
    """
    setting, other = _setting(a), _setting(b)
    if not timings:
        del setting["machine"]
    differences = [
        f"{name} {_describe_difference(name, value, other[name])}"
        for name, value in setting.items()
        if value != other[name]
    ]
    return "; ".join(differences) or None


def _setting(result: Result) -> dict[str, Any]:
    return {
        "benchmark": result.benchmark,
        "dataset": result.dataset,
        "revision": result.dataset_revision,
        "photos": result.photos["hash"],
        "metrics": tuple(result.intervals),
        "queries": result.scores.query_ids,
        "code": result.code,
        "machine": result.manifest["machine"],
    }


def _describe_difference(name: str, value: Any, other: Any) -> str:
    if name == "queries":
        here, there = set(value), set(other)
        return f"{len(here):,} and {len(there):,}, {len(here & there):,} of them the same"
    if name == "metrics":
        return f"{', '.join(value)} and {', '.join(other)}"
    return f"{value} and {other}"


def _scores_text(scores: Scores) -> str:
    text = io.StringIO()
    lines = csv.writer(
        text, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_NONE, quotechar=None
    )
    lines.writerow([*_LABELS, *scores.values, "ms"])
    columns: list[Sequence[str]] = [scores.query_ids, scores.langs, scores.cluster_ids]
    columns += [[f"{value:.6f}" for value in values] for values in scores.values.values()]
    columns.append([f"{value:.4f}" for value in scores.ms])
    lines.writerows(zip(*columns, strict=True))
    return text.getvalue()


def _read_scores(path: Path) -> Scores:
    with path.open(encoding="utf-8", newline="") as file:
        head, *lines = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
    columns = dict(zip(head, zip(*lines, strict=True), strict=True))
    query_ids, langs, cluster_ids = (columns.pop(name) for name in _LABELS)
    ms = np.array(columns.pop("ms"), dtype=np.float64)
    values = {name: np.array(column, dtype=np.float64) for name, column in columns.items()}
    return Scores(query_ids, langs, cluster_ids, values, ms)
