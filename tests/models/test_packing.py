"""A model folder as a wheel: packed, installed without a network, loaded by name, checked."""

import json
import os
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from click.testing import CliRunner

from searchlab.cli import searchlab
from searchlab.errors import ConflictError, InputError, MismatchError, NotFoundError
from searchlab.models import load_model
from searchlab.models.adapted import AdaptedEmbedder, Head
from searchlab.models.packed import open_packed
from searchlab.models.packing import pack_model
from searchlab.training.adapt.model_folder import write_adapted

pytestmark = pytest.mark.slow

LOAD = """
import json, sys
from searchlab.models import load_model
model = load_model("my-shades")
rows = model.encode_texts(["red", "dark blue"]).tolist()
print(json.dumps({"name": model.name, "model_id": model.model_id, "rows": rows}))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("adapted").resolve() / "model"
    base = load_model("mini")
    rng = np.random.default_rng(0)
    heads = [
        Head((0.03 * rng.normal(size=(base.dim, base.dim))).astype(np.float32), bias)
        for bias in (0.02 * rng.normal(size=(2, base.dim))).astype(np.float32)
    ]
    write_adapted(place, AdaptedEmbedder(f"adapted:{place}", base, *heads), {}, "What it is.\n")
    (place / "LICENSE").write_text("Do as you like.\n")
    return place


@pytest.fixture(scope="module")
def wheel(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("wheels")
    words = ["models", "pack", folder, "--name", "my-shades", "--license", "MIT", "--out", out]
    done = CliRunner().invoke(searchlab, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    assert "then --model my-shades" in done.output
    return out / "my_shades-1.0-py3-none-any.whl"


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index"]
    subprocess.run([*command, "--target", target, wheel], capture_output=True, check=True)
    return target


def load(target):
    path = os.pathsep.join([str(target), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, "-c", LOAD],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": path},
    )


def test_an_installed_wheel_is_a_model_with_the_vectors_of_its_folder(folder, installed):
    done = load(installed)
    assert done.returncode == 0, done.stderr
    values = json.loads(done.stdout)
    original = load_model(f"adapted:{folder}")
    assert values["name"] == "my-shades"
    assert values["model_id"] == original.model_id
    rows = original.encode_texts(["red", "dark blue"])
    np.testing.assert_allclose(values["rows"], rows, atol=1e-6)


def test_a_model_that_embeds_its_probes_otherwise_is_refused(installed, tmp_path):
    place = tmp_path / "searchlab_model_my_shades"
    shutil.copytree(installed / "searchlab_model_my_shades", place)
    assert open_packed("my-shades", place).name == "my-shades"
    packed = json.loads((place / "packed.json").read_text())
    packed["canaries"]["text"][0] += 0.5
    (place / "packed.json").write_text(json.dumps(packed))
    with pytest.raises(MismatchError, match="must embed its canary"):
        open_packed("my-shades", place)


def test_the_wheel_holds_licence_card_and_entry_point(wheel):
    with zipfile.ZipFile(wheel) as archive:
        info = "my_shades-1.0.dist-info"
        metadata = archive.read(f"{info}/METADATA").decode()
        assert "License-Expression: MIT\nLicense-File: LICENSE\n" in metadata
        assert archive.read(f"{info}/licenses/LICENSE") == b"Do as you like.\n"
        assert (
            "my-shades = searchlab_model_my_shades:load"
            in archive.read(f"{info}/entry_points.txt").decode()
        )
        card = archive.read("searchlab_model_my_shades/model/MODEL_CARD.md").decode()
    assert "What it is." in card
    assert card in metadata


def test_the_same_folder_is_the_same_wheel_to_the_last_byte(folder, wheel, tmp_path):
    again = pack_model(folder, tmp_path, name="my-shades", license_id="MIT")
    assert again.read_bytes() == wheel.read_bytes()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"name": "My Model"}, InputError, "must be a lower-case word"),
        ({"name": "mini"}, ConflictError, "must be free, got 'mini'"),
        ({"version": "one"}, InputError, "numbers with points"),
        ({"license_id": "do what you want!"}, InputError, "an SPDX expression"),
    ],
)
def test_names_that_pip_could_not_read_are_refused(folder, tmp_path, options, error, message):
    with pytest.raises(error, match=message):
        pack_model(folder, tmp_path, **{"name": "x", "license_id": "MIT"} | options)


def test_what_is_no_model_folder_is_refused(folder, tmp_path):
    with pytest.raises(InputError, match=r"got neither manifest\.json nor heads\.npz"):
        pack_model(tmp_path, tmp_path, name="x", license_id="MIT")
    with pytest.raises(NotFoundError, match="the licence must be a file"):
        pack_model(folder, tmp_path, name="x", license_id="MIT", license_file=tmp_path / "none")


def test_a_model_that_stands_on_another_folder_cannot_be_packed_alone(folder, tmp_path):
    base = load_model(f"adapted:{folder}")
    top = AdaptedEmbedder(f"adapted:{tmp_path}", base, Head.identity(base.dim), base.text_head)
    write_adapted(tmp_path / "top", top, {}, "")
    with pytest.raises(InputError, match="must stand on a model that others have too"):
        pack_model(tmp_path / "top", tmp_path, name="x", license_id="MIT")
