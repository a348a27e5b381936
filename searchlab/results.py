"""Result: what one configuration scored on one dataset, and all that is needed to read it later.

<out>/<benchmark>/<dataset>/<config_id>.json        the figures, the Config, where it was measured
<out>/<benchmark>/<dataset>/<config_id>.scores.tsv  one line for each query, for paired tests
<out>/<benchmark>/<dataset>/<config_id>.run.tsv     the ranking of each query (judgments.read_run)

The JSON is written last, so where it stands the others are whole.
"""

from __future__ import annotations

import csv
import datetime
import hashlib
import importlib.metadata
import io
import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchlab import __version__
from searchlab.config import Config
from searchlab.errors import DataError
from searchlab.files import write_atomically
from searchlab.significance import GroupedIntervals, Interval

SCHEMA = 1
_PACKAGES = ("hnswlib", "numpy", "onnxruntime", "ranx", "scikit-learn")
_LABELS = ("query_id", "lang", "about")
# Nothing that is measured passes through these, so a change there keeps what is on record.
_NOT_MEASURED = frozenset(
    {
        "adapting",
        "api",
        "cli",
        "console.py",
        "demo.py",
        "display.py",
        "promotion.py",
        "reports.py",
        "training",
    }
)


@dataclass(frozen=True, eq=False)
class Scores:
    """What each query scored, for paired tests.

    Attributes:
        query_ids: Sorted.
        langs: Language of each query.
        about: Its best judged photo; queries about one photo are no independent evidence.
        values: Metric -> (n_queries,) scores.
        ms: (n_queries,) time to rank, in milliseconds.
    """

    query_ids: tuple[str, ...]
    langs: tuple[str, ...]
    about: tuple[str, ...]
    values: dict[str, NDArray[np.float64]]
    ms: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Result:
    """What one configuration scored on one dataset.

    Attributes:
        benchmark: Kind of measurement, such as `"search_quality"`.
        dataset: Name of the dataset.
        dataset_revision: Hash over its photos, queries and judgments.
        config: The configuration.
        metrics: The figures: quality as macro averages over languages, then `p50_ms`, `p95_ms`,
            `p99_ms` to rank, `text_ms` to embed one text, `build_s` and `size_mib` of the index.
        intervals: Quality metric -> its averages with intervals. The first is the headline.
        photos: `n_photos` of the dataset that were searched, and their `hash`.
        environment: Code, date, machine, Python, packages.
        scores: What each query scored.
    """

    benchmark: str
    dataset: str
    dataset_revision: str
    config: Config
    metrics: dict[str, float]
    intervals: dict[str, GroupedIntervals]
    photos: dict[str, Any]
    environment: dict[str, Any]
    scores: Scores

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
        return str(self.environment["code"])

    @property
    def setting(self) -> tuple[object, ...]:
        """All that two results must share to be compared: what was asked, by what, and where."""
        return (
            self.benchmark,
            self.dataset,
            self.dataset_revision,
            self.photos["hash"],
            tuple(self.intervals),
            self.scores.query_ids,
            self.code,
            self.environment["machine"],
        )

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages of the queries, sorted."""
        return tuple(sorted(set(self.scores.langs)))

    @property
    def n_queries(self) -> int:
        """Queries asked."""
        return len(self.scores.query_ids)

    def path(self, out: Path) -> Path:
        """Return where the JSON lies below a folder of results."""
        return result_path(out, self.benchmark, self.dataset, self.config_id)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON's values; quality to six digits."""
        return {
            "schema": SCHEMA,
            "benchmark": self.benchmark,
            "dataset": self.dataset,
            "dataset_revision": self.dataset_revision,
            "config_id": self.config_id,
            "name": self.name,
            "config": self.config.to_dict(),
            "metrics": {name: round(value, 6) for name, value in self.metrics.items()},
            "intervals": {name: _plain(found) for name, found in self.intervals.items()},
            "n_queries": self.n_queries,
            "photos": self.photos,
            "environment": self.environment,
        }

    def save(self, out: Path) -> Path:
        """Write scores and JSON, each atomically; returns the path of the JSON."""
        path = self.path(out)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path.with_suffix(".scores.tsv"), _scores_text(self.scores).encode())
        text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n"
        write_atomically(path, text.encode())
        return path


