"""The text tower as it learns is the one that ships, and learns what it is taught."""

from collections import Counter

import numpy as np
import pytest

pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch")

from searchlab.models.mini.text import (  # noqa: E402
    MIXER_FILE,
    PIECE_SCORES_FILE,
    PIECES_FILE,
    SCALES_FILE,
    TABLE_FILE,
    Pieces,
    TextTower,
    add_common,
)
from searchlab.training.mini import joint  # noqa: E402
from searchlab.training.mini.corpora import CAPTION_LANGUAGES, Caption  # noqa: E402
from searchlab.training.mini.heads import CAPTIONED, DIM, PhotoHead, class_matrix, unit  # noqa: E402
from searchlab.training.mini.hubness import DampedHead  # noqa: E402
from searchlab.training.mini.joint import _LessonSampler, blend, fit  # noqa: E402
from searchlab.training.mini.photo_tower import Readings  # noqa: E402
from searchlab.training.mini.student import (  # noqa: E402
    WIDTH,
    PieceTable,
    Student,
    make_first_weights,
    pack_texts,
    quantise,
)
from searchlab.training.mini.text_examples import TextExamples  # noqa: E402
from searchlab.training.mini.validation import held_out_recall  # noqa: E402

NAMES = ["▁red", "▁bus", "▁dog", "▁man", "▁bites", "犬"]


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def test_the_shipped_tower_computes_what_was_learnt(tmp_path, rng):
    table = rng.normal(size=(len(NAMES), WIDTH)).astype(np.float32)
    small, scales = quantise(table)
    table = small * scales.astype(np.float32)[:, None]
    student = Student(rng.normal(size=(WIDTH, DIM)).astype(np.float32)).eval()
    torch.nn.init.normal_(student.outer)
    np.save(tmp_path / TABLE_FILE, small)
    np.save(tmp_path / SCALES_FILE, scales)
    np.save(tmp_path / PIECE_SCORES_FILE, np.full(len(NAMES), -5, dtype=np.float16))
    (tmp_path / PIECES_FILE).write_text("\n".join(NAMES), encoding="utf-8")
    np.savez(tmp_path / MIXER_FILE, **student.mixer()._asdict())
    texts = ["dog bites man", "man bites dog", "red bus", "犬"]

    shipped = TextTower(tmp_path, dim=DIM + 1).encode(texts)

    pieces = Pieces(dict.fromkeys(NAMES, -5.0))
    packed = pack_texts([pieces.encode(text) for text in texts])
    with torch.no_grad():
        learnt = add_common(student(PieceTable(table, rate=0.1).take(packed), packed).numpy())
    np.testing.assert_allclose((shipped * learnt).sum(axis=1), 1, atol=1e-3)  # 16 bits in training
    assert shipped[0] @ shipped[1] < 0.999


def test_only_rows_in_use_move(rng):
    first = rng.normal(size=(5, WIDTH)).astype(np.float32)
    table = PieceTable(first.copy(), rate=0.1)
    table.take(pack_texts([[1, 3], [3]])).sum().backward()
    table.step(1.0)
    moved = np.abs(table.rows.numpy() - first).max(axis=1) > 0
    assert moved.tolist() == [False, True, False, True, False]


def test_first_rows_follow_the_teacher(rng):
    vectors = rng.normal(size=(400, 8)).astype(np.float32)
    towards = rng.normal(size=(8, DIM)).astype(np.float32)
    lessons = TextExamples()
    for row in range(300):
        lessons.add([row], unit((vectors - vectors.mean(axis=0))[row] @ towards), 1.0)
    rows, axes = make_first_weights(lessons, vectors)
    predicted = unit(rows[300:] @ axes)
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
    table = PieceTable(0.1 * rng.normal(size=(count + 2, WIDTH)).astype(np.float32), rate=0.02)
    student = Student(0.1 * rng.normal(size=(WIDTH, DIM)).astype(np.float32), hidden=8)
    shown = unit(rng.normal(size=(count, CAPTIONED)))
    fit(student, table, head, lessons, [readings], [shown], steps=60, texts=32, photos=32)

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
    table = PieceTable(0.1 * rng.normal(size=(2, WIDTH)).astype(np.float32), rate=0.02)
    student = Student(0.1 * rng.normal(size=(WIDTH, DIM)).astype(np.float32), hidden=4)

    def agreement():
        with torch.no_grad():
            predicted, _ = head.eval().parts(torch.from_numpy(features), torch.from_numpy(logits))
        return float((predicted.numpy() * shown).sum(axis=1).mean())

    assert agreement() < 0.3
    monkeypatch.setattr(joint, "HEAD_RATE", 1e-2)
    fit(student, table, head, lessons, [readings], [shown], steps=100, texts=8, photos=count)
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
    sampler = _LessonSampler(lessons, [f"p{n}" for n in range(200)], rng)
    counts = Counter()
    for _ in range(20):
        rows, caption_numbers = sampler.draw_photos(200)
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
    table = PieceTable((seen.numpy() @ np.linalg.pinv(direct)).astype(np.float32), rate=0.1)
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
    lines = list(held_out_recall(student, table, damped, pieces, photos, held_out_captions))
    recalls = {line[:2]: line[3:] for line in lines}
    assert list(recalls) == list(CAPTION_LANGUAGES)
    assert recalls["en"] == "100.0 / 100.0 / 100.0 of 30 captions"
    assert recalls["zh"] == "0.0 / 0.0 / 100.0 of 30 captions"
    assert recalls["fr"] == "0.0 / 0.0 / 0.0 of 30 captions"


def test_a_blend_holds_the_mean_weights_of_its_runs(rng):
    runs = []
    for _ in range(3):
        head = PhotoHead(
            np.zeros((2, 96), np.float32), np.zeros(4, np.float32), np.ones(4, np.float32), hidden=4
        )
        table = PieceTable(rng.normal(size=(5, WIDTH)).astype(np.float32), rate=0.1)
        student = Student(rng.normal(size=(WIDTH, DIM)).astype(np.float32), hidden=4)
        runs.append((student, table, head))
    rows = np.mean([table.rows.numpy() for _, table, _ in runs], axis=0)
    weights = torch.stack([student.window.weight for student, _, _ in runs]).mean(dim=0)
    outer = torch.stack([head.outer.bias for _, _, head in runs]).mean(dim=0)
    blend(runs)
    student, table, head = runs[0]
    np.testing.assert_allclose(table.rows, rows, atol=1e-6)
    torch.testing.assert_close(student.window.weight, weights)
    torch.testing.assert_close(head.outer.bias, outer)


def test_a_text_without_pieces_is_no_lesson():
    lessons = TextExamples()
    assert lessons.add([], np.zeros(DIM, np.float32), 1.0) is None
    assert lessons.add([1, 2], np.zeros(DIM, np.float32), 1.0) == 0
