"""Two results query by query."""

import numpy as np
import pytest

from searchlab.errors import InputError, MismatchError
from searchlab.evaluation.reporting.diff import compare
from searchlab.evaluation.reporting.diff_page import diff_page
from searchlab.evaluation.reporting.pictures import Pictures
from searchlab.evaluation.reports import Report
from searchlab.evaluation.results import load_result, read_run_beside
from searchlab.evaluation.significance import bootstrap_interval, paired_test
from tests.support.made_results import ABOUT, LANGS, MINI, PALETTE, WIDE, N, result


def changed(**by_place):
    """Two results that are alike but for some queries: place -> change of the score."""
    before, after = result(MINI), result(PALETTE)
    for place, change in by_place.items():
        after.scores.values["ndcg@10"][int(place[1:])] += change
    return before, after


def test_counts_and_order_are_those_of_a_list_comprehension():
    before, after = result(MINI), result(PALETTE, shift=0.05, noise=3)
    diff = compare(before, after)
    a, b = before.scores.values["ndcg@10"], after.scores.values["ndcg@10"]
    assert diff.whole.wins == sum(y > x for x, y in zip(a, b, strict=True))
    assert diff.whole.losses == sum(y < x for x, y in zip(a, b, strict=True))
    assert diff.whole.ties == N - diff.whole.wins - diff.whole.losses
    worst = sorted(range(N), key=lambda n: round(b[n] - a[n], 9))
    assert [change.query_id for change in diff.regressions[:5]] == [f"q{n:03}" for n in worst[:5]]
    best = max(range(N), key=lambda n: b[n] - a[n])
    assert diff.improvements[0].query_id == f"q{best:03}"
    apart = [round(change.difference, 9) for change in diff.changes]
    assert apart == sorted(apart)


def test_difference_interval_and_p_value_are_those_of_the_paired_methods():
    before, after = result(MINI), result(PALETTE, shift=0.05, noise=3)
    diff = compare(before, after)
    a, b = before.scores.values["ndcg@10"], after.scores.values["ndcg@10"]
    labels = {"groups": LANGS, "clusters": ABOUT}
    assert diff.whole.difference == bootstrap_interval(b - a, **labels)
    assert diff.whole.p_value == paired_test(b, a, **labels)
    assert diff.power.difference == pytest.approx(diff.whole.difference.mean)
    german = np.array(LANGS) == "de"
    assert diff.languages["de"].difference.mean == pytest.approx((b - a)[german].mean())
    assert sum(tally.n_queries for tally in diff.languages.values()) == N


def test_the_seed_draws_the_tests_of_the_languages_too():
    before, after = result(MINI), result(PALETTE, shift=0.008, noise=3)
    one, other = (compare(before, after, seed=seed).languages["en"].p_value for seed in (0, 1))
    assert one != other
    assert one == pytest.approx(other, abs=0.05)


def test_a_change_in_one_language_is_told_there_alone():
    german = [n for n in range(N) if LANGS[n] == "de"]
    diff = compare(*changed(**{f"q{n}": -0.2 for n in german}))
    assert (diff.languages["de"].losses, diff.languages["de"].ties) == (50, 0)
    assert diff.languages["de"].p_value < 0.05
    assert diff.languages["en"].ties == 150
    assert diff.languages["en"].p_value == 1.0
    assert "languages that differ: de -0.200 (of 2)" in diff.text()


def test_worst_regressions_come_first_and_ties_by_name():
    diff = compare(*changed(q7=-0.3, q5=-0.3, q11=-0.9, q20=0.4))
    assert [change.query_id for change in diff.regressions] == ["q011", "q005", "q007"]
    assert [change.query_id for change in diff.improvements] == ["q020"]
    assert diff.text(most=1).count(" -> ") == 1


