import base64
import html
import io
import json

import pytest
from PIL import Image

from searchlab.errors import InputError, MismatchError
from searchlab.evaluation.judging.grading import Grading
from searchlab.evaluation.judging.pools import Pair, pool_runs
from searchlab.evaluation.judging.widget import JudgingWidget
from tests.support import judging_world
from tests.support.judging_world import IDS, RUNS, picture, press

dataset = judging_world.dataset
pool = judging_world.pool
grading = judging_world.grading


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
