import io
import json
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from searchlab.config import Config
from searchlab.errors import InputError, NotFoundError
from searchlab.evaluation.promotion import choose
from searchlab.evaluation.reporting.leaderboard import language_rows, leaderboard_columns
from searchlab.evaluation.reporting.reading import reading
from searchlab.evaluation.reporting.terminal import leaderboard_table
from searchlab.evaluation.reports import Report, load_report
from searchlab.evaluation.results import Scores
from searchlab.evaluation.significance import paired_test
from searchlab.evaluation.significance.power import power_of
from tests.support.made_results import GRAPH, MINI, PALETTE, WIDE, result


@pytest.fixture
def report():
    return Report(
        [
            result(PALETTE, shift=0.3),
            result(GRAPH, noise=1, ms=0.2),
            result(MINI, noise=2, ms=9.0),
        ]
    )


def test_systems_that_cannot_be_told_apart_share_a_rank(report):
    assert [{r.name for r in group} for group in report.groups] == [
        {"mini × exact", "mini × hnsw M=16 ef=100"},
        {"palette × exact"},
    ]
    assert sorted(row[0] for row in report.rows()) == ["* 1=", "1=", "2"]


def test_leaderboard_shows_quality_with_intervals_beside_cost(report):
    assert leaderboard_columns(report) == [
        *("rank", "system", "ndcg@10 [95 %]", "success@5 [95 %]", "p", "langs"),
        *("p50 ms", "p95 ms", "text ms", "build s", "MiB"),
    ]
    row = dict(zip(leaderboard_columns(report), report.rows()[2], strict=True))
    interval = report.results[2].intervals["ndcg@10"].macro
    assert row["system"] == "palette × exact"
    assert row["ndcg@10 [95 %]"] == f"{interval.mean:.3f} [{interval.low:.3f}, {interval.high:.3f}]"
    assert (row["langs"], row["p50 ms"], row["p95 ms"], row["MiB"]) == ("2", "1.00", "2.00", "1.0")


def test_an_index_that_no_query_was_answered_by_is_named():
    by_index = replace(result(GRAPH), answered_by={"exact": 3, "graph": 197})
    unused = replace(result(GRAPH), answered_by={"exact": 200})
    exact = replace(result(MINI), answered_by={"exact": 200})
    assert "answered none" not in Report([by_index, exact]).caption
    assert "answered none" not in Report([result(GRAPH), exact]).caption  # not recorded
    assert (
        "so the index of mini × hnsw M=16 ef=100 answered none of these queries: for more photos, "
        "judge it by its recall"
    ) in Report([unused, exact]).caption


def test_text_has_no_colours_and_marks_the_chosen_system_by_a_sign(report):
    text = report.text()
    assert "\x1b" not in text
    assert "* 1=  mini × hnsw M=16 ef=100" in text
    assert text.count("* 1=") == 1
    assert "linear gain" in text
    assert str(report) == text


@pytest.mark.parametrize("width", [80, 120])
def test_report_fits_a_terminal(report, width):
    file = io.StringIO()
    Console(file=file, width=width, color_system=None).print(report)
    lines = file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert any("2  palette × exact" in line for line in lines)
    assert any("* 1=  mini × hnsw M=16" in line for line in lines)


def test_language_table_has_a_row_for_each_language(report):
    rows = language_rows(report)
    assert [row[:2] for row in rows] == [["de", "50"], ["en", "150"]]
    assert all(any(cell.endswith("*") for cell in row[2:]) for row in rows)
    assert "ndcg@10 by language" in report.text(languages=True)


def test_html_is_self_contained_and_escaped():
    page = Report([result(Config(model="onnx:<b>&", model_id="onnx-1"))])._repr_html_()
    assert "onnx:&lt;b&gt;&amp; × exact" in page
    assert "<b>" not in page
    assert "http" not in page
    assert "src=" not in page


def test_markdown_is_a_table(report):
    lines = report.markdown().splitlines()
    assert lines[0] == "**search_quality on demo@r1**"
    assert lines[2].startswith("| rank | system | ndcg@10")
    assert lines[3].startswith("| ---: | :--- | ---: |")
    assert sum(line.startswith("| ") for line in lines) == 5
    assert sum("| \\* 1= | mini × hnsw" in line for line in lines) == 1


