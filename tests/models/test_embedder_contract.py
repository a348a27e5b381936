"""What every model of the registry promises, asked of each alike."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import numpy as np
import pytest

from searchlab.models import MODELS, load_model
from searchlab.models.adapted import AdaptedEmbedder, Head
from searchlab.models.contract import CHECKS, Subject, promise_of
from searchlab.models.migrated import LinearMap, MigratedEmbedder
from searchlab.models.vectors.writing import write_vectors
from searchlab.training.adapt.model_folder import write_adapted, write_migrated

pytestmark = pytest.mark.slow

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
# Heads that are no spec by themselves; fixtures make the folders of the others.
SPECS = {
    "hybrid": "hybrid:palette=0.3,mini=0.7",
    "openclip": "openclip:contract-tiny/random-3",
}


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


@pytest.fixture(scope="session")
def vectors_folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("vectors").resolve() / "model"
    rows = load_model("mini").encode_texts(["a red car", "grass", "snow"])
    return write_vectors(
        place, ["1", "2"], rows[:2], texts=["snow"], text_vectors=rows[2:], model="mini"
    ).folder


NEED_TORCH = ("onnx", "openclip")


def contract_of(name):
    """Put a name under the contract; importing torch and an export take their time."""
    return pytest.param(name, marks=[pytest.mark.slow] if name in NEED_TORCH else [])


@pytest.fixture(scope="session", params=map(contract_of, sorted(MODELS)))
def spec(request):
    name = request.param
    if name in NEED_TORCH:
        for module in ("torch", "open_clip"):
            if not _has(module):
                pytest.skip(f"{module} is not installed")
        request.getfixturevalue("tiny_config")
    if name == "onnx":
        return f"onnx:{request.getfixturevalue('onnx_folder')}"
    if name in ("adapted", "migrated", "vectors"):
        return f"{name}:{request.getfixturevalue(f'{name}_folder')}"
    return SPECS.get(name, name)


@pytest.fixture(scope="session")
def subject(spec):
    return Subject(spec)


@pytest.mark.parametrize("check", CHECKS, ids=promise_of)
def test_keeps_its_promises(check, subject):
    check(subject)


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


def test_an_export_keeps_its_whole_path(request, monkeypatch):
    pytest.importorskip("onnx", exc_type=ImportError)
    folder = request.getfixturevalue("onnx_folder")
    monkeypatch.chdir(folder.parent)
    monkeypatch.setenv("HOME", str(folder.parent))
    for spec in (f"onnx:{folder.name}", f"onnx:~/{folder.name}"):
        assert load_model(spec).name == f"onnx:{folder.resolve()}"


def test_a_text_leaves_the_image_tower_of_an_export_unread(request):
    pytest.importorskip("onnx", exc_type=ImportError)
    folder = request.getfixturevalue("onnx_folder")
    from searchlab.models.onnx.embedder import OnnxEmbedder

    model = OnnxEmbedder(folder)
    model.encode_texts(["a red car"])
    assert sorted(model._sessions) == ["text"]
