"""A leaderboard as tables: systems, queries, and answers with their titles and files."""

import pytest

from searchlab.evaluation.experiments import Experiment
from searchlab.evaluation.reports import load_report
from tests.support import experiment_world

folder, library = experiment_world.folder, experiment_world.library


@pytest.fixture(scope="module")
def measured(folder, library, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    dataset = experiment_world.shades(folder)
    configs = [experiment_world.EXACT, experiment_world.GRAPH]
    report = Experiment(dataset, configs, ["ndcg@5", "success@1"], library=library, out=out).run()
    return report, dataset, out


def test_queries_have_a_row_for_each_system_with_their_words(measured):
    pytest.importorskip("pandas")
    report, dataset, _ = measured
    frame = report.queries_frame(dataset)
    assert len(frame) == 2 * len(dataset.queries)
    red = frame[frame["query_id"] == "en-red"]
    assert red["text"].tolist() == ["red", "red"]
    assert red["success@1"].tolist() == [1.0, 1.0]
    means = frame.groupby(["config_id", "lang"])["ndcg@5"].mean().groupby("config_id").mean()
    for result in report.results:
        assert means[result.config_id] == pytest.approx(result.metrics["ndcg@5"])


def test_answers_have_ranks_grades_titles_and_files(measured, library):
    pytest.importorskip("pandas")
    report, dataset, out = measured
    frame = report.answers_frame(out, dataset, library)
    best = frame[(frame["query_id"] == "en-red") & (frame["rank"] == 1)]
    assert best["file"].str.endswith("red.png").all()
    assert best["grade"].tolist() == [1, 1]
    assert best["text"].tolist() == ["red", "red"]
    assert frame["score"].between(0, 1).all()
    bare = report.answers_frame(out)
    assert set(bare["file"]) == {""}


def test_the_command_writes_three_tables(measured, run, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    report, dataset, out = measured
    board = report.results[0].path(out).parent
    done = run("export", "results", board, tmp_path / "tables")
    assert done.code == 0, done.err
    assert "are left out" in done.err
    assert "--dataset FOLDER" in done.err
    tables = {
        name: parquet.read_table(tmp_path / "tables" / f"{name}.parquet").to_pylist()
        for name in ("systems", "queries", "answers")
    }
    names = [load_report(board).names[one.config_id] for one in report.results]
    assert [row["system"] for row in tables["systems"]] == names
    assert len(tables["queries"]) == 2 * len(dataset.queries)
    assert {row["rank"] for row in tables["answers"]} == {1, 2, 3, 4, 5}
