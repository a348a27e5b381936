"""Judging tasks beside a library: made whole or not at all, and judged by several at once."""

import json
import threading
from pathlib import Path

import pytest

from searchlab.errors import ConflictError, DataError, InputError, MismatchError, NotFoundError
from searchlab.evaluation.judging.makers import forget_maker, is_made_by, list_made
from searchlab.evaluation.judging.pools import pool_queries
from searchlab.evaluation.judging.query_lists import parse_queries
from searchlab.evaluation.judging.tasks import (
    COMMAND_LINE,
    create_task,
    delete_task,
    eye_origins,
    list_tasks,
    open_task,
    task_name,
)
from tests.support import judging_world
from tests.support.judging_world import IDS, RUNS, picture

dataset = judging_world.dataset
pool = judging_world.pool


@pytest.fixture
def task(tmp_path, pool):
    return create_task(tmp_path, "dunes", pool, title="Dünen", made_by="acme")


# -- lists of queries -------------------------------------------------------------------------


def test_a_line_is_a_query_and_may_name_its_language():
    queries = parse_queries("golden hour\n\nar\tغروب\r\ngolden hour\n")
    assert [(q.lang, q.text) for q in queries] == [("und", "golden hour"), ("ar", "غروب")]


def test_the_same_words_have_the_same_id_in_every_list():
    (one,) = parse_queries("dunes")
    assert one in parse_queries("sea\ndunes")
    assert one != parse_queries("en\tdunes")[0]


def test_a_table_has_the_ids_of_its_dataset():
    (query,) = parse_queries("\ufeffquery_id\tlang\ttext\nq7\tde\tMeer")
    assert (query.query_id, query.lang, query.text) == ("q7", "de", "Meer")


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t\n",
        "x" * 501,
        "one\ttwo\tthree",
        "query_id\tlang\nq7\tde",
        "query_id\ttext\na b\tMeer",
        "query_id\ttext\nq1\tMeer\nq1\tSee",
        "query_id\tlang\ttext\nq1\tde<b>\tMeer",
        "query_id\tlang\ttext\nq1\tde\t",
        "\n".join(f"query {n}" for n in range(2_001)),
    ],
)
def test_what_is_no_list_of_queries_is_refused(text):
    with pytest.raises(InputError):
        parse_queries(text)


def test_queries_without_judgments_can_be_pooled(dataset):
    queries = parse_queries("dunes\nsea")
    run = {query.query_id: [IDS["a"], IDS["b"]] for query in queries}
    pool = pool_queries(queries, dataset.photo_ids, {"served": run}, depth=1, random_share=1)
    assert len(pool) == 4
    assert len(pool.drawn) == 2


# -- tasks ------------------------------------------------------------------------------------


def test_a_task_comes_back_as_it_was(tmp_path, task, pool):
    again = open_task(tmp_path, "dunes")
    assert again == task
    assert (again.pool.pool_id, again.pool.systems) == (pool.pool_id, pool.systems)
    assert list_tasks(tmp_path) == ["dunes"]


def test_a_name_is_taken_once_and_the_first_task_stays(tmp_path, task, dataset):
    other = judging_world.pool_runs(dataset, RUNS, depth=1)
    with pytest.raises(ConflictError, match="which is taken"):
        create_task(tmp_path, "dunes", other)
    assert open_task(tmp_path, "dunes") == task
    assert [path.name for path in (tmp_path / "judging").iterdir()] == ["dunes"]


def test_of_many_at_once_one_makes_the_task(tmp_path, pool):
    made, refused = [], []

    def make():
        try:
            made.append(create_task(tmp_path, "dunes", pool))
        except ConflictError as error:
            refused.append(error)

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(made), len(refused)) == (1, 7)


@pytest.mark.parametrize("name", ["", "..", "a/b", "../x", "A", "-a", "a-", "a" * 65, "a\n", "é"])
def test_a_name_that_is_none_is_refused_and_opens_nothing(tmp_path, pool, name):
    with pytest.raises(InputError, match="must have a name"):
        create_task(tmp_path, name, pool)
    with pytest.raises(NotFoundError):
        open_task(tmp_path, name)
    assert not (tmp_path / "judging").exists()


@pytest.mark.parametrize("title", ["Dunes", "غروب", "...", "x" * 200, "A" * 60, "-" * 70 + "a"])
def test_every_title_gives_a_name(tmp_path, pool, title):
    assert create_task(tmp_path, task_name(title), pool, title=title).title == title


@pytest.mark.parametrize("change", [{"schema": 9}, {"pairs": []}, {"queries": 3}, {"title": None}])
def test_a_damaged_task_is_refused(tmp_path, task, change):
    path = task.folder / "task.json"
    values = json.loads(path.read_bytes()) | change
    if change == {"title": None}:
        del values["title"]
    path.write_text(json.dumps(values))
    with pytest.raises(DataError, match="must be a judging task"):
        open_task(tmp_path, "dunes")


def test_a_deleted_task_is_gone_with_its_journals(tmp_path, task):
    task.grading("ann", pictures=picture).choose(2)
    delete_task(task)
    assert list_tasks(tmp_path) == []
    assert list((tmp_path / "judging").iterdir()) == []


# -- judges -----------------------------------------------------------------------------------


def test_each_judge_has_a_journal_whatever_the_name(task):
    for judge, grade in (("ann", 1), ("../ann", 2), ("قصر\n", 3), ("a" * 300, 0)):
        task.grading(judge, pictures=picture, owner="7").choose(grade)
    assert sorted(given for grades in task.grades().values() for given in grades.values()) == [
        0,
        1,
        2,
        3,
    ]
    assert {path.parent for path in task.folder.rglob("*.jsonl")} == {task.folder / "journals"}


