"""Models of open_clip, run by torch and exported to ONNX."""

from __future__ import annotations

import importlib.util
import json
import logging
import shutil
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from searchlab.errors import (
    ConflictError,
    DataError,
    InputError,
    MismatchError,
    MissingExtraError,
    NotFoundError,
)
from searchlab.models import load_model
from searchlab.models.canaries import canary_image
from searchlab.models.onnx.clip_text import ClipTokenizer
from searchlab.models.onnx.embedder import OnnxEmbedder
from searchlab.models.onnx.export import export_onnx
from searchlab.models.openclip.embedder import OpenClipEmbedder
from searchlab.models.openclip.torchvision_shim import import_torchvision
from searchlab.models.preprocess import Preprocess

pytestmark = pytest.mark.slow

if importlib.util.find_spec("torch") is None or importlib.util.find_spec("open_clip") is None:
    pytest.skip("needs the extra clip", allow_module_level=True)

VISION = {"image_size": 32, "layers": 2, "width": 64, "patch_size": 16, "head_width": 32}
TEXT = {"context_length": 77, "vocab_size": 49408, "width": 64, "heads": 2, "layers": 2}
CONFIGS = {
    "oc-tiny": {"embed_dim": 32, "vision_cfg": VISION, "text_cfg": TEXT},
    "oc-wider": {"embed_dim": 48, "vision_cfg": VISION, "text_cfg": TEXT},
    "oc-custom": {"embed_dim": 32, "custom_text": True, "vision_cfg": VISION, "text_cfg": TEXT},
    "oc-averaged": {
        "embed_dim": 32,
        "vision_cfg": {**VISION, "pool_type": "avg"},
        "text_cfg": TEXT,
    },
    "oc-scaled": {
        "embed_dim": 32,
        "vision_cfg": {**VISION, "ls_init_value": 0.3, "final_ln_after_pool": True},
        "text_cfg": {**TEXT, "ls_init_value": 0.5},
    },
    "oc-bidirectional": {
        "embed_dim": 32,
        "custom_text": True,
        "vision_cfg": VISION,
        "text_cfg": {**TEXT, "no_causal_mask": True},
    },
}
TEXTS = ["a dog", "", "a photo of two people walking along a beach at sunset", "word " * 300, "🐈"]
PICTURES = [canary_image(seed, size=60) for seed in range(3)]


@pytest.fixture(scope="module")
def open_clip(tmp_path_factory):
    import_torchvision()
    import open_clip
    import torch

    torch.set_num_threads(1)  # the models are tiny, threads would only wait for each other
    folder = tmp_path_factory.mktemp("configs")
    for name, config in CONFIGS.items():
        (folder / f"{name}.json").write_text(json.dumps(config))
    open_clip.add_model_config(folder)
    return open_clip


@pytest.fixture(scope="module")
def tiny(open_clip):
    return load_model("openclip:oc-tiny/random-1")


@pytest.fixture(scope="module")
def export(tmp_path_factory, tiny):
    return export_onnx(tiny.name, tmp_path_factory.mktemp("export") / "tiny")


@pytest.fixture
def copied(export, tmp_path):
    return shutil.copytree(export.folder, tmp_path / "copy")


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


def test_a_checkpoint_gives_the_model_it_was_saved_from(open_clip, tiny, tmp_path):
    import torch

    torch.save({"state_dict": tiny.module.state_dict()}, tmp_path / "weights.pt")
    loaded = OpenClipEmbedder(f"oc-tiny/{tmp_path / 'weights.pt'}")
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


# -- ONNX -------------------------------------------------------------------------------------


def test_the_float32_export_agrees_with_torch(tiny, export):
    exported = OnnxEmbedder(export.folder, precision="fp32")
    np.testing.assert_allclose(exported.encode_texts(TEXTS), tiny.encode_texts(TEXTS), atol=1e-5)
    vectors, expected = exported.encode_images(PICTURES), tiny.encode_images(PICTURES)
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


def test_the_int8_export_comes_close_to_torch(tiny, export):
    exported = OnnxEmbedder(export.folder, precision="int8")
    assert (exported.encode_texts(TEXTS) * tiny.encode_texts(TEXTS)).sum(1).min() > 0.98
    assert (exported.encode_images(PICTURES) * tiny.encode_images(PICTURES)).sum(1).min() > 0.98


