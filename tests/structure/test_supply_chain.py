"""What a served install is made of: fixed with hashes, complete, and under licences we allow."""

import re
import tomllib
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCK = ROOT / ".ci" / "serve.lock"
ENTRY = re.compile(
    r"^([\w.-]+)(?:\[[^\]]*\])?==(\S+?)(?: ; [^\\]*)?((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$",
    re.M,
)
ALLOWED = re.compile(
    r"MIT|BSD|Apache|ISC|PSF|Python Software Foundation|HPND|Historical Permission|Zlib|"
    r"Unlicense|MPL|Mozilla|LGPL|Lesser General|0BSD|CC0|Public Domain",
    re.I,
)
# Read by eye where the package says nothing that a program could read.
READ = {
    "blurhash-python": "MIT",
    "hnswlib": "Apache-2.0",
    "matplotlib": "PSF-based",
    "pystemmer": "MIT and BSD-3-Clause",
}


@cache
def locked():
    entries = ENTRY.findall(LOCK.read_text(encoding="utf-8"))
    return {canonicalize_name(name): version for name, version, _ in entries}


def license_of(name):
    if name in READ:
        return READ[name]
    metadata = distribution(name).metadata
    classifiers = metadata.get_all("Classifier") or []
    said = [text for text in classifiers if text.startswith("License ::")]
    # Where there is a whole text, its name stands at the head.
    return " ".join(
        [metadata.get("License-Expression") or "", *said, (metadata.get("License") or "")[:200]]
    )


def test_every_locked_package_has_a_hash():
    text = LOCK.read_text(encoding="utf-8")
    names = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
    assert len(ENTRY.findall(text)) == len(names) > 40


def test_all_that_a_served_install_asks_for_is_locked_in_a_version_that_fits():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    todo, seen = [*project["dependencies"], *extras["serve"], *extras["postgres"]], set()
    while todo:
        asked = Requirement(todo.pop())
        name = canonicalize_name(asked.name)
        key = (name, frozenset(asked.extras))
        if key in seen:
            continue
        seen.add(key)
        if name == "searchlab":
            continue
        if asked.marker is None or asked.marker.evaluate({"extra": ""}):
            assert asked.specifier.contains(locked()[name], prereleases=True), asked
        try:
            requires = distribution(name).requires or []
        except PackageNotFoundError:  # of another platform
            continue
        for line in requires:
            marker = Requirement(line).marker
            asked_for = asked.extras or {""}
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in asked_for):
                todo.append(line.partition(";")[0])


def test_every_licence_is_one_that_was_allowed():
    unknown = {}
    for name in locked():
        try:
            said = license_of(name)
        except PackageNotFoundError:  # of another platform
            continue
        if not ALLOWED.search(said):
            unknown[name] = said
    assert unknown == {}
