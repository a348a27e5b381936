import json
from dataclasses import replace

import numpy as np
import pytest

from searchlab.errors import InputError
from searchlab.search.engine import SearchEngine
from searchlab.studies.query_sets import QuerySet
from searchlab.studies.steering.conflicts import (
    SteeringConflict,
    draw_conflicts,
    rank_ids,
    score_conflicts,
    steer,
)
from searchlab.studies.steering.mixing import mixings, run_mixing
from searchlab.studies.steering.study import measure
from tests.support.judged_kinds import judged_photos

FEW = (0.0, 0.5, 1.7, 5.0)


@pytest.fixture(scope="module")
def collection(make_table):
    engines, query_set = judged_photos(make_table)
    english = query_set.text.select(languages=["en"])
    return engines["sharp"], replace(query_set, text=english)


@pytest.fixture(scope="module")
def conflicts(collection):
    return draw_conflicts(collection[1].text, collection[1].similar, seed=0)


def test_a_pull_joins_words_with_a_photo_that_they_do_not_describe(collection, conflicts):
    _, query_set = collection
    assert len(conflicts) == len(query_set.text.queries)
    for conflict in conflicts:
        assert conflict.photo_id not in query_set.text.qrels[conflict.conflict_id]
        assert conflict.meant == query_set.text.qrels[conflict.conflict_id]
        assert conflict.alike == query_set.similar.qrels[conflict.photo_id]


def test_pulls_are_the_same_for_the_same_seed_whatever_else_is_asked(collection, conflicts):
    _, query_set = collection
    some = query_set.text.only([query.query_id for query in query_set.text.queries[10:20]])
    assert draw_conflicts(some, query_set.similar, seed=0) == conflicts[10:20]
    assert draw_conflicts(query_set.text, query_set.similar, seed=1) != conflicts


def test_words_that_describe_every_photo_pull_nowhere(collection):
    _, query_set = collection
    query = query_set.text.queries[0]
    photos = {other.photo_id: 1 for other in query_set.similar.queries}
    everything = query_set.text.derive("all", [query], {query.query_id: photos})
    with pytest.raises(InputError, match="does not describe"):
        draw_conflicts(everything, query_set.similar, seed=0)


def test_no_text_is_the_photo_alone_and_much_text_nearly_the_words_alone(collection, conflicts):
    engine, _ = collection
    steered = steer(engine, conflicts, alphas=FEW)
    curves = steered.curves(samples=20, seed=0)
    assert (steered.overlap[0] == 1).all()
    assert curves["look_kept"][:, 0] == pytest.approx(np.ones(21))
    means = {name: means_and_samples[0] for name, means_and_samples in curves.items()}
    assert np.all(np.diff(means["look_kept"]) < 0)
    assert np.all(np.diff(means["text_obeyed"]) > 0)
    assert means["text_obeyed"][-1] > 0.9
    assert 0 < means["balance"].argmax() < len(FEW) - 1


def test_curves_are_ratios_of_means_and_their_harmonic_mean():
    steered = score_conflicts(
        [
            SteeringConflict("p", "ref", "words", "en", "x", {"a": 1}, {"b": 1}),
            SteeringConflict("q", "ref", "words", "en", "y", {"a": 1}, {"c": 1}),
        ],
        [0.0, 1.0],
        [{"p": ["a"], "q": ["a"]}, {"p": ["a", "b"], "q": ["d"]}],
        np.array([1.0, 0.5]),
    )
    curves = steered.curves(samples=5, seed=0)
    assert curves["look_kept"][0].tolist() == [1, 0.5]
    second = 1 / np.log2(3)
    assert curves["text_obeyed"][0] == pytest.approx([0, second / 1.5])
    obeyed = second / 1.5
    assert curves["balance"][0] == pytest.approx([0, 2 * 0.5 * obeyed / (0.5 + obeyed)])
    assert steered.overlap.tolist() == [[1 / 10, 1 / 10], [1 / 10, 0]]
    assert steered.only([1]).look.tolist() == [[1], [0]]


def test_nothing_to_keep_or_to_obey_is_zero_and_no_warning():
    pull = SteeringConflict("p", "ref", "words", "en", "x", {"a": 1}, {"b": 1})
    steered = score_conflicts([pull], [0.0, 1.0], [{"p": ["z"]}, {"p": ["z"]}], np.array([0.0]))
    for curve in steered.curves(samples=5, seed=0).values():
        assert (curve == 0).all()


def test_twice_the_steering_is_half_the_alpha(collection, conflicts):
    engine, _ = collection
    config = replace(engine.config, steering=2 * engine.config.steering)
    double = SearchEngine(engine.table, engine.index, engine.model, config)
    once = steer(engine, conflicts, alphas=(0.0, 1.0, 3.0))
    half = steer(double, conflicts, alphas=(0.0, 0.5, 1.5))
    assert np.allclose(once.look, half.look)
    assert np.allclose(once.text, half.text)


def test_words_alone_never_find_the_reference(collection, conflicts):
    engine, query_set = collection
    own = query_set.text.queries[0]
    photo_id = engine.table.photo_ids([int(own.text.split()[0])])[0]
    photo_ids = rank_ids(engine, photo_id, own.text, None)
    assert photo_id not in photo_ids
    assert len(photo_ids) == 10


def test_weights_must_begin_with_the_photo_alone(collection, conflicts):
    with pytest.raises(InputError, match="must begin with 0"):
        steer(collection[0], conflicts, alphas=(0.5, 1.0))


def test_adding_cosines_ranks_as_adding_vectors_does(collection, conflicts):
    engine, _ = collection
    runs = run_mixing(engine, conflicts, FEW, mixings(engine.config.calibration)["sum"])
    for alpha, run in zip(FEW, runs, strict=True):
        assert run == {
            p.conflict_id: rank_ids(engine, p.photo_id, p.text, alpha) for p in conflicts
        }


def test_every_way_to_mix_is_the_photo_alone_without_words(collection, conflicts):
    engine, _ = collection
    first = {p.conflict_id: rank_ids(engine, p.photo_id, p.text, 0.0) for p in conflicts}
    for mixing in mixings(engine.config.calibration).values():
        assert run_mixing(engine, conflicts, [0.0], mixing) == [first]


@pytest.mark.slow
def test_the_lab_finds_the_same_again_and_says_which_weight_is_best(collection):
    engine, query_set = collection
    once, again = (measure(engine, query_set, alphas=FEW, samples=30) for _ in range(2))
    assert once == again
    metrics = once["metrics"]
    assert metrics["best_alpha"] in FEW
    assert metrics["best_steering"] == pytest.approx(metrics["best_alpha"] / 1.7, abs=1e-6)
    assert metrics["n_pulls"] == 90
    assert metrics["balance"] <= metrics["best_balance"]
    assert [row["lang"] for row in once["languages"]] == ["en"]
    assert [row["text_alpha"] for row in once["agreeing"]] == [*FEW, None]
    json.dumps(once, allow_nan=False)


def test_the_default_must_be_among_the_weights_and_photo_queries_there(collection):
    engine, query_set = collection
    with pytest.raises(InputError, match=r"alphas must hold 1\.7"):
        measure(engine, query_set, alphas=(0.0, 1.0))
    with pytest.raises(InputError, match="must come with queries by photos"):
        measure(engine, QuerySet(text=query_set.text))
