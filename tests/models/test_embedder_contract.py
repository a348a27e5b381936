"""What every model of the registry promises, asked of each alike."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

from searchlab.errors import InputError
from searchlab.models import MODELS, load_model
from searchlab.models.adapted import AdaptedEmbedder, Head
from searchlab.models.canaries import canary_image
from searchlab.models.migrated import LinearMap, MigratedEmbedder
from searchlab.models.protocol import Embedder
from searchlab.training.adapt.writing import write_adapted, write_migrated

TINY = {
    "embed_dim": 32,
    "vision_cfg": {
        "image_size": 32,
        "layers": 2,
        "width": 64,
        "patch_size": 16,
        "head_width": 32,
    },
    "text_cfg": {
        "context_length": 77,
        "vocab_size": 49408,
        "width": 64,
        "heads": 2,
        "layers": 2,
    },
}
SPECS = {
    "adapted": "adapted",
    "captions": "captions",
    "hybrid": "hybrid:palette=0.3,mini=0.7",
    "migrated": "migrated",
    "mini": "mini",
    "onnx": "onnx",
    "openclip": "openclip:contract-tiny/random-3",
    "palette": "palette",
}
TEXTS = [
    "a red bicycle",
    "",
    "dark blue sea and white sand",
    "Ein gelbes Haus",
    "赤い花",
    "🐈 👩‍👩‍👧 #ff8800",
    "NUL\0inside",
    "lone \ud800 surrogate",
    "green " * 1_700,  # 10,200 characters
    "red",
]


def _has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


@pytest.fixture(scope="session")
def tiny_config(tmp_path_factory):
    from searchlab.models.openclip.torchvision_shim import import_torchvision

    import_torchvision()
    import open_clip
    import torch

    torch.set_num_threads(1)  # the model is tiny, threads would only wait for each other
    file = tmp_path_factory.mktemp("config") / "contract-tiny.json"
    file.write_text(json.dumps(TINY))
    open_clip.add_model_config(file)
    return file


@pytest.fixture(scope="session")
def onnx_folder(tmp_path_factory, tiny_config):
    from searchlab.models.onnx.export import export_onnx

    return export_onnx(SPECS["openclip"], tmp_path_factory.mktemp("onnx") / "tiny").folder


@pytest.fixture(scope="session")
def adapted_folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("adapted").resolve() / "model"
    base = load_model("mini")
    rng = np.random.default_rng(0)
    heads = [
        Head((0.03 * rng.normal(size=(base.dim, base.dim))).astype(np.float32), bias)
        for bias in (0.02 * rng.normal(size=(2, base.dim))).astype(np.float32)
    ]
    write_adapted(place, AdaptedEmbedder(f"adapted:{place}", base, *heads), {}, "")
    return place


@pytest.fixture(scope="session")
def migrated_folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("migrated").resolve() / "model"
    base = load_model("palette")
    linear_map = LinearMap(np.ones((5, base.dim), np.float32), np.zeros(base.dim, np.float32))
    model = MigratedEmbedder(f"migrated:{place}", base, "old-0123456789ab", linear_map)
    write_migrated(place, model, {}, "")
    return place


NEED_TORCH = ("onnx", "openclip")


def contract_of(name):
    """Put a name under the contract; importing torch and an export take their time."""
    return pytest.param(name, marks=[pytest.mark.slow] if name in NEED_TORCH else [])


@pytest.fixture(scope="session", params=map(contract_of, sorted(SPECS)))
def spec(request):
    name = request.param
    if name in NEED_TORCH:
        for module in ("torch", "open_clip"):
            if not _has(module):
                pytest.skip(f"{module} is not installed")
        request.getfixturevalue("tiny_config")
    if name == "onnx":
        return f"onnx:{request.getfixturevalue('onnx_folder')}"
    if name in ("adapted", "migrated"):
        return f"{name}:{request.getfixturevalue(f'{name}_folder')}"
    return SPECS[name]


@pytest.fixture(scope="session")
def model(spec):
    return load_model(spec)


@pytest.fixture(scope="session")
def sees(model):
    if model.reads == "text":
        pytest.skip("reads descriptions only")


@pytest.fixture(scope="session")
def pictures():
    return [
        canary_image(1, size=64),
        Image.new("RGB", (1, 1), "#d01010"),
        canary_image(2, size=300).resize((3_000, 7)),
        canary_image(3, size=200).convert("L").convert("RGB"),
        canary_image(4, size=97).resize((97, 501)),
    ]


def _check(rows, n, dim):
    assert rows.shape == (n, dim)
    assert rows.dtype == np.float32
    assert rows.flags["C_CONTIGUOUS"]
    norms = np.linalg.norm(rows, axis=1)
    assert ((np.abs(norms - 1) < 1e-5) | (norms == 0)).all()


def test_every_registry_entry_is_under_contract():
    assert sorted(MODELS) == sorted(SPECS)


def test_is_an_embedder_with_sane_attributes(model, spec):
    assert isinstance(model, Embedder)
    assert model.dim > 0
    assert model.reads in ("image", "text")
    assert (model.input_size > 0) == (model.reads == "image")
    short, _, digest = model.model_id.rpartition("-")
    assert short
    assert len(digest) == 12
    assert int(digest, 16) >= 0


def test_its_hashes_tell_weights_preprocessing_and_tokenizer_apart(model, spec):
    head, _, rest = spec.partition(":")
    found = model.fingerprints()
    assert sorted(found) == ["preprocessing", "tokenizer", "weights"]
    assert all(re.fullmatch("[0-9a-f]{12}", digest) for digest in found.values())
    assert len(set(found.values())) == 3
    assert MODELS[head](rest).fingerprints() == found


def test_name_loads_the_same_model(model):
    again = load_model(model.name)
    assert (again.name, again.model_id) == (model.name, model.model_id)


def test_parts_are_plain_models_whose_weights_sum_to_one(model):
    assert sum(weight for _, weight in model.parts) == pytest.approx(1)
    for part, _ in model.parts:
        assert part.parts == ((part, 1.0),)


def test_texts_give_unit_or_zero_rows(model):
    _check(model.encode_texts(TEXTS), len(TEXTS), model.dim)


def test_pictures_give_unit_or_zero_rows(model, pictures, sees):
    rows = model.encode_images(pictures)
    _check(rows, len(pictures), model.dim)
    assert (np.linalg.norm(rows, axis=1) > 0).all()


def test_a_text_that_says_something_is_not_zero(model):
    assert np.linalg.norm(model.encode_texts(["a red car"])) == pytest.approx(1, abs=1e-5)


def test_nothing_gives_no_rows(model):
    _check(model.encode_texts([]), 0, model.dim)
    if model.reads == "image":
        _check(model.encode_images([]), 0, model.dim)


def test_text_rows_do_not_depend_on_their_batch(model):
    together = model.encode_texts(TEXTS)
    alone = np.vstack([model.encode_texts([text]) for text in TEXTS])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    np.testing.assert_allclose(model.encode_texts(TEXTS[::-1])[::-1], together, atol=1e-5)


def test_picture_rows_do_not_depend_on_their_batch(model, pictures, sees):
    together = model.encode_images(pictures)
    alone = np.vstack([model.encode_images([picture]) for picture in pictures])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    np.testing.assert_allclose(model.encode_images(pictures[::-1])[::-1], together, atol=1e-5)


def test_different_inputs_give_different_rows(model, pictures):
    texts = model.encode_texts(["a red car", "green grass"])
    assert texts[0] @ texts[1] < 0.9999
    if model.reads == "image":
        rows = model.encode_images([pictures[0], pictures[2]])
        assert rows[0] @ rows[1] < 0.9999


def test_a_second_load_gives_the_same_model(model, spec):
    head, _, rest = spec.partition(":")
    again = MODELS[head](rest)
    assert again.model_id == model.model_id
    np.testing.assert_allclose(again.encode_texts(TEXTS), model.encode_texts(TEXTS), atol=1e-6)
    if model.reads == "image":
        picture = [canary_image(9, size=80)]
        found, expected = again.encode_images(picture), model.encode_images(picture)
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_four_threads_get_what_one_gets(model, spec):
    head, _, rest = spec.partition(":")
    fresh = MODELS[head](rest)
    expected = model.encode_texts(TEXTS[:4])
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: fresh.encode_texts(TEXTS[:4]), range(8)):
            np.testing.assert_allclose(found, expected, atol=1e-5)


def test_one_string_is_refused(model):
    with pytest.raises(InputError, match="sequence of strings"):
        model.encode_texts("a dog")


def test_pictures_are_refused_by_a_model_of_descriptions(model, pictures):
    if model.reads == "image":
        pytest.skip("reads pixels")
    with pytest.raises(InputError):
        model.encode_images(pictures)


@pytest.mark.parametrize("spec", ["palette", "mini", "captions"])
def test_a_text_needs_neither_torch_nor_an_image_tower(spec):
    code = (
        "import sys\n"
        "from searchlab.models import load_model\n"
        f"load_model({spec!r}).encode_texts(['a red car'])\n"
        "print([m for m in ('torch', 'open_clip', 'onnxruntime', 'timm') if m in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_a_text_leaves_the_image_tower_of_an_export_unread(request):
    pytest.importorskip("onnx", exc_type=ImportError)
    folder = request.getfixturevalue("onnx_folder")
    from searchlab.models.onnx.embedder import OnnxEmbedder

    model = OnnxEmbedder(folder)
    model.encode_texts(["a red car"])
    assert sorted(model._sessions) == ["text"]


def test_one_picture_or_what_is_no_picture_is_refused(model, pictures, sees):
    if not sees:
        pytest.skip("reads descriptions")
    for wrong in (pictures[0], ["x"], [None], [np.zeros((4, 4, 3), dtype=np.uint8)]):
        with pytest.raises(InputError, match="images must be"):
            model.encode_images(wrong)
    with pytest.raises(InputError, match="at least 1 x 1"):
        model.encode_images([Image.new("RGB", (0, 5))])


def test_pictures_of_other_modes_are_read_as_rgb(model, sees):
    if not sees:
        pytest.skip("reads descriptions")
    grey = canary_image(3).convert("L")
    found, wanted = model.encode_images([grey]), model.encode_images([grey.convert("RGB")])
    assert np.abs(found - wanted).max() < 1e-6
