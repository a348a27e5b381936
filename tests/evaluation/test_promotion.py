"""What may be put in force, on which evidence, and what is refused."""

import json
from dataclasses import replace

import pytest

from searchlab.config import Config
from searchlab.errors import ConflictError, DataError
from searchlab.evaluation import promotion
from searchlab.evaluation.promotion import compare_with_current, promote
from searchlab.evaluation.provenance.measurement import read_measurement
from searchlab.evaluation.provenance.registry import code_of
from searchlab.evaluation.reports import Report
from searchlab.evaluation.results import Scores
from searchlab.evaluation.significance import Interval
from searchlab.files import digest_of
from tests.support.made_results import GRAPH, MINI, PALETTE, WIDE, result


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results" / "chosen.json"


def in_force(path, one, **kwargs):
    """Put a result in force whose file lies where its evidence says."""
    one.save(path.parent)
    return promote(one, path, force=True, **kwargs)


def test_promotion_writes_the_config_and_its_evidence(path):
    report = Report(
        [result(PALETTE, shift=0.3), result(GRAPH, noise=1, ms=0.2), result(MINI, ms=9)]
    )
    for one in report.results:
        one.save(path.parent)
    assert report.promote(path) == path
    values = read_measurement(path)
    assert Config.load(path) == GRAPH
    assert (values["config_id"], values["system"]) == (GRAPH.config_id, report.chosen.name)
    assert (values["dataset"], values["dataset_revision"]) == ("demo", "r1")
    assert values["metrics"]["p50_ms"] == 0.2
    assert len(values["intervals"]["ndcg@10"]) == 3
    assert values["manifest"]["code"] == code_of("promotion")
    evidence = values["evidence"]
    assert (evidence["headline"], evidence["n_queries"], evidence["n_about"]) == (
        *("ndcg@10", 200),
        100,
    )
    assert evidence["languages"] == ["de", "en"]
    assert [tied["system"] for tied in evidence["tied_with"]] == ["mini × exact"]
    assert evidence["replaced"] is None
    source = path.parent / evidence["result"]["path"]
    assert source == report.chosen.path(path.parent)
    assert read_measurement(source)["digest"] == evidence["result"]["digest"]


def test_evidence_that_lies_nowhere_is_not_named(path):
    promote(result(MINI), path)
    assert read_measurement(path)["evidence"]["result"] is None


@pytest.mark.parametrize("evidence", ["the result file", "the report", "intervals alone"])
def test_a_worse_config_is_refused_unless_forced(path, evidence):
    """Evidence may lie in the file it names, in the same report, or in chosen.json alone."""
    best, worse = result(MINI), result(PALETTE, shift=0.4)
    if evidence == "the result file":
        in_force(path, best)
    else:
        promote(best, path)
    measured = [best, worse] if evidence == "the report" else []
    before = path.read_bytes()
    with pytest.raises(ConflictError, match=r"palette × exact against mini × exact in force"):
        promote(worse, path, measured=measured)
    assert path.read_bytes() == before
    promote(worse, path, measured=measured, force=True)
    assert Config.load(path) == PALETTE
    replaced = read_measurement(path)["evidence"]["replaced"]
    assert (replaced["is_worse"], replaced["forced"]) == (True, True)
    assert (replaced["p_value"] is None) == (evidence == "intervals alone")


def test_a_difference_that_only_the_paired_test_sees_is_refused_too(path):
    """The intervals overlap widely; query by query the new one is a little worse throughout."""
    best, worse = result(MINI), result(WIDE, shift=0.02)
    in_force(path, best)
    assert worse.intervals["ndcg@10"].macro.high > best.intervals["ndcg@10"].macro.mean
    with pytest.raises(ConflictError, match=r"differs by -0\.0.*p = 0\.0001"):
        promote(worse, path)
    standing = compare_with_current(worse, path)
    assert standing.is_worse
    assert standing.difference.high < 0


