"""The doctor finds ten planted mistakes, and leaves what is sound alone."""

import functools

import numpy as np
import pytest
from PIL import Image

from searchlab.models import load_model
from searchlab.models.contract import construct_model
from searchlab.models.doctor import examine
from searchlab.models.mini.embedder import MiniEmbedder
from searchlab.models.vectors.writing import write_vectors

pytestmark = pytest.mark.slow


@pytest.fixture
def embedded_once(monkeypatch):
    """What mini embeds again and again, as the reference and within ports, is embedded once."""
    for name in ("encode_texts", "encode_images"):
        monkeypatch.setattr(MiniEmbedder, name, remembering(name))


@functools.cache
def remembering(name):
    encode, rows = getattr(MiniEmbedder, name), {}

    def encode_once(self, batch):
        contents = [one if isinstance(one, str) else (one.size, one.tobytes()) for one in batch]
        key = (self.model_id, *contents)
        if key not in rows:
            rows[key] = encode(self, batch)
        return rows[key].copy()

    return encode_once


class Port:
    """A port of mini with a mistake in it, made by changing what goes in or comes out."""

    parts = ()

    def __init__(self, *, text=None, image=None, row=None, batch=None):
        self.base = load_model("mini")
        self.name, self.dim = "port", self.base.dim
        self.reads, self.input_size = "image", self.base.input_size
        self._text, self._image, self._row, self._batch = text, image, row, batch

    def encode_texts(self, texts):
        texts = [self._text(one) for one in texts] if self._text else texts
        rows = self.base.encode_texts(texts)
        rows = self._row(rows) if self._row else rows
        return self._batch(rows, texts) if self._batch else rows

    def encode_images(self, images):
        images = [self._image(one) for one in images] if self._image else images
        rows = self.base.encode_images(images)
        return self._row(rows) if self._row else rows


def swap(image):
    return Image.merge("RGB", image.split()[::-1])


def nearest(image):
    side = load_model("mini").input_size
    return image.resize((side, side), Image.Resampling.NEAREST)


def middle(image):
    side = min(image.size)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    return image.crop((left, top, left + side, top + side))


def mark_case(text):
    return text if text == text.lower() else f"{text} zebra"


def mark_stop(text):
    return text.replace(".", " zebra")


def leak(rows, texts):
    return rows + np.float32(0.002 * max(map(len, texts)))


def turn(rows):
    return np.roll(rows, 3, axis=1)


PLANTED = {
    "not scaled": ({"row": lambda rows: rows * (1 + 5 * np.abs(rows[:, :1]))}, "length of rows"),
    "logit scale": ({"row": lambda rows: rows * np.float32(14.3)}, "logit scale"),
    "letter case": ({"text": mark_case}, "letter case"),
    "punctuation": ({"text": mark_stop}, "punctuation"),
    "padding": ({"batch": leak}, "padding"),
    "length of texts": ({"text": lambda text: " ".join(text.split()[:9])}, "length of texts"),
    "colour order": ({"image": swap}, "colour order"),
    "resize filter": ({"image": nearest}, "resize filter"),
    "crop": ({"image": middle}, "crop"),
    "activation": ({"row": turn}, "text rows"),
}


@pytest.mark.usefixtures("embedded_once")
@pytest.mark.parametrize("name", PLANTED)
def test_each_planted_mistake_is_named(name):
    changes, topic = PLANTED[name]
    findings = examine(Port(**changes), load_model("mini"))
    suspects = {finding.topic for finding in findings if finding.verdict == "suspect"}
    assert topic in suspects, "\n".join(map(str, findings))
    if name == "activation":
        assert suspects == {"text rows", "image rows"}


@pytest.mark.usefixtures("embedded_once")
def test_a_true_port_is_sound():
    findings = examine(Port(), load_model("mini"))
    assert {finding.verdict for finding in findings} == {"sound"}, "\n".join(map(str, findings))


@pytest.mark.parametrize("spec", ["mini", "captions", "palette"])
def test_what_ships_is_not_suspect_by_itself(spec):
    findings = examine(construct_model(spec))
    suspects = [str(finding) for finding in findings if finding.verdict == "suspect"]
    assert suspects == []


def test_vectors_without_a_model_are_sound(tmp_path):
    write_vectors(tmp_path / "v", ["a.jpg", "b.jpg"], np.eye(2, 4, dtype=np.float32))
    findings = [*examine(load_model(f"vectors:{tmp_path / 'v'}"))]
    assert {finding.verdict for finding in findings} <= {"sound", "note"}


@pytest.mark.usefixtures("embedded_once")
def test_swapped_channels_are_told_in_a_sentence_that_can_be_read():
    said = {f.topic: f.text for f in examine(Port(image=swap), load_model("mini"))}
    assert "nearer to those of the reference when red and blue are swapped" in said["colour order"]


@pytest.mark.usefixtures("embedded_once")
@pytest.mark.parametrize("name", ["not scaled", "logit scale", "padding", "colour order"])
def test_some_mistakes_show_without_a_reference(name):
    changes, topic = PLANTED[name]
    suspects = {f.topic for f in examine(Port(**changes)) if f.verdict == "suspect"}
    assert topic in suspects


def test_a_reference_of_another_size_is_said():
    findings = examine(Port(), load_model("palette"))
    assert findings[-1].verdict == "suspect"
    assert "256 components, those of the reference 223" in findings[-1].text


def test_the_command_prints_the_findings_and_fails_where_one_is_suspect(run):
    done = run("models", "check", "mini", "--against", "mini")
    assert done.code == 0, done.out
    assert "sound   colour order: red is red" in done.out
    done = run("models", "check", "mini", "--against", "palette")
    assert done.code == 1
    assert "suspect rows: rows have 256 components" in done.out
