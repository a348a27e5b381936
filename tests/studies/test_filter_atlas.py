import numpy as np
import pytest

from searchlab.config import Config
from searchlab.errors import InputError
from searchlab.search.indexes import ExactIndex, HnswIndex
from searchlab.studies.filters.atlas import RELATIONS, SHARES, Atlas, Cell, cells, measure_cell
from searchlab.studies.filters.atlas_engine import Served, photo_table
from searchlab.studies.vectors.made import made_vectors

ATLAS = Atlas(made_vectors("clustered-2k-16", seed=2).photos, n_queries=8, seed=3)
FILTERED = [cell for cell in cells() if cell.n_conditions]


def cell_name(cell):
    return cell.name


def test_the_atlas_has_every_share_relation_and_number_of_conditions_once():
    places = cells()
    assert len(places) == len(set(places)) == 3 * (1 + 10 * 3)
    assert {cell.share for cell in places} == set(SHARES)
    assert [cell for cell in places if not cell.n_conditions] == [
        Cell(1.0, relation, 0) for relation in RELATIONS
    ]


@pytest.mark.parametrize("cell", FILTERED, ids=cell_name)
def test_a_filter_keeps_just_the_share_that_its_cell_is_named_for(cell):
    condition = ATLAS.condition(cell)
    n_expected = max(1, round(cell.share * 2000))
    assert np.count_nonzero(condition.mask(ATLAS.columns)) == n_expected
    assert bool(condition.sources) == (cell.n_conditions > 1)
    assert bool(condition.licenses) == (cell.n_conditions > 2)


@pytest.mark.parametrize("cell", FILTERED, ids=cell_name)
def test_the_filter_of_photos_keeps_the_same_rows_as_the_plain_condition(cell):
    condition = ATLAS.condition(cell)
    table = photo_table(ATLAS.columns, condition.day)
    assert np.array_equal(condition.filter().mask(table), condition.mask(ATLAS.columns))


def test_without_a_filter_there_is_no_condition():
    assert ATLAS.condition(Cell(1.0, "aligned", 0)) is None


@pytest.mark.parametrize("share", [0.5, 0.1, 0.05])
def test_the_true_neighbours_are_mostly_kept_never_kept_or_kept_by_chance(share):
    share_kept = {}
    for relation in RELATIONS:
        mask = ATLAS.condition(Cell(share, relation, 1)).mask(ATLAS.columns)
        neighbors = ExactIndex(ATLAS.vectors).search(ATLAS.queries[relation], 10)
        share_kept[relation] = mask[neighbors.rows].mean()
    assert share_kept["aligned"] > 0.7
    assert share_kept["uncorrelated"] == pytest.approx(share, abs=0.1)
    assert share_kept["opposed"] < 0.02


def test_texts_are_asked_with_one_condition_and_lie_elsewhere_than_photos():
    places = cells(kinds=("image", "text"))
    texts = [cell for cell in places if cell.kind == "text"]
    assert len(texts) == 3 * (1 + 10)
    assert {cell.n_conditions for cell in texts} == {0, 1}
    assert len({cell.name for cell in places}) == len(places)
    for relation in RELATIONS:
        best = [
            ExactIndex(ATLAS.vectors).search(rows, 1).scores.mean()
            for rows in (ATLAS.queries[relation], ATLAS.texts[relation])
        ]
        assert best[1] < best[0] - 0.2
    row = measure_cell(oracle(lambda rows, _: rows), ATLAS, Cell(0.05, "aligned", 1, "text"))
    assert (row["queries"], row["recall"]) == ("text", 1)


def test_real_queries_are_chosen_by_where_their_true_neighbours_are():
    rows = made_vectors("clustered-2k-16", n_queries=300, seed=2)
    atlas = Atlas(rows.photos, n_queries=12, seed=3, real=rows.queries)
    pool = {kind: {row.tobytes() for row in some} for kind, some in rows.queries.items()}
    for kind, chosen in (("image", atlas.queries), ("text", atlas.texts)):
        share_kept = {}
        for relation in RELATIONS:
            assert {row.tobytes() for row in chosen[relation]} <= pool[kind]
            mask = atlas.condition(Cell(0.3, relation, 1)).mask(atlas.columns)
            share_kept[relation] = mask[
                ExactIndex(rows.photos).search(chosen[relation], 10).rows
            ].mean()
        assert share_kept["aligned"] > share_kept["uncorrelated"] > share_kept["opposed"]
        assert share_kept["aligned"] > 0.7
        assert share_kept["opposed"] < 0.1


