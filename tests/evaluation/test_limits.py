"""The page of limits names each record whose code cannot be had any more, and no other."""

import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
PAGE = " ".join((RESULTS / "LIMITS.md").read_text(encoding="utf-8").split())


def commits():
    """Return the commit of each record, by its file below the results."""
    found = {}
    for path in sorted(RESULTS.rglob("*.json")):
        values = json.loads(path.read_text(encoding="utf-8"))
        if "manifest" in values:
            commit = values["manifest"].get("commit", "")
            found[path.relative_to(RESULTS).as_posix()] = commit
    return found


def named(beginning, end):
    """Return the records that a sentence of the page names, if it is there, as beginnings."""
    sentences = re.findall(f"{re.escape(beginning)}(.*?){re.escape(end)}", PAGE)
    return [name.rstrip("*") for one in sentences for name in re.findall(r"`([^`]+)`", one)]


def assert_named_just_so(files, names):
    unnamed = [file for file in files if not any(file.startswith(name) for name in names)]
    assert unnamed == [], "measure these again, or LIMITS.md must name them"
    stale = [name for name in names if not any(file.startswith(name) for file in files)]
    assert stale == [], "LIMITS.md must not name these any more"


def test_records_of_a_tree_with_changes_are_named():
    changed = [file for file, commit in commits().items() if commit.endswith("+")]
    assert_named_just_so(changed, named("with changes that no commit has are", "."))


def test_no_record_only_says_which_commit_it_was_recorded_with():
    manifests = [
        json.loads(path.read_text(encoding="utf-8")).get("manifest", {})
        for path in RESULTS.rglob("*.json")
    ]
    said = [str(one.get("measured_on", one).get("commit", "")) for one in manifests]
    assert [commit for commit in said if commit.startswith("recorded with")] == []


def test_records_of_commits_that_are_gone_are_named():
    def git(*words):
        return subprocess.run(
            ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False
        )

    if git("rev-parse", "--is-shallow-repository").stdout.strip() != "false":
        pytest.skip("the whole history is not at hand")
    history = git("rev-list", "HEAD").stdout.split()
    plain = {file: commit.rstrip("+") for file, commit in commits().items()}
    gone = [
        file
        for file, commit in plain.items()
        if re.fullmatch(r"[0-9a-f]+", commit)
        and not any(known.startswith(commit) for known in history)
    ]
    assert_named_just_so(gone, named("of commits that are gone are", "."))
