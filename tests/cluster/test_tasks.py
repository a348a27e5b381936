"""Tasks: every item is tried, whatever becomes of the others."""

import os
import signal
from collections import deque

import pytest

from searchlab.cluster.tasks import LocalTasks, RayTasks
from searchlab.errors import DataError, SearchlabError

pytestmark = pytest.mark.slow


def write_half(number, folder):
    if number == 3:
        raise DataError("3 cannot be halved")  # noqa: EM101
    if number == 5:
        raise ZeroDivisionError
    (folder / str(number)).write_text(str(number / 2))


@pytest.fixture(params=["local", "ray:local"])
def tasks(request):
    if request.param != "local":
        request.getfixturevalue("two_workers")
        return RayTasks("local")
    return LocalTasks()


def test_what_fails_is_told_and_the_others_go_on(tasks, tmp_path):
    ended = dict(tasks.run(write_half, deque([2, 3, 4, 5]), tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == {"2", "4"}
    assert (ended[2], ended[4]) == (None, None)
    assert (type(ended[3]), str(ended[3])) == (DataError, "3 cannot be halved")
    assert type(ended[5]) is SearchlabError
    assert "a task must end, got: ZeroDivisionError" in str(ended[5])


def test_more_may_be_added_while_tasks_run(tasks, tmp_path):
    waiting = deque([2])
    for number, _ in tasks.run(write_half, waiting, tmp_path):
        if number < 8:
            waiting.append(2 * number)
    assert {path.name for path in tmp_path.iterdir()} == {"2", "4", "8"}


def die_once(number, folder):
    if number == 3 and not (folder / "died").exists():
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    (folder / str(number)).touch()


def test_a_killed_worker_costs_its_task_alone(two_workers, tmp_path):
    ended = dict(RayTasks("local").run(die_once, deque([2, 3, 4]), tmp_path))
    assert ended == {2: None, 3: None, 4: None}
    assert {path.name for path in tmp_path.iterdir()} == {"2", "3", "4", "died"}
