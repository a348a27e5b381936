"""Verify: checks that records are unchanged, and that their figures come out the same here.

First the seal shows whether a number was changed. Then recorded properties, such as models and
data, are compared with those here. Then, unless `quick`, the figures are computed again. Times are
never compared, since they belong to one machine at one moment.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from searchlab.config import Config
from searchlab.errors import DataError, InputError, NotFoundError, SearchlabError
from searchlab.evaluation.datasets.dataset_library import dataset_library
from searchlab.evaluation.provenance.environment import (
    Check,
    config_checks,
    data_checks,
    machine_checks,
    model_checks,
)
from searchlab.evaluation.provenance.measurement import read_measurement
from searchlab.evaluation.provenance.notes import Notes, Values, benchmark_of, is_result
from searchlab.evaluation.provenance.registry import study_of
from searchlab.evaluation.provenance.reproduce import differences, recompute_result
from searchlab.evaluation.results import load_result

if TYPE_CHECKING:
    from searchlab.evaluation.datasets import Dataset
    from searchlab.library.library import Library
    from searchlab.progress import Progress

Status: TypeAlias = Literal["verified", "sealed", "not here", "differs"]
"""In this order: computed again with the same figures; intact but not computed again; cannot be
computed again here; changed, or with other figures."""

_LISTED = 10
_TAKEN_OVER = ("dataset", "dataset_revision", "config_id", "config", "metrics")


@dataclass(frozen=True)
class Verification:
    """The verification of one file.

    Attributes:
        path: The file.
        status: See `Status`.
        checks: Recorded properties and their values here.
        differences: What is wrong or differs, one line each.
        remark: What was done, or why something could not be done.
        notes: What a reader of its figures should know, such as a commit with changes.
    """

    path: Path
    status: Status
    checks: tuple[Check, ...] = ()
    differences: tuple[str, ...] = ()
    remark: str = ""
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.status}: {self.path}"]
        same = [check.what for check in self.checks if check.same]
        if same:
            lines.append(f"  same: {', '.join(same)}")
        lines += [f"  {check}" for check in self.checks if not check.same]
        lines += [f"  {line}" for line in self.differences[:_LISTED]]
        if len(self.differences) > _LISTED:
            lines.append(f"  and {len(self.differences) - _LISTED:,} more differences")
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join([*lines, *([f"  {self.remark}"] if self.remark else [])])


def verify(
    paths: Iterable[Path | str],
    *,
    quick: bool = False,
    dataset: Dataset | None = None,
    library: Library | None = None,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Iterator[Verification]:
    """Verify the seal and the environment of measurements, and compute their figures again.

    Args:
        paths: JSON files, and folders of them.
        quick: Whether to compute nothing again.
        dataset: A dataset of your own that `load_dataset` does not know by its name.
        library: Library of the datasets' photos; one for each set of photos is made if left out.
        cache: Folder that keeps such libraries; they are temporary if left out.
        progress: Shows what is computed.

    Yields:
        A verification of each file.

    Raises:
        InputError: A file is no JSON, such as a report.
        NotFoundError: A path does not exist, or a folder holds no JSON file.
    """
    files = [file for path in paths for file in _files(Path(path))]
    with _use_folder(cache) as folder:
        verifier = _Verifier(quick, dataset, library, folder, progress)
        for file in dict.fromkeys(files):
            yield verifier.verify(file)


def verify_result(path: Path | str, **options: Any) -> Verification:
    """Verify one file; the options are those of `verify`."""
    with _use_folder(options.pop("cache", None)) as folder:
        (verification,) = verify([path], cache=folder, **options)
    return verification


class _Verifier:
    """Verifies file after file; datasets are loaded and photos embedded once for all of them."""

    def __init__(
        self,
        quick: bool,
        dataset: Dataset | None,
        library: Library | None,
        cache: Path,
        progress: Progress | None,
    ) -> None:
        self.quick = quick
        self.library = library
        self.cache = cache
        self.progress = progress
        self._datasets = {} if dataset is None else {dataset.name: dataset}
        self._libraries: dict[frozenset[str], Library] = {}
        self._notes = Notes()

    def verify(self, path: Path) -> Verification:
        try:
            values = read_measurement(path)
            query_ids = load_result(path).scores.query_ids if is_result(values) else ()
            verification, dataset = self._surroundings(path, values, query_ids)
        except DataError as error:
            return Verification(path, "differs", differences=(str(error),))
        except (KeyError, TypeError, AttributeError) as error:
            reason = f"a part is missing or of another form: {type(error).__name__} {error}"
            return Verification(path, "differs", differences=(reason,))
        if verification.status != "sealed" or self.quick:
            return verification
        try:
            return self._compute_again(verification, values, dataset)
        except (NotFoundError, InputError, ImportError) as error:
            return replace(verification, status="not here", remark=_not_here(error))
        except SearchlabError as error:
            return _report_differences(verification, [str(error)])

    def _surroundings(
        self, path: Path, values: Values, query_ids: Sequence[str]
    ) -> tuple[Verification, Dataset | None]:
        """Compare the recorded properties with those here.

        Args:
            path: The file.
            values: Values of the file.
            query_ids: Ids of the queries of a result; none for another measurement.

        Returns:
            The verification so far, and the dataset of a result, if it can be computed again.
        """
        manifest, dataset, absent = values["manifest"], None, ""
        wrong: list[str] = []
        checks: list[Check] = []
        models, missing = model_checks(manifest)
        try:
            checks += machine_checks(benchmark_of(values), manifest)
            checks += config_checks(values)
            if query_ids:
                dataset = self._dataset(str(values["dataset"])).only(query_ids)
                if "filter" not in manifest["data"]:  # else `recompute_result` compares them
                    models += data_checks(manifest, dataset)
        except InputError as error:  # the configuration, or queries, no longer exist
            wrong.append(str(error))
        except (NotFoundError, DataError) as error:
            absent = _not_here(error)
        checks += models
        if query_ids and (run := path.with_suffix(".run.gz").name) not in values["files"]:
            wrong.append(f"no {run} under its seal, so that its rankings cannot be compared")
        wrong += [f"another {one.what}" for one in checks if one.decisive and not one.same]
        verification = Verification(
            path,
            "sealed",
            tuple(checks),
            remark="seal and surroundings checked",
            notes=self._notes.of(path, values),
        )
        if wrong:
            return _report_differences(verification, wrong, "not computed again"), None
        if absent or (missing and _needs_models(values)):
            return replace(
                verification, status="not here", remark=absent or _not_here(missing)
            ), None
        if missing:
            verification = replace(
                verification, notes=(*verification.notes, f"its model is not here: {missing}")
            )
        return verification, dataset

    def _compute_again(
        self, verification: Verification, values: Values, dataset: Dataset | None
    ) -> Verification:
        if "evidence" in values:
            return _check_evidence(verification, values["evidence"])
        if dataset is not None:
            library = self._library(dataset)
            differing = recompute_result(
                verification.path,
                dataset,
                library=library,
                progress=self.progress,
                tolerances=study_of(benchmark_of(values)).tolerances,
            )
        else:
            study = study_of(str(values["benchmark"]))
            dataset_name, name = str(values["dataset"]), str(values["name"])
            if (summarise := study.load_summary(name)) is not None:
                again = summarise(values, verification.path.parents[2])
            elif (recompute := study.load_recompute(dataset_name, name)) is not None:
                again = recompute(values)
            else:
                return replace(verification, remark=_not_recomputed(values))
            differing = differences(values, again, tolerances=study.tolerances)
        if differing:
            return _report_differences(verification, differing)
        return replace(
            verification, status="verified", remark="computed again, with the same figures"
        )

    def _dataset(self, name: str) -> Dataset:
        from searchlab.evaluation.datasets import dataset_names, load_dataset

        if name not in self._datasets:
            try:
                self._datasets[name] = load_dataset(name)
            except NotFoundError as error:
                if name in dataset_names():  # whose message says how to get it
                    raise
                msg = f"{error}; name the folder of your own dataset with `--dataset FOLDER`"
                raise NotFoundError(msg) from error
        return self._datasets[name]

    def _library(self, dataset: Dataset) -> Library:
        if self.library is not None:
            return self.library
        if dataset.photo_ids not in self._libraries:
            self._libraries[dataset.photo_ids] = dataset_library(
                dataset, self.cache, config=Config(), progress=self.progress
            )
        return self._libraries[dataset.photo_ids]


def _files(path: Path) -> list[Path]:
    if not path.exists():
        msg = f"a path must be a result or a folder of results, got no {path}; check the path"
        raise NotFoundError(msg)
    if not path.is_dir():
        if path.suffix != ".json":
            msg = f"a path must be a measurement (.json) or a folder of them, got {path}"
            raise InputError(msg)
        return [path]
    files = sorted(path.rglob("*.json"))
    if not files:
        msg = f"{path} must hold a measurement (.json), got none; run `searchlab evaluate`"
        raise NotFoundError(msg)
    return files


@contextmanager
def _use_folder(cache: Path | None) -> Iterator[Path]:
    if cache is not None:
        yield cache
        return
    with tempfile.TemporaryDirectory(prefix="searchlab-") as folder:
        yield Path(folder)


def _needs_models(values: Mapping[str, Any]) -> bool:
    """Tell whether a record is computed again from data, rather than sealed or made of others."""
    if "evidence" in values:  # compared with the file that it names
        return False
    if is_result(values):
        return True
    return study_of(str(values["benchmark"])).recomputes(str(values["dataset"]), values["name"])


def _check_evidence(verification: Verification, evidence: Mapping[str, Any]) -> Verification:
    """Compare the result that a chosen configuration names with the file that exists now."""
    named = evidence.get("result") or {}
    source = verification.path.parent / str(named.get("path", ""))
    if not source.is_file():
        msg = f"the result that it was chosen by must be kept beside it, got none at {source}"
        raise NotFoundError(msg)
    result = read_measurement(source)
    if result["digest"] != named["digest"]:
        return _report_differences(
            verification, [f"{source}: recorded {named['digest']}, here {result['digest']}"]
        )
    chosen = read_measurement(verification.path)
    expected = {name: result[name] for name in _TAKEN_OVER}
    expected["intervals"] = {name: each["macro"] for name, each in result["intervals"].items()}
    if lines := differences({name: chosen.get(name) for name in expected}, expected):
        return _report_differences(verification, lines)
    return replace(verification, remark="sealed, as is the result that it was chosen by")


def _report_differences(
    verification: Verification, lines: Sequence[str], remark: str = ""
) -> Verification:
    return replace(verification, status="differs", differences=tuple(lines), remark=remark)


def _not_here(why: object) -> str:
    return f"cannot be recomputed here: {why}"


def _not_recomputed(values: Mapping[str, Any]) -> str:
    return (
        f"{_measured_at(values)}; {study_of(values['benchmark']).sealed}: "
        f"measure again with `{values['manifest'].get('command', '')}`"
    )


def _measured_at(values: Mapping[str, Any]) -> str:
    commit = values["manifest"].get("commit")
    return f"sealed, measured at commit {commit}" if commit else "sealed, at an unknown commit"