def test_the_report_is_in_the_manifest(export):
    manifest = json.loads((export.folder / "manifest.json").read_text())
    measured = manifest["precisions"]["fp32"]["text"]["measured"]
    assert measured["min_cosine"] > 0.9999
    assert [(report.precision, report.tower) for report in export.towers] == [
        ("fp32", "text"),
        ("fp32", "image"),
        ("int8", "text"),
        ("int8", "image"),
    ]


def test_precisions_have_names_and_ids_of_their_own(export):
    fp32, int8 = (load_model(f"onnx:{export.folder}:{p}") for p in ("fp32", "int8"))
    assert fp32.model_id != int8.model_id
    assert fp32.name.endswith(":fp32")
    assert load_model(f"onnx:{export.folder}").precision == export.default


def test_an_export_runs_without_torch(export):
    code = (
        "import sys\n"
        "from PIL import Image\n"
        "from searchlab.models import load_model\n"
        f"model = load_model({'onnx:' + str(export.folder)!r})\n"
        "model.encode_texts(['a dog']), model.encode_images([Image.new('RGB', (9, 9))])\n"
        "print([m for m in ('torch', 'open_clip', 'torchvision', 'ftfy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "A photo of a DOG's bone, isn't it?",
        "déjà vu, naïve café Ångström İstanbul ŒUVRE",
        "e\u0301 and \u00e9",
        "ﬁne ﬂowers, Ǆ ĳ ŉ",
        "“curly” ‘quotes’ it’s",
        "ＬＯＵＤ　ＮＯＩＳＥＳ ﾊﾟｿｺﾝ",
        "山の上の雪 红色的花 빨간 자동차",
        "собака бежит, κόκκινο σπίτι ΣΟΦΟΣ",
        "हिन्दी لال ไทย עברית العربية",
        "🐈 👩‍👩‍👧‍👦 🇫🇷 ☃️ 1️⃣",
        "&lt;b&gt; AT&amp;T &amp;amp; &#233; <b>&eacute;</b>",
        "1234 3.14 ½ x² ⅷ",
        "tab\tnew\nline\u2028sep\u00a0nbsp\u200bzero",
        "\x01\x1b[31mred\x1b[0m \ufeffbom \x7f",
        "<start_of_text> in <end_of_text> the middle",
        "_under_score_ --- !!! #$%",
        "supercalifragilisticexpialidocious " * 20,
        "a" * 500,
    ],
)
def test_the_exported_tokenizer_is_that_of_open_clip(tiny, export, text):
    exported = ClipTokenizer(export.folder / "tokenizer.json", context_length=77)
    expected = tiny.tokenizer([text])[0].numpy()
    tokens = exported([text])[0]
    assert tokens.tolist() == expected[: len(tokens)].tolist()
    assert not expected[len(tokens) :].any()


