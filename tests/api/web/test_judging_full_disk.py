"""A disk that is full while somebody judges: nobody's input, and over when there is room."""

import errno
import os
import uuid

import pytest

from tests.support import served_pages
from tests.support.people import person

served = served_pages.served


@pytest.fixture(scope="module")
def ann(served):
    return person(served, "ann")


@pytest.fixture
def task(ann):
    """The path of a task that nobody has begun to judge."""
    title = f"before {uuid.uuid4()}"
    answer = ann.post("/judge/new", data={"title": title, "queries": "red", "depth": 4})
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


@pytest.mark.parametrize(
    ("module", "name", "method", "path"),
    [
        ("tasks", "write_atomically", "POST", "/judge/new"),
        ("journal", "_append", "GET", "{}/one"),
        ("journal", "_append", "GET", "{}/grid"),
    ],
)
def test_a_full_disk_is_nobodys_input_and_no_page_tells_where_it_is(
    served, ann, task, monkeypatch, module, name, method, path
):
    def fill(*arguments, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    form = {"title": "full", "queries": "red"} if method == "POST" else None
    monkeypatch.setattr(f"searchlab.evaluation.judging.{module}.{name}", fill)
    answer = ann.request(method, path.format(task), data=form)
    assert answer.status_code == 503
    assert answer.headers["retry-after"].isdigit()
    assert str(served.library) not in answer.text
    monkeypatch.undo()
    assert ann.request(method, path.format(task), data=form).status_code in {200, 303}
