"""Two people at a served library, a task for them to judge, and how they grade it."""

import itertools
import re

import pytest

from searchlab.evaluation.judging.tasks import open_task
from tests.support.people import hidden, person

_numbers = itertools.count(1)
QUERIES = "red photo\nde\tblaues Bild\nar\tصورة خضراء"


@pytest.fixture(scope="module")
def ann(served):
    return person(served, "ann")


@pytest.fixture(scope="module")
def ben(served):
    return person(served, "ben")


@pytest.fixture
def task(ann, served):
    """A task of three queries with four photos each, of a name of its own."""
    title = f"task {next(_numbers)}"
    answer = ann.post("/judge/new", data={"title": title, "queries": QUERIES, "depth": 4})
    assert answer.status_code == 303, answer.text
    return open_task(served.library, answer.headers["location"].rpartition("/")[2])


def grade(browser, task, choice, place=None, **more):
    """Give the grade that the shown page asks for; returns the place that is shown next."""
    page = browser.get(f"/judge/{task.name}/one", params={"n": place} if place is not None else {})
    values = hidden(page.text) | {"choice": choice} | more
    answer = browser.post(f"/judge/{task.name}/one", data=values)
    assert answer.status_code == 303, answer.text
    return int(re.search(r"n=(\d+)", answer.headers["location"])[1])


def journal_of(task, browser):
    (journal,) = [j for j in task.journals() if j.judge == browser.account]
    return journal
