"""Models of open_clip, exported to ONNX."""

import importlib.util
import json
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from PIL import Image

from searchlab.errors import ConflictError, DataError, InputError, MismatchError, MissingExtraError
from searchlab.models import load_model
from searchlab.models.onnx.clip_text import ClipTokenizer
from searchlab.models.onnx.embedder import OnnxEmbedder
from searchlab.models.onnx.export import export_onnx
from searchlab.models.packed import open_packed
from searchlab.models.packing import pack_model
from tests.support import tiny_open_clip
from tests.support.tiny_open_clip import PICTURES, TEXTS

open_clip = tiny_open_clip.open_clip
tiny = tiny_open_clip.tiny

pytestmark = pytest.mark.slow
if importlib.util.find_spec("torch") is None or importlib.util.find_spec("open_clip") is None:
    pytest.skip("needs the extra clip", allow_module_level=True)


@pytest.fixture(scope="module")
def export(tmp_path_factory, tiny):
    return export_onnx(tiny.name, tmp_path_factory.mktemp("export") / "tiny")


@pytest.fixture
def copied(export, tmp_path):
    return shutil.copytree(export.folder, tmp_path / "copy")


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


def test_an_export_is_packed_as_a_wheel_and_loaded_from_it(export, tmp_path):
    wheel = pack_model(export.folder, tmp_path, name="tiny-clip", license_id="Apache-2.0")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    packed = open_packed("tiny-clip", tmp_path / "site" / "searchlab_model_tiny_clip")
    original = OnnxEmbedder(export.folder)
    assert (packed.name, packed.model_id) == ("tiny-clip", original.model_id)
    np.testing.assert_array_equal(packed.encode_texts(TEXTS), original.encode_texts(TEXTS))
