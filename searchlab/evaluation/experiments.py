"""Experiment: configurations x dataset -> runs, metrics with intervals, timings, a report.

It measures what a server would answer: each query goes through `SearchEngine.rank`, one at a time,
on one thread. A configuration that is recorded for the same data and code is not measured again, so
an interrupted experiment loses only the configuration that it was measuring.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from searchlab.config import Config
from searchlab.errors import ConflictError, DataError, InputError, NotFoundError, quote
from searchlab.evaluation.bars import bars_in_a_terminal
from searchlab.evaluation.datasets import Dataset
from searchlab.evaluation.datasets.dataset_library import (
    check_filters,
    describe_photos,
    open_dataset_library,
)
from searchlab.evaluation.datasets.photo_cache import Cache, photo_cache
from searchlab.evaluation.file_names import find_result_file
from searchlab.evaluation.metrics import check_judgments, latency, per_query, run_depth
from searchlab.evaluation.provenance.manifest import data_hashes, machine, make_manifest, models_of
from searchlab.evaluation.provenance.registry import code_of
from searchlab.evaluation.reports import Report
from searchlab.evaluation.results import Ranked, Result, Scores, load_result, system_name
from searchlab.evaluation.significance import bootstrap_intervals
from searchlab.library.embed import BATCH
from searchlab.models import load_model
from searchlab.progress import Progress, Step
from searchlab.search.indexes import index_class

if TYPE_CHECKING:
    from searchlab.evaluation.datasets import LabelledQuery
    from searchlab.library.library import Library
    from searchlab.search.engine import SearchEngine

METRICS = ("ndcg@10", "success@5")
BENCHMARK = "search_quality"
_TIMED_TEXTS = 20
_STEP = 100


class Experiment:
    """Compares configurations on the queries of a dataset.

    Photos of the library that are not in the dataset are neither indexed nor ranked.

    Example:
        >>> configs = grid(models=["mini", "palette"], indexes=["exact", "hnsw"])  # doctest: +SKIP
        >>> report = Experiment(load_dataset("demo"), configs).run()  # doctest: +SKIP
        >>> print(report)  # doctest: +SKIP
    """

    def __init__(
        self,
        dataset: Dataset,
        configs: Iterable[Config],
        metrics: Sequence[str] = METRICS,
        *,
        library: Library | None = None,
        cache: Path | str | Cache | None = Cache.OF_THE_USER,
        out: Path | str | None = None,
        benchmark: str = BENCHMARK,
        seed: int = 0,
    ) -> None:
        """Check everything that can be checked before anything is measured.

        Args:
            dataset: Queries and judgments.
            configs: Their `model_id` is filled in; see `searchlab.evaluation.config_grids.grid`.
            metrics: Metrics to measure; the first one ranks the configurations.
            library: Library of the dataset's photos; photos that it lacks count as not found. If
                left out, a library of exactly these photos is made.
            cache: Folder that keeps such a library, so that photos are embedded once. If left out,
                the user's, as `searchlab evaluate` uses it too: `~/.cache/searchlab`, or what
                SEARCHLAB_CACHE names. None for a temporary folder.
            out: Folder to record results in; nothing is recorded if left out.
            benchmark: Name of the measurement, a folder in `out`.
            seed: Seed of intervals and tests.

        Raises:
            InputError: A name is given in place of a dataset or a configuration, the dataset has
                texts of its own and a library is given, there is no
                configuration or one twice, a metric is unknown or has no meaning for these
                judgments, or the library holds no photos of the dataset.
            NotFoundError: The library is empty, or there is no such model.
            MismatchError: A configuration names other weights than those that are installed.
        """
        listed = _check_arguments(dataset, configs)
        if dataset.rewritten and library is not None:
            msg = (
                f"{dataset.name!r} has texts of its own and must be measured in a library that is "
                "made of its records, got another; leave `library` out, or give a new folder"
            )
            raise InputError(msg)
        self.dataset = dataset
        self.metrics = tuple(metrics)
        self.library = library
        self.cache = Path(cache) if isinstance(cache, str) else cache
        self.out = None if out is None else Path(out)
        self.benchmark = benchmark
        self.seed = seed
        for config in listed:
            index_class(config).check()
        self.configs = [
            config.with_model_id(load_model(config.model).model_id) for config in listed
        ]
        ids = [config.config_id for config in self.configs]
        if not ids or not self.metrics or len(set(ids)) < len(ids):
            msg = (
                f"an experiment must have metrics and configs, each config once, got "
                f"{list(self.metrics)} and {ids}"
            )
            raise InputError(msg)
        check_judgments(dataset.qrels, self.metrics)
        self.depth = run_depth(self.metrics, len(dataset.photo_ids))
        self._queries = sorted(dataset.queries, key=lambda query: query.query_id)
        if library is not None:
            describe_photos(library.engine.table, dataset)

    def run(
        self,
        progress: Progress | None = None,
        *,
        force: bool = False,
        replace_unlike: bool = False,
    ) -> Report:
        """Measure the configurations that are not recorded yet, and report on all of them.

        Args:
            progress: Shows every configuration; bars on standard error if left out and that is a
                terminal. `Progress()` shows nothing.
            force: Whether to measure recorded configurations again, and replace their results.
            replace_unlike: Whether to replace results on other data, such as an older revision.

        Raises:
            ConflictError: A recorded result was measured on other data, such as the dataset that
                this one is a sample of; nothing is measured then.
            InputError: A query is not valid, for example longer than 500 characters, or its own
                filter excludes a photo that is relevant to it.
        """
        progress = progress or bars_in_a_terminal()
        results = {} if force else self._read_recorded(replace_unlike=replace_unlike)
        todo = [config for config in self.configs if config.config_id not in results]
        if todo:
            opened = open_dataset_library(
                self.dataset,
                config=Config(),  # descriptions of photos must not depend on what is measured
                library=self.library,
                cache=self._cache_folder(),
                progress=progress,
            )
            with opened as library:
                self._say_what_is_missing(library, progress)
                for number, config in enumerate(todo, start=1):
                    label = f"ranking for system {number} of {len(todo)}"
                    result, run = self.measure(config, library, progress, label=label)
                    if self.out is not None:
                        result.save(self.out, run=run)
                    results[config.config_id] = result
        return Report([results[config.config_id] for config in self.configs], seed=self.seed)

    def _cache_folder(self) -> Path | None:
        if not isinstance(self.cache, Cache):
            return self.cache
        if self.library is not None:
            return None
        describing = load_model(Config().model).model_id
        return photo_cache(self.dataset, code=code_of(BENCHMARK), model_id=describing)

    def _say_what_is_missing(self, library: Library, progress: Progress) -> None:
        n_photos = len(self.dataset.photo_ids)
        missing = n_photos - describe_photos(library.engine.table, self.dataset)["n_photos"]
        if missing:
            progress.say(
                f"{missing} of {n_photos} photos of {self.dataset.name} are not in the library; "
                "they count as not found"
            )

    def _read_recorded(self, *, replace_unlike: bool) -> dict[str, Result]:
        """Read the recorded results that are still valid, by config_id."""
        if self.out is None:
            return {}
        library = self.library
        photos = None if library is None else describe_photos(library.engine.table, self.dataset)
        results = {}
        for config in self.configs:
            path = find_result_file(self.out / self.benchmark / self.dataset.name, config)
            if path.exists():
                try:
                    result = load_result(path)
                except DataError:
                    continue
                if result.dataset_revision != self.dataset.revision and not replace_unlike:
                    msg = (
                        f"{path} must be replaced by figures of the same data, got revision "
                        f"{result.dataset_revision} on record and {self.dataset.revision} here; "
                        "give another --out (`out`), or --force (`force`) to replace it"
                    )
                    raise ConflictError(msg)
                same_seed = result.manifest.get("seed") == self.seed
                setting = self._setting(photos or self._all_photos(result))
                if same_seed and result.setting == setting:
                    results[config.config_id] = result
        return results

    def _all_photos(self, result: Result) -> dict[str, Any]:
        # Without a library, one of all photos is made; the dataset's revision covers their hash.
        complete = result.photos["n_photos"] == len(self.dataset.photo_ids)
        return result.photos if complete else {"hash": None}

    def _setting(self, photos: Mapping[str, Any]) -> tuple[object, ...]:
        return (
            self.benchmark,
            self.dataset.name,
            self.dataset.revision,
            photos["hash"],
            self.metrics,
            tuple(query.query_id for query in self._queries),
            code_of(BENCHMARK),
            machine(),
        )

    def measure(
        self,
        config: Config,
        library: Library,
        progress: Progress | None = None,
        *,
        label: str = "ranking",
    ) -> tuple[Result, Ranked]:
        """Measure one configuration, even if it is recorded; nothing is written.

        Args:
            config: The configuration, with its `model_id`.
            library: Library of the dataset's photos.
            progress: Shows every query.
            label: Name of the step in the progress.

        Returns:
            The result, and the ranking of each query.
        """
        from threadpoolctl import threadpool_limits

        progress = progress or Progress()
        photos = describe_photos(library.engine.table, self.dataset)
        check_filters(library.engine.table, self.dataset)
        engine = library.engine_for(
            config,
            withheld=self.dataset.withheld,
            photo_ids=self.dataset.photo_ids,
            progress=progress,
        )
        name = system_name(config)
        texts = [query.text for query in self._queries if query.text]
        with progress.step(label, len(self._queries), unit="queries") as step:
            step.note(f"{name}, embedding")
            engine.warm(texts)
            text_ms = _text_ms(engine, texts)
            step.note(name)
            with threadpool_limits(limits=1):
                run, seconds = self._rank_all(engine, step)
            step.note(f"{name}, scoring")
            return self._result(engine, photos, run, seconds, text_ms=text_ms), run

    def _rank_all(
        self, engine: SearchEngine, step: Step
    ) -> tuple[dict[str, list[tuple[str, float]]], NDArray[np.float64]]:
        run = {}
        seconds = np.zeros(len(self._queries))
        _answer(engine, self._queries[0], self.depth)  # untimed: the first is cold
        for place, labelled in enumerate(self._queries):
            run[labelled.query_id], seconds[place] = _answer(engine, labelled, self.depth)
            if (place + 1) % _STEP == 0:
                step.advance(_STEP)
        step.advance(len(self._queries) % _STEP)
        return run, seconds

    def _result(
        self,
        engine: SearchEngine,
        photos: dict[str, Any],
        run: Ranked,
        seconds: NDArray[np.float64],
        *,
        text_ms: float,
    ) -> Result:
        qrels = {query.query_id: self.dataset.qrels[query.query_id] for query in self._queries}
        answers = {query_id: [photo for photo, _ in ranked] for query_id, ranked in run.items()}
        self.dataset.check_run(answers)
        # Six digits, as on disk, so that a result that was read back tests the same.
        values = {
            name: np.round(column, 6)
            for name, column in per_query(qrels, answers, self.metrics).items()
        }
        scores = Scores(
            query_ids=tuple(query.query_id for query in self._queries),
            langs=tuple(query.lang for query in self._queries),
            cluster_ids=tuple(_cluster_id(query, qrels[query.query_id]) for query in self._queries),
            values=values,
            ms=seconds * 1000,
        )
        intervals = bootstrap_intervals(
            values, groups=scores.langs, clusters=scores.cluster_ids, seed=self.seed
        )
        quality = {name: averages.macro.mean for name, averages in intervals.items()}
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
            photos=photos,
            manifest=make_manifest(
                BENCHMARK,
                models=models_of(engine.config.model),
                data={**data_hashes(self.dataset), "photos": photos["hash"]},
                seed=self.seed,
                threads=1,
                batch_size=BATCH,
                dtype=str(engine.index.vectors.dtype),
            ),
            scores=scores,
            task=self.dataset.task,
            judged_by=self.dataset.judged_by,
        )


def _check_arguments(dataset: Dataset, configs: Iterable[Config]) -> list[Config]:
    # On the command line both are given by name, so passing a name is an easy mistake.
    if not isinstance(dataset, Dataset):
        msg = f"dataset must be a Dataset, got {quote(dataset)}; give load_dataset(name)"
        raise InputError(msg)
    many = isinstance(configs, Iterable) and not isinstance(configs, str)
    listed = list(configs) if many else []
    if not many or not all(isinstance(config, Config) for config in listed):
        msg = (
            f"configs must be a list of Config, got {quote(configs)}; give grid(models=[...]) or "
            "[Config(model=...)]"
        )
        raise InputError(msg)
    return listed


def _answer(
    engine: SearchEngine, labelled: LabelledQuery, depth: int
) -> tuple[list[tuple[str, float]], float]:
    """Answer a query; returns its best photos with their scores, and the seconds that it took."""
    query = labelled.query()
    started = time.perf_counter()
    try:
        ranking = engine.rank(query, depth)
    except NotFoundError:  # its own picture is not in the library
        return [], time.perf_counter() - started
    seconds = time.perf_counter() - started
    ids = engine.table.photo_ids(ranking.rows)
    return list(zip(ids, ranking.scores.tolist(), strict=True)), seconds


def _text_ms(engine: SearchEngine, texts: Sequence[str]) -> float:
    """Return the median milliseconds to embed an uncached text; 0 if there are no texts."""
    if not texts:
        return 0.0
    sample = [texts[place] for place in np.linspace(0, len(texts) - 1, _TIMED_TEXTS).astype(int)]
    seconds = []
    for text in sample:
        started = time.perf_counter()
        engine.model.encode_texts([text])
        seconds.append(time.perf_counter() - started)
    return latency(seconds)["p50_ms"]


def _cluster_id(query: LabelledQuery, grades: Mapping[str, int]) -> str:
    """Return the photo that a query is about: its own, or the one with the best grade."""
    if query.photo_id is not None:
        return query.photo_id
    return min(grades, key=lambda photo_id: (-grades[photo_id], photo_id))
