"""Photos graded in a grid: the same journal as one at a time, and nothing by accident."""

import json

import pytest

from searchlab.errors import InputError
from searchlab.evaluation.judging.grading import Grading
from searchlab.evaluation.judging.grid import GradingGrid
from searchlab.evaluation.judging.pools import Pair
from tests.support import judging_world
from tests.support.judging_world import IDS, picture

dataset = judging_world.dataset
pool = judging_world.pool
grading = judging_world.grading


@pytest.fixture
def grid(grading):
    return GradingGrid(grading)


def press(grid, **message):
    before = grid.widget.heard
    grid.widget._handle_custom_msg({"place": grid.place, **message}, [])
    assert grid.widget.heard == before + 1


def numbers(grid):
    return [photo["number"] for photo in grid.view()["photos"]]


def test_a_grid_holds_all_photos_of_one_query_and_only_those(grid, pool):
    assert [tuple(grid.grading.items[number]) for number in numbers(grid)] == [
        tuple(pair) for pair in pool.pairs if pair.query_id == grid.query_id
    ]
    pictures = grid.pictures()["photos"]
    assert pictures == [picture(grid.grading.items[number][1]) for number in numbers(grid)]
    assert grid.view()["query"] == pool.queries[grid.query_id].text


def test_a_grade_is_on_disk_at_once_for_the_photo_that_was_meant(grid, pool, tmp_path):
    second, last = numbers(grid)[1], numbers(grid)[-1]
    press(grid, do="choose", number=last, choice=3)
    press(grid, do="choose", number=second, choice=1)
    lines = (tmp_path / "ann.jsonl").read_text().splitlines()[1:]
    assert [json.loads(line)["item"] for line in lines] == [
        list(pool.pairs[last]), list(pool.pairs[second]),
    ]  # fmt: skip
    assert grid.grading.grades == {Pair(*pool.pairs[last]): 3, Pair(*pool.pairs[second]): 1}
    assert [photo["chosen"] for photo in grid.view()["photos"] if photo["judged"]] == [1, 3]


def test_the_rest_gets_one_grade_and_what_is_judged_keeps_its_own(grid):
    first, second, *others = numbers(grid)
    press(grid, do="choose", number=first, choice=3)
    press(grid, do="skip", number=second)
    press(grid, do="rest", choice=0)
    chosen = {photo["number"]: photo["chosen"] for photo in grid.view()["photos"]}
    assert chosen == {first: 3, second: None, **dict.fromkeys(others, 0)}
    assert all(photo["judged"] for photo in grid.view()["photos"])
    assert grid.choose_rest(0) == 0


def test_undo_takes_one_grade_back_and_goes_to_its_query(grid):
    first, second, *_ = numbers(grid)
    press(grid, do="choose", number=first, choice=3)
    press(grid, do="choose", number=second, choice=2)
    press(grid, do="next")
    press(grid, do="undo")
    assert grid.place == 0
    assert [photo["chosen"] for photo in grid.view()["photos"]][:2] == [3, None]


def test_moving_stops_at_both_ends_and_resuming_finds_what_is_open(grid, pool, tmp_path):
    for _ in range(5):
        press(grid, do="next")
    assert grid.place == len(pool.places) - 1
    press(grid, do="rest", choice=0)
    for _ in range(5):
        press(grid, do="back")
    assert grid.place == 0
    press(grid, do="rest", choice=1)
    again = Grading(pool, tmp_path / "ann.jsonl", judge="ann", pictures=picture)
    assert GradingGrid(again).place == 1
    press(grid, do="resume")
    assert grid.place == 1


def test_one_at_a_time_and_the_grid_go_on_from_each_other(grid, grading):
    press(grid, do="rest", choice=0)
    assert grading.current[0] != grid.query_id
    grading.choose(2)
    grid.resume()
    assert [photo["chosen"] for photo in grid.view()["photos"]][:1] == [2]


def test_a_key_pressed_twice_does_not_grade_the_next_query(grid):
    press(grid, do="next")
    grid.widget._handle_custom_msg({"do": "rest", "choice": 0, "place": 0}, [])
    assert grid.grading.grades == {}


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({}, "do must be"),
        ({"do": "drop"}, "do must be"),
        ({"do": "choose", "choice": 3}, "number must be a photo of the query that is shown"),
        ({"do": "choose", "choice": 3, "number": 13}, "number must be a photo of the query"),
        ({"do": "choose", "choice": 3, "number": True}, "number must be a photo of the query"),
        ({"do": "choose", "choice": 3, "number": [0]}, "number must be a photo of the query"),
        ({"do": "choose", "choice": 7, "number": 0}, "a choice must be one of 0, 1, 2, 3"),
        ({"do": "choose", "number": 0}, "a choice must be one of 0, 1, 2, 3, got none"),
        ({"do": "rest", "choice": "all"}, "a choice must be one of 0, 1, 2, 3"),
    ],
)
def test_what_is_no_grade_or_no_photo_is_told_and_not_written(grid, message, said):
    press(grid, **message)
    assert grid.widget.problem.startswith("not recorded: ")
    assert said in grid.widget.problem
    assert grid.grading.grades == {}
    with pytest.raises(InputError):
        grid.act({"place": 0, **message})


def test_pictures_are_sent_once_for_a_query(grid):
    sent = []
    grid.widget.observe(lambda change: sent.append(change["new"]), names="pictures")
    press(grid, do="choose", number=numbers(grid)[0], choice=3)
    assert sent == []
    press(grid, do="next")
    assert sent == [grid.pictures()]


def test_a_judge_sees_no_system_no_rank_and_no_id(grid):
    seen = repr(grid.view()) + repr(grid.pictures()) + grid._repr_html_()
    for secret in ("qqq", *IDS.values()):
        assert secret not in seen


def test_the_grid_needs_nothing_from_elsewhere_and_says_how_far_one_is(grid):
    press(grid, do="rest", choice=0)
    assert "http" not in grid.widget._esm + grid.widget._css
    assert "innerHTML" not in grid.widget._esm
    assert repr(grid.widget) == f"{grid.grading}; run this notebook to judge on"
    assert grid.widget is grid.widget
    assert "0 not relevant" in grid._repr_html_()
