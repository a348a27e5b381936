import base64
import html
import io
import json

import numpy as np
import pytest
from PIL import Image

from searchlab.errors import ConflictError, InputError, MismatchError
from searchlab.evaluation.datasets import Dataset, LabelledQuery
from searchlab.evaluation.judging.agreement import agreement
from searchlab.evaluation.judging.grading import Grading
from searchlab.evaluation.judging.merge import (
    build_judged_dataset,
    merge_grades,
    missed,
    read_grades,
)
from searchlab.evaluation.judging.pools import Pair, pool_runs
from searchlab.evaluation.judging.preferences import BlindComparison
from searchlab.evaluation.judging.simulated import simulate_judge
from searchlab.evaluation.judging.widget import JudgingWidget
from searchlab.evaluation.metrics import per_query
from searchlab.photos.photo import photo_id_of

NAMES = "abcdefgh"
IDS = {name: photo_id_of("shelf", name) for name in NAMES}
TEXTS = {"dunes": ("en", "<b>dunes</b>"), "qasr": ("ar", "قصر"), "meer": ("de", "Meer")}


def picture(photo_id):
    """A picture of each photo's own colour, so that one can tell what is shown."""
    file = io.BytesIO()
    Image.new("RGB", (60, 40), (NAMES.index(name_of(photo_id)) * 30, 90, 120)).save(file, "WEBP")
    return file.getvalue()


def name_of(photo_id):
    return next(name for name, known in IDS.items() if known == photo_id)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return Dataset(
        name="shelf",
        revision="0" * 12,
        folder=tmp_path_factory.mktemp("shelf"),
        photos=None,
        queries=tuple(LabelledQuery(i, lang, "written", text) for i, (lang, text) in TEXTS.items()),
        qrels={query_id: {IDS["a"]: 1} for query_id in TEXTS},
        records=tuple({"file": name, "source": "shelf", "source_photo_id": name} for name in NAMES),
    )


def run_of(**answers):
    return {query_id: [IDS[name] for name in names] for query_id, names in answers.items()}


RUNS = {
    "qqq-one": run_of(dunes="abc", qasr="abc", meer="abc"),
    "qqq-other": run_of(dunes="cde", qasr="fgh", meer="abc"),
}


@pytest.fixture
def pool(dataset):
    return pool_runs(dataset, RUNS, depth=3)


@pytest.fixture
def grading(pool, tmp_path):
    return Grading(pool, tmp_path / "ann.jsonl", judge="ann", pictures=picture)


def press(widget, **message):
    """Send what the browser sends when a key is pressed or a button clicked."""
    widget._handle_custom_msg({"number": widget.view["number"], **message}, [])


# -- grading ----------------------------------------------------------------------------------


def test_each_grade_is_on_disk_before_the_next_photo_is_shown(grading):
    first = grading.current
    grading.choose(2)
    (line,) = grading.journal.path.read_text().splitlines()[1:]
    assert json.loads(line)["item"] == list(first)
    assert json.loads(line)["choice"] == 2
    assert grading.current == grading.items[1]


def test_a_session_goes_on_where_it_ended(pool, grading, tmp_path):
    for grade in (3, 0, 1):
        grading.choose(grade)
    again = Grading(pool, tmp_path / "ann.jsonl", judge="ann", pictures=picture)
    assert (again.n_done, again.number) == (3, 3)
    assert list(again.grades.values()) == [3, 0, 1]
    assert again.grades == {Pair(*item): g for item, g in zip(pool.pairs, (3, 0, 1), strict=False)}


def test_undo_shows_what_it_takes_back(grading):
    grading.choose(3)
    grading.choose(1)
    grading.undo()
    assert grading.current == grading.items[1]
    assert grading.grades == {Pair(*grading.items[0]): 3}
    grading.undo()
    grading.undo()
    assert (grading.number, grading.grades) == (0, {})


def test_looking_back_and_grading_again_replaces(grading):
    grading.choose(3)
    grading.choose(3)
    grading.move(-2)
    assert grading.view()["chosen"] == 3
    grading.choose(0)
    assert list(grading.grades.values()) == [0, 3]
    assert grading.number == 2  # not back to what is judged already


