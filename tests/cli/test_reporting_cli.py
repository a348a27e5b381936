"""The commands report, diff, power and promote."""

import json

import pytest
from click.testing import CliRunner

from searchlab.cli import searchlab
from searchlab.config import Config
from searchlab.errors import (
    ConflictError,
    DataError,
    InputError,
    MismatchError,
    NotFoundError,
    SearchlabError,
)
from searchlab.evaluation.file_names import find_result_file
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.evaluation.provenance.measurement import read_measurement, write_measurement
from searchlab.library.library import create_library
from tests.support.made_results import GRAPH, MINI, PALETTE, result


@pytest.fixture
def run(monkeypatch):
    """Run a command; an error is raised, as `main` prints it."""
    monkeypatch.delenv("SEARCHLAB_DATA", raising=False)

    def run(*words):
        done = CliRunner().invoke(searchlab, [str(word) for word in words])
        if isinstance(done.exception, SearchlabError):
            raise done.exception
        assert done.exit_code == 0, done.output
        return done.output

    return run


@pytest.fixture
def results(tmp_path):
    folder = tmp_path / "results"
    for config, change in ((MINI, {"noise": 2}), (GRAPH, {"noise": 1}), (PALETTE, {"shift": 0.3})):
        result(config, dataset="made", **change).save(folder)
    return folder


def file_of(results, config):
    return find_result_file(results / "search_quality" / "made", config)


@pytest.mark.slow
def test_report_writes_one_file(run, results, tmp_path):
    out = tmp_path / "report.html"
    output = run("report", results, "--out", out)
    assert "needs nothing else" in output
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_report_of_no_folder_or_to_nowhere_is_refused(run, results, tmp_path):
    with pytest.raises(NotFoundError, match="must be a folder of results"):
        run("report", tmp_path / "none")
    with pytest.raises(InputError, match="must be a file in a folder that is there"):
        run("report", results, "--out", tmp_path / "none" / "report.html")


@pytest.mark.slow
def test_report_writes_tables_and_charts(run, results):
    readme = results / "README.md"
    readme.write_text("<!-- table: leaderboard search_quality/made -->\n<!-- end -->\n")
    output = run("report", results, "--write-tables")
    assert f"tables of today: {readme}" in output
    assert "| palette × exact |" in readme.read_text(encoding="utf-8")
    charts = sorted(path.name for path in (results / "search_quality").glob("made-*"))
    assert charts == ["made-frontier.png", "made-frontier.svg"]
    before = [(results / "search_quality" / name).read_bytes() for name in charts]
    run("report", results, "--write-tables")
    assert [(results / "search_quality" / name).read_bytes() for name in charts] == before


@pytest.mark.slow
def test_a_table_that_cannot_be_made_is_named_after_the_others_are_written(run, results):
    readme = results / "README.md"
    block = "<!-- table: leaderboard search_quality/{} -->\n<!-- end -->\n"
    readme.write_text(block.format("none") + block.format("made"))
    with pytest.raises(DataError, match=r"README\.md, leaderboard search_quality/none: "):
        run("report", results, "--write-tables")
    assert "| palette × exact |" in readme.read_text(encoding="utf-8")


@pytest.mark.slow
def test_diff_lists_the_worst_and_writes_a_page(run, results, tmp_path):
    page = tmp_path / "diff.html"
    words = ["diff", file_of(results, MINI), file_of(results, PALETTE), "--html", page]
    output = run(*words, "--most", 2)
    assert "palette × exact is worse than mini × exact: ndcg@10 -0." in output
    assert output.count(" -> ") == 2
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert "success@5" in run(*words, "--metric", "success@5")


def test_power_says_what_can_be_seen_and_what_a_difference_takes(run, results):
    words = ["power", file_of(results, MINI), file_of(results, GRAPH)]
    output = run(*words, "--difference", "0.001")
    assert "would be found with a power of 80 % (test at 5 %)" in output
    assert "one of 0.0010 would be found" in output
    with pytest.raises(InputError, match="metric must be one of"):
        run(*words, "--metric", "map")


@pytest.mark.parametrize("command", ["diff", "power"])
def test_what_cannot_be_compared_is_refused(run, results, tmp_path, command):
    other = result(PALETTE, dataset="made", revision="r2").save(tmp_path / "others")
    with pytest.raises(MismatchError, match="revision r1 and r2"):
        run(command, file_of(results, MINI), other)


