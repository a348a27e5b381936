"""A model's grades are written where it agrees with people, and nowhere else."""

import numpy as np
import pytest

from searchlab.errors import InputError, MismatchError
from searchlab.evaluation.datasets import LabelledQuery
from searchlab.evaluation.judging import Judge, judge_by_model, read_grades
from searchlab.evaluation.judging.pools import pool_queries

PHOTOS = [f"p{number:03}" for number in range(60)]
QUERIES = [LabelledQuery(f"q{number}", "en", "written", f"words {number}") for number in range(12)]


@pytest.fixture
def pool():
    rng = np.random.default_rng(0)
    run = {query.query_id: list(rng.permutation(PHOTOS)[:15]) for query in QUERIES}
    return pool_queries(QUERIES, PHOTOS, {"one": run}, depth=15)


@pytest.fixture
def truth(pool):
    rng = np.random.default_rng(1)
    return {pair: int(rng.integers(0, 4)) for pair in pool.pairs}


@pytest.fixture
def people(truth, pool):
    graded = {pair: truth[pair] for pair in pool.pairs[::2]}
    return {"ann": graded, "ben": dict(graded)}


class Model:
    """Grades as the truth says, but for a share of the photos."""

    def __init__(self, truth, wrong=0.0, silent=0.0):
        self.name = f"model, {wrong:g} wrong"
        self._truth, self._wrong, self._silent = truth, wrong, silent
        self._rng = np.random.default_rng(2)
        self.seen = []

    def grade(self, query, picture):
        self.seen.append((query.query_id, picture.decode()))
        if self._rng.random() < self._silent:
            return None
        known = self._truth[(query.query_id, picture.decode())]
        return int(self._rng.integers(0, 4)) if self._rng.random() < self._wrong else known


def run(model, pool, journal, people, **options):
    return judge_by_model(model, pool, journal, pictures=str.encode, people=people, **options)


def test_a_model_that_agrees_with_people_writes_a_journal_of_all_it_graded(
    pool, truth, people, tmp_path
):
    model = Model(truth, wrong=0.05)
    assert isinstance(model, Judge)
    steps = []
    found = run(model, pool, tmp_path / "model.jsonl", people, advance=steps.append)
    assert found.alpha.low > 0.667
    assert sum(steps) == len(pool) == len(model.seen)
    grades = read_grades([tmp_path / "model.jsonl"])
    assert list(grades) == [model.name]
    same = np.mean([grades[model.name][pair] == truth[pair] for pair in pool.pairs])
    assert len(grades[model.name]) == len(pool)
    assert [file.name for file in tmp_path.iterdir()] == ["model.jsonl"]
    assert same > 0.9


def test_a_model_that_does_not_agree_writes_nothing(pool, truth, people, tmp_path):
    with pytest.raises(MismatchError, match=r"must agree with people .* nothing was written"):
        run(Model(truth, wrong=0.7), pool, tmp_path / "model.jsonl", people)
    assert list(tmp_path.iterdir()) == []


def test_one_that_always_says_the_same_does_not_agree(pool, people, tmp_path):
    class Same:
        name = "same"

        def grade(self, query, picture):
            return 0

    with pytest.raises(MismatchError, match="nothing was written"):
        run(Same(), pool, tmp_path / "model.jsonl", people)
    assert list(tmp_path.iterdir()) == []


def test_what_a_model_cannot_say_stays_unjudged(pool, truth, people, tmp_path):
    run(Model(truth, silent=0.2), pool, tmp_path / "model.jsonl", people)
    (grades,) = read_grades([tmp_path / "model.jsonl"]).values()
    assert 0.7 * len(pool) < len(grades) < 0.9 * len(pool)


def test_silence_on_what_people_graded_is_no_agreement(pool, truth, people, tmp_path):
    with pytest.raises(MismatchError, match="on 50 pairs or more"):
        run(Model(truth, silent=0.6), pool, tmp_path / "model.jsonl", people)


def test_many_pairs_of_few_queries_are_not_enough(pool, truth, tmp_path):
    few = {pair: truth[pair] for pair in pool.pairs if pair.query_id in ("q0", "q1", "q2", "q3")}
    assert len(few) >= 50
    with pytest.raises(InputError, match="50 pairs of 10 queries of the pool or more, got 60 of 4"):
        run(Model(truth), pool, tmp_path / "model.jsonl", {"ann": few})


def test_few_pairs_of_people_are_not_enough(pool, truth, people, tmp_path):
    few = {"ann": dict(list(people["ann"].items())[:20])}
    model = Model(truth)
    with pytest.raises(InputError, match="must have graded 50 pairs"):
        run(model, pool, tmp_path / "model.jsonl", few)
    assert model.seen == []


def test_a_journal_that_is_there_is_not_written_over(pool, truth, people, tmp_path):
    (tmp_path / "model.jsonl").write_text("of ann")
    with pytest.raises(InputError, match="exists"):
        run(Model(truth), pool, tmp_path / "model.jsonl", people)
    assert (tmp_path / "model.jsonl").read_text() == "of ann"


@pytest.mark.parametrize("grade", [4, -1, True, 1.5, "2"])
def test_what_is_no_grade_is_refused(pool, people, tmp_path, grade):
    class Odd:
        name = "odd"

        def grade(self, query, picture):
            return grade

    with pytest.raises(InputError, match="odd must grade from 0 to 3"):
        run(Odd(), pool, tmp_path / "model.jsonl", people)
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_a_journal_is_made_before_anything_is_graded(pool, truth, people, tmp_path):
    journal = tmp_path / "judged" / "deep" / "model.jsonl"
    run(Model(truth), pool, journal, people)
    assert len(read_grades([journal])["model, 0 wrong"]) == len(pool)
    (tmp_path / "file").write_text("x")
    unasked = Model(truth)
    with pytest.raises(InputError, match="must lie in a folder that can be written"):
        run(unasked, pool, tmp_path / "file" / "model.jsonl", people)
    assert unasked.seen == []
