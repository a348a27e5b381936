"""`searchlab calibrate`: scores refined on a library's own judgments, and written beside it."""

import json

import numpy as np
import pytest

from searchlab.config import Config
from searchlab.config.calibration import Calibration, Curve
from searchlab.config.word_weights import USUAL_WORDS
from searchlab.evaluation.datasets.judgments import write_qrels
from searchlab.library.library import open_library
from searchlab.search.queries import Query
from tests.support import cli_world

whole = cli_world.whole
mine = cli_world.mine

TEXTS = ("red", "dark green", "a blue sea", "white")
CURVE = Curve(4.0, -1.0)
FITTED = Calibration(CURVE, CURVE, CURVE, source="test", above_even=0.2)


@pytest.fixture
def library(mine):
    """A library whose scores claim to be chances."""
    open_library(mine).publish(Config(model="palette", calibration=FITTED, words=USUAL_WORDS))
    return mine


@pytest.fixture
def judged(library, tmp_path):
    """Judgments under which far fewer photos are relevant than the scores say."""
    folder = tmp_path / "judged"
    folder.mkdir()
    photos = open_library(library).engine.table.photos(range(25))
    names = ("file", "source", "source_photo_id")
    records = [{name: getattr(photo, name) for name in names} for photo in photos]
    (folder / "photos.jsonl").write_text("\n".join(map(json.dumps, records)))
    lines = [f"q{number}\ten\t{text}" for number, text in enumerate(TEXTS)]
    (folder / "queries.tsv").write_text("query_id\tlang\ttext\n" + "\n".join(lines) + "\n")
    qrels = {
        f"q{number}": {photo.photo_id: int(row == number) for row, photo in enumerate(photos)}
        for number in range(len(TEXTS))
    }
    write_qrels(qrels, folder / "qrels.tsv")
    return folder


def test_refined_scores_are_written_and_in_force_when_one_says_so(run, library, judged):
    before = open_library(library).engine
    done = run("calibrate", str(judged), "--data", library)
    assert (done.code, done.err) == (0, "")
    path = library / "calibrated.json"
    assert "40 judged photos of 4 queries" in done.out
    assert f"searchlab index --data {library} --config {path}" in done.out
    assert open_library(library).engine.config == before.config
    refined = Config.load(path)
    at = np.array([0.2])
    assert refined.calibration.text(at) < before.config.calibration.text(at)
    assert refined.calibration.above_even == FITTED.above_even
    assert refined.calibration.source.startswith("test, refined on judged@")
    open_library(library).publish(refined)
    after = open_library(library).engine
    ranked, as_before = (engine.rank(Query(text="red")) for engine in (after, before))
    assert ranked.rows.tolist() == as_before.rows.tolist()
    assert ranked.scores.sum() < as_before.scores.sum()


def test_the_configuration_goes_where_one_says(run, library, judged, tmp_path):
    done = run("calibrate", str(judged), "--data", library, "--out", tmp_path / "new.json")
    assert done.code == 0
    assert not (library / "calibrated.json").exists()
    assert Config.load(tmp_path / "new.json").model == "palette"


@pytest.mark.parametrize("out", ["gone/new.json", "new.txt"])
def test_a_place_that_cannot_be_written_is_refused_before_anything_is_read(
    run, library, tmp_path, out
):
    done = run("calibrate", "nothing", "--data", library, "--out", tmp_path / out)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "--out must name a .json file in a folder that is there" in done.err


def test_judgments_that_are_all_alike_say_nothing_of_scores(run, library, judged):
    """As where each caption is judged relevant to its photo, and nothing else is judged."""
    lines = (judged / "qrels.tsv").read_text().splitlines()
    head, rows = lines[0], [line.split("\t") for line in lines[1:]]
    alike = ["\t".join([*row[:2], "1", *row[3:]]) for row in rows]
    (judged / "qrels.tsv").write_text("\n".join([head, *alike]) + "\n")
    done = run("calibrate", str(judged), "--data", library)
    assert (done.code, done.out) == (2, "")
    assert "got 40 relevant of 40" in done.err
    assert not (library / "calibrated.json").exists()


def test_judgments_that_are_not_there_are_refused_in_a_line(run, library):
    done = run("calibrate", "no-such-folder", "--data", library)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "no-such-folder" in done.err
    assert not (library / "calibrated.json").exists()
