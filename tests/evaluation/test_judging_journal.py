import errno
import json
import os
import signal
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.errors import DataError, InputError, MismatchError, NotFoundError
from searchlab.evaluation.judging.journal import Journal, open_journal

A, B = ("dunes", "a"), ("dunes", "b")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ann.jsonl"


def opened(path, **changes):
    return open_journal(path, **({"what": "grades", "pool_id": "p1", "judge": "ann"} | changes))


def test_what_is_recorded_is_there_for_whoever_opens_the_file(path):
    journal = opened(path)
    journal.record(A, 3, seconds=1.5)
    journal.record(B, None)
    again = opened(path)
    assert again.choices == {A: 3}
    assert again.latest[B].choice is None
    assert again.latest[A].seconds == 1.5


def test_the_last_choice_for_an_item_counts(path):
    journal = opened(path)
    for grade in (0, 3, 1):
        journal.record(A, grade)
    assert Journal(path).choices == {A: 1}
    assert len(Journal(path).entries) == 3


def test_undo_gives_back_what_was_chosen_before(path):
    journal = opened(path)
    journal.record(A, 3)
    journal.record(B, 1)
    journal.record(A, 0)
    assert (journal.undo().item, journal.choices) == (A, {A: 3, B: 1})
    assert (journal.undo().item, journal.choices) == (B, {A: 3})
    assert Journal(path).choices == {A: 3}
    journal.undo()
    assert journal.undo() is None
    assert Journal(path).choices == {}


def test_a_journal_only_ever_grows(path):
    journal = opened(path)
    journal.record(A, 3)
    before = path.read_bytes()
    journal.undo()
    assert path.read_bytes().startswith(before)


@settings(deadline=None)  # the disk is waited for at every choice
@given(st.lists(st.one_of(st.none(), st.tuples(st.sampled_from("abc"), st.integers(0, 3)))))
def test_a_journal_read_again_is_the_one_that_was_written(tmp_path_factory, acts):
    path = tmp_path_factory.mktemp("journal") / "j.jsonl"
    journal = opened(path)
    stack = []
    for act in acts:
        if act is None:
            journal.undo()
            stack = stack[:-1]
        else:
            journal.record(("q", act[0]), act[1])
            stack.append(act)
    assert journal.choices == Journal(path).choices == {("q", item): grade for item, grade in stack}


def test_a_line_cut_off_anywhere_loses_that_line_alone(path):
    journal = opened(path)
    journal.record(A, 3)
    whole = path.read_bytes()
    journal.record(B, 1)
    line = path.read_bytes()[len(whole) :]
    for cut in range(len(line)):
        path.write_bytes(whole + line[:cut])
        assert Journal(path).choices == {A: 3}
        again = opened(path)
        again.record(B, 2)
        assert Journal(path).choices == {A: 3, B: 2}


def test_a_first_line_cut_off_anywhere_begins_the_journal_anew(path):
    opened(path)
    head = path.read_bytes()
    for cut in range(len(head)):
        path.write_bytes(head[:cut])
        assert opened(path).choices == {}


def test_a_full_disk_leaves_no_journal_that_others_stumble_over(path, monkeypatch):
    def refuse(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(InputError, match="No space left"):
        opened(path)
    assert not list(path.parent.glob("*.jsonl"))
    monkeypatch.undo()
    assert opened(path).choices == {}


def test_a_journal_that_another_is_beginning_is_there_whole_or_not_at_all(path, monkeypatch):
    seen = []
    sync = os.fsync

    def look(handle):
        seen.append(path.exists() and Journal(path).choices)
        sync(handle)

    monkeypatch.setattr(os, "fsync", look)
    opened(path)
    assert seen[0] is False
    assert seen[-1] == {}


def test_somebody_elses_file_is_left_alone(path):
    path.write_bytes(b"my novel, in one line")
    with pytest.raises(DataError, match="must be a journal of judgments"):
        opened(path)
    assert path.read_bytes() == b"my novel, in one line"


@pytest.mark.slow
def test_a_killed_process_loses_at_most_the_choice_it_was_writing(path):
    opened(path)
    script = (
        "import sys\n"
        "from searchlab.evaluation.judging.journal import open_journal\n"
        f"journal = open_journal({str(path)!r}, what='grades', pool_id='p1', judge='ann')\n"
        "for number in range(100000):\n"
        "    journal.record(('q', str(number)), number % 4)\n"
        "    sys.stdout.write(f'{number}\\n'); sys.stdout.flush()\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as writer:
        seen = [int(writer.stdout.readline()) for _ in range(40)]
        os.kill(writer.pid, signal.SIGKILL)
        seen += [int(line) for line in writer.stdout.read().splitlines() if line]
    choices = Journal(path).choices
    assert len(seen) <= len(choices) <= len(seen) + 1
    assert choices == {("q", str(number)): number % 4 for number in range(len(choices))}


def test_two_that_hold_one_journal_see_each_others_choices(path):
    one, other = opened(path), opened(path)
    one.record(A, 3)
    other.record(B, 1)
    one.undo()
    assert (one.choices, Journal(path).choices) == ({A: 3}, {A: 3})
    other.record(B, 2)
    one.record(A, 0)
    assert one.choices == {A: 0, B: 2} == Journal(path).choices


def test_reading_writes_nothing(path):
    opened(path).record(A, 3)
    path.write_bytes(path.read_bytes() + b'{"item": ["du')
    torn = path.read_bytes()
    assert Journal(path).choices == {A: 3}
    assert path.read_bytes() == torn


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pool_id": "p2"}, "must hold grades of pool p2, got grades of pool p1"),
        ({"what": "preferences"}, "must hold preferences of pool p1, got grades"),
        ({"judge": "ben"}, "must be ben's journal, got that of ann; one file a judge"),
    ],
)
def test_a_journal_of_something_else_is_refused_and_kept(path, changes, message):
    opened(path).record(A, 3)
    with pytest.raises(MismatchError, match=message):
        opened(path, **changes)
    assert Journal(path).choices == {A: 3}


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        "[]",
        "{}",
        '{"item": "dunes", "choice": 1, "seconds": 0, "at": ""}',
        '{"item": ["a"], "choice": true, "seconds": 0, "at": ""}',
        '{"item": ["a"], "choice": 1, "seconds": "x", "at": ""}',
        '{"undo": true}',
    ],
)
def test_a_damaged_line_is_named_with_its_number(path, line):
    opened(path)
    with path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(DataError, match=r"ann\.jsonl:2 must be a choice or an undo"):
        Journal(path)


def test_a_journal_of_another_version_is_refused(path):
    path.write_text(json.dumps({"schema": 9, "what": "grades", "pool": "p", "judge": "a"}) + "\n")
    with pytest.raises(DataError, match="schema 9, this searchlab reads 1"):
        Journal(path)


def test_no_journal_and_no_judge_are_refused(path):
    with pytest.raises(NotFoundError, match="judge something first"):
        Journal(path)
    with pytest.raises(InputError, match="judge must be a name"):
        opened(path, judge=" ")


def test_a_folder_that_cannot_be_made_is_bad_input(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="must be a file that can be written"):
        opened(tmp_path / "file" / "ann.jsonl")