def test_promote_writes_chosen_with_its_evidence_and_refuses_what_is_worse(run, results):
    chosen = results / "chosen.json"
    assert f"written: {chosen}" in run("promote", file_of(results, MINI))
    values = read_measurement(chosen)
    assert Config.load(chosen) == MINI
    assert [tied["system"] for tied in values["evidence"]["tied_with"]] == [
        "mini × hnsw M=16 ef=100"
    ]
    path = results / values["evidence"]["result"]["path"]
    assert path.resolve() == file_of(results, MINI).resolve()
    with pytest.raises(ConflictError, match="worse config"):
        run("promote", file_of(results, PALETTE))
    assert Config.load(chosen) == MINI
    run("promote", file_of(results, PALETTE), "--force")
    assert Config.load(chosen) == PALETTE


def test_promote_writes_elsewhere_on_demand(run, results, tmp_path):
    out = tmp_path / "mine.json"
    run("promote", file_of(results, GRAPH), "--out", out)
    assert Config.load(out) == GRAPH
    assert not (results / "chosen.json").exists()
    source = tmp_path / json.loads(out.read_text(encoding="utf-8"))["evidence"]["result"]["path"]
    assert source.resolve() == file_of(results, GRAPH).resolve()
    with pytest.raises(InputError, match="--out goes with a result"):
        run("promote", out, "--out", tmp_path / "other.json")


def test_promote_of_a_chosen_configuration_needs_a_library(run, results, tmp_path):
    run("promote", file_of(results, MINI))
    with pytest.raises(NotFoundError):
        run("promote", results / "chosen.json", "--data", tmp_path / "none")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["diff", "power"])
def test_a_result_that_is_not_there_is_bad_usage(run, results, tmp_path, command):
    for names in ((tmp_path / "no.json", file_of(results, MINI)), (file_of(results, MINI), "no")):
        with pytest.raises(NotFoundError, match="must be a result of `searchlab evaluate`"):
            run(command, *names)
    with pytest.raises(NotFoundError, match="got no file"):
        run("promote", tmp_path / "no.json")


def test_power_of_what_does_not_differ_or_of_no_difference_is_bad_usage(run, results):
    same = file_of(results, MINI), file_of(results, MINI)
    with pytest.raises(InputError, match="must differ on some query"):
        run("power", *same)
    with pytest.raises(InputError, match="--difference must be a number other than 0"):
        run("power", file_of(results, MINI), file_of(results, PALETTE), "--difference", "0")


def test_a_page_to_nowhere_and_prose_that_is_not_there_are_refused_before_work(
    run, results, tmp_path
):
    with pytest.raises(InputError, match="--html must be a file in a folder that is there"):
        run("diff", *[file_of(results, MINI)] * 2, "--html", tmp_path / "none" / "d.html")
    with pytest.raises(NotFoundError, match="--prose must be a Markdown file"):
        run("report", results, "--write-tables", "--prose", tmp_path / "none.md")
    assert not list(results.rglob("*.png"))


def test_promote_says_what_is_in_force_on_which_evidence_and_in_place_of_what(run, results):
    output = run("promote", file_of(results, PALETTE))
    assert output.startswith("palette × exact: ndcg@10 ")
    assert "on made, 200 queries in 2 languages" in output
    output = run("promote", file_of(results, MINI))
    assert "Tied with it: mini × hnsw M=16 ef=100." in output
    assert "It replaced palette × exact: " in output


def test_a_result_without_its_companions_is_not_promoted_past_its_evidence(run, results, tmp_path):
    alone = tmp_path / "alone.json"
    alone.write_bytes(file_of(results, PALETTE).read_bytes())
    with pytest.raises(DataError, match="beside it, missing or changed"):
        run("promote", alone, "--data", build_library(tmp_path))


def test_a_chosen_configuration_that_was_changed_by_hand_is_not_promoted(run, results, tmp_path):
    run("promote", file_of(results, MINI))
    chosen = results / "chosen.json"
    text = chosen.read_text(encoding="utf-8")
    chosen.write_text(text.replace('"index": "exact"', '"index": "hnsw"'), encoding="utf-8")
    with pytest.raises(DataError, match="changed after they were written"):
        run("promote", chosen, "--data", build_library(tmp_path))


def test_a_measurement_of_another_kind_is_not_promoted(run, tmp_path):
    values = {"benchmark": "calibration", "dataset": "made", "name": "x", "metrics": {"ece": 0.1}}
    values |= {"config": MINI.to_dict(), "manifest": make_manifest("search_quality", seed=0)}
    path = write_measurement(tmp_path / "x.json", values)
    with pytest.raises(DataError, match="got one of calibration"):
        run("promote", path)


def test_promote_into_a_library_that_is_not_there_writes_nothing(run, results, tmp_path):
    with pytest.raises(NotFoundError, match="a library must hold"):
        run("promote", file_of(results, MINI), "--data", tmp_path / "none")
    assert not (results / "chosen.json").exists()


def build_library(tmp_path):
    create_library(tmp_path / "library")
    return tmp_path / "library"