@pytest.mark.parametrize(("p_value", "is_worse"), [(0.001, True), (0.049, True), (0.05, False)])
def test_the_p_value_decides_where_the_interval_of_the_difference_holds_zero(
    path, monkeypatch, p_value, is_worse
):
    in_force(path, result(MINI))
    near = result(WIDE, shift=0.02)
    monkeypatch.setattr(promotion, "paired_test", lambda *_, **__: p_value)
    wide = lambda *_, **__: Interval(-0.01, -0.03, 0.01)  # noqa: E731
    monkeypatch.setattr(promotion, "bootstrap_interval", wide)
    assert compare_with_current(near, path).is_worse is is_worse


@pytest.mark.parametrize("n_queries", [1, 3, 4])
def test_a_handful_of_queries_shows_nothing_to_be_worse(path, n_queries):
    def first_of(one):
        few, scores = slice(n_queries), one.scores
        values = {name: column[few] for name, column in scores.values.items()}
        ids = scores.query_ids[few]
        return replace(one, scores=Scores(ids, scores.langs[few], ids, values, scores.ms[few]))

    best, lower = first_of(result(MINI)), first_of(result(PALETTE, shift=0.4))
    in_force(path, best)
    standing = compare_with_current(lower, path, measured=[best])
    assert standing.difference.mean < -0.2
    assert standing.is_worse is False


def test_by_intervals_alone_only_what_lies_wholly_below_is_worse(path):
    best, lower = result(MINI), result(PALETTE, shift=0.06)
    promote(best, path)
    best_interval, lower_interval = (one.intervals["ndcg@10"].macro for one in (best, lower))
    assert lower_interval.mean < best_interval.low < lower_interval.high
    assert compare_with_current(lower, path).is_worse is False


def test_intervals_that_touch_do_not_tell_two_configurations_apart(path):
    promote(result(MINI), path)
    lower = result(PALETTE, shift=0.2)
    values = json.loads(path.read_text(encoding="utf-8"))
    end = lower.intervals["ndcg@10"].macro.high
    for low, is_worse in ((end, False), (end + 1e-6, True)):
        values["intervals"]["ndcg@10"] = [low + 0.1, low, low + 0.2]
        path.write_text(json.dumps({**values, "digest": digest_of(values)}), encoding="utf-8")
        assert compare_with_current(lower, path).is_worse is is_worse


def test_intervals_over_other_queries_cannot_be_compared(path):
    promote(result(MINI), path)
    values = json.loads(path.read_text(encoding="utf-8"))
    values["evidence"]["n_queries"] = 5
    path.write_text(json.dumps({**values, "digest": digest_of(values)}), encoding="utf-8")
    assert compare_with_current(result(PALETTE, shift=0.06), path).reason == "queries 5 and 200"


def test_what_is_better_or_cannot_be_told_apart_replaces_what_is_in_force(path):
    in_force(path, result(PALETTE, shift=0.4))
    promote(result(MINI, noise=2), path)
    assert Config.load(path) == MINI
    assert read_measurement(path)["evidence"]["replaced"]["is_worse"] is False
    in_force(path, result(MINI, noise=2))
    promote(result(GRAPH, noise=1), path)
    assert Config.load(path) == GRAPH


def test_the_same_config_measured_again_replaces_itself(path):
    in_force(path, result(MINI))
    promote(result(MINI, shift=0.4, revision="r2"), path)
    assert read_measurement(path)["dataset_revision"] == "r2"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"revision": "r2"}, "revision r1 and r2"),
        ({"code": "0.0.9+1"}, r"code \d.* and 0\.0\.9\+1"),
    ],
)
@pytest.mark.parametrize("saved", [True, False])
def test_evidence_that_cannot_be_compared_needs_force(path, change, reason, saved):
    if saved:
        in_force(path, result(MINI))
    else:
        promote(result(MINI), path)
    other = result(GRAPH, noise=1, **change)
    with pytest.raises(ConflictError, match=f"cannot be compared .{reason}"):
        promote(other, path)
    promote(other, path, replace_unlike=True)
    assert Config.load(path) == GRAPH
    in_force(path, result(MINI))
    promote(other, path, force=True)
    assert Config.load(path) == GRAPH


