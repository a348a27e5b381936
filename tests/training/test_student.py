"""The text tower as it learns is the one that ships, and learns what it is taught."""

from collections import Counter

import numpy as np
import pytest

pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch")

from searchlab.models.mini.pieces import Pieces  # noqa: E402
from searchlab.models.mini.text import (  # noqa: E402
    MIXER_FILE,
    SCALES_FILE,
    TABLE_FILE,
    TextTower,
    add_common,
    pack,
    unpack,
)
from searchlab.training.mini import joint  # noqa: E402
from searchlab.training.mini.corpora import CAPTION_LANGUAGES, Caption  # noqa: E402
from searchlab.training.mini.heads import CAPTIONED, DIM, PhotoHead, class_matrix, unit  # noqa: E402
from searchlab.training.mini.hubness import DampedHead  # noqa: E402
from searchlab.training.mini.joint import _CaptionSampler, blend, fit  # noqa: E402
from searchlab.training.mini.photo_tower import Readings  # noqa: E402
from searchlab.training.mini.student import (  # noqa: E402
    WIDTH,
    PieceTable,
    Student,
    make_first_weights,
    pack_texts,
    quantise,
    spread_evenly,
)
from searchlab.training.mini.text_examples import TextExamples  # noqa: E402
from searchlab.training.mini.validation import held_out_recall  # noqa: E402

NAMES = ["▁red", "▁bus", "▁dog", "▁man", "▁bites", "犬"]


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def table_of(rows, *, rate=0.1):
    """A table that starts with these rows, whose reader leaves them as they are."""
    return PieceTable(rows.copy(), np.eye(rows.shape[1], dtype=np.float32), rate=rate)


def test_the_shipped_tower_computes_what_was_learnt(tmp_path, rng):
    small, scales = quantise(rng.normal(size=(len(NAMES), WIDTH)).astype(np.float32))
    table = unpack(small, scales.astype(np.float32))
    student = Student(rng.normal(size=(WIDTH, DIM)).astype(np.float32)).eval()
    torch.nn.init.normal_(student.outer)
    np.save(tmp_path / TABLE_FILE, small)
    np.save(tmp_path / SCALES_FILE, scales)
    pieces = Pieces(dict.fromkeys(NAMES, -5.0))
    pieces.save(tmp_path)
    np.savez(tmp_path / MIXER_FILE, **student.mixer()._asdict())
    texts = ["dog bites man", "man bites dog", "red bus", "犬"]

    shipped = TextTower(tmp_path, dim=DIM + 1).encode(texts)

    packed = pack_texts([pieces.encode(text) for text in texts])
    with torch.no_grad():
        learnt = add_common(student(table_of(table).take(packed), packed).numpy())
    np.testing.assert_allclose((shipped * learnt).sum(axis=1), 1, atol=1e-3)  # 16 bits in training
    assert shipped[0] @ shipped[1] < 0.999


def test_only_rows_in_use_move(rng):
    first = rng.normal(size=(5, WIDTH)).astype(np.float32)
    table = table_of(first)
    np.testing.assert_allclose(table.vectors(), first, atol=1e-5)
    table.take(pack_texts([[1, 3], [3]])).sum().backward()
    table.step(1.0)
    moved = np.abs(table.vectors() - first).max(axis=1) > 1e-3
    assert moved.tolist() == [False, True, False, True, False]


def test_a_copy_of_a_table_learns_on_its_own(rng):
    first = rng.normal(size=(5, WIDTH)).astype(np.float32)
    table = table_of(first)
    other = table.copy(rate=0.5)
    other.take(pack_texts([[1]])).sum().backward()
    other.step(1.0)
    with torch.no_grad():
        other.reader.weight.add_(1.0)
    np.testing.assert_allclose(table.vectors(), first, atol=1e-5)
    assert (other.rate, table.rate) == (0.5, 0.1)