def test_the_oracle_is_what_exact_search_finds_among_allowed_photos():
    for cell in (Cell(0.05, "opposed", 2), Cell(0.001, "aligned", 3), Cell(1.0, "aligned", 0)):
        condition = ATLAS.condition(cell)
        allowed = None if condition is None else condition.mask(ATLAS.columns)
        queries = ATLAS.queries[cell.relation]
        exact = ExactIndex(ATLAS.vectors).search(queries, 10, allowed=allowed)
        true, n_allowed = ATLAS.truth(cell, 10, len(queries))
        assert np.array_equal(true.rows, exact.rows)
        assert n_allowed == (2000 if allowed is None else allowed.sum())


def oracle(answers):
    """A system that answers by exact search, and does with the answer as it is told."""

    def answer(query, k, condition):
        mask = None if condition is None else condition.mask(ATLAS.columns)
        rows = ExactIndex(ATLAS.vectors).search(query[np.newaxis], k, allowed=mask).rows[0]
        return answers(rows[rows >= 0], condition)

    return answer


CELL = Cell(0.05, "uncorrelated", 1)


def test_a_right_answer_is_full_and_allowed():
    row = measure_cell(oracle(lambda rows, _: rows), ATLAS, CELL)
    assert (row["recall"], row["short"], row["wrong"]) == (1, 0, 0)
    assert (row["n_allowed"], row["n_queries"]) == (100, 8)
    assert row["p50_ms"] <= row["p95_ms"] <= row["p99_ms"]


def test_half_an_answer_is_short_and_has_half_the_recall():
    row = measure_cell(oracle(lambda rows, _: rows[:5]), ATLAS, CELL)
    assert (row["recall"], row["short"], row["wrong"]) == (0.5, 1, 0)


def test_a_forbidden_photo_is_wrong_and_fills_no_place():
    def spoilt(rows, condition):
        forbidden = np.flatnonzero(~condition.mask(ATLAS.columns))[:1]
        return np.concatenate([forbidden, rows[:9]])

    row = measure_cell(oracle(spoilt), ATLAS, CELL)
    assert (row["recall"], row["short"], row["wrong"]) == (pytest.approx(0.9), 1, 1)


def test_the_same_photo_ten_times_is_a_short_answer():
    row = measure_cell(oracle(lambda rows, _: np.repeat(rows[:1], 10)), ATLAS, CELL)
    assert (row["recall"], row["short"]) == (pytest.approx(0.1), 1)


def test_all_of_the_few_that_are_allowed_are_enough():
    row = measure_cell(oracle(lambda rows, _: rows), ATLAS, Cell(0.001, "opposed", 1))
    assert (row["n_allowed"], row["recall"], row["short"]) == (2, 1, 0)


def test_a_cell_ends_when_its_time_is_up_but_not_before_three_queries():
    row = measure_cell(oracle(lambda rows, _: rows), ATLAS, CELL, budget_s=0)
    assert row["n_queries"] == 3


def test_too_few_photos_for_a_share_are_refused():
    few = Atlas(made_vectors("clustered-40-8", seed=0).photos, n_queries=1, seed=0)
    few.columns["license"][:] = 9
    with pytest.raises(InputError, match="must keep 8 photos, got 0"):
        few.condition(Cell(0.2, "aligned", 3))


@pytest.mark.slow
def test_what_is_served_is_right_full_and_planned_in_every_cell():
    config = Config(model="given", index="hnsw", depth=20)
    served = Served(ATLAS.columns, HnswIndex(ATLAS.vectors), config)
    plans = set()
    for cell in cells():
        row = measure_cell(served, ATLAS, cell)
        assert (row["short"], row["wrong"]) == (0, 0), cell.name
        assert row["recall"] > 0.9, cell.name
        plans.add(served.plan)
    assert plans == {"exact", "graph"}