def test_moving_stops_at_both_ends(grading):
    grading.move(-5)
    assert grading.number == 0
    grading.move(1000)
    assert grading.current is None
    assert grading.view()["scene"] is None
    grading.move(-1)
    assert grading.current == grading.items[-1]


def test_what_was_skipped_is_done_but_not_judged(grading, pool):
    grading.skip()
    for _ in range(len(pool) - 1):
        grading.choose(0)
    assert grading.is_done
    assert grading.current is None
    assert len(grading.grades) == len(pool) - 1
    assert "1 skipped" in str(grading)


@pytest.mark.parametrize("choice", [4, -1, "2", 1.0, True, [], "left"])
def test_what_is_no_grade_is_refused_and_not_written(grading, choice):
    before = grading.journal.path.read_bytes()
    with pytest.raises(InputError, match="a choice must be one of 0, 1, 2, 3"):
        grading.choose(choice)
    assert grading.journal.path.read_bytes() == before


def test_a_judge_sees_query_and_picture_and_never_a_system_a_rank_or_an_id(grading):
    seen = repr(grading.view()) + grading._repr_html_()
    for secret in ("qqq", *IDS.values()):
        assert secret not in seen
    scene = grading.view()["scene"]
    assert scene["sides"] == [[picture(grading.current[1])]]


def test_a_journal_of_another_pool_is_refused(dataset, grading, tmp_path):
    other = pool_runs(dataset, RUNS, depth=2)
    with pytest.raises(MismatchError, match="pool the same runs with the same seed to go on"):
        Grading(other, tmp_path / "ann.jsonl", judge="ann", pictures=picture)


# -- the widget -------------------------------------------------------------------------------


def test_keys_grade_skip_undo_and_move(grading):
    widget = grading.widget
    press(widget, do="choose", choice=3)
    press(widget, do="skip")
    assert (widget.view["done"], widget.view["skipped"], widget.view["number"]) == (2, 1, 2)
    press(widget, do="undo")
    assert widget.view["number"] == 1
    press(widget, do="back")
    assert (widget.view["number"], widget.view["chosen"], widget.view["judged"]) == (0, 3, True)
    press(widget, do="next")
    assert widget.view["number"] == 1
    assert widget.problem == ""


def test_a_key_pressed_twice_does_not_grade_the_photo_that_nobody_has_seen(grading):
    widget = grading.widget
    number = widget.view["number"]
    for _ in range(2):
        widget._handle_custom_msg({"do": "choose", "choice": 3, "number": number}, [])
    assert len(grading.grades) == 1
    widget._handle_custom_msg({"do": "skip", "number": number}, [])
    assert grading.n_skipped == 0


@pytest.mark.parametrize(
    "message", [{}, {"do": "drop"}, {"do": "choose", "choice": 9}, "text", None]
)
def test_a_message_that_means_nothing_is_told_to_the_judge(grading, message):
    widget = grading.widget
    if isinstance(message, dict):
        message = {**message, "number": 0}
    widget._handle_custom_msg(message, [])
    assert widget.problem.startswith("not recorded: ")
    assert grading.grades == {}