def test_four_bits_keep_the_direction_of_a_vector(rng):
    table = rng.normal(size=(200, WIDTH)).astype(np.float32)
    table[0] = 0
    table[1] *= 1e-3
    small, scales = quantise(table)
    assert small.shape == (200, WIDTH // 2)
    stored = unpack(small, scales.astype(np.float32))
    assert not stored[0].any()
    assert (unit(stored[1:]) * unit(table[1:])).sum(axis=1).min() > 0.98


def test_a_turned_table_makes_the_same_rows_and_is_rounded_with_less_loss(rng):
    table = rng.normal(size=(50, WIDTH)) * np.linspace(3, 0.1, WIDTH)
    table = table.astype(np.float32)
    student = Student(rng.normal(size=(WIDTH, DIM)).astype(np.float32), hidden=8)
    torch.nn.init.normal_(student.outer)
    mixer = student.mixer()
    turned, other = spread_evenly(table, mixer)
    for rows in ([0], [3, 1, 4], list(range(20))):
        expected = mixer(table[rows])
        np.testing.assert_allclose(other(turned[rows]), expected, atol=1e-3 * abs(expected).max())

    def kept(rows):
        small, scales = quantise(rows)
        return (unit(unpack(small, scales.astype(np.float32))) * unit(rows)).sum(axis=1).mean()

    assert 1 - kept(turned) < 0.8 * (1 - kept(table))


def test_packed_numbers_come_back_where_they_were():
    numbers = np.array([[-7, 7, 0, 3], [1, -1, 2, -2]], dtype=np.int8)
    vectors = unpack(pack(numbers), np.array([1, 0.5], dtype=np.float32))
    np.testing.assert_array_equal(vectors, numbers * np.array([[1], [0.5]]))


def test_first_rows_follow_the_teacher(rng):
    vectors = rng.normal(size=(400, 8)).astype(np.float32)
    towards = rng.normal(size=(8, DIM)).astype(np.float32)
    lessons = TextExamples()
    for row in range(300):
        lessons.add([row], unit((vectors - vectors.mean(axis=0))[row] @ towards), 1.0)
    features, reader, axes = make_first_weights(lessons, vectors)
    assert reader.shape == (8, WIDTH)
    predicted = unit(features[300:] @ reader @ axes)
    expected = unit((vectors - vectors.mean(axis=0))[300:] @ towards)
    assert (predicted * expected).sum(axis=1).mean() > 0.9


def test_kinds_pull_their_classes_together():
    classes = np.eye(3, 4, dtype=np.float32)
    kinds = np.array([[0, 0, 0, 1]], dtype=np.float32)
    rows = class_matrix(classes, kinds, np.array([[1], [1], [0]], dtype=np.float32))
    assert rows[0] @ rows[1] > 0
    assert rows[0] @ rows[2] == 0


def test_training_brings_captions_to_their_photos(rng):
    count = 64
    features = rng.normal(size=(count, 32)).astype(np.float32)
    logits = rng.normal(size=(count, 10)).astype(np.float32)
    readings = Readings([f"p{n}" for n in range(count)], features, logits)
    head = PhotoHead(
        rng.normal(size=(10, 96)).astype(np.float32), features.mean(0), features.std(0), hidden=16
    )
    lessons = TextExamples()
    targets = unit(rng.normal(size=(count, DIM)))
    for n in range(count):
        lessons.add([n], targets[n], 1.0)
        numbers = {
            lang: [lessons.add([n, count + k], targets[n], 1.0)]
            for k, lang in enumerate(("en", "de"))
        }
        lessons.captions[f"p{n}"] = numbers
    table = table_of(0.1 * rng.normal(size=(count + 2, WIDTH)).astype(np.float32), rate=0.02)
    student = Student(0.1 * rng.normal(size=(WIDTH, DIM)).astype(np.float32), hidden=8)
    shown = unit(rng.normal(size=(count, CAPTIONED)))
    ones = np.zeros(count, dtype=np.int8)
    sizes = {"names": 32, "sentences": 0, "photos": 32}
    fit(student, table, head, lessons, [readings], [shown], ones, steps=60, **sizes)

    packed = pack_texts(lessons.rows[1::3])
    with torch.no_grad():
        texts = student(table.take(packed), packed).numpy()
        photos = head(torch.from_numpy(features), torch.from_numpy(logits)).numpy()
    assert (np.argmax(texts @ photos.T, axis=1) == np.arange(count)).mean() > 0.8


def test_photos_are_drawn_to_where_the_teaching_heads_see_them(rng, monkeypatch):
    count = 32
    features = rng.normal(size=(count, 16)).astype(np.float32)
    logits = rng.normal(size=(count, 4)).astype(np.float32)
    readings = Readings([f"p{n}" for n in range(count)], features, logits)
    shown = unit(features @ rng.normal(size=(16, CAPTIONED)).astype(np.float32))
    lessons = TextExamples()
    lessons.add([1], np.zeros(DIM, np.float32), 1.0)
    for n in range(count):  # Captions that all read alike tell photos nothing.
        number = lessons.add([0], np.zeros(DIM, np.float32), 1.0)
        lessons.captions[f"p{n}"] = {"en": [number]}
    head = PhotoHead(
        np.zeros((4, 96), np.float32), features.mean(axis=0), features.std(axis=0), hidden=8
    )
    table = table_of(0.1 * rng.normal(size=(2, WIDTH)).astype(np.float32), rate=0.02)
    student = Student(0.1 * rng.normal(size=(WIDTH, DIM)).astype(np.float32), hidden=4)

    def agreement():
        with torch.no_grad():
            predicted, _ = head.eval().parts(torch.from_numpy(features), torch.from_numpy(logits))
        return float((predicted.numpy() * shown).sum(axis=1).mean())

    assert agreement() < 0.3
    monkeypatch.setattr(joint, "HEAD_RATE", 1e-2)
    ones = np.zeros(count, dtype=np.int8)
    sizes = {"names": 8, "sentences": 0, "photos": count}
    fit(student, table, head, lessons, [readings], [shown], ones, steps=100, **sizes)
    assert agreement() > 0.6


def test_languages_are_drawn_by_how_many_captions_they_have_and_never_twice_for_a_photo(rng):
    lessons = TextExamples()
    language_of = {}
    for n in range(200):
        own = {}
        for lang, count in {"en": 2, "zh": 5, "ar": 3, "de": 1}.items():
            own[lang] = [lessons.add([n], np.zeros(DIM, np.float32), 1.0) for _ in range(count)]
            language_of |= dict.fromkeys(own[lang], lang)
        lessons.captions[f"p{n}"] = own
    lessons.add([0], np.zeros(DIM, np.float32), 1.0)
    ones = np.zeros(200, dtype=np.int8)
    sampler = _CaptionSampler(lessons, [f"p{n}" for n in range(200)], ones, rng)
    counts = Counter()
    for _ in range(20):
        rows, caption_numbers = sampler.draw(200)
        assert sorted(rows) == list(range(200))
        english, first, second = np.reshape([language_of[n] for n in caption_numbers], (3, 200))
        assert set(english) == {"en"}
        assert not (first == second).any()
        counts.update(first)
    shares = [counts[lang] / counts.total() for lang in ("zh", "ar", "de", "en")]
    assert np.allclose(shares, [5 / 9, 3 / 9, 1 / 9, 0], atol=0.03)


def test_recall_on_held_out_photos_counts_captions_by_language(rng):
    head = PhotoHead(
        np.zeros((2, 96), np.float32), np.zeros(4, np.float32), np.ones(4, np.float32), hidden=4
    )
    captions = unit(rng.normal(size=(5, DIM)))
    damped = DampedHead(head, captions, np.full(5, 0.2))
    photos = Readings(
        [f"p{n}" for n in range(30)],
        rng.normal(size=(30, 4)).astype(np.float32),
        rng.normal(size=(30, 2)).astype(np.float32),
    )
    with torch.no_grad():
        seen = head.eval()(torch.from_numpy(photos.features), torch.from_numpy(photos.logits))
    direct = rng.normal(size=(WIDTH, DIM)).astype(np.float32)
    student = Student(direct, hidden=4)  # Untrained it only leads from pieces to rows.
    table = table_of((seen.numpy() @ np.linalg.pinv(direct)).astype(np.float32))
    words = [f"q{chr(97 + n // 6)}{chr(97 + n % 6)}" for n in range(30)]
    pieces = Pieces({f"▁{word}": -1.0 for word in words})
    packed = pack_texts([[n] for n in range(30)])
    with torch.no_grad():
        texts = add_common(student.eval()(table.take(packed), packed).numpy())
        placed = damped.eval()(torch.from_numpy(photos.features), torch.from_numpy(photos.logits))
    order = np.argsort(-(texts @ placed.numpy().T), axis=1)
    # In English a text asks for the photo that it finds at once, in Chinese for its seventh.
    place = {"en": 0, "zh": 6}
    held_out_captions = [
        Caption(f"p{order[n, place.get(lang, 20)]}", lang, words[n])
        for n in range(30)
        for lang in CAPTION_LANGUAGES
    ]
    collections = np.zeros(30, dtype=np.int8)
    inputs = (student, table, damped, pieces, photos)
    lines = list(held_out_recall(*inputs, collections, held_out_captions))
    recalls = dict(line.removeprefix("collection 0, ").split(" ", 1) for line in lines)
    assert list(recalls) == list(CAPTION_LANGUAGES)
    assert recalls["en"] == "100.0 / 100.0 / 100.0 of 30 captions"
    assert recalls["zh"] == "0.0 / 0.0 / 100.0 of 30 captions"
    assert recalls["fr"] == "0.0 / 0.0 / 0.0 of 30 captions"
    # With every photo in a collection of its own there is no other to find.
    alone = list(held_out_recall(*inputs, np.arange(30, dtype=np.int8), held_out_captions))
    assert alone
    assert all(" 100.0 / 100.0 / 100.0 of " in line for line in alone)


def test_a_blend_holds_the_mean_weights_of_its_runs(rng):
    runs = []
    first = rng.normal(size=(5, WIDTH)).astype(np.float32)
    for _ in range(3):
        head = PhotoHead(
            np.zeros((2, 96), np.float32), np.zeros(4, np.float32), np.ones(4, np.float32), hidden=4
        )
        table = table_of(first)
        table.rows += torch.rand(5, WIDTH)
        torch.nn.init.normal_(table.reader.weight)
        student = Student(rng.normal(size=(WIDTH, DIM)).astype(np.float32), hidden=4)
        runs.append((student, table, head))
    rows = np.mean([table.vectors() for _, table, _ in runs], axis=0)
    weights = torch.stack([student.window.weight for student, _, _ in runs]).mean(dim=0)
    outer = torch.stack([head.outer.bias for _, _, head in runs]).mean(dim=0)
    blend(runs)
    student, table, head = runs[0]
    np.testing.assert_allclose(table.vectors(), rows, atol=1e-4)
    torch.testing.assert_close(student.window.weight, weights)
    torch.testing.assert_close(head.outer.bias, outer)


def test_a_text_without_pieces_is_no_lesson():
    lessons = TextExamples()
    assert lessons.add([], np.zeros(DIM, np.float32), 1.0) is None
    assert lessons.add([1, 2], np.zeros(DIM, np.float32), 1.0) == 0
