"""What an install is made of: fixed with hashes, complete, and under licences we allow."""

import json
import os
import re
import shutil
import subprocess
import tomllib
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.licenses import is_allowed, license_said

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / ".ci" / "supply-chain"
LOCK, BUILD_LOCK = ROOT / ".ci" / "serve.lock", ROOT / ".ci" / "build.lock"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PYPROJECT["project"]["optional-dependencies"]
SERVED = [*PYPROJECT["project"]["dependencies"], *EXTRAS["serve"], *EXTRAS["mcp"]]
SERVED += EXTRAS["postgres"]
BUILDING = [*PYPROJECT["build-system"]["requires"], "numpy", "pybind11", "setuptools", "wheel"]
ENTRY = re.compile(
    r"^([\w.-]+)(?:\[[^\]]*\])?==(\S+?)(?: ; [^\\]*)?((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$",
    re.M,
)


@cache
def locked(lock):
    entries = ENTRY.findall(lock.read_text(encoding="utf-8"))
    return {canonicalize_name(name): version for name, version, _ in entries}


def closure(requirements):
    """Walk through all that requirements ask for on this machine, as far as it is installed."""
    todo, seen = [*requirements], set()
    while todo:
        asked = Requirement(todo.pop())
        name = canonicalize_name(asked.name)
        key = (name, frozenset(asked.extras))
        if key in seen:
            continue
        seen.add(key)
        if name == "searchlab":
            todo += [line for extra in asked.extras for line in EXTRAS[extra]]
            continue
        if asked.marker is None or asked.marker.evaluate({"extra": ""}):
            yield name, asked
        try:
            requires = distribution(name).requires or []
        except PackageNotFoundError:
            continue
        for line in requires:
            marker = Requirement(line).marker
            asked_for = asked.extras or {""}
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in asked_for):
                todo.append(line.partition(";")[0])


@pytest.mark.parametrize(("lock", "least"), [(LOCK, 60), (BUILD_LOCK, 4)], ids=["serve", "build"])
def test_every_locked_package_has_a_hash(lock, least):
    text = lock.read_text(encoding="utf-8")
    names = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
    assert len(ENTRY.findall(text)) == len(names) > least


@pytest.mark.parametrize(
    ("requirements", "lock"), [(SERVED, LOCK), (BUILDING, BUILD_LOCK)], ids=["serve", "build"]
)
def test_all_that_an_install_asks_for_is_locked_in_a_version_that_fits(requirements, lock):
    for name, asked in closure(requirements):
        assert asked.specifier.contains(locked(lock)[name], prereleases=True), asked


def test_every_step_of_the_install_takes_what_is_locked_and_nothing_else():
    text = SCRIPT.read_text(encoding="utf-8")
    (steps,) = re.findall(r"^install\)\n(.*?);;", text, re.M | re.S)
    pips = [set(words.split()) for words in re.findall(r"(?:-m pip|\$building) (\w+ .*)", steps)]
    assert len(pips) == 5
    for words in pips:
        assert words & {"--require-hashes", "--no-index"}
        # Nothing is built with what nobody has locked.
        assert words & {"--only-binary", "--no-build-isolation", '"$work"/*.whl'}


# -- licences ---------------------------------------------------------------------------------


def said_by(name):
    metadata = distribution(name).metadata
    fields = {key: metadata.get(key) for key in ("License-Expression", "License")}
    return license_said(name, fields | {"Classifier": metadata.get_all("Classifier") or []})


def test_every_licence_of_every_extra_is_one_that_was_allowed():
    """Of what is installed here; `.ci/supply-chain licenses` asks for those of all."""
    everything = [*SERVED, *BUILDING, *(line for extra in EXTRAS.values() for line in extra)]
    unknown, n_read = {}, 0
    for name in {*locked(LOCK), *locked(BUILD_LOCK), *(name for name, _ in closure(everything))}:
        try:
            said = said_by(name)
        except PackageNotFoundError:  # of another platform, or of an extra that is not here
            continue
        n_read += 1
        if not is_allowed(name, said):
            unknown[name] = said
    assert unknown == {}
    assert n_read > 100


@pytest.mark.parametrize(
    ("said", "allowed"),
    [
        ("MIT", True),
        ("LGPL-3.0-only", True),
        ("BSD-3-Clause OR GPL-2.0-only", True),
        ("License :: OSI Approved :: GNU Lesser General Public License v3 (LGPLv3)", True),
        ("", False),
        ("GPL-3.0-only", False),
        ("MIT AND GPL-3.0-only", False),
        ("License :: OSI Approved :: GNU Affero General Public License v3", False),
        ("License :: Other/Proprietary License LicenseRef-NVIDIA-Proprietary", False),
        ("Apache-2.0 with Commons Clause", False),
    ],
)
def test_a_licence_that_forbids_beside_one_that_allows_is_refused(said, allowed):
    assert is_allowed("some-package", said) is allowed


# -- what it is made of -----------------------------------------------------------------------


@pytest.mark.slow
def test_the_list_of_what_it_is_made_of_names_searchlab_and_all_that_is_locked():
    if shutil.which("cyclonedx-py") is None:
        missing = "cyclonedx-py is needed: pip install '.[supply]'"
        if os.environ.get("SEARCHLAB_NEEDS_SUPPLY"):
            pytest.fail(missing)
        pytest.skip(missing)
    done = subprocess.run([SCRIPT, "sbom"], capture_output=True, text=True, check=True)
    made = json.loads(done.stdout)
    assert made["bomFormat"] == "CycloneDX"
    root = made["metadata"]["component"]
    assert (root["name"], root["version"]) == ("searchlab", PYPROJECT["project"]["version"])
    parts = {canonicalize_name(part["name"]): part["version"] for part in made["components"]}
    assert parts == locked(LOCK)
