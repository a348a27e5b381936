"""Experiment: configurations x dataset -> runs, metrics with intervals, timings, a report.

It measures what a server would answer: each query goes through `SearchEngine.rank`, one at a time,
on one thread. A configuration that is recorded for the same data and code is not measured again, so
an interrupted experiment loses only the configuration that it was measuring. With a runner, each
language of a configuration is a task of its own, for machines that others may use too; what is
recorded says so, since times are no times then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from searchlab.config import Config
from searchlab.errors import ConflictError, DataError, InputError, SearchlabError, quote
from searchlab.evaluation.bars import bars_in_a_terminal
from searchlab.evaluation.datasets import Dataset
from searchlab.evaluation.datasets.dataset_library import (
    check_filters,
    describe_photos,
    open_dataset_library,
)
from searchlab.evaluation.datasets.photo_cache import Cache, photo_cache
from searchlab.evaluation.file_names import find_result_file
from searchlab.evaluation.language_tasks import (
    LanguageTask,
    Searched,
    TaskRunner,
    cut_by_language,
    drop_answers,
    drop_folder,
    embed_photos,
    run_tasks,
    take_answers,
)
from searchlab.evaluation.metrics import check_judgments, run_depth
from searchlab.evaluation.provenance.manifest import machine
from searchlab.evaluation.provenance.registry import code_of, study_of
from searchlab.evaluation.query_answers import Answers, answer_queries
from searchlab.evaluation.reports import Report
from searchlab.evaluation.results import SHARED, Ranked, Result, load_result, system_name
from searchlab.evaluation.scoring import score_answers
from searchlab.models import load_model
from searchlab.progress import Progress
from searchlab.search.indexes import index_class

if TYPE_CHECKING:
    from searchlab.library.library import Library

METRICS = ("ndcg@10", "success@5")
BENCHMARK = "search_quality"


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
        self.metrics = (metrics,) if isinstance(metrics, str) else tuple(metrics)
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
        runner: TaskRunner | None = None,
    ) -> Report:
        """Measure the configurations that are not recorded yet, and report on all of them.

        Args:
            progress: Shows every configuration; bars on standard error if left out and that is a
                terminal. `Progress()` shows nothing.
            force: Whether to measure recorded configurations again, and replace their results.
            replace_unlike: Whether to replace results on other data, such as an older revision, or
                by a runner those that have times.
            runner: Runs a task for each language of a configuration, such as what `open_runner` of
                `searchlab.cluster.runners` makes; this process measures if left out. All nodes must
                mount the library and `out` alike.

        Raises:
            ConflictError: A recorded result was measured on other data, such as the dataset that
                this one is a sample of, or has times and a runner would replace it; nothing is
                measured then.
            InputError: A query is not valid, for example longer than 500 characters, or its own
                filter excludes a photo that is relevant to it; or a runner is given without `out`,
                or for a benchmark that may not share machines.
            SearchlabError: Tasks of a runner failed; all others are done and on record.
        """
        progress = progress or bars_in_a_terminal()
        folder = None if runner is None else self._check_sharing()
        where = machine() if folder is None else SHARED
        results = {} if force else self._read_recorded(where, replace_unlike=replace_unlike)
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
                if runner is None or folder is None:
                    measured = self._measure_here(todo, library, progress)
                else:
                    embed_photos(library, self.dataset, todo, runner, progress)
                    tasks = self._cut(todo, library, folder)
                    measured = self._measure_on(runner, tasks, library, progress, force=force)
                for result, run in measured:
                    if self.out is not None:
                        result.save(self.out, run=run)
                    results[result.config_id] = result
        return Report([results[config.config_id] for config in self.configs], seed=self.seed)

    def _check_sharing(self) -> Path:
        """Check that a runner may measure; returns the folder of the results."""
        if self.out is None:
            msg = "a runner must have a folder that its workers write to, got none; give `out`"
            raise InputError(msg)
        if not study_of(BENCHMARK).shares_machines:
            msg = f"{BENCHMARK} must be measured on one machine alone, got a runner; leave it out"
            raise InputError(msg)
        return self.out / self.benchmark / self.dataset.name

    def _measure_here(
        self, todo: Sequence[Config], library: Library, progress: Progress
    ) -> Iterator[tuple[Result, Ranked]]:
        for number, config in enumerate(todo, start=1):
            label = f"ranking for system {number} of {len(todo)}"
            yield self.measure(config, library, progress, label=label)

    def _cut(
        self, todo: Sequence[Config], library: Library, folder: Path
    ) -> dict[Config, list[LanguageTask]]:
        setting = [str(value) for value in self._setting(self._describe(library), SHARED)]
        return {config: cut_by_language(config, self._queries, folder, setting) for config in todo}

    def _measure_on(
        self,
        runner: TaskRunner,
        tasks: Mapping[Config, Sequence[LanguageTask]],
        library: Library,
        progress: Progress,
        *,
        force: bool,
    ) -> Iterator[tuple[Result, Ranked]]:
        """Measure by tasks; gives each configuration as soon as all its languages are there."""
        dataset, photos = self.dataset, self._describe(library)
        searched = Searched(
            library.folder,
            library.engine.snapshot_id,
            dataset.photo_ids,
            dataset.unread,
            self.depth,
            benchmark=BENCHMARK,
            code=code_of(BENCHMARK),
        )
        every = [task for own in tasks.values() for task in own]
        ahead = {config: len(own) for config, own in tasks.items()}
        failed = []
        for task, error in run_tasks(every, searched, runner, progress, force=force):
            if error is not None:
                failed.append(f"{task.name}: {error}")
                progress.say(failed[-1])
                continue
            ahead[task.config] -= 1
            if ahead[task.config] == 0:
                answers = take_answers(tasks[task.config])
                yield self._score(task.config, photos, answers, SHARED), answers.run
                drop_answers(tasks[task.config])
        drop_folder(every)
        if failed:
            msg = (
                f"all {len(every)} tasks must end, got {len(failed)} that failed, such as "
                f"{failed[0]}; run it again: what the others did is kept"
            )
            raise SearchlabError(msg)

    def _describe(self, library: Library) -> dict[str, Any]:
        check_filters(library.engine.table, self.dataset)
        return describe_photos(library.engine.table, self.dataset)

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

    def _read_recorded(self, where: str, *, replace_unlike: bool) -> dict[str, Result]:
        """Read the recorded results that are still valid on a machine, by config_id."""
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
                if result.manifest.get("seed") != self.seed:
                    continue
                known = photos or self._all_photos(result)
                if result.setting == self._setting(known, where):
                    results[config.config_id] = result
                elif result.setting == self._setting(known, machine()) and not replace_unlike:
                    msg = (
                        f"{path} must keep its times, which shared machines cannot measure; give "
                        "another --out (`out`), or --force (`force`) to replace it"
                    )
                    raise ConflictError(msg)
        return results

    def _all_photos(self, result: Result) -> dict[str, Any]:
        # Without a library, one of all photos is made; the dataset's revision covers their hash.
        complete = result.photos["n_photos"] == len(self.dataset.photo_ids)
        return result.photos if complete else {"hash": None}

    def _setting(self, photos: Mapping[str, Any], where: str) -> tuple[object, ...]:
        return (
            self.benchmark,
            self.dataset.name,
            self.dataset.revision,
            photos["hash"],
            self.metrics,
            tuple(query.query_id for query in self._queries),
            code_of(BENCHMARK),
            where,
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
        progress = progress or Progress()
        photos = self._describe(library)
        engine = library.engine_for(
            config,
            withheld=self.dataset.unread,
            photo_ids=self.dataset.photo_ids,
            progress=progress,
        )
        name = system_name(config)
        with progress.step(label, len(self._queries), unit="queries") as step:
            answers = answer_queries(engine, self._queries, self.depth, step, name=name)
            step.note(f"{name}, scoring")
            return self._score(engine.config, photos, answers, machine()), answers.run

    def _score(
        self, config: Config, photos: dict[str, Any], answers: Answers, where: str
    ) -> Result:
        return score_answers(
            answers,
            self.dataset,
            config,
            self.metrics,
            photos=photos,
            benchmark=self.benchmark,
            study=BENCHMARK,
            seed=self.seed,
            where=where,
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
