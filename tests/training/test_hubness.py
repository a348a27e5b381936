"""Photos that lie near to whatever is asked are held back by a component of their own."""

import numpy as np
import pytest

pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch")

from searchlab.models.mini.text import COMMON, add_common  # noqa: E402
from searchlab.training.mini import hubness  # noqa: E402
from searchlab.training.mini.heads import DIM, PhotoHead, unit  # noqa: E402
from searchlab.training.mini.hubness import (  # noqa: E402
    CAPTIONS,
    SHARE,
    SHARPNESS,
    DampedHead,
    _draw_captions,
    damp_hubs,
)
from searchlab.training.mini.photo_tower import Readings  # noqa: E402
from searchlab.training.mini.student import WIDTH, PieceTable, Student, pack_texts  # noqa: E402
from searchlab.training.mini.text_examples import TextExamples  # noqa: E402


class Given(torch.nn.Module):
    """A head whose rows are the features."""

    def forward(self, features, logits):
        return features


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.fixture
def captions(rng):
    """Captions that lean one way, as captions do."""
    return unit(rng.normal(size=(40, DIM)) + 2 * rng.normal(size=DIM))


@pytest.fixture
def photos(rng, captions):
    """Photos of which the first lies amid the captions."""
    return unit(np.concatenate([captions.mean(axis=0)[None], rng.normal(size=(9, DIM))]))


def damped_rows(captions, photos):
    module = DampedHead(Given(), captions, np.full(len(captions), 1 / len(captions)))
    nothing = np.zeros((len(photos), 1), np.float32)
    module.balance(Readings([str(n) for n in range(len(photos))], photos, nothing))
    with torch.no_grad():
        return module(torch.from_numpy(photos), torch.from_numpy(nothing)).numpy()


def test_scores_are_cosines_less_how_near_a_photo_is_to_captions(captions, photos, rng):
    rows = damped_rows(captions, photos)
    near = np.log(np.exp(SHARPNESS * photos @ captions.T).mean(axis=1)) / SHARPNESS
    texts = unit(rng.normal(size=(20, DIM)))
    expected = texts @ photos.T - SHARE * (near - near.mean())
    expected *= (1 - COMMON**2) ** 0.5 * photo_lengths(rows)
    np.testing.assert_allclose(add_common(texts) @ rows.T, expected, atol=1e-5)
    assert near[0] == near.max()
    assert rows[0, -1] == rows[:, -1].min() < 0


def photo_lengths(rows):
    """What making a row with its last component one of unit length leaves of the others."""
    return np.linalg.norm(rows[:, :-1], axis=1)


def test_rows_are_unit_and_keep_their_direction(captions, photos):
    rows = damped_rows(captions, photos)
    assert rows.shape == (len(photos), DIM + 1)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(unit(rows[:, :-1]), photos, atol=1e-5)


def test_a_text_that_says_nothing_stays_zero_and_others_end_alike(rng):
    mixed = rng.normal(size=(3, DIM)).astype(np.float32)
    mixed[1] = 0
    rows = add_common(mixed)
    assert not rows[1].any()
    np.testing.assert_allclose(rows[[0, 2], -1], COMMON)
    np.testing.assert_allclose(np.linalg.norm(rows[[0, 2]], axis=1), 1, atol=1e-6)


def test_every_language_speaks_for_what_is_asked(rng):
    lessons = [
        {"en": [3 * n, 3 * n + 1], **({"de": [3 * n + 2]} if n < 7 else {})}
        for n in range(CAPTIONS)
    ]
    lines = _draw_captions(lessons, rng)
    assert len(lines) == len(set(lines)) == CAPTIONS // 2 + 7
    assert sum(n % 3 == 2 for n in lines) == 7
    assert _draw_captions([{}], rng) == []


def test_a_trained_head_is_held_back_by_its_own_captions(rng):
    head = PhotoHead(
        rng.normal(size=(2, 96)).astype(np.float32), np.zeros(4, np.float32), np.ones(4, np.float32)
    ).eval()
    pieces = rng.normal(size=(300, WIDTH)).astype(np.float32)
    table = PieceTable(pieces, np.eye(WIDTH, dtype=np.float32), rate=0.1)
    student = Student(rng.normal(size=(WIDTH, DIM)).astype(np.float32), hidden=4).eval()
    lessons = TextExamples()
    for n in range(300):
        number = lessons.add([n], np.zeros(DIM, np.float32), 1.0)
        lessons.captions[f"p{n}"] = {"en": [number]}
    seen = Readings(
        list(lessons.captions),
        rng.normal(size=(300, 4)).astype(np.float32),
        rng.normal(size=(300, 2)).astype(np.float32),
    )
    module = damp_hubs(head, student, table, lessons, seen, np.zeros(300, dtype=np.int8), seed=0)
    with torch.no_grad():
        plain = head(torch.from_numpy(seen.features), torch.from_numpy(seen.logits))
        near = module.nearness(plain).numpy()
        packed = pack_texts(lessons.rows)
        text_rows = student(table.take(packed), packed).numpy()
    exact = np.log(np.exp(SHARPNESS * plain.numpy() @ text_rows.T).mean(axis=1)) / SHARPNESS
    np.testing.assert_allclose(near[:, 0], exact, atol=0.004)  # By 256 centres of 300 captions.
    np.testing.assert_allclose(module.mean, near.mean(), atol=1e-6)


def test_every_collection_has_an_equal_say(rng, monkeypatch):
    monkeypatch.setattr(hubness, "CAPTIONS", 40)
    monkeypatch.setattr(hubness, "CENTRES", 2)
    lessons = TextExamples()
    for n in range(440):
        number = lessons.add([n], np.zeros(DIM, np.float32), 1.0)
        lessons.captions[f"p{n}"] = {"en": [number]}
    # The captions of the last 40 photos, which are another collection, lie apart.
    apart = rng.normal(size=(2, WIDTH)).repeat([400, 40], axis=0)
    vectors = (apart + 0.01 * rng.normal(size=(440, WIDTH))).astype(np.float32)
    table = PieceTable(vectors, np.eye(WIDTH, dtype=np.float32), rate=0.1)
    student = Student(rng.normal(size=(WIDTH, DIM)).astype(np.float32), hidden=4).eval()
    features = rng.normal(size=(440, DIM)).astype(np.float32)
    photos = Readings(list(lessons.captions), features, np.zeros((440, 1), np.float32))
    collections = np.repeat(np.array([0, 1], dtype=np.int8), [400, 40])
    module = damp_hubs(Given(), student, table, lessons, photos, collections, seed=0)
    np.testing.assert_allclose(np.exp(module.logarithms.numpy()), [0.5, 0.5], atol=1e-6)