def test_configs_of_one_name_are_told_apart_by_their_id():
    report = Report([result(MINI), result(WIDE, noise=1)])
    names = {row[1] for row in report.rows()}
    assert names == {f"mini × exact ({c.config_id[:6]})" for c in (MINI, WIDE)}


def test_choice_is_the_fastest_of_the_best_group(report):
    assert choose(report.groups[0]).config == GRAPH
    assert report.chosen is choose(report.groups[0])


def test_choice_among_equally_fast_ones_is_the_smallest():
    small = result(WIDE, noise=2, ms=1.3, mib=0.5)
    report = Report([result(MINI, noise=1, ms=1.0, mib=2.0), small])
    assert choose(report.groups[0]) is small


def test_a_millisecond_that_words_take_outweighs_no_quality():
    plain, written = result(PALETTE, ms=0.25, shift=0.001), result(MINI, ms=1.45)
    assert choose([plain, written]) is written


@pytest.mark.parametrize(("ms", "most"), [(0.5, 2.5), (5.5, 8.5)])
def test_choice_reaches_up_to_a_half_or_two_milliseconds_more_than_the_least(ms, most):
    """`text_ms` of half a millisecond comes on top: a new query takes 1 ms or 6 ms at least."""
    fastest = result(MINI, ms=ms, mib=2.0)
    small, slower = (result(WIDE, ms=x, mib=0.5) for x in (most, most + 1e-9))
    assert choose([fastest, small]) is small
    assert choose([fastest, slower]) is fastest


def test_choice_ignores_a_faster_system_that_is_worse():
    report = Report([result(MINI, ms=50.0), result(PALETTE, shift=0.3, ms=0.01)])
    assert report.chosen.config == MINI


def test_choice_from_nothing_is_refused():
    with pytest.raises(InputError, match="at least one result, got none"):
        choose([])


def test_report_keeps_to_comparable_results():
    with pytest.raises(InputError, match="one dataset, revision"):
        Report([result(MINI), result(GRAPH, revision="r2")])
    with pytest.raises(InputError, match="each config once"):
        Report([result(MINI), result(MINI)])
    with pytest.raises(InputError, match="one dataset, revision"):
        Report([])


@pytest.mark.parametrize("surroundings", [{"code": "0.0.9+1"}, {"machine": "a slow one"}])
def test_results_of_other_code_or_of_another_machine_are_not_put_side_by_side(surroundings):
    with pytest.raises(InputError, match="code and machine"):
        Report([result(MINI), result(GRAPH, **surroundings)])


def test_saved_results_make_the_same_report(report, tmp_path):
    for one in report.results:
        one.save(tmp_path)
    loaded = load_report(tmp_path / "search_quality" / "demo")
    assert loaded.text() == report.text()
    assert "over all pairs, 5 %)" in report.caption
    assert "(power 80 %)" in report.caption


def test_report_of_a_folder_leaves_out_older_data(tmp_path):
    result(MINI, revision="r1", date="2026-01-01").save(tmp_path)
    result(PALETTE, revision="r2", date="2026-02-01").save(tmp_path)
    loaded = load_report(tmp_path / "search_quality" / "demo")
    assert [one.config for one in loaded.results] == [PALETTE]
    assert "other data, code or machines: 1, left out" in loaded.caption


@pytest.mark.parametrize("surroundings", [{"code": "0.0.9+1"}, {"machine": "a slow one"}])
def test_report_of_a_folder_is_of_one_code_and_machine_and_says_so(tmp_path, surroundings):
    result(MINI, **surroundings).save(tmp_path)
    result(GRAPH, date="2026-02-01").save(tmp_path)
    result(PALETTE, date="2026-02-02").save(tmp_path)
    loaded = load_report(tmp_path / "search_quality" / "demo")
    assert {one.config for one in loaded.results} == {GRAPH, PALETTE}
    assert "other data, code or machines: 1, left out" in loaded.caption