def test_a_grade_that_cannot_be_written_is_told_and_does_not_count(grading, monkeypatch):
    def full(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    widget = grading.widget
    monkeypatch.setattr("searchlab.evaluation.judging.journal._append", full)
    press(widget, do="choose", choice=3)
    assert "No space left on device" in widget.problem
    assert (grading.grades, widget.view["number"]) == ({}, 0)
    monkeypatch.undo()
    press(widget, do="choose", choice=3)
    assert widget.problem == ""
    assert len(grading.grades) == 1


def test_the_same_session_has_one_widget(grading):
    assert grading.widget is grading.widget


def test_the_widget_needs_nothing_from_elsewhere(grading):
    widget = grading.widget
    assert isinstance(widget, JudgingWidget)
    for text in (widget._esm, widget._css):
        assert "http" not in text
        assert "import " not in text
    assert "innerHTML" not in widget._esm


def test_where_no_widget_lives_a_sheet_and_a_line_say_how_far_one_is(grading):
    grading.choose(2)
    sheet = grading._repr_html_()
    assert "1 of 14" in sheet
    assert "2 relevant" in sheet
    assert "to judge" in sheet
    assert html.escape("<b>dunes</b>") in sheet
    assert "<b>dunes</b>" not in sheet
    assert 'lang="ar" dir="auto">قصر' in sheet
    pictures = sheet.split("base64,")[1:]
    decoded = base64.b64decode(pictures[0].split('"')[0])
    assert Image.open(io.BytesIO(decoded)).size == (60, 40)
    data = grading.widget._repr_mimebundle_()
    bundle = data[0] if isinstance(data, tuple) else data
    assert bundle["text/plain"].startswith("grades by ann: 1 of 14")


def test_displaying_shows_the_sheet_that_a_live_widget_hides(grading, capsys):
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    try:
        with capture_output() as captured:
            grading._ipython_display_()
    finally:
        shell.history_manager = None
        InteractiveShell.clear_instance()
    first, second = captured.outputs
    assert f'id="{grading.widget.sheet_id}"' in first.data["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in second.data


# -- merging ----------------------------------------------------------------------------------

P, Q = Pair("dunes", IDS["a"]), Pair("dunes", IDS["b"])


@pytest.mark.parametrize(
    ("grades", "rule", "merged"),
    [
        ([0, 2, 3], "median", 2),
        ([1, 2], "median", 1),
        ([0, 0, 3, 3], "median", 0),
        ([2, 2, 0], "majority", 2),
        ([2, 0], "majority", None),
        ([1, 1, 0, 0], "majority", None),
        ([2, 2, 2], "strict", 2),
        ([2, 2, 1], "strict", None),
        ([2], "strict", 2),
    ],
)
def test_grades_are_merged_by_rule(grades, rule, merged):
    by_judge = {str(judge): {P: grade} for judge, grade in enumerate(grades)}
    expected = {} if merged is None else {"dunes": {IDS["a"]: merged}}
    assert merge_grades(by_judge, rule=rule) == expected


def test_what_a_judge_has_not_graded_is_not_strict_and_not_zero():
    by_judge = {"ann": {P: 2, Q: 3}, "ben": {P: 2}}
    assert merge_grades(by_judge, rule="strict") == {"dunes": {IDS["a"]: 2}}
    assert merge_grades(by_judge, rule="median") == {"dunes": {IDS["a"]: 2, IDS["b"]: 3}}


def test_an_unknown_rule_is_refused():
    with pytest.raises(
        InputError, match="rule must be one of majority, median, strict, got 'mean'"
    ):
        merge_grades({"ann": {P: 2}}, rule="mean")


def test_journals_of_other_pools_or_of_one_judge_twice_are_not_mixed(pool, dataset, tmp_path):
    for judge in ("ann", "ben"):
        Grading(pool, tmp_path / judge, judge=judge, pictures=picture).choose(3)
    grades = read_grades([tmp_path / "ann", tmp_path / "ben"])
    assert {judge: list(by_pair.values()) for judge, by_pair in grades.items()} == {
        "ann": [3],
        "ben": [3],
    }
    Grading(pool, tmp_path / "ann2", judge="ann", pictures=picture)
    small = pool_runs(dataset, RUNS, depth=1)
    Grading(small, tmp_path / "cyd", judge="cyd", pictures=picture)
    for wrong in ("ann2", "cyd"):
        with pytest.raises(MismatchError, match="grades of one pool, one file a judge"):
            read_grades([tmp_path / "ann", tmp_path / wrong])
    with pytest.raises(InputError, match="at least one"):
        read_grades([])


def test_new_judgments_make_a_dataset_and_say_what_they_leave_out(dataset):
    made = build_judged_dataset(
        dataset, {"dunes": {IDS["a"]: 3, IDS["b"]: 0}, "qasr": {IDS["c"]: 0}}
    )
    assert [query.query_id for query in made.queries] == ["dunes"]
    assert made.qrels == {"dunes": {IDS["a"]: 3, IDS["b"]: 0}}
    assert (made.name, made.n_dropped) == ("shelf-judged", 1)
    assert made.revision != dataset.revision
    assert made.photo_ids == dataset.photo_ids
    graded = {"dunes": {IDS["a"]: 3}, "meer": {IDS["a"]: 1}}
    assert [q.query_id for q in build_judged_dataset(dataset, graded).queries] == ["dunes", "meer"]
    assert [q.query_id for q in build_judged_dataset(dataset, graded, least=2).queries] == ["dunes"]
    with pytest.raises(InputError):
        build_judged_dataset(dataset, {"dunes": {"nowhere": 1}})
    with pytest.raises(InputError):
        build_judged_dataset(dataset, {"dunes": {IDS["a"]: 0}})


def test_random_photos_bound_what_the_pool_has_missed(dataset):
    pool = pool_runs(dataset, {"one": run_of(dunes="ab")}, random_share=1)
    first, second = sorted(pool.drawn)
    bound = missed(pool, {"dunes": {first.photo_id: 0, second.photo_id: 2, IDS["a"]: 3}})
    assert (bound.n_drawn, bound.n_relevant) == (2, 1)
    assert bound.most == pytest.approx(0.95**0.5)  # above it, one or none of two is rarer than 5 %
    assert missed(pool, {}).most == 1


# -- simulated judges -------------------------------------------------------------------------

TRUTH = {"dunes": {IDS["a"]: 3, IDS["d"]: 2}, "qasr": {IDS["f"]: 3}, "meer": {IDS["b"]: 1}}


def test_a_judge_without_errors_gives_back_the_truth(pool, grading):
    assert simulate_judge(grading, TRUTH, error=0) == len(pool)
    truth = {pair: TRUTH[pair.query_id].get(pair.photo_id, 0) for pair in pool.pairs}
    assert grading.grades == truth
    qrels = merge_grades({"ann": grading.grades})
    judged = per_query(qrels, RUNS["qqq-other"], ["judged@3"])["judged@3"]
    assert judged.tolist() == [1, 1, 1]


def test_a_judge_errs_as_often_as_told_and_by_one_grade(dataset, tmp_path):
    runs = {"one": {query_id: list(IDS.values()) for query_id in TEXTS}}
    grades = dict(zip(IDS.values(), (1, 2, 3, 1, 2, 3, 3, 0), strict=True))
    truth = dict.fromkeys(TEXTS, grades)
    n_off = {True: [], False: []}
    for seed in range(12):
        pool = pool_runs(dataset, runs, depth=8, seed=seed)
        grading = Grading(pool, tmp_path / f"{seed}", judge="ann", pictures=picture)
        simulate_judge(grading, truth, error=0.25, seed=seed)
        off = {p: abs(g - truth[p.query_id].get(p.photo_id, 0)) for p, g in grading.grades.items()}
        assert max(off.values()) <= 1
        assert all(0 <= grade <= 3 for grade in grading.grades.values())
        for pair, steps in off.items():
            n_off[pair.photo_id == IDS["h"]].append(steps)
    assert np.mean(n_off[False]) == pytest.approx(0.25, abs=0.06)
    assert np.mean(n_off[True]) == pytest.approx(0.025, abs=0.05)


def test_a_judge_goes_home_and_comes_back(pool, grading, tmp_path):
    assert simulate_judge(grading, TRUTH, error=0, most=3) == 3
    again = Grading(pool, tmp_path / "ann.jsonl", judge="ann", pictures=picture)
    assert simulate_judge(again, TRUTH, error=0) == len(pool) - 3
    ben = Grading(pool, tmp_path / "ben.jsonl", judge="ben", pictures=picture)
    simulate_judge(ben, TRUTH, error=0)
    assert agreement({"ann": again.grades, "ben": ben.grades}).alpha.mean == 1


# -- blind comparison -------------------------------------------------------------------------


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
    assert (outcome.systems, outcome.wins, outcome.ties, outcome.n_same) == (("good", "bad"), (39, 0), 0, 1)
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
