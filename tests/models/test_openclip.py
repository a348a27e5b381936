"""Models of open_clip, run by torch and exported to ONNX."""

import importlib.util
import logging
import subprocess
import sys

import numpy as np
import pytest

from searchlab.errors import DataError, InputError, MissingExtraError, NotFoundError
from searchlab.models import load_model
from searchlab.models.canaries import canary_image
from searchlab.models.openclip.embedder import OpenClipEmbedder
from searchlab.models.preprocess import Preprocess
from tests.support import tiny_open_clip
from tests.support.tiny_open_clip import PICTURES, TEXTS

open_clip = tiny_open_clip.open_clip
tiny = tiny_open_clip.tiny

pytestmark = pytest.mark.slow
if importlib.util.find_spec("torch") is None or importlib.util.find_spec("open_clip") is None:
    pytest.skip("needs the extra clip", allow_module_level=True)


# -- torch ------------------------------------------------------------------------------------


def test_the_shim_makes_open_clip_importable(open_clip):
    assert "ViT-B-32" in open_clip.list_models()


def test_the_shim_declares_nothing_where_the_operators_exist():
    code = (
        "from searchlab.models.openclip.torchvision_shim import import_torchvision\n"
        "import torch\n"
        "library = torch.library.Library('torchvision', 'DEF')\n"
        "for name in ('nms', 'qnms'):\n"
        "    library.define(name + '(Tensor dets, Tensor scores, float iou_threshold) -> Tensor')\n"
        "print(hasattr(import_torchvision(), 'searchlab_declarations'))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("architecture", ["oc-tiny", "oc-custom", "oc-scaled"])
def test_cutting_at_the_end_token_changes_nothing(open_clip, architecture):
    import torch

    model = load_model(f"openclip:{architecture}/random")
    assert model.cut_text_tower is not None
    with torch.inference_mode():
        padded = model.module.encode_text(model.tokenizer(TEXTS), normalize=True).numpy()
    np.testing.assert_allclose(model.encode_texts(TEXTS), padded, atol=1e-4)


def test_a_tower_that_sees_the_padding_is_given_it(open_clip):
    import torch

    model = load_model("openclip:oc-bidirectional/random")
    assert model.cut_text_tower is None
    with torch.inference_mode():
        padded = model.module.encode_text(model.tokenizer(TEXTS), normalize=True).numpy()
    np.testing.assert_allclose(model.encode_texts(TEXTS), padded, atol=1e-5)


def test_pictures_are_embedded_as_open_clip_does(open_clip, tiny):
    import torch

    _, _, transform = open_clip.create_model_and_transforms("oc-tiny", load_weights=False)
    batch = torch.stack([transform(picture) for picture in PICTURES])
    with torch.inference_mode():
        expected = tiny.module.encode_image(batch, normalize=True).numpy()
    np.testing.assert_allclose(tiny.encode_images(PICTURES), expected, atol=1e-5)


@pytest.mark.parametrize("mode", ["shortest", "longest", "squash"])
@pytest.mark.parametrize("interpolation", ["bicubic", "bilinear"])
@pytest.mark.parametrize("target", [32, (32, 32), (48, 32)])
@pytest.mark.parametrize("size", [(60, 60), (301, 200), (97, 250), (20, 11), (1, 1), (32, 32)])
def test_preprocessing_is_that_of_open_clip(open_clip, mode, interpolation, target, size):
    from open_clip.transform import PreprocessCfg, image_transform_v2

    if mode == "shortest" and target == (48, 32) and interpolation == "bilinear":
        pytest.skip("open_clip resizes to an oblong target with bicubic only")
    config = PreprocessCfg(size=target, interpolation=interpolation, resize_mode=mode, fill_color=9)
    picture = canary_image(5, size=301).resize(size)
    expected = image_transform_v2(config, is_train=False)(picture).numpy()
    pixels = Preprocess.from_config(vars(config)).pixels([picture])[0]
    np.testing.assert_allclose(pixels, expected, atol=1e-5)


def test_slender_pictures_come_close_to_open_clip(open_clip):
    from open_clip.transform import PreprocessCfg, image_transform_v2

    config = PreprocessCfg(size=32)
    picture = canary_image(5, size=300).resize((3_000, 100))
    expected = image_transform_v2(config, is_train=False)(picture).numpy()
    pixels = Preprocess.from_config(vars(config)).pixels([picture])[0]
    # Resizing the crop instead of cropping the resized rounds a coefficient here and there.
    np.testing.assert_allclose(pixels, expected, atol=2.01 / 255 / 0.26)


@pytest.mark.parametrize("architecture", ["oc-tiny", "oc-custom", "oc-averaged", "oc-scaled"])
def test_a_tower_computed_for_its_class_token_alone_gives_the_same_rows(open_clip, architecture):
    import torch

    model = load_model(f"openclip:{architecture}/random")
    shortened = type(model.image_tower).__name__ == "ClassTokenTower"
    assert shortened == (architecture != "oc-averaged")
    pixels = torch.from_numpy(model.preprocess.pixels(PICTURES))
    with torch.inference_mode():
        expected = model.module.encode_image(pixels).numpy()
        np.testing.assert_allclose(model.image_tower(pixels).numpy(), expected, atol=1e-5)


def test_a_precision_is_a_model_of_its_own_and_moves_only_pictures_and_little(tiny):
    short = load_model("openclip:oc-tiny/random-1:bf16")
    assert (short.precision, tiny.precision) == ("bf16", "fp32")
    assert short.model_id != tiny.model_id
    assert short.fingerprints()["weights"] != tiny.fingerprints()["weights"]
    assert short.fingerprints()["tokenizer"] == tiny.fingerprints()["tokenizer"]
    np.testing.assert_array_equal(short.encode_texts(TEXTS), tiny.encode_texts(TEXTS))
    vectors, exact = short.encode_images(PICTURES), tiny.encode_images(PICTURES)
    assert not np.array_equal(vectors, exact)
    assert (vectors * exact).sum(axis=1).min() > 0.999


def test_a_device_is_no_part_of_a_model(tiny):
    named = load_model(tiny.name, device="cpu")
    assert (named.model_id, named.device) == (tiny.model_id, "cpu")
    np.testing.assert_array_equal(named.encode_images(PICTURES), tiny.encode_images(PICTURES))


def test_a_seed_decides_the_untrained_weights(open_clip, tiny):
    same, other = OpenClipEmbedder("oc-tiny/random-1"), OpenClipEmbedder("oc-tiny/random-2")
    assert same.model_id == tiny.model_id
    assert other.model_id != tiny.model_id


def test_untrained_weights_leave_the_random_numbers_of_others_alone(open_clip):
    import torch

    torch.manual_seed(4)
    expected = torch.rand(3)
    torch.manual_seed(4)
    OpenClipEmbedder("oc-tiny/random-9")
    assert torch.equal(torch.rand(3), expected)


def test_loading_leaves_logging_alone(open_clip):
    before = list(logging.getLogger().handlers)
    OpenClipEmbedder("oc-tiny/random")
    assert logging.getLogger().handlers == before


def test_a_checkpoint_gives_the_model_it_was_saved_from(open_clip, tiny, tmp_path, monkeypatch):
    import torch

    torch.save({"state_dict": tiny.module.state_dict()}, tmp_path / "weights.pt")
    monkeypatch.chdir(tmp_path)
    loaded = OpenClipEmbedder("oc-tiny/weights.pt")
    assert loaded.name == f"openclip:oc-tiny/{tmp_path.resolve() / 'weights.pt'}"
    assert loaded.model_id == tiny.model_id
    np.testing.assert_allclose(loaded.encode_texts(TEXTS), tiny.encode_texts(TEXTS), atol=1e-6)


def test_a_checkpoint_of_another_architecture_is_refused(open_clip, tiny, tmp_path):
    import torch

    torch.save(tiny.module.state_dict(), tmp_path / "weights.pt")
    with pytest.raises(InputError, match="must hold weights of oc-wider"):
        OpenClipEmbedder(f"oc-wider/{tmp_path / 'weights.pt'}")


def test_a_checkpoint_may_not_run_code(open_clip, tmp_path):
    import torch

    torch.save({"state_dict": logging.getLogger}, tmp_path / "weights.pt")
    with pytest.raises(DataError, match="must be a checkpoint"):
        OpenClipEmbedder(f"oc-tiny/{tmp_path / 'weights.pt'}")


@pytest.mark.parametrize("content", [b"", b"no weights at all", b"PK\x03\x04 torn"])
@pytest.mark.parametrize("suffix", ["pt", "safetensors"])
def test_a_damaged_checkpoint_is_refused(open_clip, tmp_path, content, suffix):
    file = tmp_path / f"weights.{suffix}"
    file.write_bytes(content)
    with pytest.raises(DataError, match="it is damaged or holds something else"):
        OpenClipEmbedder(f"oc-tiny/{file}")


def test_a_checkpoint_that_is_not_there_is_not_found(open_clip, tmp_path):
    with pytest.raises(NotFoundError, match="must be a file"):
        OpenClipEmbedder(f"oc-tiny/{tmp_path / 'none.pt'}")


def test_an_unknown_architecture_is_refused(open_clip):
    with pytest.raises(InputError, match="must be one that open_clip knows, got 'ViT-B-33'"):
        OpenClipEmbedder("ViT-B-33/random")


def test_an_unknown_tag_is_answered_with_the_known_ones(open_clip):
    with pytest.raises(InputError, match="laion2b_s34b_b79k"):
        OpenClipEmbedder("ViT-B-32/laion")


@pytest.mark.parametrize("source", ["", "ViT-B-32", "ViT-B-32/", "/random"])
def test_a_spec_without_weights_is_refused(open_clip, source):
    with pytest.raises(InputError, match="openclip:ARCH/WEIGHTS"):
        OpenClipEmbedder(source)


def test_a_failed_download_says_what_to_do(open_clip, monkeypatch):
    def no_network(*args, **kwargs):
        msg = "no route to host"
        raise OSError(msg)

    monkeypatch.setattr(open_clip, "download_pretrained", no_network)
    with pytest.raises(NotFoundError, match=r"no route to host.*checkpoint file"):
        OpenClipEmbedder("ViT-B-32/laion2b_s34b_b79k")


def test_without_torch_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "open_clip", None)
    with pytest.raises(MissingExtraError, match=r"searchlab\[clip\]"):
        OpenClipEmbedder("ViT-B-32/random")