@pytest.mark.parametrize(
    ("judge", "owner"), [("", "7"), (" ", "7"), ("a" * 301, "7"), ("ann", "/")]
)
def test_a_judge_must_have_a_name(task, judge, owner):
    with pytest.raises(InputError, match="judge must be a name"):
        task.grading(judge, pictures=picture, owner=owner)


def test_two_owners_share_no_journal_even_by_one_name(task):
    task.grading("ann", pictures=picture, owner="7").choose(3)
    assert task.grading("ann", pictures=picture, owner="8").n_done == 0
    task.grading("ann", pictures=picture, owner="8").choose(0)
    first = task.pool.pairs[0]
    assert [grades[first] for grades in task.grades().values()] == [3, 0]


def test_a_journal_of_another_pool_is_not_merged(task):
    task.grading("ann", pictures=picture).choose(3)
    (path,) = task.folder.rglob("*.jsonl")
    path.write_text(path.read_text().replace(task.pool.pool_id, "0" * 12))
    with pytest.raises(MismatchError, match="must be of pool"):
        task.grades()


def test_sessions_of_one_judge_see_each_other(task):
    one, other = (task.grading("ann", pictures=picture) for _ in range(2))
    one.choose(3)
    other.resume()
    assert (other.n_done, other.number) == (1, 1)
    other.choose(1)
    one.undo()
    assert one.number == 1
    assert one.grades == {task.pool.pairs[0]: 3}


def test_a_session_shows_any_place(task):
    session = task.grading("ann", pictures=picture)
    session.go(3)
    session.choose(2, seconds=1.5)
    assert session.journal.latest[task.pool.pairs[3]].seconds == 1.5
    session.go(10**9)
    assert session.current is None


def test_judgments_are_merged_with_their_origin(task):
    assert task.grades() == {}
    with pytest.raises(InputError, match="judge first"):
        task.qrels("median")
    task.grading("idle", pictures=picture)
    for judge, grade in (("ann", 1), ("ben", 3)):
        task.grading(judge, pictures=picture).choose(grade)
    query_id, photo_id = task.pool.pairs[0]
    assert task.qrels("median") == {query_id: {photo_id: 1}}
    assert eye_origins(task.qrels("median")) == {query_id: {photo_id: "eye"}}


def test_a_task_that_is_deleted_while_tasks_are_listed_is_left_out(tmp_path, pool, monkeypatch):
    going = create_task(tmp_path, "going", pool)
    create_task(tmp_path, "staying", pool)
    glob = Path.glob

    def find_and_delete(folder, pattern):
        found = list(glob(folder, pattern))
        delete_task(going)
        return found

    monkeypatch.setattr(Path, "glob", find_and_delete)
    assert list_tasks(tmp_path) == ["staying"]


# -- makers -----------------------------------------------------------------------------------


def without_number(task):
    """Write a task as it was written before tasks kept the number of an account."""
    file = task.folder / "task.json"
    values = json.loads(file.read_text())
    del values["owner"]
    file.write_text(json.dumps(values))
    return open_task(task.folder.parents[1], task.name)


def test_a_maker_is_known_by_number_and_in_tasks_of_before_by_name(tmp_path, pool):
    task = create_task(tmp_path, "dunes", pool, made_by="acme", owner="7")
    task = open_task(tmp_path, task.name)
    accounts = (("7", "acme"), ("8", "acme"), ("7", "beta"))
    assert [is_made_by(task, *each) for each in accounts] == [True, False, True]
    before = without_number(task)
    assert [is_made_by(before, *each) for each in accounts] == [True, True, False]
    here = create_task(tmp_path, "here", pool, made_by=COMMAND_LINE)
    assert not is_made_by(here, "7", COMMAND_LINE)


def test_no_account_is_taken_for_the_command_line(tmp_path, pool):
    task = without_number(create_task(tmp_path, "dunes", pool, made_by=COMMAND_LINE))
    assert (task.owner, task.made_by) == ("", COMMAND_LINE)
    assert not is_made_by(task, "7", COMMAND_LINE)
    assert list_made(tmp_path, "7", COMMAND_LINE) == []
    forget_maker(tmp_path, "7", COMMAND_LINE)
    assert open_task(tmp_path, "dunes").made_by == COMMAND_LINE


def test_forgetting_a_maker_changes_nothing_else(tmp_path, pool):
    for name in ("first", "second", "third"):
        create_task(tmp_path, name, pool, made_by="acme", owner="7")
    create_task(tmp_path, "other", pool, made_by="beta", owner="8")
    without_number(open_task(tmp_path, "first"))
    (tmp_path / "judging" / "third" / "task.json").write_text("{")
    before, names = json.loads(read(tmp_path, "second")), list_tasks(tmp_path)
    assert [each["task"] for each in list_made(tmp_path, "7", "acme")] == [
        name for name in names if name in ("first", "second")
    ]
    forget_maker(tmp_path, "7", "acme")
    assert json.loads(read(tmp_path, "second")) == before | {"made_by": "", "owner": ""}
    assert open_task(tmp_path, "first").made_by == ""
    assert open_task(tmp_path, "other").made_by == "beta"
    assert (list_tasks(tmp_path), list_made(tmp_path, "7", "acme")) == (names, [])


def read(library, name):
    return (library / "judging" / name / "task.json").read_text()
