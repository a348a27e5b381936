"""What the text tower reads before it sees photos: sentences, names, and what is kept apart."""

import gzip

import numpy as np
import pytest

pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch")

from searchlab.models.mini.pieces import Pieces  # noqa: E402
from searchlab.training.mini.heads import DIM, unit  # noqa: E402
from searchlab.training.mini.reading import Reading, learn_to_read  # noqa: E402
from searchlab.training.mini.sentences import (  # noqa: E402
    HELD_OUT_SHARE,
    Sentence,
    is_held_out,
    read_names,
    read_sentences,
)
from searchlab.training.mini.student import WIDTH, PieceTable, Student, pack_texts  # noqa: E402
from searchlab.training.mini.text_examples import TextExamples, teach_sentences  # noqa: E402
from searchlab.training.mini.validation import held_out_reading  # noqa: E402


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def write_rows(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("".join("\t".join(line) + "\n" for line in lines))


def test_sentences_come_with_what_they_mean(tmp_path):
    head = ("lang", "text", "english", "kind", "source")
    write_rows(
        tmp_path / "sentences/pt.tsv.gz",
        [
            head,
            ("pt", 'Um "cão" corre', "A dog runs", "caption", "x"),
            ("pt-BR", "Bom dia", "", "everyday", "x"),
        ],
    )
    assert read_sentences(tmp_path) == [
        Sentence("pt", 'Um "cão" corre', "A dog runs", True),
        Sentence("pt-BR", "Bom dia", "", False),
    ]


def test_a_name_means_the_first_english_name_of_its_thing(tmp_path):
    write_rows(
        tmp_path / "sentences/names/names.tsv.gz",
        [
            ("synset", "kind", "lang", "lemma"),
            ("1", "animal", "fr", "chien"),
            ("1", "animal", "en", "dog"),
            ("1", "animal", "en", "domestic dog"),
            ("2", "plant", "en", "oak"),
        ],
    )
    assert read_names(tmp_path) == [
        ("fr", "chien", "dog"),
        ("en", "dog", "dog"),
        ("en", "domestic dog", "dog"),
        ("en", "oak", "oak"),
    ]


def test_without_the_files_there_is_nothing_to_read(tmp_path):
    assert (read_sentences(tmp_path), read_names(tmp_path)) == ([], [])


def test_about_one_english_sentence_in_forty_is_kept_apart():
    held_out = [text for text in map(str, range(20_000)) if is_held_out(text)]
    assert 0.8 < len(held_out) * HELD_OUT_SHARE / 20_000 < 1.2
    assert held_out == [text for text in map(str, range(20_000)) if is_held_out(text)]
    assert not is_held_out("")  # A sentence without a counterpart tells nothing.


class Teacher:
    """Reads a text as its place among those that it ever read."""

    def __init__(self):
        self.read = []

    def encode_english(self, texts):
        self.read += texts
        return np.eye(768, dtype=np.float32)[[self.read.index(text) for text in texts]]


class Side:
    """Gives each of the teacher's vectors its first components as target."""

    caption_mean = np.zeros(768, dtype=np.float32)

    def target(self, vectors, mean, *, captioned, named):
        return vectors[:, :DIM]


def test_a_translation_has_the_target_of_its_english_sentence():
    sentences = [
        Sentence("de", "hund", "dog", False),
        Sentence("fr", "chien", "dog", False),
        Sentence("de", "katze", "cat", False),
        Sentence("de", "haus", "", False),  # No counterpart, so nothing to learn from.
        Sentence("de", "???", "bus", False),  # Nothing of it is known.
    ]
    words = ("dog", "cat", "bus", "hund", "chien", "katze", "haus")
    pieces = Pieces({f"▁{word}": -1.0 for word in words})
    lessons = TextExamples()
    teach_sentences(lessons, pieces, Teacher(), Side(), sentences)
    texts = [[words[row] for row in rows] for rows in lessons.rows]
    assert texts == [["dog"], ["hund"], ["chien"], ["cat"], ["katze"], ["bus"]]
    assert lessons.translations == [(0, [1, 2]), (3, [4])]
    places = [int(target.argmax()) for target in lessons.targets]
    assert places == [0, 0, 0, 1, 1, 2]


@pytest.fixture
def lessons(rng):
    """Twenty sentences in English and in another language, and ten names."""
    lessons = TextExamples()
    for n, target in enumerate(unit(rng.normal(size=(30, DIM)))):
        if n >= 20:
            lessons.add([n], target, 1.0)
            continue
        english, other = (lessons.add([row], target, 0.0) for row in (n, 30 + n))
        lessons.translations.append((english, [other]))
    return lessons


def test_no_sentence_is_drawn_twice_in_a_step(lessons, rng):
    reading = Reading(lessons, rng, names=50, sentences=15)
    for _ in range(20):
        names, english, others = np.split(reading.draw(), [50, 65])
        assert {len(lessons.rows[n]) for n in names} == {1}
        assert min(names) >= 40  # Names alone have a weight.
        assert len(set(english)) == 15
        assert (others == english + 1).all()


def test_sentences_of_many_languages_are_drawn_more_often(rng):
    lessons = TextExamples()
    for n in range(100):
        numbers = [lessons.add([n], np.ones(DIM, np.float32), 1.0) for _ in range(11)]
        lessons.translations.append((numbers[0], numbers[1 : 11 if n < 50 else 2]))
    reading = Reading(lessons, rng, names=1, sentences=10)
    drawn = np.concatenate([reading.draw()[1:11] for _ in range(300)])
    often = (drawn < lessons.translations[50][0]).mean()
    assert 0.75 < often < 0.9  # 10 ** 0.7 is five times as often, less as none comes twice.


def test_a_translation_comes_to_lie_at_its_english_sentence(lessons, rng):
    lessons.captions["p"] = {"en": [0], "de": [1]}
    features = rng.normal(size=(50, 16)).astype(np.float32)
    reader = 0.1 * rng.normal(size=(16, WIDTH)).astype(np.float32)
    table = PieceTable(features, reader, rate=0.02)
    student = Student(0.1 * rng.normal(size=(WIDTH, DIM)).astype(np.float32), hidden=8)
    done = []
    learn_to_read(student, table, lessons, steps=60, advance=done.append)
    assert sum(done) == 60
    packed = pack_texts([[n] for n in (*range(20), *range(30, 50))])
    with torch.no_grad():
        english, others = student(table.take(packed), packed).numpy().reshape(2, 20, DIM)
    assert ((others @ english.T).argmax(axis=1) == np.arange(20)).all()


def test_reading_is_measured_on_sentences_that_were_kept_apart(rng):
    texts = [text for text in (f"w{n}" for n in range(4000)) if is_held_out(text)][:40]
    others = [text for text in (f"w{n}" for n in range(4000)) if not is_held_out(text)][:40]
    words = ["".join(chr(97 + int(digit)) for digit in text[1:]) for text in (*texts, *others)]
    pieces = Pieces({**{f"▁{text}": -1.0 for text in texts}, **{f"▁{w}": -1.0 for w in words[:40]}})
    rows = rng.normal(size=(40, WIDTH)).astype(np.float32)
    turned = np.roll(rows, 1, axis=0)
    table = PieceTable(np.concatenate([rows, rows]), np.eye(WIDTH, dtype=np.float32), rate=0.1)
    wrong = PieceTable(np.concatenate([rows, turned]), np.eye(WIDTH, dtype=np.float32), rate=0.1)
    student = Student(np.eye(WIDTH, DIM, dtype=np.float32), hidden=0)
    sentences = [
        Sentence("de", word, text, False) for word, text in zip(words, texts, strict=False)
    ]
    sentences += [
        Sentence("de", word, text, False) for word, text in zip(words[40:], others, strict=True)
    ]
    (line,) = held_out_reading(student, table, pieces, sentences)
    assert line == "de 100.0 of 40 sentences find their English one"
    (line,) = held_out_reading(student, wrong, pieces, sentences)
    assert line == "de 0.0 of 40 sentences find their English one"
    assert list(held_out_reading(student, table, pieces, sentences[:20])) == []
