"""Building the default model: what is missing is named, and what is made goes in at once."""

import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch")
pytest.importorskip("onnx")

# These need torch, so they come after what skips the file where it is not installed.
from searchlab.errors import InputError  # noqa: E402
from searchlab.models.mini.artefacts import RECORD_FILE  # noqa: E402
from searchlab.models.mini.embedder import MINI_DATA, MiniEmbedder  # noqa: E402
from searchlab.models.mini.text import TEXT_FILES, Mixer  # noqa: E402
from searchlab.training.mini import artefacts, recipe, teacher  # noqa: E402
from searchlab.training.mini import build as build_mini  # noqa: E402
from searchlab.training.mini.materials import list_absent, list_materials  # noqa: E402
from searchlab.training.mini.recipe import Ingredients, Recipe  # noqa: E402
from searchlab.training.mini.teacher import Teacher  # noqa: E402


@pytest.fixture
def located(monkeypatch):
    """Packages that were looked for; all are there."""
    sources = []
    monkeypatch.setattr(recipe, "locate", lambda source, folder: sources.append(source))
    return sources


@pytest.fixture
def ingredients(tmp_path, located):
    for folder in ("packages", "cldr/cldr-annotations-full", "cldr/cldr-annotations-derived-full"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("datasets/flickr8k", "datasets/flickr8k-train"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "captions.tsv").touch()
        (tmp_path / name / "photos.tsv").touch()
    (tmp_path / "data.noun").touch()
    names = ("packages", "cldr", "datasets", "data.noun")
    return Ingredients(*(tmp_path / name for name in names))


@pytest.mark.parametrize(
    ("lost", "named"),
    [
        ("packages", "packages"),
        ("cldr/cldr-annotations-derived-full", "cldr"),
        ("datasets/flickr8k-train/captions.tsv", "datasets"),
        ("datasets/flickr8k/photos.tsv", "datasets"),
        ("data.noun", "wordnet"),
    ],
)
def test_what_is_missing_is_named(ingredients, located, tmp_path, lost, named):
    ingredients.check()
    assert len(located) == 4
    (tmp_path / lost).rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=rf"^{named} must hold .*got no .*{lost}$"):
        ingredients.check()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"runs": 0}, "must be at least 1"),
        ({"steps": 0}, "must be at least 1"),
        ({"teachers": -1}, "must be at least 1"),
        ({"fragments": 0}, "must be at least 1"),
        ({"words": -5}, "must be at least 1"),
        ({"reading": -1}, "reading, crops and seed must be at least 0"),
        ({"crops": -1}, "reading, crops and seed must be at least 0"),
        ({"seed": -1}, "reading, crops and seed must be at least 0"),
        ({"held_out": 601}, "must be 0 to 600"),
        ({"held_out": -1}, "must be 0 to 600"),
    ],
)
def test_settings_that_build_nothing_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        Recipe(**settings)


def test_the_command_hands_everything_on(ingredients, tmp_path, monkeypatch, run):
    handed = {}

    def build(*arguments, **named):
        handed.update(named, arguments=arguments)

    monkeypatch.setattr(build_mini, "build", build)
    places = [f"--{name}={path}" for name, path in ingredients._asdict().items()]
    line = ["models", "build", tmp_path / "out", *places, f"--cache={tmp_path}", "--held-out=600"]
    settings = ["--crops=3", "--teachers=4", "--runs=5", "--steps=6", "--fragments=7", "--words=8"]
    done = run(*line, *settings, "--reading=10", "--seed=9")
    counts = {"reading": 10, "steps": 6, "runs": 5, "teachers": 4, "crops": 3}
    made = Recipe(**counts, held_out=600, fragments=7, words=8, seed=9)
    assert handed["arguments"] == (ingredients, made)
    assert (handed["cache"], handed["out"]) == (tmp_path, tmp_path / "out")
    assert done == (0, f"mini is in {tmp_path / 'out'}\n", "")


@pytest.fixture
def small(monkeypatch):
    """What a build ends with, but small, and with no network to write."""

    def write_network(network, outputs, pictures, path):
        path.write_bytes(b"network")

    def write_record(folder, *, dim, agreement, sources):
        names = sorted(path.name for path in folder.iterdir())
        (folder / RECORD_FILE).write_text(json.dumps({"dim": dim, "files": names}))

    monkeypatch.setattr(artefacts, "quantise_network", write_network)
    monkeypatch.setattr(artefacts, "measure_agreement", lambda *_: {})
    monkeypatch.setattr(artefacts, "write_record", write_record)
    rng = np.random.default_rng(0)
    return {
        "scores": {"▁dog": -1.0, "▁cat": -2.0},
        "table": rng.normal(size=(2, 4)).astype(np.float32),
        "mixer": Mixer(*(rng.normal(size=(4, 4)).astype(np.float32) for _ in Mixer._fields)),
        "network": None,
        "pictures": [],
        "labels": {"dog": np.ones(5, dtype=np.float32)},
        "kinds": {"dog": ["an animal"], "cat": []},
        "sources": [],
    }


def test_sources_are_those_at_hand(tmp_path):
    few = [source["name"] for source in list_materials(tmp_path)]
    assert any("Flickr8k" in name for name in few)
    (tmp_path / "sentences/names").mkdir(parents=True)
    more = [source["name"] for source in list_materials(tmp_path)]
    assert [name.split()[0] for name in more[len(few) :]] == ["sentences", "names"]


