"""Environment: compares what a measurement was made with to what is installed here now."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from searchlab.config import Config
from searchlab.errors import SearchlabError
from searchlab.evaluation.provenance.manifest import data_hashes, machine, models_of
from searchlab.evaluation.provenance.registry import code_of

if TYPE_CHECKING:
    from searchlab.evaluation.datasets import Dataset

_NONE = "none"


@dataclass(frozen=True)
class Check:
    """One recorded property, and its value here and now.

    Attributes:
        what: Name of the property, such as `"weights of mini"`.
        recorded: Its value when it was measured.
        here: Its value now.
        decisive: Whether a difference means other figures. Code, packages and machine are not
            decisive: computing the figures again shows whether they change.
    """

    what: str
    recorded: str
    here: str
    decisive: bool = False

    @property
    def same(self) -> bool:
        """Whether nothing has changed."""
        return self.recorded == self.here

    def __str__(self) -> str:
        if self.same:
            return f"{self.what}: {self.here}, the same"
        return f"{self.what}: recorded {self.recorded}, here {self.here}, differs"


def machine_checks(benchmark: str, manifest: Mapping[str, Any]) -> list[Check]:
    """Compare code, machine, Python and packages.

    Raises:
        InputError: No line of `STUDIES` names the benchmark.
    """
    here = {
        "code": code_of(benchmark),
        "machine": machine(),
        "python": platform.python_version(),
    }
    checks = [Check(name, str(manifest.get(name, _NONE)), now) for name, now in here.items()]
    packages = manifest.get("packages", {})
    return checks + [Check(name, str(packages[name]), _version(name)) for name in sorted(packages)]


def config_checks(values: Mapping[str, Any]) -> list[Check]:
    """Compare a recorded configuration with its hash; no check if none is recorded.

    Raises:
        InputError: This version of searchlab cannot read the configuration.
    """
    if "config_id" not in values:
        return []
    here = Config.from_dict(values["config"]).config_id
    return [Check("config", str(values["config_id"]), here, decisive=True)]


def model_checks(manifest: Mapping[str, Any]) -> tuple[list[Check], str]:
    """Compare ids and hashes of the models.

    Returns:
        The checks, and why a model cannot be loaded here; empty if all can.
    """
    checks, absent = [], ""
    for model in manifest.get("models", ()):
        spec = str(model["spec"])
        try:
            here = next(entry for entry in models_of(spec) if entry["spec"] == spec)
        except (SearchlabError, StopIteration) as error:
            absent = absent or str(error) or f"{spec} is no plain model"
            continue
        checks += [
            Check(f"{name} of {spec}", str(model[name]), here.get(name, _NONE), decisive=True)
            for name in model
            if name != "spec"
        ]
    return checks, absent


def data_checks(manifest: Mapping[str, Any], dataset: Dataset) -> list[Check]:
    """Compare a dataset's queries and judgments with the recorded ones."""
    recorded = manifest.get("data", {})
    here = data_hashes(dataset, recorded=str(recorded.get("queries", "")))
    return [
        Check(f"{name} of {dataset.name}", str(recorded.get(name, _NONE)), here[name], True)
        for name in ("queries", "qrels")
    ]


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return _NONE
