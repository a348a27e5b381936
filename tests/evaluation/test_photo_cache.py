"""Without a library, photos are kept in the user's cache, and a terminal shows bars."""

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from searchlab.errors import InputError
from searchlab.evaluation import bars, experiments
from searchlab.evaluation.bars import ConsoleProgress, bars_in_a_terminal
from searchlab.evaluation.caches import cache_folder
from searchlab.evaluation.datasets import read_dataset
from searchlab.evaluation.experiments import Experiment
from searchlab.models.palette.embedder import PaletteEmbedder
from searchlab.progress import Progress
from tests.support import experiment_world
from tests.support.experiment_world import EXACT, GRAPH, SHADES, photo_id, shades

folder = experiment_world.folder


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SEARCHLAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def embedded(monkeypatch):
    """Numbers of pictures that were embedded, call by call."""
    calls = []
    original = PaletteEmbedder.encode_images

    def encode(self, images):
        calls.append(len(images))
        return original(self, images)

    monkeypatch.setattr(PaletteEmbedder, "encode_images", encode)
    return calls


def test_photos_are_embedded_once_for_all_experiments(folder, cache, embedded):
    (first,) = Experiment(shades(folder), [EXACT]).run().results
    assert sum(embedded) == 6
    again = Experiment(shades(folder), [EXACT, GRAPH]).run()
    assert sum(embedded) == 6
    assert len(list(cache.glob("evaluated/*/*/photos-*/library"))) == 1
    (same,) = [one for one in again.results if one.config_id == first.config_id]
    assert (same.photos, same.intervals) == (first.photos, first.intervals)


@pytest.mark.slow
def test_figures_are_those_of_a_library_made_for_them_alone(folder):
    (kept,) = Experiment(shades(folder), [EXACT]).run().results
    (alone,) = Experiment(shades(folder), [EXACT], cache=None).run().results
    assert kept.scores.values["ndcg@10"].tolist() == alone.scores.values["ndcg@10"].tolist()
    assert (kept.photos, kept.intervals) == (alone.photos, alone.intervals)


def test_the_command_line_keeps_them_in_the_same_folder(folder, embedded, run, tmp_path):
    judged = shutil.copytree(folder, tmp_path / "judged")
    (judged / "queries.tsv").write_text("query_id\tlang\ttext\nq\ten\tred\n", encoding="utf-8")
    qrels = f"query_id\tphoto_id\trelevance\nq\t{photo_id('red')}\t1\n"
    (judged / "qrels.tsv").write_text(qrels, encoding="utf-8")
    done = run("evaluate", "--dataset", judged, "--model", "palette", "--out", tmp_path / "out")
    assert done.code == 0, done.err
    assert sum(embedded) == len(SHADES)
    Experiment(read_dataset(judged), [GRAPH]).run()
    assert sum(embedded) == len(SHADES)


def test_without_a_cache_nothing_is_kept(folder, cache):
    Experiment(shades(folder), [EXACT], cache=None).run()
    assert not cache.exists()


@pytest.mark.parametrize("other", ["code", "records", "weights"])
def test_what_figures_depend_on_has_a_library_of_its_own(folder, cache, monkeypatch, other):
    Experiment(shades(folder), [EXACT]).run()
    dataset = shades(folder)
    if other == "code":
        monkeypatch.setattr(experiments, "code_of", lambda _: "0.1.0+other")
    elif other == "weights":
        other_model = type("Other", (), {"model_id": "mini-other"})()
        original = experiments.load_model
        monkeypatch.setattr(
            experiments, "load_model", lambda s: other_model if s == "mini" else original(s)
        )
    else:
        records = tuple({**record, "description": "a shade"} for record in dataset.records)
        dataset = replace(dataset, records=records)
    Experiment(dataset, [EXACT]).run()
    assert len(list(cache.glob("evaluated/*/*/photos-*/library"))) == 2


def test_the_cache_is_the_users_unless_another_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("SEARCHLAB_CACHE", "~/mine")
    assert cache_folder() == Path.home() / "mine"
    monkeypatch.delenv("SEARCHLAB_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "searchlab"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "searchlab"


def test_a_cache_that_cannot_be_written_says_what_to_do(folder, cache):
    cache.write_text("a file")
    with pytest.raises(InputError, match=r"cache of photos must be .* or none \(`cache=None`\)"):
        Experiment(shades(folder), [EXACT]).run()
    with pytest.raises(InputError, match="a cache must be a folder that can be written"):
        Experiment(shades(folder), [EXACT], cache=cache / "here").run()


# Forked when all is imported, they begin at once.
THREE = """
import os, sys
from pathlib import Path
from searchlab.evaluation.experiments import Experiment
from tests.support.experiment_world import EXACT, shades

children = []
for _ in range(3):
    children.append(os.fork())
    if not children[-1]:
        Experiment(shades(Path(sys.argv[1])), [EXACT]).run()
        os._exit(0)
print(*(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""


@pytest.mark.slow
def test_two_processes_that_need_the_same_library_wait_for_each_other(folder, cache):
    done = subprocess.run(
        [sys.executable, "-c", THREE, str(folder)], capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["0"] * 3, done.stderr
    assert done.stderr == ""  # and no bars, where nobody looks


def test_bars_are_shown_in_a_terminal_only(folder, monkeypatch):
    assert type(bars_in_a_terminal()) is Progress

    class Terminal(bars.Console):
        is_terminal = True

    monkeypatch.setattr(bars, "Console", Terminal)
    assert isinstance(bars_in_a_terminal(), ConsoleProgress)


def test_an_experiment_shows_a_bar_for_each_system(folder, monkeypatch, capsys):
    from rich.console import Console

    monkeypatch.setattr(
        experiments,
        "bars_in_a_terminal",
        lambda: ConsoleProgress(Console(stderr=True, force_terminal=True, width=100)),
    )
    Experiment(shades(folder), [EXACT, GRAPH]).run()
    assert "ranking for system 2 of 2" in capsys.readouterr().err
    Experiment(shades(folder), [EXACT]).run(Progress())
    assert capsys.readouterr().err == ""
