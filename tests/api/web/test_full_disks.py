"""A disk that is full while people judge is nobody's input, and no page tells where it is."""

import errno
import itertools
import os

import pytest

from searchlab.evaluation.judging.tasks import open_task
from tests.support import served_pages
from tests.support.people import person

served = served_pages.served
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def ann(served):
    return person(served, "ann")


@pytest.fixture
def task(ann, served):
    title = f"task {next(_numbers)}"
    answer = ann.post("/judge/new", data={"title": title, "queries": "red photo", "depth": 4})
    assert answer.status_code == 303, answer.text
    return open_task(served.library, answer.headers["location"].rpartition("/")[2])


@pytest.mark.parametrize(
    ("module", "name", "method", "path"),
    [
        ("tasks", "write_atomically", "POST", "/judge/new"),
        ("journal", "write_atomically", "GET", "/judge/{}/one"),
        ("journal", "write_atomically", "GET", "/judge/{}/grid"),
    ],
)
def test_a_full_disk_is_nobodys_input_and_no_page_tells_where_it_is(
    served, ann, task, monkeypatch, module, name, method, path
):
    def fill(*arguments, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    form = {"title": f"full {method} {name}", "queries": "red"} if method == "POST" else None
    monkeypatch.setattr(f"searchlab.evaluation.judging.{module}.{name}", fill)
    answer = ann.request(method, path.format(task.name), data=form)
    assert answer.status_code == 503
    assert answer.headers["retry-after"].isdigit()
    assert str(served.library) not in answer.text
    monkeypatch.undo()
    assert ann.request(method, path.format(task.name), data=form).status_code in {200, 303}
