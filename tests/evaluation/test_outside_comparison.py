"""Systems of other toolkits compared: the same statistics as for our own, from files alone."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from searchlab.cli import searchlab
from searchlab.errors import InputError
from searchlab.evaluation.outside.comparison import compare_files
from searchlab.evaluation.outside.tables import comparison_caption, comparison_text
from searchlab.evaluation.significance import bootstrap_interval, leader_tests, permutation_test

N = 60
LANGS = ["de" if number % 2 else "en" for number in range(N)]


@pytest.fixture
def world(tmp_path):
    """Sixty queries with a relevant document each; good ranks it first more often than poor."""
    rng = np.random.default_rng(0)
    qrels = "".join(f"q{n:02d} 0 right{n} 1\n" for n in range(N))
    (tmp_path / "qrels.trec").write_text(qrels + "hopeless 0 x 0\n")
    for name, share in (("good", 0.9), ("alike", 0.9), ("poor", 0.2)):
        ranks = np.where(rng.random(N) < share, 1, 4)
        run = {
            f"q{n:02d}": {f"right{n}" if place == rank else f"wrong{place}": 1 / place
                          for place in range(1, 6)}
            for n, rank in enumerate(ranks)
        }  # fmt: skip
        (tmp_path / f"{name}.json").write_text(json.dumps(run))
    lines = "".join(f"q{n:02d}\t{lang}\n" for n, lang in enumerate(LANGS))
    (tmp_path / "queries.tsv").write_text(f"query_id\tlang\n{lines}")
    return tmp_path


@pytest.mark.slow
def test_systems_stand_in_groups_with_the_statistics_of_our_own(world):
    files = [world / f"{name}.json" for name in ("poor", "good", "alike")]
    comparison = compare_files(files, world / "qrels.trec", metrics=["RR@10"])
    assert comparison.metrics == ("mrr@10",)
    assert comparison.left_out == 1
    ranks = comparison.standings.ranks
    assert (ranks["good"], ranks["alike"], ranks["poor"]) == (1, 1, 2)
    scores = {name: comparison.scores[name]["mrr@10"] for name in comparison.systems}
    assert set(scores["good"].tolist()) == {1.0, 0.25}
    expected = bootstrap_interval(scores["poor"], clusters=comparison.clusters)
    assert comparison.intervals["poor"]["mrr@10"].macro == expected
    first, *others = comparison.standings.order
    rest = [scores[other] for other in others]
    expected = leader_tests(scores[first], rest, clusters=comparison.clusters)
    assert list(comparison.standings.p_values.values()) == expected
    assert permutation_test(scores["good"], scores["poor"]) < 0.001


def test_scores_of_ir_measures_equal_those_from_the_run(world):
    both = [world / "good.json", world / "poor.json"]
    by_run = compare_files(both, world / "qrels.trec", metrics=["ndcg@10"])
    lines = [
        f"{query}\tnDCG@10\t{score:.4f}\n"
        for query, score in zip(by_run.query_ids, by_run.scores["good"]["ndcg@10"], strict=True)
    ]
    (world / "theirs.tsv").write_text("".join(lines))
    mixed = compare_files([world / "theirs.tsv", world / "poor.json"], world / "qrels.trec")
    assert mixed.metrics == ("ndcg@10",)
    assert mixed.scores["theirs"]["ndcg@10"] == pytest.approx(
        by_run.scores["good"]["ndcg@10"], abs=1e-4
    )


@pytest.mark.slow
def test_languages_count_the_same_and_each_has_its_row(world):
    files = [world / "good.json", world / "poor.json"]
    comparison = compare_files(files, world / "qrels.trec", queries=world / "queries.tsv")
    assert comparison.languages == ("de", "en")
    each = comparison.intervals["good"]["ndcg@10"]
    assert each.macro.mean == pytest.approx((each.groups["de"].mean + each.groups["en"].mean) / 2)
    text = comparison_text(comparison, languages=True)
    assert "mean over 2 languages, each counting the same" in comparison_caption(comparison)
    assert "ndcg@10 by language" in text


def test_queries_about_one_document_are_drawn_together(world):
    shared = "".join(f"q{n:02d} 0 right{n} 1\nq{n:02d} 0 about{n // 30} 2\n" for n in range(N))
    (world / "shared.trec").write_text(shared)
    comparison = compare_files([world / "good.json", world / "poor.json"], world / "shared.trec")
    assert set(comparison.clusters) == {"about0", "about1"}
    assert "These queries are too few to show a difference of any size" in comparison_caption(
        comparison
    )


def test_a_query_that_is_not_answered_scores_nothing_and_is_counted(world):
    run = json.loads((world / "good.json").read_text())
    del run["q00"], run["q01"]
    (world / "gaps.json").write_text(json.dumps(run))
    comparison = compare_files([world / "gaps.json", world / "poor.json"], world / "qrels.trec")
    assert comparison.unanswered == {"gaps": 2, "poor": 0}
    assert comparison.scores["gaps"]["ndcg@10"][:2].tolist() == [0, 0]
    assert "A query that a system does not answer scores 0" in comparison_caption(comparison)


def test_tasks_of_mteb_take_the_place_of_queries(tmp_path):
    for model, better in (("a", 0.2), ("b", 0.0)):
        (tmp_path / model).mkdir()
        for number in range(12):
            figures = {"hf_subset": "default", "languages": ["eng-Latn"]}
            figures["main_score"] = 0.3 + better + number / 100
            values = {"task_name": f"T{number}", "scores": {"test": [figures]}}
            (tmp_path / model / f"T{number}.json").write_text(json.dumps(values))
    (tmp_path / "b" / "T11.json").unlink()
    comparison = compare_files([tmp_path / "a", tmp_path / "b"])
    assert (comparison.metrics, len(comparison.query_ids)) == (("main_score",), 11)
    assert comparison.standings.ranks == {"a": 1, "b": 2}
    assert comparison.left_out == 1
    assert "11 tasks by language" in str(comparison)


def test_what_cannot_be_compared_is_refused(world, tmp_path):
    good, poor = world / "good.json", world / "poor.json"
    with pytest.raises(InputError, match="answers must come with judgments"):
        compare_files([good, poor])
    with pytest.raises(InputError, match="two or more systems must be given"):
        compare_files([good], world / "qrels.trec")
    with pytest.raises(InputError, match="NAME=FILE names"):
        compare_files([f"x={good}", f"x={good}"], world / "qrels.trec")
    (world / "other.trec").write_text("topic1 0 a 1\n")
    with pytest.raises(InputError, match="must answer queries of the judgments, got q00, q01, q02"):
        compare_files([good, poor], world / "other.trec")
    (world / "one.tsv").write_text("q1\tRR@10\t1\n")
    (world / "two.tsv").write_text("q2\tRR@10\t1\n")
    with pytest.raises(InputError, match="queries in common, got none: q1 and q2"):
        compare_files([world / "one.tsv", world / "two.tsv"])
    with pytest.raises(InputError, match=r"got no ndcg@10; in common are mrr@10"):
        compare_files([world / "one.tsv", f"x={world / 'one.tsv'}"], metrics=["ndcg@10"])


def test_files_of_one_name_are_told_apart_by_their_folders(world):
    for folder in ("ours", "theirs"):
        (world / folder).mkdir()
        (world / folder / "run.json").write_text((world / "good.json").read_text())
    files = [world / folder / "run.json" for folder in ("ours", "theirs")]
    assert compare_files(files, world / "qrels.trec").systems == ("ours/run", "theirs/run")


def test_the_command_prints_a_table_and_writes_all_of_it(world):
    out = world / "comparison.json"
    words = ["compare", world / "good.json", world / "poor.json", "--qrels", world / "qrels.trec"]
    words += ["--queries", world / "queries.tsv", "--by-language", "--out", out]
    done = CliRunner().invoke(searchlab, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    assert "2 systems on 60 queries" in done.output
    assert "ndcg@10 by language" in done.output
    values = json.loads(out.read_text())
    assert [system["system"] for system in values["systems"]] == ["good", "poor"]
    assert values["systems"][1]["p_value"] < 0.01
    assert len(values["queries"]["scores"]["good"]["ndcg@10"]) == N
    assert len(values["systems"][0]["sha256"]) == 64


def test_frames_have_a_row_for_each_system_and_for_each_query(world):
    pytest.importorskip("pandas")
    files = [world / "good.json", world / "poor.json"]
    comparison = compare_files(files, world / "qrels.trec")
    frame = comparison.frame()
    assert frame.index.tolist() == ["good", "poor"]
    assert frame.loc["good", "ndcg@10 low"] <= frame.loc["good", "ndcg@10"]
    queries = comparison.queries_frame()
    assert len(queries) == 2 * N
    assert queries.columns[:4].tolist() == ["system", "query_id", "lang", "about"]
