"""The default model: both towers load alone, agree across languages, and refuse to be swapped."""

import json
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest
from PIL import Image

from searchlab.errors import DataError, InputError, MismatchError
from searchlab.models.captions import CaptionsEmbedder
from searchlab.models.mini.artefacts import MINI_DATA
from searchlab.models.mini.embedder import MiniEmbedder
from searchlab.models.protocol import Embedder


@pytest.fixture(scope="module")
def mini():
    return MiniEmbedder(threads=1)


@pytest.fixture
def copied(tmp_path):
    return shutil.copytree(MINI_DATA, tmp_path / "mini_data")


def cosine(model, left, right):
    rows = model.encode_texts([left, right])
    return float(rows[0] @ rows[1])


def test_both_models_are_embedders(mini):
    assert isinstance(mini, Embedder)
    assert isinstance(CaptionsEmbedder(), Embedder)
    assert mini.parts == ((mini, 1.0),)


@pytest.mark.parametrize("dog", ["Hund", "perro", "chien", "собака", "犬", "狗", "كلب", "köpek"])
def test_a_dog_is_a_dog_in_every_language(mini, dog):
    assert cosine(mini, "dog", dog) > cosine(mini, "airplane", dog) + 0.3


def test_a_row_does_not_depend_on_the_batch(mini):
    texts = ["a red bus", "", "zwei Katzen", "海边的日落"]
    together = mini.encode_texts(texts)
    alone = np.concatenate([mini.encode_texts([text]) for text in texts])
    np.testing.assert_array_equal(together, alone)


@pytest.mark.slow
def test_photo_rows_do_not_depend_on_the_batch(mini):
    rng = np.random.default_rng(0)
    photos = [
        Image.fromarray(rng.integers(0, 256, (40, 30 + 9 * n, 3), dtype=np.uint8))
        for n in range(18)
    ]
    together = mini.encode_images(photos)
    alone = np.concatenate([mini.encode_images([photo]) for photo in photos])
    np.testing.assert_allclose(together, alone, atol=1e-4)


@pytest.mark.slow
def test_a_photo_and_its_mirror_image_have_the_same_row(mini):
    rng = np.random.default_rng(0)
    photo = Image.fromarray(rng.integers(0, 256, (48, 64, 3), dtype=np.uint8))
    mirrored = photo.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    rows = mini.encode_images([photo, mirrored])
    np.testing.assert_allclose(rows[0], rows[1], atol=0.01)


def test_rows_are_unit_float32(mini):
    texts = mini.encode_texts(["a dog", "ein Haus"])
    photos = mini.encode_images([Image.new("RGB", (64, 48), "teal")])
    for rows in (texts, photos):
        assert rows.dtype == np.float32
        assert rows.flags.c_contiguous
        assert rows.shape[1] == mini.dim
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("text", ["", "   ", "!?…", "\x00\x01", "\u200d\ufe0f"])
def test_a_text_that_says_nothing_gives_a_zero_row(mini, text):
    assert not mini.encode_texts([text]).any()


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["a\x00dog", "🐶", "שני כלבים", "\ud83d dog", "dog " * 2500, "x" * 10_000, "ก" * 10_000]
)
def test_odd_texts_are_fine(mini, text):
    assert np.isfinite(mini.encode_texts([text])).all()


def test_no_texts_and_no_images_give_no_rows(mini):
    assert mini.encode_texts([]).shape == (0, mini.dim)
    assert mini.encode_images([]).shape == (0, mini.dim)


def test_case_and_punctuation_do_not_matter(mini):
    rows = mini.encode_texts(["A Dog!", "a dog"])
    np.testing.assert_array_equal(rows[0], rows[1])


@pytest.mark.parametrize("size", [(1, 1), (1, 5000), (5000, 1), (3, 2)])
def test_tiny_and_stretched_pictures_are_fine(mini, size):
    assert np.isfinite(mini.encode_images([Image.new("RGB", size, "white")])).all()


def test_a_photo_is_seen_by_labels_of_falling_cosine(mini):
    rows = mini.encode_images([Image.new("RGB", (64, 64), "green")] * 2)
    sights = mini.sights(rows, 3)
    assert len(sights) == 2
    names, scores = zip(*sights[0].labels, strict=True)
    assert len(set(names)) == 3
    assert list(scores) == sorted(scores, reverse=True)