def test_p_values_are_those_against_the_leader_with_holms_correction(report):
    leader, second, third = report.results
    scores = leader.scores
    labels = {"groups": scores.langs, "clusters": scores.cluster_ids}
    raw = [
        paired_test(scores.values["ndcg@10"], other.scores.values["ndcg@10"], **labels)
        for other in (second, third)
    ]
    assert report.p_values[second.config_id] == min(1, 2 * raw[0])
    assert report.p_values[third.config_id] == 3 * raw[1]
    shown = {row[1]: row[leaderboard_columns(report).index("p")] for row in report.rows()}
    assert shown[leader.name] == "-"
    assert shown["palette × exact"] == "<0.001"


def test_caption_says_which_differences_cannot_be_seen(report):
    leader, second, _ = report.results
    scores = leader.scores
    power = power_of(
        scores.values["ndcg@10"],
        second.scores.values["ndcg@10"],
        groups=scores.langs,
        clusters=scores.cluster_ids,
        alpha=0.05 / 3,  # any of the three pairs could be the one that differs
    )
    assert report.detectable == (power.detectable, power.detectable)
    assert f"below {power.detectable:.3f} are often missed" in report.caption


@pytest.mark.parametrize(
    ("metric", "gain"),
    [("ndcg@10", "linear gain in ndcg."), ("ndcg_exp@10", "gain 2^grade - 1 in ndcg_exp.")],
)
def test_caption_states_the_gain_of_the_metrics_that_have_one(metric, gain):
    one = result(MINI)
    named = {metric: one.intervals["ndcg@10"], "success@5": one.intervals["success@5"]}
    caption = Report([replace(one, intervals=named, scores=_named(one.scores, metric))]).caption
    assert gain in caption
    assert caption.count(" gain ") == 1


def _named(scores, metric):
    return replace(scores, values={metric: scores.values["ndcg@10"]})


def test_caption_says_nothing_of_power_where_there_is_nothing_to_compare():
    assert "missed" not in Report([result(MINI)]).caption
    assert "missed" not in Report([result(MINI), result(WIDE)]).caption


def test_a_report_is_plain_values_and_a_frame(report):
    values = json.loads(json.dumps(report.to_dict()))
    assert [system["rank"] for system in values["systems"]] == [1, 1, 2]
    assert [system["is_chosen"] for system in values["systems"]].count(True) == 1
    assert values["systems"][0]["p_value"] is None
    frame = report.frame()
    assert list(frame.index) == [one.name for one in report.results]
    interval = report.results[2].intervals["ndcg@10"].macro
    row = frame.loc["palette × exact"]
    assert (row["ndcg@10"], row["ndcg@10 low"], row["ndcg@10 high"]) == interval
    assert row["p50_ms"] == 1.0


def test_a_narrow_leaderboard_explains_only_the_columns_that_it_shows(report):
    wide, narrow = leaderboard_table(report).caption, leaderboard_table(report, narrow=True).caption
    assert "p is that against the very first" in wide
    assert "build s" in wide
    assert "p is that" not in narrow
    assert "build s" not in narrow
    assert "MiB: of the index alone" in narrow


def test_queries_that_can_show_nothing_are_said_to_be_too_few():
    few = ("q000", "q001"), ("de", "en"), ("p0", "p1")
    made = []
    for config, shift in ((MINI, 0.0), (PALETTE, 0.1)):
        one = result(config, shift=shift)
        values = {name: column[:2] for name, column in one.scores.values.items()}
        values["ndcg@10"] = np.array([0.9 - shift, 0.8 - 2 * shift])
        made.append(replace(one, scores=Scores(*few, values, one.scores.ms[:2])))
    report = Report(made)
    assert "too few to show a difference of any size" in report.caption
    assert "no difference of any size" in " ".join(reading(report))
    assert "inf" not in report.caption + " ".join(reading(report))


def test_the_caption_of_one_system_compares_nothing():
    caption = Report([result(MINI)]).caption
    assert "cannot be told apart" not in caption
    assert "the one to serve" not in caption


def test_caption_is_silent_where_nothing_was_left_out(report):
    assert "left out" not in report.caption


def test_empty_folder_is_refused(tmp_path):
    with pytest.raises(NotFoundError, match="must hold results, got none"):
        load_report(tmp_path)
