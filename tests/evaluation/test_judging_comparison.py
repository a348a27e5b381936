"""Two systems compared side by side by somebody who does not know which is which."""

import pytest

from searchlab.errors import ConflictError, InputError, MismatchError
from searchlab.evaluation.datasets import LabelledQuery
from searchlab.evaluation.judging.preferences import BlindComparison
from tests.support import judging_world
from tests.support.judging_world import IDS, RUNS, picture, press

dataset = judging_world.dataset


def compare(dataset, path, *, n_queries=40, seed=0, **changes):
    queries = tuple(
        LabelledQuery(f"q{n:02d}", "en", "written", f"query {n}") for n in range(n_queries)
    )
    grown = dataset.derive("many", queries, {query.query_id: {IDS["a"]: 1} for query in queries})
    runs = {
        "good": {query.query_id: [IDS["a"], IDS["b"]] for query in queries},
        "bad": {query.query_id: [IDS["c"], IDS["d"]] for query in queries},
    }
    runs["bad"]["q00"] = runs["good"]["q00"]
    return BlindComparison(grown, runs, path, judge="ann", pictures=picture, seed=seed, **changes)


def side_of(ab, name):
    """Find by the pictures which side shows photo `name` first, as a judge would."""
    sides = ab.view()["scene"]["sides"]
    return ("left", "right")[[side[0] for side in sides].index(picture(IDS[name]))]


def test_who_prefers_one_system_by_its_pictures_names_it_whatever_side_it_is_on(dataset, tmp_path):
    ab = compare(dataset, tmp_path / "ab")
    chosen = []
    while ab.current is not None:
        chosen.append(side_of(ab, "a"))
        press(ab.widget, do="choose", choice=chosen[-1])
    outcome = ab.outcome()
    assert (outcome.systems, outcome.wins, outcome.ties, outcome.n_same) == (
        ("good", "bad"),
        (39, 0),
        0,
        1,
    )
    assert outcome.n_left == chosen.count("left")
    assert abs(chosen.count("left") - chosen.count("right")) == 1  # as often left as right, of 39
    assert outcome.share.low > 0.9
    assert outcome.p_value == pytest.approx(2 / 2**39)


def test_a_judge_who_always_takes_the_left_shows_no_difference(dataset, tmp_path):
    ab = compare(dataset, tmp_path / "ab")
    while ab.current is not None:
        ab.choose("left")
    outcome = ab.outcome()
    assert (outcome.n_left, sum(outcome.wins)) == (39, 39)
    assert outcome.p_value == 1
    assert "no difference that this many can show" in str(outcome)


def test_ties_count_half_in_the_share_and_nothing_in_the_test(dataset, tmp_path):
    ab = compare(dataset, tmp_path / "ab", n_queries=11)
    ab.choose(side_of(ab, "a"))
    ab.skip()
    while ab.current is not None:
        ab.choose("tie")
    outcome = ab.outcome()
    assert (outcome.wins, outcome.ties) == ((1, 0), 8)
    assert outcome.share.mean == pytest.approx(5 / 9)
    assert outcome.p_value == 1


def test_nothing_is_unblinded_before_the_end(dataset, tmp_path):
    ab = compare(dataset, tmp_path / "ab")
    ab.choose("left")
    with pytest.raises(ConflictError, match="must be finished first, got 38 left"):
        ab.outcome()
    seen = repr(ab.view()) + ab._repr_html_() + ab.journal.path.read_text() + str(ab)
    assert "good" not in seen
    assert "bad" not in seen
    assert sum(ab.outcome(early=True).wins) == 1


def test_sides_are_the_same_again_with_the_same_seed_alone(dataset, tmp_path):
    one, same = compare(dataset, tmp_path / "ab"), compare(dataset, tmp_path / "ab")
    assert one.view() == same.view()
    with pytest.raises(MismatchError, match="must hold preferences"):
        compare(dataset, tmp_path / "ab", seed=1)


def test_a_comparison_of_other_than_two_unlike_runs_is_refused(dataset, tmp_path):
    for runs, message in (
        ({"one": RUNS["qqq-one"]}, "of two runs, got 1"),
        ({"a": RUNS["qqq-one"], "b": RUNS["qqq-one"]}, "must differ"),
    ):
        with pytest.raises(InputError, match=message):
            BlindComparison(dataset, runs, tmp_path / "ab", judge="ann", pictures=picture)
    with pytest.raises(InputError, match="must have a preference, got none"):
        compare(dataset, tmp_path / "ab").outcome(early=True)