def test_another_machine_is_no_reason_as_quality_does_not_depend_on_it(path):
    in_force(path, result(MINI, machine="a slow one"))
    standing = compare_with_current(result(WIDE, shift=0.02), path)
    assert standing.p_value is not None  # query by query, not by intervals alone
    promote(result(GRAPH, noise=1), path)
    assert Config.load(path) == GRAPH


def test_what_is_in_force_is_compared_as_it_was_measured_beside_the_new_one(path):
    """Older evidence is no obstacle where the report has both."""
    in_force(path, result(MINI, code="0.0.9+1"))
    both = [result(MINI), result(GRAPH, noise=1)]
    assert promote(both[1], path, measured=both) == path
    in_force(path, result(MINI, code="0.0.9+1"))
    worse = [result(MINI), result(GRAPH, shift=0.3)]
    with pytest.raises(ConflictError, match="worse config"):
        promote(worse[1], path, measured=worse)


def test_evidence_changed_by_hand_is_no_evidence(path):
    in_force(path, result(MINI))
    values = json.loads(path.read_text(encoding="utf-8"))
    values["intervals"]["ndcg@10"] = [0.0, 0.0, 0.0]
    path.write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(ConflictError, match=r"its evidence cannot be read: .*changed after"):
        promote(result(GRAPH, noise=1), path)


@pytest.mark.parametrize("evidence", [None, [], {}, {"result": {"path": "x"}}, {"result": 3}])
def test_evidence_of_another_form_is_no_evidence(path, evidence):
    in_force(path, result(MINI))
    values = json.loads(path.read_text(encoding="utf-8")) | {"evidence": evidence}
    (path.parent / "x").write_text(result(MINI).path(path.parent).read_text(encoding="utf-8"))
    path.write_text(json.dumps({**values, "digest": digest_of(values)}), encoding="utf-8")
    with pytest.raises(ConflictError, match="its evidence "):
        promote(result(GRAPH, noise=1), path)


def test_a_result_file_that_was_replaced_is_not_the_evidence(path):
    """Measured again since: the intervals on record still count, the other file does not."""
    best = result(MINI)
    in_force(path, best)
    result(MINI, shift=0.5, revision="r9").save(path.parent)
    with pytest.raises(ConflictError, match=r"ndcg@10 is .* against"):
        promote(result(PALETTE, shift=0.4), path)


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "something else"}',
        "no json",
        "[]",
        '{"config": {"index": "tree"}}',
    ],
)
def test_promotion_over_another_file_is_refused(path, text):
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match="must hold a chosen config"):
        promote(result(MINI), path)
    assert path.read_text(encoding="utf-8") == text
    promote(result(MINI), path, force=True)
    assert Config.load(path) == MINI


def test_promotion_over_a_result_is_refused(path):
    one = result(GRAPH)
    with pytest.raises(DataError, match="a measurement of search_quality"):
        promote(result(MINI), one.save(path.parent))


def test_a_config_of_an_older_version_without_evidence_needs_force(path):
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"config": PALETTE.to_dict(), "name": "old"}), encoding="utf-8")
    with pytest.raises(ConflictError, match="got evidence for old that cannot be compared"):
        promote(result(MINI), path)
    promote(result(MINI), path, replace_unlike=True)


def test_a_promotion_is_sealed(path):
    promote(result(MINI), path)
    values = json.loads(path.read_text(encoding="utf-8"))
    assert values["digest"] == digest_of(values)
    assert [other.name for other in path.parent.iterdir()] == ["chosen.json"]
