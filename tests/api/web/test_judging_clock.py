"""How long a judge looked, where the machine's clock is set meanwhile."""

import time

import pytest

from searchlab.evaluation.judging.tasks import open_task
from tests.support import served_pages
from tests.support.people import hidden, person

served = served_pages.served
YEARS_S = 3 * 365 * 86_400


@pytest.mark.parametrize(("view", "field"), [("one", "choice"), ("grid", "g0")])
@pytest.mark.parametrize("jump_s", [YEARS_S, -YEARS_S])
def test_a_clock_that_is_set_while_somebody_looks_changes_no_time(
    served, monkeypatch, view, field, jump_s
):
    name = f"{view}{jump_s}"
    judge = person(served, name)
    made = judge.post("/judge/new", data={"title": name, "queries": "red photo", "depth": 4})
    task = open_task(served.library, made.headers["location"].rpartition("/")[2])
    sent = hidden(judge.get(f"/judge/{task.name}/{view}").text) | {field: "2"}
    now = time.time
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: now() + jump_s)
        time.sleep(0.05)  # what the judge looks for
        judge.post(f"/judge/{task.name}/{view}", data=sent)
    (journal,) = task.journals()
    (entry,) = journal.entries
    assert 0.04 <= entry.seconds < 60