def test_without_tokenizers_pictures_are_embedded_and_a_text_names_the_extra(export, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    model = OnnxEmbedder(export.folder)
    assert model.encode_images(PICTURES).shape == (3, model.dim)
    for _ in range(2):
        with pytest.raises(MissingExtraError, match=r"pip install 'searchlab\[onnx\]'"):
            model.encode_texts(["a dog"])
    monkeypatch.undo()
    assert model.encode_texts(["a dog"]).shape == (1, model.dim)


def test_a_changed_file_is_refused(copied):
    file = copied / "text.int8.onnx"
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    model = OnnxEmbedder(copied)
    model.encode_images(PICTURES)
    with pytest.raises(DataError, match=r"text\.int8\.onnx must be as exported, got SHA-256"):
        model.encode_texts(["a dog"])


def test_a_lost_file_is_refused(copied):
    (copied / "tokenizer.json").unlink()
    with pytest.raises(DataError, match=r"tokenizer\.json must be as exported, got no such file"):
        OnnxEmbedder(copied).encode_texts(["a dog"])


def test_a_tower_that_moved_is_refused(copied):
    manifest = json.loads((copied / "manifest.json").read_text())
    canary = manifest["precisions"]["int8"]["text"]["canaries"][0]
    canary[1][0] += 0.5
    (copied / "manifest.json").write_text(json.dumps(manifest))
    model = OnnxEmbedder(copied)
    with pytest.raises(MismatchError, match="text tower"):
        model.encode_texts(["a dog"])
    with pytest.raises(MismatchError, match="text tower"):
        model.encode_texts(["a dog"])


@pytest.mark.parametrize("text", ["", "[]", "{", '{"schema": 99}', '{"schema": 1}'])
def test_a_damaged_manifest_is_refused(copied, text):
    (copied / "manifest.json").write_text(text)
    with pytest.raises(DataError, match=r"manifest\.json must be as exported"):
        OnnxEmbedder(copied)


def test_a_precision_that_was_not_exported_is_refused(tiny, tmp_path):
    report = export_onnx(tiny.name, tmp_path / "new" / "tiny", int8=False)
    assert report.default == "fp32"
    with pytest.raises(InputError, match="must be fp32, got 'int8'"):
        OnnxEmbedder(report.folder, precision="int8")


@pytest.fixture(scope="module")
def lopsided(tiny, tmp_path_factory):
    """The same function as `tiny`, with one component so large that eight bits lose the others."""
    import torch

    weights = {name: value.clone() for name, value in tiny.module.state_dict().items()}
    for name, value in weights.items():
        if name.endswith("ln_1.weight"):
            head = name.removesuffix("ln_1.weight")
            value[0] *= 3_000
            weights[f"{head}ln_1.bias"][0] *= 3_000
            weights[f"{head}attn.in_proj_weight"][:, 0] /= 3_000
    file = tmp_path_factory.mktemp("lopsided") / "weights.pt"
    torch.save(weights, file)
    return load_model(f"openclip:oc-tiny/{file}")


def test_an_int8_that_does_not_agree_is_not_kept_and_says_why(tiny, lopsided, tmp_path):
    np.testing.assert_allclose(
        lopsided.encode_images(PICTURES), tiny.encode_images(PICTURES), atol=1e-3
    )
    report = export_onnx(lopsided.name, tmp_path / "export")
    assert report.default == "fp32"
    assert not report.agreements["int8"].is_enough("int8")
    assert "; not kept" in str(report)
    manifest = json.loads((report.folder / "manifest.json").read_text())
    assert manifest["refused"] == {"int8": report.agreements["int8"].to_dict()}
    assert not list(report.folder.glob("*.int8.onnx"))
    assert sorted(manifest["files"]) == ["image.fp32.onnx", "text.fp32.onnx", "tokenizer.json"]
    assert OnnxEmbedder(report.folder).encode_texts(["a dog"]).shape == (1, tiny.dim)
    with pytest.raises(InputError, match=r"got 'int8', which was not kept .* same_order 0\."):
        OnnxEmbedder(report.folder, precision="int8")


def test_the_agreement_of_each_precision_is_in_the_manifest(export):
    manifest = json.loads((export.folder / "manifest.json").read_text())
    for precision in ("fp32", "int8"):
        recorded = manifest["precisions"][precision]["agreement"]
        assert recorded == export.agreements[precision].to_dict()
        assert recorded["same_order"] > 0.9


def test_an_export_overwrites_nothing(tiny, export):
    with pytest.raises(ConflictError, match="must be new"):
        export_onnx(tiny.name, export.folder)


def test_a_failed_export_leaves_nothing(tiny, tmp_path, monkeypatch):
    from searchlab.models.onnx import parity

    monkeypatch.setitem(parity.LEAST_COSINE, "fp32", 1.1)
    with pytest.raises(DataError, match="must agree with torch"):
        export_onnx(tiny.name, tmp_path / "tiny", int8=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "spec", ["palette", "openclip:oc-bidirectional/random", "openclip:oc-tiny/random-1:bf16"]
)
def test_what_cannot_be_exported_is_refused(open_clip, tmp_path, spec):
    with pytest.raises(InputError, match="export"):
        export_onnx(spec, tmp_path / "x")


def test_grey_and_tiny_pictures_pass(tiny, export):
    exported = OnnxEmbedder(export.folder)
    rows = exported.encode_images([Image.new("L", (1, 1)), Image.new("RGB", (500, 2))])
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 1], abs=1e-5)