def test_equal_results_have_neither_wins_nor_power():
    diff = compare(*changed())
    assert (diff.whole.wins, diff.whole.ties, diff.whole.losses) == (0, N, 0)
    assert diff.power is None
    assert diff.whole.p_value == 1.0
    assert diff.verdict.endswith("score the same ndcg@10 on every query")
    assert "0 won" in diff._repr_html_()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"revision": "r2"}, "revision r1 and r2"),
        ({"code": "0.0.9+1"}, "code"),
    ],
)
def test_results_that_cannot_be_compared_are_refused_with_the_reason(change, reason):
    with pytest.raises(MismatchError, match=reason):
        compare(result(MINI), result(PALETTE, **change))


def test_another_machine_is_no_reason():
    compare(result(MINI), result(PALETTE, machine="a slow one"))


def test_an_unknown_metric_is_refused():
    with pytest.raises(InputError, match="metric must be one of ndcg@10, success@5, got 'map'"):
        compare(result(MINI), result(PALETTE), metric="map")


def test_a_diff_is_plain_values_and_a_frame():
    diff = compare(*changed(q7=-0.3, q20=0.4))
    values = diff.to_dict()
    assert [change[0] for change in values["changes"]] == ["q007", "q020"]
    assert (values["whole"]["wins"], values["whole"]["losses"]) == (1, 1)
    frame = diff.frame()
    assert len(frame) == N
    assert frame.index[0] == "q007"
    assert frame.loc["q007", "difference"] == pytest.approx(-0.3)


@pytest.mark.slow
def test_the_page_shows_rankings_and_says_what_is_not_at_hand():
    before, after = changed(q7=-0.3)
    bare = compare(before, after)._repr_html_()
    assert "There are no pictures" in bare
    assert "There are no rankings" in bare
    runs = {"q007": ["x1", "x2"]}, {"q007": ["<x3>"]}
    page = diff_page(compare(before, after, *runs, pictures=Pictures()))
    assert "There are no rankings" not in page
    assert page.index("x1") < page.index("&lt;x3&gt;")
    assert "<x3>" not in page
    assert "http" not in page
    assert page.startswith("<!doctype html>")


def test_the_text_and_the_page_say_which_data_was_asked_and_when():
    diff = compare(*changed(q7=-0.3))
    origin = "search_quality on demo@r1, 200 queries, measured 2026-01-01"
    assert diff.text().splitlines()[0] == origin
    assert origin in diff_page(diff)


def test_two_configurations_of_one_name_are_told_apart():
    diff = compare(result(MINI), result(WIDE, shift=0.3))
    assert diff.names[0] == f"mini × exact ({MINI.config_id[:6]})"
    assert diff.names[1] == f"mini × exact ({WIDE.config_id[:6]})"
    assert f"{diff.names[1]} is worse than {diff.names[0]}" in diff.verdict


def test_a_diff_and_a_report_are_one_line_in_a_plain_console():
    diff = compare(result(MINI), result(PALETTE, shift=0.3))
    assert repr(diff) == f"Diff({diff.verdict!r})"
    report = Report([diff.a, diff.b])
    assert repr(report) == "Report('search_quality on demo@r1', 2 systems, chosen 'mini × exact')"


def test_no_p_value_is_printed_as_zero():
    page = compare(result(MINI), result(PALETTE, shift=0.3))._repr_html_()
    assert "&lt;0.001" in page
    assert ">0.000<" not in page


def test_a_run_is_found_beside_its_result(tmp_path):
    one = result(MINI)
    path = one.save(tmp_path, run={"q000": [("b", 0.75), ("a", 0.25)]})
    assert read_run_beside(path) == {"q000": ["b", "a"]}
    assert compare(load_result(path), one).whole.ties == N
    assert read_run_beside(tmp_path / "none.json") == {}


def test_a_report_is_no_result():
    report = Report([result(MINI)])
    with pytest.raises(InputError, match=r"a must be a result, such as report.results\[0\]"):
        compare(report, report)