def test_what_is_absent_is_said_with_what_it_costs(tmp_path):
    (tmp_path / "sentences").mkdir()
    photos, names = list_absent(tmp_path)
    assert photos.startswith(f"built without web-photos, which {tmp_path} does not hold: photos")
    assert names.startswith("built without sentences/names")
    (tmp_path / "web-photos").mkdir()
    (tmp_path / "sentences/names").mkdir()
    assert list_absent(tmp_path) == []


def test_photos_at_large_are_summed_up_by_a_draw(tmp_path, monkeypatch):
    for name in (*TEXT_FILES, "image.onnx", RECORD_FILE):
        shutil.copy(MINI_DATA / name, tmp_path)
    photos = []
    for shade in range(6):
        photos.append(tmp_path / f"{shade}.png")
        Image.new("RGB", (40, 30), (40 * shade, 20, 200 - 30 * shade)).save(photos[-1])
    monkeypatch.setattr(artefacts, "AT_LARGE", 4)
    steps = []
    artefacts.write_at_large(tmp_path, photos, seed=0, advance=steps.append)
    assert sum(steps) == 4
    drawn = random.Random(0).sample(photos, 4)
    model = MiniEmbedder(tmp_path, threads=1)
    rows = model.encode_images([Image.open(photo).convert("RGB") for photo in drawn])
    np.testing.assert_allclose(model.at_large.mean, rows.mean(axis=0), atol=1e-3)


def test_artefacts_replace_those_before_and_leave_what_else_is_there(small, tmp_path, monkeypatch):
    out = tmp_path / "out"
    (out / "notes").mkdir(parents=True)
    (out / "notes/mine.md").write_text("mine")
    (out / "LICENSES.txt").write_text("terms")
    (out / RECORD_FILE).write_text("old")
    monkeypatch.chdir(out)
    artefacts.write(Path(), **small)
    record = json.loads((out / RECORD_FILE).read_text())
    assert record["dim"] == 5
    assert {"LICENSES.txt", "image.onnx", "table.npy", "labels.txt"} <= set(record["files"])
    assert (out / "LICENSES.txt").read_text() == "terms"
    assert (out / "notes/mine.md").read_text() == "mine"
    assert sorted(path.name for path in out.iterdir()) == sorted(
        [*record["files"], RECORD_FILE, "notes"]
    )
    assert list(tmp_path.iterdir()) == [out]


def test_a_build_that_fails_at_the_end_leaves_the_last_one(small, tmp_path, monkeypatch):
    out = tmp_path / "out"
    artefacts.write(out, **small)
    before = {path.name: path.read_bytes() for path in out.iterdir()}

    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(artefacts, "measure_agreement", fail)
    with pytest.raises(KeyboardInterrupt):
        artefacts.write(out, **small | {"labels": {"cat": np.zeros(5, dtype=np.float32)}})
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert list(tmp_path.iterdir()) == [out]


class Encoder:
    """Reads a text as its length."""

    def __init__(self):
        self.read = []

    def encode(self, texts, advance):
        self.read += texts
        for _ in texts:
            advance(1)
        return np.array([[len(text), 1] for text in texts], dtype=np.float32)


@pytest.fixture
def encoders(monkeypatch):
    """Both teachers replaced; which texts each has read."""
    by_name = {"e5": Encoder(), "minilm": Encoder()}
    monkeypatch.setattr(teacher, "locate", lambda source, folder: folder / source.file)
    monkeypatch.setattr(teacher, "read_e5", lambda path: by_name["e5"])
    monkeypatch.setattr(teacher, "read_minilm", lambda path: by_name["minilm"])
    return by_name


def test_answers_are_kept_and_asked_for_once(encoders, tmp_path, monkeypatch):
    monkeypatch.setattr(teacher, "CHUNK", 2)
    first = Teacher(tmp_path, tmp_path / "cache")
    rows = first.encode_english(["b", "aa", "b", "cccc"])
    prefix = len(teacher.PREFIX)
    assert rows[:, 0].tolist() == [1 + prefix, 2 + prefix, 1 + prefix, 4 + prefix]
    assert rows[:, 2].tolist() == [1, 2, 1, 4]
    again = Teacher(tmp_path, tmp_path / "cache")
    np.testing.assert_array_equal(again.encode_english(["cccc", "b"]), rows[[3, 0]])
    again.encode(["dd"])
    assert encoders["minilm"].read == ["b", "aa", "cccc"]
    assert [text.removeprefix(teacher.PREFIX) for text in encoders["e5"].read] == [
        "b", "aa", "cccc", "dd",
    ]  # fmt: skip


def test_an_answer_file_without_its_vectors_is_read_again(encoders, tmp_path):
    Teacher(tmp_path, tmp_path / "cache").encode(["a"])
    (tmp_path / "cache/e5/0000.npy").unlink()
    rows = Teacher(tmp_path, tmp_path / "cache").encode(["bb"])
    assert rows[0, 0] == 2 + len(teacher.PREFIX)
    (stored,) = [json.loads(p.read_text()) for p in (tmp_path / "cache/e5").glob("*.json")]
    assert stored == [f"{teacher.PREFIX}bb"]
