from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchlab.errors import InputError
from searchlab.evaluation.datasets import NO_LANGUAGE, Dataset, LabelledQuery
from searchlab.evaluation.judging.pools import Pair, pool_queries, pool_runs
from searchlab.photos.photo import photo_id_of
from searchlab.photos.table import PhotoTable
from searchlab.search.filters.photo_filter import PhotoFilter
from tests.conftest import plain_photo

NAMES = "abcdefghijklmnop"
IDS = {name: photo_id_of("shelf", name) for name in NAMES}
QUERIES = ("dunes", "harbour", "night")


def shelf(folder):
    """Make a dataset of sixteen photos and three queries; nothing on disk is read."""
    return Dataset(
        name="shelf",
        revision="0" * 12,
        folder=folder,
        photos=None,
        queries=tuple(LabelledQuery(name, "en", "written", name) for name in QUERIES),
        qrels={name: {IDS["a"]: 1} for name in QUERIES},
        records=tuple({"file": name, "source": "shelf", "source_photo_id": name} for name in NAMES),
    )


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return shelf(tmp_path_factory.mktemp("shelf"))


def run_of(**answers):
    return {query_id: [IDS[name] for name in names] for query_id, names in answers.items()}


ONE = run_of(dunes="abc", harbour="de")
OTHER = run_of(dunes="bcd", night="p")


def test_a_pool_is_the_union_of_the_first_photos_each_once(dataset):
    pool = pool_runs(dataset, {"one": ONE, "other": OTHER}, depth=2)
    expected = {("dunes", n) for n in "abc"} | {("harbour", n) for n in "de"} | {("night", "p")}
    assert sorted(pool.pairs) == sorted(Pair(q, IDS[n]) for q, n in expected)
    assert set(pool.queries) == set(QUERIES)


def test_the_order_tells_nothing_about_systems_or_ranks(dataset):
    pool = pool_runs(dataset, {"one": ONE, "other": OTHER})
    turned = {"x": {q: photos[::-1] for q, photos in OTHER.items()}, "y": ONE}
    assert pool_runs(dataset, turned).pairs == pool.pairs
    assert pool_runs(dataset, turned).pool_id == pool.pool_id


def test_another_seed_is_another_order_of_the_same_pairs(dataset):
    runs = {"one": run_of(dunes=NAMES, harbour=NAMES)}
    one, other = (pool_runs(dataset, runs, depth=16, seed=seed) for seed in (0, 1))
    assert one.pairs != other.pairs
    assert sorted(one.pairs) == sorted(other.pairs)
    assert one.pool_id != other.pool_id


def test_photos_of_a_query_follow_one_another(dataset):
    pool = pool_runs(dataset, {"one": run_of(dunes="abcd", harbour="abcd", night="abcd")})
    query_ids = [pair.query_id for pair in pool.pairs]
    assert [q for n, q in enumerate(query_ids) if n == 0 or query_ids[n - 1] != q] == list(
        pool.queries
    )


def test_a_larger_pool_keeps_the_order_of_a_smaller_one(dataset):
    small = pool_runs(dataset, {"one": ONE})
    large = pool_runs(dataset, {"one": ONE, "other": OTHER})
    assert [pair for pair in large.pairs if pair in small.pairs] == list(small.pairs)


def test_what_is_judged_already_is_left_out_and_counted(dataset):
    pool = pool_runs(dataset, {"one": ONE}, judged={"dunes": {IDS["a"]: 0, IDS["p"]: 1}})
    assert Pair("dunes", IDS["a"]) not in pool.pairs
    assert (len(pool), pool.n_left_out) == (4, 1)
    assert "1 judged before" in str(pool)


def test_random_photos_are_unranked_unjudged_and_a_share_of_what_was_pooled(dataset):
    judged = {"dunes": {IDS[n]: 0 for n in "defgh"}}
    pool = pool_runs(dataset, {"one": run_of(dunes="abc")}, random_share=0.5, judged=judged)
    assert len(pool.drawn) == 2
    assert {pair.photo_id for pair in pool.drawn} <= {IDS[n] for n in "ijklmnop"}
    assert pool.drawn <= set(pool.pairs)


def test_names_of_systems_change_nothing_that_a_judge_sees(dataset):
    one = pool_runs(dataset, {"secret": ONE}, random_share=1)
    other = pool_runs(dataset, {"known": ONE}, random_share=1)
    assert (one.pairs, one.pool_id) == (other.pairs, other.pool_id)


def test_another_text_is_another_pool(dataset):
    renamed = replace(
        dataset, queries=(replace(dataset.queries[0], text="sand"), *dataset.queries[1:])
    )
    assert pool_runs(renamed, {"one": ONE}).pool_id != pool_runs(dataset, {"one": ONE}).pool_id


@given(
    st.dictionaries(
        st.sampled_from(QUERIES),
        st.lists(st.sampled_from(NAMES), min_size=1, unique=True),
        min_size=1,
    ),
    st.integers(1, 20),
    st.integers(0, 3),
)
def test_every_pool_holds_just_the_first_photos(tmp_path_factory, answers, depth, seed):
    dataset = shelf(tmp_path_factory.getbasetemp())
    run = run_of(**answers)
    pool = pool_runs(dataset, {"one": run, "again": run}, depth=depth, seed=seed)
    assert sorted(pool.pairs) == sorted(
        Pair(q, photo) for q, photos in run.items() for photo in photos[:depth]
    )


@pytest.mark.parametrize(
    ("runs", "options", "message"),
    [
        ({}, {}, "at least one run"),
        ({"one": ONE}, {"random_share": -0.1}, "random_share from 0 to 10"),
        ({"one": ONE}, {"random_share": float("nan")}, "random_share from 0 to 10"),
        ({"one": ONE}, {"depth": 0}, "depth must be an integer from 1"),
        ({"one": run_of(beach="a")}, {}, "answer queries of the dataset, got 'beach'"),
        ({"one": {"dunes": ["nowhere"]}}, {}, "photos of the dataset once, got 'nowhere'"),
        ({"one": run_of(dunes="aa")}, {}, "got a photo twice for 'dunes'"),
        ({"one": run_of(dunes="a")}, {"judged": run_of(dunes="a")}, "1 had been judged before"),
    ],
)
def test_a_pool_that_cannot_be_made_is_refused(dataset, runs, options, message):
    with pytest.raises(InputError, match=message):
        pool_runs(dataset, runs, **options)


def test_a_query_s_own_reference_photo_is_never_drawn(dataset):
    query = LabelledQuery("like a", NO_LANGUAGE, "written", None, IDS["a"])
    run = {"like a": [IDS["b"], IDS["c"]]}
    pool = pool_queries([query], dataset.photo_ids, {"one": run}, random_share=10)
    assert {pair.photo_id for pair in pool.drawn} == set(IDS.values()) - {IDS[n] for n in "abc"}


def test_no_photo_is_drawn_that_the_filter_of_its_query_shuts_out():
    photos = [plain_photo(number, source="nasa" if number < 5 else "pexels") for number in range(9)]
    ids = [photo.photo_id for photo in photos]
    query = LabelledQuery("q", "en", "written", "x", filter=PhotoFilter(source="pexels"))
    shape = {"random_share": 10, "table": PhotoTable.from_photos(photos)}
    pool = pool_queries([query], ids, {"one": {"q": ids[5:6]}}, **shape)
    assert {pair.photo_id for pair in pool.drawn} == set(ids[6:])
    with pytest.raises(InputError, match="table must be given where queries have filters"):
        pool_queries([query], ids, {"one": {"q": ids[5:6]}}, random_share=1)
