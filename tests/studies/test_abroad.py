"""Home and abroad: the photos and queries of each ground, and scores by groups."""

from dataclasses import replace

import numpy as np
import pytest

from searchlab.config import Config
from searchlab.errors import InputError
from searchlab.evaluation.results import Result, Scores
from searchlab.studies.abroad import (
    GROUNDS,
    Ground,
    groups_of,
    make_ground,
    measure_grounds,
    only_photos,
    score_groups,
)
from tests.support.bundled import bundled


@pytest.fixture(scope="module")
def demo():
    return bundled("demo")


def test_every_ground_abroad_of_as_many_photos_stands_beside_home():
    for ground in GROUNDS:
        if ground.dataset in ("coco-judge", "web-judge"):
            number = ground.name.split()[0]
            beside = [one for one in GROUNDS if one.name.startswith(f"{number} photos of Flickr8k")]
            assert all(one.home for one in beside)
            assert [one.n_photos for one in beside] == [int(number)]


def test_photographs_alone_have_no_cut_out_among_photos_or_answers(demo):
    ground = Ground("photographs", False, "demo", photographs=True)
    dataset = make_ground(ground, lambda name: demo, most=60)
    assert len(dataset.photo_ids) == 306
    assert {record["source"] for record in dataset.records}.isdisjoint({"tuxpaint-stamps"})
    relevant = {photo for grades in dataset.qrels.values() for photo, n in grades.items() if n}
    assert relevant <= dataset.photo_ids


def test_queries_with_an_answer_outside_the_photos_that_are_drawn_are_left_out(demo):
    some = sorted(demo.photo_ids)[:40]
    part = only_photos(demo, "part", some)
    for query in part.queries:
        whole = {photo for photo, n in demo.qrels[query.query_id].items() if n}
        assert whole == {photo for photo, n in part.qrels[query.query_id].items() if n}
    assert part.revision != demo.revision
    with pytest.raises(InputError, match="must be about these 0 photos alone"):
        only_photos(demo, "none", [])


def test_a_ground_draws_the_same_photos_each_time(demo):
    ground = Ground("few", True, "demo", n_photos=50, languages=("en",))
    one, again = (make_ground(ground, lambda name: demo, most=5) for _ in range(2))
    assert len(one.photo_ids) == 50
    assert one.revision == again.revision
    assert len(one.queries) == 5


@pytest.mark.slow
def test_grounds_are_measured_with_intervals(demo, tmp_path):
    ground = Ground("few", True, "demo", n_photos=30, languages=("en",))
    (row,) = measure_grounds(
        lambda name: demo, [Config(model="palette")], grounds=[ground], most=5, cache=tmp_path
    )
    assert (row["where"], row["n_photos"], row["n_queries"]) == ("home", 30, 5)
    assert row["success@10"][1] <= row["success@10"][0] <= row["success@10"][2]


def test_groups_share_the_hits_and_average_their_own_queries(demo):
    part = demo.sample(["en"], 40, 0)
    ids = tuple(sorted(query.query_id for query in part.queries))
    groups = groups_of(part, {ids[0]: "a name", ids[1]: "a keyword"})
    hits = np.zeros(len(ids))
    hits[:4] = 1
    scores = Scores(ids, ("en",) * len(ids), ids, {"ndcg@10": hits, "success@5": hits}, hits)
    result = Result(
        "search_quality", "demo", "r", replace(Config(), model="mini"), {}, {}, {}, {}, scores
    )
    rows = score_groups([result], groups)
    taught = {row["group"]: row for row in rows if row["by"] == "was taught"}
    assert taught["a name"]["n_queries"] == 1
    assert taught["a name"][f"share of hits {result.name}"] == 0.25
    assert taught["a name"][f"success@5 {result.name}"][0] == 1
    assert taught["others"]["n_queries"] == len(ids) - 2
    for by in groups:
        of_group = [row for row in rows if row["by"] == by]
        assert sum(row["n_queries"] for row in of_group) == len(ids)
        assert sum(row[f"share of hits {result.name}"] for row in of_group) == pytest.approx(1)