def test_the_label_of_a_text_is_itself(mini):
    assert mini.sights(mini.encode_texts(["goldfish"]), 1)[0].labels[0][0] == "goldfish"


@pytest.mark.parametrize(
    ("label", "kinds"),
    [
        ("Golden Retriever", ["a dog", "an animal"]),
        ("oboe", ["a musical instrument"]),
        ("tabby cat", ["a cat", "an animal"]),
    ],
)
def test_a_label_is_seen_as_its_kinds_too_the_narrowest_first(mini, label, kinds):
    sight = mini.sights(mini.encode_texts([label]), 1)[0]
    assert [kind for kind, _ in sight.kinds] == kinds
    assert all(0.5 <= share <= 1.001 for _, share in sight.kinds)


@pytest.mark.slow
def test_texts_load_no_image_runtime_and_photos_no_table():
    program = (
        "import sys; from searchlab.models.mini.embedder import MiniEmbedder; m = MiniEmbedder();"
        "m.encode_texts(['dog']); assert 'onnxruntime' not in sys.modules;"
        "assert 'tokenizers' not in sys.modules; assert 'torch' not in sys.modules;"
        "from PIL import Image; n = MiniEmbedder(); n.encode_images([Image.new('RGB', (9, 9))]);"
        "assert n._texts is None; assert 'onnxruntime' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_model_id_is_the_recorded_one(mini):
    assert mini.model_id == json.loads((MINI_DATA / "model.json").read_text())["model_id"]


@pytest.mark.parametrize("name", ["table.npy", "image.onnx", "pieces.txt"])
def test_the_model_id_follows_the_artefacts(mini, copied, name):
    with (copied / name).open("r+b") as file:
        file.seek(5000)
        byte = file.read(1)[0]
        file.seek(5000)
        file.write(bytes([byte ^ 1]))
    assert MiniEmbedder(copied).model_id != mini.model_id


def test_a_text_tower_that_differs_from_its_canaries_is_refused(copied):
    table = np.load(copied / "table.npy")
    np.save(copied / "table.npy", np.roll(table, 1, axis=1))
    with pytest.raises(MismatchError, match="text tower of mini must embed its canary"):
        MiniEmbedder(copied).encode_texts(["dog"])


def test_an_image_tower_that_differs_from_its_canaries_is_refused(copied):
    record = json.loads((copied / "model.json").read_text())
    record["canaries"]["image"][0]["expected"][0] += 0.2
    (copied / "model.json").write_text(json.dumps(record))
    with pytest.raises(MismatchError, match="image tower of mini must embed its canary"):
        MiniEmbedder(copied).encode_images([Image.new("RGB", (9, 9))])


def test_a_missing_or_damaged_file_is_named_with_the_remedy(copied):
    (copied / "image.onnx").write_bytes(b"not a network")
    with pytest.raises(DataError, match=r"image\.onnx.*reinstall searchlab"):
        MiniEmbedder(copied).encode_images([Image.new("RGB", (9, 9))])
    (copied / "table.npy").unlink()
    with pytest.raises(DataError, match=r"table\.npy.*reinstall searchlab"):
        MiniEmbedder(copied)


def test_threads_may_share_a_model():
    model = MiniEmbedder(threads=1)
    rows = []
    threads = [
        threading.Thread(target=lambda: rows.append(model.encode_texts(["a dog"])))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(rows) == 8
    assert all(np.array_equal(row, rows[0]) for row in rows)


def test_captions_share_the_space_of_texts(mini):
    captions = CaptionsEmbedder()
    texts = ["a dog on the beach", "ein Hund am Strand"]
    np.testing.assert_array_equal(captions.encode_texts(texts), mini.encode_texts(texts))
    assert captions.model_id.startswith("captions-")
    assert (captions.reads, captions.input_size) == ("text", 0)


def test_captions_refuse_pictures():
    with pytest.raises(InputError, match="captions reads the descriptions of photos"):
        CaptionsEmbedder().encode_images([Image.new("RGB", (9, 9))])
