"""A newcomer's model: one class and one line in the registry, and it is a model everywhere."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest

from searchlab import grid
from searchlab.errors import ConflictError, InputError, MismatchError
from searchlab.evaluation.datasets import Dataset, LabelledQuery
from searchlab.evaluation.experiments import Experiment
from searchlab.models import MODELS, Embedder, load_model, register_model, registry, unit_rows
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


TOY = """
from tests.models.test_a_model_of_your_own import ToyEmbedder

class Toy(ToyEmbedder):
    name = "toy of a file"
"""


@pytest.fixture(autouse=True)
def settings(tmp_path, monkeypatch):
    monkeypatch.setenv("SEARCHLAB_HOME", str(tmp_path / "settings"))
    monkeypatch.setattr("sys.path", [*sys.path])


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
    with pytest.raises(InputError, match=r"palette, toy, vectors, got 'clip'"):
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


@pytest.mark.slow
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
    class Sized(ToyEmbedder):
        def __init__(self, rest):
            super().__init__()
            self.rest = rest

    register_model("sized", Sized)
    try:
        assert (load_model("sized:a:b").rest, load_model("sized").rest) == ("a:b", "")
    finally:
        del MODELS["sized"]


def test_a_class_without_a_constructor_of_its_own_is_made_without_arguments():
    class Bare(Embedder):
        name, dim, reads, input_size, model_id = "bare", 4, "image", 8, "bare-0123456789ab"
        fingerprints = ToyEmbedder.fingerprints
        encode_texts = ToyEmbedder.encode_texts
        encode_images = ToyEmbedder.encode_images

    register_model("bare", Bare)
    try:
        assert load_model("bare").dim == 4
    finally:
        del MODELS["bare"]


def test_a_name_is_a_word_and_of_one_model_alone():
    with pytest.raises(InputError, match="must be a lower-case word, got 'My Model'"):
        register_model("My Model", ToyEmbedder)
    with pytest.raises(ConflictError, match="must be free, got 'mini'"):
        register_model("mini", ToyEmbedder)
    before = load_model("toy")
    both = load_model("hybrid:toy=0.5,palette=0.5")
    register_model("toy", ToyEmbedder)
    assert load_model("toy") is not before
    assert load_model("hybrid:toy=0.5,palette=0.5") is not both


def test_the_class_of_a_cell_run_again_is_the_one_on_every_device():
    class OnDevice(ToyEmbedder):
        def __init__(self, rest="", *, device="cpu"):
            super().__init__()

    register_model("placed", OnDevice)
    try:
        before = load_model("placed", device="cpu")
        assert load_model("placed", device="cpu") is before
        register_model("placed", OnDevice)
        assert load_model("placed", device="cpu") is not before
    finally:
        del MODELS["placed"]


def test_an_installed_package_adds_a_model_by_an_entry_point(tmp_path, monkeypatch):
    (tmp_path / "plugged.py").write_text(TOY.replace("class Toy", "class Plugged"))
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
    with pytest.raises(InputError, match="openclip, palette, plugged, toy, vectors, got 'clip'"):
        load_model("clip")


# -- from a module of one's own ---------------------------------------------------------------


def in_another_process(folder, *arguments):
    """Run the command line as a user would, in a folder and with no memory but the settings."""
    code = "import sys; sys.path.remove(''); from searchlab.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_a_class_of_a_module_is_a_spec_and_is_found_again_from_any_folder(photos, put, tmp_path):
    put("r.png", "#e01010")
    put("b.png", "#1010e0")
    (tmp_path / "my_toys.py").write_text(TOY)
    data = tmp_path / "data"
    done = in_another_process(tmp_path, "index", photos, "--data", data, "--model", "my_toys:Toy")
    assert done.returncode == 0, done.stderr
    done = in_another_process(photos, "search", "blue", "--data", data, "--paths")
    assert done.stdout.split()[0].endswith("b.png"), done.stderr
    (tmp_path / "my_toys.py").unlink()
    done = in_another_process(photos, "search", "blue", "--data", data)
    assert done.returncode == 1
    assert "must be known here: a model spec must begin with one of" in done.stderr


@pytest.mark.slow
def test_a_strangers_library_imports_nothing_that_nobody_named_here(
    photos, put, tmp_path, monkeypatch
):
    put("r.png", "#e01010")
    put("b.png", "#1010e0")
    (tmp_path / "their_toys.py").write_text(
        f"open({str(tmp_path / 'imported')!r}, 'w').close()\n{TOY}"
    )
    data = tmp_path / "data"
    spec = "hybrid:their_toys:Toy=.5,mini=.5"
    done = in_another_process(tmp_path, "index", photos, "--data", data, "--model", spec)
    assert done.returncode == 0, done.stderr
    (tmp_path / "imported").unlink()
    monkeypatch.setenv("SEARCHLAB_HOME", str(tmp_path / "mine"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))  # installed here for whatever reason
    for command in (["search", "blue"], ["index"]):
        done = in_another_process(photos, *command, "--data", data)
        assert done.returncode == 1
        assert "must name a model that you named before, got their_toys:Toy" in done.stderr
        assert not (tmp_path / "imported").exists()
    done = in_another_process(photos, "models", "check", "their_toys:Toy")
    assert done.returncode == 0, done.stderr
    done = in_another_process(photos, "search", "blue", "--data", data, "--paths")
    assert done.stdout.split()[0].endswith("b.png"), done.stderr


def test_a_kept_model_is_known_by_its_name_elsewhere(tmp_path, monkeypatch, run):
    (tmp_path / "kept_toys.py").write_text(TOY)
    monkeypatch.syspath_prepend(tmp_path)
    import kept_toys

    register_model("kept", kept_toys.Toy, keep=True)
    try:
        del MODELS["kept"]
        assert load_model("kept").model_id == "toy-0123456789ab"
        assert "kept" in run("models", "list").out
        (tmp_path / "kept_toys.py").unlink()
        sys.modules.pop("kept_toys")
        registry._loaded.clear()
        with pytest.raises(MismatchError, match=r"must be kept_toys:Toy in .*register it again"):
            load_model("kept")
    finally:
        MODELS.pop("kept", None)


def test_a_class_of_a_notebook_cannot_be_kept():
    class Local(ToyEmbedder):
        pass

    try:
        with pytest.raises(InputError, match=r"a class in a file of its own, got .*writefile"):
            register_model("local", Local, keep=True)
    finally:
        del MODELS["local"]


@pytest.mark.parametrize("spec", ["os:system", "os:system:true", "json:dumps", "math:pi"])
def test_only_classes_that_embed_are_called(spec):
    with pytest.raises(MismatchError, match="must be a class with encode_texts and encode_images"):
        load_model(spec)


def test_a_module_that_cannot_be_imported_is_told_from_one_that_is_not_there(tmp_path, monkeypatch):
    (tmp_path / "broken_toys.py").write_text("import no_such_module_at_all\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MismatchError, match="ModuleNotFoundError: No module named 'no_such"):
        load_model("broken_toys:Toy")
    with pytest.raises(InputError, match=r"a class of your own, 'my_package.module:Class'"):
        load_model("absent_toys:Toy")


# -- what is refused before it is measured ----------------------------------------------------


def forgot_to_scale(self, texts):
    return 7 * ToyEmbedder.encode_texts(self, texts)


def in_double_precision(self, texts):
    return ToyEmbedder.encode_texts(self, texts).astype(np.float64)


def with_nan(self, texts):
    return ToyEmbedder.encode_texts(self, texts) * np.float32("nan")


def of_another_size(self, texts):
    return np.ones((len(texts), 5), np.float32)


def from_its_neighbours(self, texts):
    rows = ToyEmbedder.encode_texts(self, texts)
    return unit_rows(rows - 0.5 * rows.mean(axis=0))


def always_the_same(self, texts):
    return ToyEmbedder.encode_texts(self, ["red" for _ in texts])


def crashing(self, texts):
    msg = "CUDA out of memory"
    raise RuntimeError(msg)


@pytest.mark.parametrize(
    ("encode", "message"),
    [
        (forgot_to_scale, r"rows of length 1 from encode_texts, got lengths 7 and 7; end with"),
        (in_double_precision, r"array of float32 from encode_texts, got numpy.ndarray of float64"),
        (with_nan, "finite numbers from encode_texts, got NaN"),
        (of_another_size, r"rows of shape \(2, 4\) from encode_texts, got \(2, 5\); set `dim`"),
        (from_its_neighbours, "same row alone and beside others from encode_texts"),
        (always_the_same, "tell two inputs apart by encode_texts, got equal rows"),
        (crashing, "must embed by encode_texts, got RuntimeError: CUDA out of memory"),
    ],
)
def test_a_wrapper_that_breaks_the_contract_is_refused_not_measured(encode, message, run):
    class Wrapped(ToyEmbedder):
        encode_texts = encode

    register_model("wrapped", Wrapped)
    try:
        with pytest.raises(MismatchError, match=message):
            load_model("wrapped")
        done = run("evaluate", "--model", "wrapped")
        assert done.code == 1
        # Where matplotlib draws for the first time, a line of its own stands before.
        assert done.err.splitlines()[-1].startswith("searchlab: the model 'wrapped'")
        assert "Traceback" not in done.err
    finally:
        del MODELS["wrapped"]


def test_a_class_without_all_of_the_contract_says_what_it_lacks(tmp_path, monkeypatch):
    (tmp_path / "half_toys.py").write_text(
        "class Half:\n    dim = 4\n    def encode_texts(self, texts): ...\n"
        "    def encode_images(self, images): ...\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MismatchError, match=r"must have name, model_id, reads, .*derive its class"):
        load_model("half_toys:Half")