def system_name(config: Config) -> str:
    """Name a model and an index in words.

    >>> system_name(Config(model="mini", index="hnsw"))
    'mini × hnsw M=16 ef=100'
    """
    c = config
    index = f"hnsw M={c.M} ef={c.ef_search}" if c.index == "hnsw" else c.index
    return f"{c.model} × {index}"


def result_path(out: Path, benchmark: str, dataset: str, config_id: str) -> Path:
    """Return where the JSON of a result lies below a folder of results."""
    return out / benchmark / dataset / f"{config_id}.json"


def load_result(path: Path | str) -> Result:
    """Read a result and its per-query scores.

    Raises:
        DataError: A file is missing, damaged or of another schema.
    """
    path = Path(path)
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if values["schema"] != SCHEMA:
            msg = f"schema {values['schema']}, this searchlab reads {SCHEMA}"
            raise ValueError(msg)
        config = Config.from_dict(values["config"])
        if config.config_id != values["config_id"]:
            msg = f"config_id {values['config_id']!r} of another config"
            raise ValueError(msg)
        for part, needed in (("environment", {"code", "date", "machine"}), ("photos", {"hash"})):
            if missing := sorted(needed - values[part].keys()):
                msg = f"{part} without {', '.join(missing)}"
                raise ValueError(msg)
        return Result(
            benchmark=values["benchmark"],
            dataset=values["dataset"],
            dataset_revision=values["dataset_revision"],
            config=config,
            metrics=dict(values["metrics"]),
            intervals={name: _intervals(found) for name, found in values["intervals"].items()},
            photos=dict(values["photos"]),
            environment=dict(values["environment"]),
            scores=_read_scores(path.with_suffix(".scores.tsv")),
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        msg = f"{path} must hold a result, got: {error}; evaluate again"
        raise DataError(msg) from error


@cache
def code_version() -> str:
    """Return the version and 12 hex digits of the hash over the code that figures depend on."""
    digest = hashlib.sha256()
    package = Path(__file__).parent
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package)
        if name.parts[0] not in _NOT_MEASURED:
            digest.update(f"{name.as_posix()}\0".encode())
            digest.update(path.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:12]}"


def environment() -> dict[str, Any]:
    """Return what figures depend on besides configuration and data."""
    return {
        "code": code_version(),
        "date": datetime.datetime.now(tz=datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in _PACKAGES},
    }


@cache
def machine() -> str:
    """Return what timings depend on: system, processor and number of CPUs."""
    return f"{platform.system()}, {_processor()}, {os.cpu_count()} CPUs"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(
            line.partition(":")[2].strip() for line in lines if line.startswith("model name")
        )
    except (OSError, StopIteration):
        return platform.processor() or "unknown processor"


def _plain(found: GroupedIntervals) -> dict[str, Any]:
    def rounded(interval: Interval) -> list[float]:
        return [round(value, 6) for value in interval]

    return {
        "macro": rounded(found.macro),
        "micro": rounded(found.micro),
        "langs": {lang: rounded(interval) for lang, interval in found.groups.items()},
    }


def _intervals(values: Mapping[str, Any]) -> GroupedIntervals:
    langs = {lang: Interval(*interval) for lang, interval in values["langs"].items()}
    return GroupedIntervals(Interval(*values["macro"]), Interval(*values["micro"]), langs)


def _scores_text(scores: Scores) -> str:
    text = io.StringIO()
    lines = csv.writer(
        text, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_NONE, quotechar=None
    )
    lines.writerow([*_LABELS, *scores.values, "ms"])
    columns: list[Sequence[str]] = [scores.query_ids, scores.langs, scores.about]
    columns += [[f"{value:.6f}" for value in values] for values in scores.values.values()]
    columns.append([f"{value:.4f}" for value in scores.ms])
    lines.writerows(zip(*columns, strict=True))
    return text.getvalue()


def _read_scores(path: Path) -> Scores:
    with path.open(encoding="utf-8", newline="") as file:
        head, *lines = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
    columns = dict(zip(head, zip(*lines, strict=True), strict=True))
    query_ids, langs, about = (columns.pop(name) for name in _LABELS)
    ms = np.array(columns.pop("ms"), dtype=np.float64)
    values = {name: np.array(column, dtype=np.float64) for name, column in columns.items()}
    return Scores(query_ids, langs, about, values, ms)
