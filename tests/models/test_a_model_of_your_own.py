"""A newcomer's model: one class and one line in the registry, and it is a model everywhere."""

import hashlib

import numpy as np
import pytest

from searchlab import grid
from searchlab.errors import ConflictError, InputError, MismatchError
from searchlab.evaluation.datasets import Dataset, LabelledQuery
from searchlab.evaluation.experiments import Experiment
from searchlab.models import MODELS, Embedder, load_model, register_model, unit_rows
from searchlab.models.protocol import readable_texts, rgb_images
from searchlab.photos.photo import photo_id_of
from tests.support.library_world import photos, put

photos, put = photos, put

NAMES = ("red", "green", "blue")


class ToyEmbedder(Embedder):
    """Mean colour of a picture beside the colours that a text names."""

    name = "toy"
    dim = 4
    reads = "image"
    input_size = 8

    def __init__(self):
        self.model_id = "toy-0123456789ab"

    def fingerprints(self):
        return {
            name: hashlib.sha256(name.encode()).hexdigest()[:12]
            for name in ("weights", "preprocessing", "tokenizer")
        }

    def encode_texts(self, texts):
        words = [text.lower().split() for text in readable_texts(texts, max_length=500)]
        rows = [[*(name in one for name in NAMES), 0.01 * bool(one)] for one in words]
        return unit_rows(np.array(rows, dtype=float).reshape(-1, self.dim))

    def encode_images(self, images):
        pixels = [
            np.asarray(image).reshape(-1, 3).mean(axis=0) / 255 for image in rgb_images(images)
        ]
        return unit_rows(np.array([[*mean, 0.01] for mean in pixels]).reshape(-1, self.dim))


@pytest.fixture(autouse=True)
def toy():
    register_model("toy", ToyEmbedder)
    yield
    del MODELS["toy"]


def test_it_keeps_the_contract(run):
    done = run("models", "check", "toy")
    assert done.code == 0, done.out
    assert done.out.splitlines()[-1] == "toy-0123456789ab keeps all 16 promises"


def test_a_broken_promise_is_named_and_ends_with_1(run, monkeypatch):
    monkeypatch.setattr(ToyEmbedder, "encode_texts", lambda self, texts: np.ones((len(texts), 4)))
    done = run("models", "check", "toy")
    assert done.code == 1
    assert "broken  No inputs give no rows: the model must give rows of float32, got" in done.out
    assert "searchlab: toy must keep the promises of a model" in done.err


def test_it_is_listed_and_named_where_a_spec_is_unknown(run):
    assert "toy                                     Mean colour" in run("models", "list").out
    with pytest.raises(InputError, match=r"palette, toy, got 'clip'"):
        load_model("clip")


def test_it_indexes_searches_and_joins_a_hybrid(run, photos, put, tmp_path):
    put("r.png", "#e01010")
    put("b.png", "#1010e0")
    data = tmp_path / "data"
    assert run("index", photos, "--data", data, "--model", "toy").code == 0
    done = run("search", "blue", "--data", data, "--fields", "color_hex", "--json")
    assert '"color_hex": "#1010e0"' in done.out.split("}")[0]
    assert run("index", "--data", data, "--model", "hybrid:toy=0.5,palette=0.5").code == 0
    assert run("search", "blue", "--data", data).code == 0


def test_it_is_evaluated(photos, put, tmp_path):
    records = []
    for name, look in (("red", "#e01010"), ("green", "#10e010"), ("blue", "#1010e0")):
        path = put(f"{name}.png", look)
        records.append({"file": str(path), "source": "local", "source_photo_id": f"{name}.png"})
    dataset = Dataset(
        name="toys",
        revision="0" * 12,
        folder=tmp_path,
        photos=None,
        queries=tuple(LabelledQuery(name, "en", "graded", name) for name in NAMES),
        qrels={name: {photo_id_of("local", f"{name}.png"): 1} for name in NAMES},
        records=tuple(records),
    )
    report = Experiment(dataset, grid(models=["toy"]), metrics=["success@1"]).run()
    assert report.results[0].metrics["success@1"] == 1.0


def test_a_spec_of_it_takes_nothing_after_its_name_and_no_device():
    with pytest.raises(InputError, match="'toy' must stand alone in a model spec, got 'toy:big'"):
        load_model("toy:big")
    with pytest.raises(InputError, match="for models of openclip, got 'cuda' for 'toy'"):
        load_model("toy", device="cuda")


def test_what_follows_the_colon_is_given_to_a_constructor_that_takes_it():
    register_model("sized", lambda rest: rest)
    try:
        assert (load_model("sized:a:b"), load_model("sized")) == ("a:b", "")
    finally:
        del MODELS["sized"]


def test_a_name_is_a_word_and_of_one_model_alone():
    with pytest.raises(InputError, match="must be a lower-case word, got 'My Model'"):
        register_model("My Model", ToyEmbedder)
    with pytest.raises(ConflictError, match="must be free, got 'mini'"):
        register_model("mini", ToyEmbedder)
    before = load_model("toy")
    register_model("toy", ToyEmbedder)
    assert load_model("toy") is not before


def test_an_installed_package_adds_a_model_by_an_entry_point(tmp_path, monkeypatch):
    (tmp_path / "plugged.py").write_text("class Plugged:\n    pass\n")
    described = tmp_path / "plugged-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text(
        "[searchlab.models]\nplugged = plugged:Plugged\ngone = plugged:Gone\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert type(load_model("plugged")).__name__ == "Plugged"
    with pytest.raises(MismatchError, match=r"'gone' .* upgrade or uninstall plugged"):
        load_model("gone")
    with pytest.raises(InputError, match="openclip, palette, plugged, toy, got 'clip'"):
        load_model("clip")
