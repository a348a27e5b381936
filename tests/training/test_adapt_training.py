"""Adapting: parts that share no photo, gradients that are right, and training that goes on."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from searchlab.config.calibration import Curve
from searchlab.errors import InputError
from searchlab.models.adapted import Head
from searchlab.models.protocol import unit_rows
from searchlab.training.adapt.head_training import Trainer, TrainingSettings, _forward, contrast
from searchlab.training.adapt.model_folder import carry_over
from searchlab.training.adapt.pairs import CaptionPairs, part_of
from searchlab.training.adapt.ranking import OTHER, queries_of

QUICK = TrainingSettings(rounds=6)


def random_pairs(n_photos, *, seed=0, dim=8, captions=2, langs=("en",)):
    rng = np.random.default_rng(seed)
    owners = np.repeat(np.arange(n_photos), captions)
    return CaptionPairs(
        tuple(f"{seed}-{n}" for n in range(n_photos)),
        unit_rows(rng.normal(size=(n_photos, dim))),
        unit_rows(rng.normal(size=(len(owners), dim))),
        owners,
        np.arange(len(owners)),
        np.array([langs[n % len(langs)] for n in range(len(owners))]),
    )


# -- split and queries ------------------------------------------------------------------------


def test_the_split_is_by_content_and_of_the_promised_shares():
    parts = Counter(part_of(f"{n:064x}") for n in range(4_000))
    assert parts["test"] / 4_000 == pytest.approx(0.15, abs=0.02)
    assert parts["validation"] / 4_000 == pytest.approx(0.15, abs=0.02)
    assert [part_of("a" * 64), part_of("b" * 64), part_of("c" * 64)] == ["train"] * 2 + [
        "validation"
    ]


def test_parts_share_no_photo_and_lose_none():
    pairs = random_pairs(200, captions=3)
    parts = [pairs.part(name) for name in ("train", "validation", "test")]
    assert sorted(s for part in parts for s in part.sha256s) == sorted(pairs.sha256s)
    assert sum(len(part.texts) for part in parts) == 600
    for part in parts:
        assert np.bincount(part.owners).tolist() == [3] * len(part)
        row = pairs.sha256s.index(part.sha256s[1])
        np.testing.assert_array_equal(
            part.texts[part.owners == 1], pairs.texts[3 * row : 3 * row + 3]
        )


@pytest.mark.parametrize("hard", [-0.1, 0.51, 1.0])
def test_a_hard_photo_is_drawn_for_one_that_is_not(hard):
    with pytest.raises(InputError, match="hard must lie between 0 and"):
        TrainingSettings(hard=hard)


def test_ranks_are_those_of_a_plain_loop():
    pairs = random_pairs(30, captions=2)
    # Three photos share one text.
    pairs = replace(pairs, text_ids=np.where(pairs.text_ids < 6, 0, pairs.text_ids))
    queries = queries_of(pairs)
    ranks = queries.ranks(pairs.photos)
    for query, rank in enumerate(ranks):
        relevant = queries.photo_of[queries.query_of == query]
        cosines = pairs.photos @ queries.texts[query]
        others = np.delete(cosines, relevant)
        assert rank == (others >= cosines[relevant].max()).sum()
    assert sorted(queries.photo_of[queries.query_of == 0].tolist()) == [0, 0, 1, 1, 2, 2]


def test_a_photo_of_the_same_cosine_counts_as_before():
    pairs = random_pairs(4, captions=1)
    same = replace(pairs, photos=np.ones((4, 8), dtype=np.float32) / np.float32(8**0.5))
    assert queries_of(same).ranks(same.photos).tolist() == [3, 3, 3, 3]


def test_languages_with_few_queries_count_together():
    langs = ["en"] * 17 + ["de", "fr", "cs"]
    queries = queries_of(random_pairs(100, captions=2, langs=langs))
    assert set(queries.langs) == {"en", OTHER}


# -- training ---------------------------------------------------------------------------------


def test_gradients_are_those_of_small_differences():
    rng = np.random.default_rng(0)
    rows, others = unit_rows(rng.normal(size=(6, 5))), unit_rows(rng.normal(size=(4, 5)))
    positive = np.zeros((6, 4), dtype=bool)
    positive[np.arange(6), [0, 1, 2, 3, 0, 1]] = positive[5, 3] = True
    linear, bias = rng.normal(size=(5, 5)) * 0.3, rng.normal(size=5) * 0.1

    def loss(linear, bias):
        return contrast(_forward(rows, Head(linear, bias))[0], others, positive, 7.0)[0]

    outputs, back = _forward(rows, Head(linear, bias))
    _, d_logits, _ = contrast(outputs, others, positive, 7.0)
    gradients = back(7.0 * d_logits @ others)
    step = 1e-5
    for place in np.ndindex(5, 5):
        moved = np.zeros((5, 5))
        moved[place] = step
        slope = (loss(linear + moved, bias) - loss(linear - moved, bias)) / (2 * step)
        assert gradients[0][place] == pytest.approx(slope, abs=2e-4)
    for place in range(5):
        moved = np.zeros(5)
        moved[place] = step
        slope = (loss(linear, bias + moved) - loss(linear, bias - moved)) / (2 * step)
        assert gradients[1][place] == pytest.approx(slope, abs=2e-4)


def test_captions_are_drawn_of_the_right_photo_and_languages_alike():
    pairs = random_pairs(50, captions=10, langs=["en"] * 9 + ["de"])
    sampler = Trainer(pairs, random_pairs(5, seed=1), QUICK)._sampler
    photos = np.array([3, 49, 0])
    captions, positive = sampler.draw_captions(np.random.default_rng(0), photos, 500)
    np.testing.assert_array_equal(pairs.owners[captions], np.repeat(photos, 500))
    np.testing.assert_array_equal(positive, pairs.owners[captions][:, None] == photos)
    assert (pairs.langs[captions] == "de").mean() == pytest.approx(0.5, abs=0.05)


def test_a_shared_caption_is_a_positive_of_all_its_photos():
    pairs = random_pairs(4, captions=1)
    pairs = replace(pairs, text_ids=np.array([0, 1, 0, 2]))
    sampler = Trainer(pairs, random_pairs(5, seed=1), QUICK)._sampler
    _, positive = sampler.draw_captions(np.random.default_rng(0), np.array([2, 1, 0]), 1)
    assert positive.tolist() == [[True, False, True], [False, True, False], [True, False, True]]


def test_hard_photos_are_others_that_look_alike():
    pairs = random_pairs(400)
    sampler = Trainer(pairs, random_pairs(5, seed=1), QUICK)._sampler
    numbers = sampler.draw_photos(np.random.default_rng(0), 40, 0.25, Head.identity(8))
    assert len(set(numbers.tolist())) == len(numbers)
    assert 30 < len(numbers) <= 40
    everyone = sampler.draw_photos(np.random.default_rng(0), 400, 0.25, Head.identity(8))
    assert sorted(everyone.tolist()) == list(range(400))


@pytest.mark.slow
def test_training_goes_on_from_a_state_as_if_it_had_never_stopped(tmp_path):
    train, held_out = random_pairs(60), random_pairs(30, seed=1)
    whole = Trainer(train, held_out, QUICK)
    while not whole.done:
        whole.train_round()
    part = Trainer(train, held_out, QUICK)
    part.train_round()
    part.train_round()
    part.save(tmp_path / "state.npz")
    resumed = Trainer(train, held_out, QUICK)
    assert resumed.restore(tmp_path / "state.npz")
    assert resumed.round == 2
    while not resumed.done:
        resumed.train_round()
    assert resumed.state() == whole.state()


def test_a_state_of_other_data_or_a_damaged_one_is_not_taken(tmp_path):
    train, held_out = random_pairs(60), random_pairs(30, seed=1)
    file = tmp_path / "state.npz"
    Trainer(train, held_out, QUICK).save(file)
    assert not Trainer(random_pairs(60, seed=5), held_out, QUICK).restore(file)
    assert not Trainer(train, held_out, replace(QUICK, seed=1)).restore(file)
    file.write_bytes(file.read_bytes()[:500])
    assert not Trainer(train, held_out, QUICK).restore(file)
    assert not Trainer(train, held_out, QUICK).restore(tmp_path / "none.npz")


def test_a_head_can_be_undone_and_leaves_zero_rows_zero():
    rng = np.random.default_rng(0)
    linear = (0.2 * rng.normal(size=(12, 12))).astype(np.float32)
    head = Head(linear, (0.1 * rng.normal(size=12)).astype(np.float32))
    rows = unit_rows(rng.normal(size=(50, 12)))
    np.testing.assert_allclose(head.invert(head(rows)), rows, atol=1e-5)
    assert not head(np.zeros((2, 12), dtype=np.float32)).any()
    np.testing.assert_allclose(head.scale(0)(rows), rows, atol=1e-6)


def test_a_curve_carried_over_gives_the_same_pairs_about_the_same_scores():
    rows = unit_rows(np.random.default_rng(0).normal(size=(300, 6)))
    curve = Curve(8.0, -6.0)
    same = carry_over(curve, rows, rows)
    assert (same.slope, same.intercept) == (pytest.approx(8.0), pytest.approx(-6.0))
