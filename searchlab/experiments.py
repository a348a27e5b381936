"""Experiment: configurations x dataset -> runs, metrics with intervals, timings, a report.

What is measured is what is served: each query goes through `SearchEngine.rank`, one at a time, on
one thread. Whatever is on record for the same configuration, data and code is not measured again.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from searchlab.config import Config
from searchlab.errors import DataError, InputError
from searchlab.metrics import cutoff, latency, per_query
from searchlab.models import load_model
from searchlab.progress import Progress, Step
from searchlab.queries import Query
from searchlab.reports import Report
from searchlab.results import (
    Result,
    Scores,
    code_version,
    environment,
    load_result,
    machine,
    result_path,
    system_name,
)
from searchlab.significance import bootstrap_intervals

if TYPE_CHECKING:
    from searchlab.datasets import Dataset
    from searchlab.engine import SearchEngine
    from searchlab.library import Library
    from searchlab.tables import PhotoTable

METRICS = ("ndcg@10", "success@5")
_TIMED_TEXTS = 20
_STEP = 100


class Experiment:
    """Compares configurations on the queries of a dataset.

    Photos that the library holds beside those of the dataset are neither indexed nor ranked here.

    Example:
        >>> configs = [Config(), Config(index="hnsw")]
        >>> report = Experiment(library, load_dataset("demo"), configs).run()  # doctest: +SKIP
        >>> print(report)  # doctest: +SKIP
    """

    def __init__(
        self,
        library: Library,
        dataset: Dataset,
        configs: Iterable[Config],
        *,
        metrics: Sequence[str] = METRICS,
        out: Path | str | None = None,
        benchmark: str = "search_quality",
        save_runs: bool = True,
        seed: int = 0,
    ) -> None:
        """Check everything that can be checked before anything is measured.

        Args:
            library: Holds photos of the dataset; those that it lacks count as not found.
            dataset: Queries and judgments.
            configs: Their `model_id` is filled in.
            metrics: The first is the headline.
            out: Folder of results; nothing is kept if left out.
            benchmark: Name of the measurement, a folder in `out`.
            save_runs: Keep the rankings too, some 80 bytes a query and rank.
            seed: Of intervals and tests.

        Raises:
            InputError: No configuration, one twice, an unknown metric, or a library without the
                photos of the dataset.
            NotFoundError: The library is empty, or a model cannot be had.
            MismatchError: A configuration names other weights than those that are installed.
        """
        self.library = library
        self.dataset = dataset
        self.metrics = tuple(metrics)
        self.depth = max((cutoff(metric) for metric in self.metrics), default=0)
        self.out = None if out is None else Path(out)
        self.benchmark = benchmark
        self.save_runs = save_runs
        self.seed = seed
        self.configs = [
            config.with_model_id(load_model(config.model).model_id) for config in configs
        ]
        ids = [config.config_id for config in self.configs]
        if not ids or not self.metrics or len(set(ids)) < len(ids):
            msg = (
                f"an experiment must have metrics and configs, each config once, got "
                f"{list(self.metrics)} and {ids}"
            )
            raise InputError(msg)
        self.photos = _photos(library.engine.table, dataset)
        self._queries = sorted(dataset.queries, key=lambda query: query.query_id)

    def run(self, progress: Progress | None = None, *, force: bool = False) -> Report:
        """Measure what is not on record, and report on all configurations.

        Args:
            progress: Told about every configuration.
            force: Measure again what is on record.

        Raises:
            InputError: A query that no engine takes, such as one of more than 500 characters.
        """
        progress = progress or Progress()
        missing = len(self.dataset.photo_ids) - self.photos["n_photos"]
        if missing:
            progress.say(
                f"{missing} of {len(self.dataset.photo_ids)} photos of {self.dataset.name} are not "
                "in the library; they count as not found"
            )
        results = []
        for number, config in enumerate(self.configs, start=1):
            result = None if force else self._recorded(config)
            if result is None:
                label = f"ranking for system {number} of {len(self.configs)}"
                result = self._measure(config, progress, label)
            results.append(result)
        return Report(results, seed=self.seed)

    def _recorded(self, config: Config) -> Result | None:
        if self.out is None:
            return None
        path = result_path(self.out, self.benchmark, self.dataset.name, config.config_id)
        if not path.exists():
            return None
        try:
            found = load_result(path)
        except DataError:
            return None
        wanted = (
            self.benchmark,
            self.dataset.name,
            self.dataset.revision,
            self.photos["hash"],
            self.metrics,
            tuple(query.query_id for query in self._queries),
            code_version(),
            machine(),
        )
        return found if found.setting == wanted else None

    def _measure(self, config: Config, progress: Progress, label: str) -> Result:
        from threadpoolctl import threadpool_limits

        engine = self.library.engine_for(
            config,
            withheld=self.dataset.withheld,
            photo_ids=self.dataset.photo_ids,
            progress=progress,
        )
        name = system_name(config)
        texts = [query.text for query in self._queries]
        with progress.step(label, len(texts), unit="queries") as step:
            step.note(f"{name}, embedding")
            engine.warm(texts)
            text_ms = _text_ms(engine, texts)
            step.note(name)
            with threadpool_limits(limits=1):
                run, seconds = self._ranked(engine, step)
            step.note(f"{name}, scoring")
            result = self._result(engine, run, seconds, text_ms=text_ms)
        if self.out is not None:
            path = result.path(self.out)
            path.parent.mkdir(parents=True, exist_ok=True)
            if self.save_runs:
                _save_run(run, path.with_suffix(".run.tsv"))
            result.save(self.out)
        return result

    def _ranked(
        self, engine: SearchEngine, step: Step
    ) -> tuple[dict[str, list[str]], NDArray[np.float64]]:
        run = {}
        seconds = np.zeros(len(self._queries))
        engine.rank(Query(text=self._queries[0].text), self.depth)  # untimed: the first is cold
        for place, labelled in enumerate(self._queries):
            query = Query(text=labelled.text)
            started = time.perf_counter()
            ranking = engine.rank(query, self.depth)
            seconds[place] = time.perf_counter() - started
            run[labelled.query_id] = engine.table.photo_ids(ranking.rows)
            if (place + 1) % _STEP == 0:
                step.advance(_STEP)
        step.advance(len(self._queries) % _STEP)
        return run, seconds

    def _result(
        self,
        engine: SearchEngine,
        run: Mapping[str, Sequence[str]],
        seconds: NDArray[np.float64],
        *,
        text_ms: float,
    ) -> Result:
        qrels = {query.query_id: self.dataset.qrels[query.query_id] for query in self._queries}
        # Six digits, as on disk, so that a result that was read back tests the same.
        values = {
            name: np.round(column, 6)
            for name, column in per_query(qrels, run, self.metrics).items()
        }
        scores = Scores(
            query_ids=tuple(query.query_id for query in self._queries),
            langs=tuple(query.lang for query in self._queries),
            about=tuple(_best_photo(qrels[query.query_id]) for query in self._queries),
            values=values,
            ms=seconds * 1000,
        )
        intervals = bootstrap_intervals(
            values, groups=scores.langs, clusters=scores.about, seed=self.seed
        )
        quality = {name: found.macro.mean for name, found in intervals.items()}
        cost = {
            **latency(seconds),
            "text_ms": text_ms,
            "build_s": engine.build_s,
            "size_mib": engine.index.size_bytes / 2**20,
        }
        return Result(
            benchmark=self.benchmark,
            dataset=self.dataset.name,
            dataset_revision=self.dataset.revision,
            config=engine.config,
            metrics=quality | cost,
            intervals=intervals,
            photos=self.photos,
            environment=environment(),
            scores=scores,
        )


def _photos(table: PhotoTable, dataset: Dataset) -> dict[str, Any]:
    """Say which photos of the dataset are searched: how many, and a hash over their contents."""
    ids = table.photo_ids(range(len(table)))
    held = [
        f"{photo_id} {content}\n"
        for photo_id, content in zip(ids, table.texts("sha256"), strict=True)
        if photo_id in dataset.photo_ids
    ]
    if not held:
        msg = (
            f"the library must hold photos of dataset {dataset.name!r}, got none of its "
            f"{len(dataset.photo_ids)} among {len(ids)}; index {dataset.folder} first"
        )
        raise InputError(msg)
    digest = hashlib.sha256("".join(held).encode())
    return {"n_photos": len(held), "hash": digest.hexdigest()[:12]}


def _text_ms(engine: SearchEngine, texts: Sequence[str]) -> float:
    """Median milliseconds to embed one text that is not cached."""
    sample = [texts[place] for place in np.linspace(0, len(texts) - 1, _TIMED_TEXTS).astype(int)]
    seconds = []
    for text in sample:
        started = time.perf_counter()
        engine.model.encode_texts([text])
        seconds.append(time.perf_counter() - started)
    return latency(seconds)["p50_ms"]


def _best_photo(grades: Mapping[str, int]) -> str:
    """Name the photo that a query is about: of the highest grade, the first by photo_id."""
    return min(grades, key=lambda photo_id: (-grades[photo_id], photo_id))


def _save_run(run: Mapping[str, Sequence[str]], path: Path) -> None:
    from searchlab.judgments import write_run

    partial = path.with_name(f"{path.name.removesuffix('.tsv')}.part.tsv")
    write_run(run, partial)
    partial.replace(path)
