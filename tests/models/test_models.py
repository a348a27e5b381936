"""Specs, the registry, and what models share."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from searchlab.errors import InputError, MissingExtraError, NotFoundError
from searchlab.models import load_model
from searchlab.models.onnx.clip_text import ClipTokenizer
from searchlab.models.preprocess import Preprocess
from searchlab.models.protocol import readable_texts, rgb_images


@pytest.mark.parametrize(
    "spec",
    [
        "",
        "clip",
        "Mini",
        "palette ",
        ":",
        "hybrid",
        pytest.param("openclip", marks=pytest.mark.slow),
    ],
)
def test_an_unknown_spec_is_refused(spec):
    with pytest.raises(InputError, match="must be"):
        load_model(spec)


def test_an_unknown_spec_is_answered_with_the_known_ones():
    with pytest.raises(
        InputError,
        match="captions, hybrid, migrated, mini, onnx, openclip, palette, vectors, got 'clip'",
    ):
        load_model("clip")


@pytest.mark.parametrize("spec", ["palette:x", "mini:x", "captions:x"])
def test_a_plain_name_takes_nothing_after_it(spec):
    pytest.importorskip(f"searchlab.models.{spec.partition(':')[0]}", exc_type=ImportError)
    with pytest.raises(InputError, match="must stand alone"):
        load_model(spec)


def test_a_plain_model_is_loaded_once():
    assert load_model("palette") is load_model("palette")
    assert load_model("hybrid:palette=1").parts[0][0] is load_model("palette")


def test_a_folder_without_an_export_is_not_found(tmp_path):
    with pytest.raises(NotFoundError, match=r"must be a folder with manifest\.json"):
        load_model(f"onnx:{tmp_path}")


@pytest.mark.slow
def test_importing_the_registry_is_light():
    code = (
        "import sys, searchlab.models\n"
        "heavy = ('torch', 'open_clip', 'onnxruntime', 'tokenizers', 'scipy', 'sklearn')\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_texts_are_made_readable():
    assert readable_texts(["a\0b", "x\ud800y", "long"], max_length=3) == ["a b", "x?y", "lon"]


@pytest.mark.parametrize("texts", ["a dog", ["a", None], [b"a"]])
def test_what_is_no_sequence_of_strings_is_refused(texts):
    with pytest.raises(InputError, match="texts must be"):
        readable_texts(texts, max_length=10)


def test_pictures_are_brought_to_rgb():
    assert [p.mode for p in rgb_images([Image.new("L", (2, 2)), Image.new("RGB", (2, 2))])] == [
        "RGB"
    ] * 2


@pytest.mark.parametrize(
    "images", [Image.new("RGB", (2, 2)), ["a.jpg"], [Image.new("RGB", (0, 2))]]
)
def test_what_is_no_sequence_of_pictures_is_refused(images):
    with pytest.raises(InputError, match="must be"):
        rgb_images(images)


def _preprocess(**changes):
    config = {
        "size": [32, 32],
        "mean": [0.5, 0.5, 0.5],
        "std": [0.5, 0.5, 0.5],
        "interpolation": "bicubic",
        "resize_mode": "shortest",
        "fill_color": 0,
    }
    return Preprocess.from_config(config | changes)


def test_preprocessing_survives_its_configuration():
    preprocess = _preprocess(resize_mode="longest", fill_color=7)
    assert Preprocess.from_config(preprocess.to_config()) == preprocess


def test_a_panorama_costs_no_more_than_a_picture():
    pixels = _preprocess().pixels([Image.new("RGB", (60_000, 1), "#ffffff")])
    assert pixels.shape == (1, 3, 32, 32)
    assert (pixels == 1).all()


def test_unknown_preprocessing_is_refused():
    with pytest.raises(InputError, match="resize_mode one of shortest, longest, squash"):
        _preprocess(resize_mode="crop")


@pytest.mark.parametrize("mode", ["shortest", "longest", "squash"])
def test_white_stays_white_in_the_middle(mode):
    pixels = _preprocess(resize_mode=mode).pixels([Image.new("RGB", (50, 40), "#ffffff")])
    assert pixels.dtype == np.float32
    assert (pixels[0, :, 16, 16] == 1).all()


def test_without_tokenizers_an_exported_models_texts_name_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'searchlab\[onnx\]'"):
        ClipTokenizer(tmp_path / "tokenizer.json", context_length=77)
