"""The image tower's own training code: the same function as timm's, in 8 bits, and tuned."""

from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch")
pytest.importorskip("onnx")

from searchlab.errors import InputError  # noqa: E402
from searchlab.models.mini import framing  # noqa: E402
from searchlab.models.mini.embedder import open_session  # noqa: E402
from searchlab.models.openclip.torchvision_shim import import_torchvision  # noqa: E402
from searchlab.training.mini.features import _recipe  # noqa: E402
from searchlab.training.mini.labels import find_kinds, read_nouns  # noqa: E402
from searchlab.training.mini.photo_tower import Conv, Readings, Tower  # noqa: E402
from searchlab.training.mini.quantise import open_cell_reader, quantise  # noqa: E402
from searchlab.training.mini.tune import tune  # noqa: E402
from searchlab.training.mini.views import Cells, crop, read_cells, read_views  # noqa: E402

NOUNS = """\
  1 This is a licence.
00000001 03 n 01 animal 0 000 | a living thing
00000002 05 n 02 dog 0 domestic_dog 0 002 @ 00000001 n 0000 ~ 00000003 n 0000 | a beast
00000003 05 n 01 beagle 0 001 @ 00000002 n 0000 | a hound
00000004 05 n 01 toy_dog 0 001 @ 00000002 n 0000 | small
00000005 06 n 01 cup 0 000 | a vessel
"""


def convolution(inputs, outputs, kernel, *, stride=1, bounded=True):
    conv = torch.nn.Conv2d(inputs, outputs, kernel, stride, bias=False)
    return Conv(conv, torch.nn.BatchNorm2d(outputs).eval(), bounded=bounded)


class Small(torch.nn.Module):
    """A network of a tower's parts: a strided layer, a skip, a head."""

    def __init__(self):
        super().__init__()
        self.tower = torch.nn.Sequential(
            convolution(3, 8, 3, stride=2), convolution(8, 16, 1), convolution(16, 8, 5, stride=2)
        )
        self.skipped = convolution(8, 8, 1, bounded=False)
        self.head = torch.nn.Linear(8, 640)

    def forward(self, pixels):
        cells = self.tower(pixels)
        return self.head((cells + self.skipped(cells)).mean(dim=(2, 3)))


def photos(count):
    rng = np.random.default_rng(0)
    shapes = [(60, 80, 3), (80, 60, 3), (64, 64, 3)]
    return [
        Image.fromarray(rng.integers(0, 256, shapes[n % 3], dtype=np.uint8)) for n in range(count)
    ]


@pytest.fixture(scope="module")
def lite0():
    import_torchvision()
    import timm

    torch.manual_seed(0)
    return timm.create_model("tf_efficientnet_lite0", pretrained=False).eval()


@pytest.mark.parametrize("size", framing.SIZES)
def test_the_tower_is_the_same_function_as_timms(lite0, size):
    pixels = torch.randn(1, 3, *size)
    with torch.no_grad():
        cells = lite0.forward_features(pixels)
        features, logits = Tower(lite0)(pixels)
    torch.testing.assert_close(features[:, :1280], cells.mean(dim=(2, 3)), atol=1e-4, rtol=1e-3)
    torch.testing.assert_close(features[:, 1280:], cells.amax(dim=(2, 3)), atol=1e-4, rtol=1e-3)
    torch.testing.assert_close(logits, lite0(pixels), atol=1e-4, rtol=1e-3)


def test_eight_bits_agree_with_thirty_two_and_take_a_quarter(tmp_path):
    torch.manual_seed(0)
    network = Small().eval()
    path = tmp_path / "small.onnx"
    quantise(network, ["embedding"], photos(6), path)
    session = open_session(path, threads=1)
    for members, pixels in framing.batches(photos(6), 8):
        small = session.run(["embedding"], {"pixels": pixels})[0]
        with torch.no_grad():
            large = network(torch.from_numpy(pixels)).numpy()
        assert len(small) == len(members)
        cosines = (small * large).sum(axis=1)
        cosines /= np.linalg.norm(small, axis=1) * np.linalg.norm(large, axis=1)
        assert cosines.min() > 0.98


def test_rounded_convolutions_compute_as_the_eight_bit_file_and_still_learn(tmp_path):
    torch.manual_seed(0)
    tower = torch.nn.Sequential(convolution(3, 8, 3, stride=2), convolution(8, 8, 1)).eval()

    class Cells8(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.tower = tower

        def forward(self, pixels):
            return self.tower(pixels)

    path = tmp_path / "small.onnx"
    quantise(Cells8(), ["cells"], photos(6), path)
    ((_, pixels), *_) = framing.batches(photos(1), 1)
    small = open_cell_reader(path)(pixels)
    off = []
    for rounded in (False, True):
        for conv in tower:
            conv.rounded = rounded
        cells = tower(torch.from_numpy(pixels))
        off.append(float(np.abs(cells.detach().numpy() - small).mean()))
    assert off[1] < off[0]
    cells.sum().backward()
    assert all(conv.weight.grad.any() for conv in tower)
    for conv in tower:
        conv.apply_rounding()
    with torch.no_grad():
        torch.testing.assert_close(tower(torch.from_numpy(pixels)), cells.detach())


def test_the_quantised_network_holds_no_padding_and_no_large_floats(tmp_path):
    import onnx

    path = tmp_path / "small.onnx"
    quantise(Small().eval(), ["embedding"], photos(3), path)
    graph = onnx.load(path).graph
    assert "Pad" not in {node.op_type for node in graph.node}
    floats = [t for t in graph.initializer if t.data_type == onnx.TensorProto.FLOAT]
    assert max(int(np.prod(t.dims)) for t in floats) < 4096


def test_crops_are_framed_pixels_that_follow_their_seed():
    (photo,) = photos(1)
    one, again, other = (crop(photo, np.random.default_rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert one.shape != other.shape or not np.array_equal(one, other)
    assert one.shape[1:] in framing.SIZES
    assert np.abs(one).max() <= 1


@pytest.fixture
def files(tmp_path):
    """Grey pictures, each lighter than the last."""
    paths = {}
    for number in range(5):
        paths[f"p{number}"] = tmp_path / f"{number}.png"
        Image.new("RGB", ((60, 40), (40, 60))[number % 2], (50 * number,) * 3).save(
            paths[f"p{number}"]
        )
    return paths


def shade(pixels):
    mean = pixels.mean(axis=(1, 2, 3))
    return np.repeat(mean[:, None], 2560, axis=1), np.repeat(mean[:, None], 1000, axis=1)


def shaded_cells(pixels):
    n, _, height, width = pixels.shape
    shades = pixels.mean(axis=(1, 2, 3))[:, None, None, None]
    return np.broadcast_to(shades, (n, 208, height // 32, width // 32))


def never(pixels):
    raise AssertionError


def test_views_hold_every_photo_in_order_and_are_read_once(files, tmp_path):
    whole, _ = read_views(shade, files, tmp_path / "cache", 1)
    assert whole.ids == list(files)
    np.testing.assert_allclose(
        whole.features[:, 0], np.arange(0, 250, 50) / 127.5 - 1, atol=1e-3, rtol=1e-3
    )
    again, _ = read_views(never, files, tmp_path / "cache", 1)
    np.testing.assert_array_equal(again.logits, whole.logits)


def test_cells_hold_every_photo_in_order_and_are_read_once(files, tmp_path):
    whole, cropped = read_cells(shaded_cells, files, tmp_path / "cache", 1)
    np.testing.assert_allclose(whole.rows[:, 0, 0], np.arange(0, 250, 50) / 127.5 - 1, atol=1e-3)
    assert {tuple(size * 32) for size in whole.sizes.astype(int)} <= set(framing.SIZES)
    for cells in (whole, cropped):
        for row, (height, width) in zip(cells.rows, cells.sizes.astype(int), strict=True):
            assert not row[height * width :].any()
    again, _ = read_cells(never, files, tmp_path / "cache", 1)
    np.testing.assert_array_equal(again.rows, whole.rows)


@pytest.mark.parametrize(("read", "say"), [(read_views, shade), (read_cells, shaded_cells)])
def test_answers_on_other_photos_are_refused(files, tmp_path, read, say):
    read(say, files, tmp_path / "cache", 0)
    others = dict(reversed(files.items()))
    with pytest.raises(InputError, match=r"must hold these photos, got others"):
        read(never, others, tmp_path / "cache", 0)


@pytest.mark.parametrize(("read", "say"), [(read_views, shade), (read_cells, shaded_cells)])
def test_a_reading_whose_file_is_cut_short_is_read_again(files, tmp_path, read, say, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        with pytest.raises(OSError, match="No space left"):
            read(say, files, tmp_path / "cache", 0)
    assert not list((tmp_path / "cache").glob("*.npz"))
    read(say, files, tmp_path / "cache", 0)
    read(never, files, tmp_path / "cache", 0)
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".npz"]


def test_another_recipe_has_a_folder_of_its_own(files):
    vectors = np.eye(5, dtype=np.float32)
    own = {row: [row] for row in range(5)}
    first = _recipe(files, own, vectors, crops=2, seed=0)
    assert _recipe(dict(files), dict(own), vectors.copy(), crops=2, seed=0) == first
    others = {
        _recipe(dict(reversed(files.items())), own, vectors, crops=2, seed=0),
        _recipe(files, own | {4: [0]}, vectors, crops=2, seed=0),
        _recipe(files, own, vectors + 1, crops=2, seed=0),
        _recipe(files, own, vectors, crops=3, seed=0),
        _recipe(files, own, vectors, crops=2, seed=1),
    }
    assert len(others | {first}) == 6


def test_cells_come_back_in_groups_of_one_size():
    rows = np.zeros((3, 64, 208), dtype=np.float16)
    rows[1, :63] = np.arange(63)[:, None]
    cells = Cells(rows, np.array([[8, 8], [7, 9], [8, 8]], dtype=np.uint8))
    groups = {part.shape[2:]: (list(members), part) for members, part in cells.groups(np.arange(3))}
    assert groups[(8, 8)][0] == [0, 2]
    assert groups[(7, 9)][1][0, 5].flatten().tolist() == list(range(63))


def block(outputs):
    parts = SimpleNamespace(conv_dw=torch.nn.Conv2d(208, 208, 3, groups=208), has_skip=False)
    parts.conv_pw = torch.nn.Conv2d(208, outputs, 1)
    parts.bn1, parts.bn2 = torch.nn.BatchNorm2d(208), torch.nn.BatchNorm2d(outputs)
    return parts


def test_tuning_moves_only_the_late_part_and_leaves_it_rounded():
    torch.manual_seed(0)
    norm = torch.nn.BatchNorm2d
    network = SimpleNamespace(
        conv_stem=torch.nn.Conv2d(3, 208, 3), bn1=norm(208), conv_head=torch.nn.Conv2d(16, 1280, 1),
        bn2=norm(1280), classifier=torch.nn.Linear(1280, 1000),
        blocks=[[block(208), block(208)], [block(208)] , [block(208), block(208), block(16)]],
    )  # fmt: skip
    tower = Tower(network).eval()
    before = {name: weight.clone() for name, weight in tower.state_dict().items()}
    rng = np.random.default_rng(0)
    cells = Cells(
        rng.normal(size=(8, 64, 208)).astype(np.float16), np.full((8, 2), 8, dtype=np.uint8)
    )
    with torch.no_grad():
        ((_, part),) = cells.groups(np.arange(8))
        features, logits = (answer.numpy() for answer in tower.late(part))
    view = Readings([str(n) for n in range(8)], features, logits)
    vectors = rng.normal(size=(8, 12)).astype(np.float32)
    own = {n: [n] for n in range(8)}
    collections = np.zeros(8, dtype=np.int8)
    tune(tower, [cells], [view], own, vectors, collections, epochs=2, batch=4)
    moved = {
        ".".join(name.split(".")[:3])
        for name, weight in tower.state_dict().items()
        if not torch.equal(weight, before[name])
    }
    late = {"stages.0.1", "stages.1.0", "stages.2.0", "stages.2.1", "stages.2.2"}
    assert moved == {*late, "wide.weight", "wide.bias"}
    for conv in (*tower.stages[2].modules(), tower.wide):
        if isinstance(conv, Conv):
            assert not conv.rounded
            torch.testing.assert_close(conv._rounding(), torch.zeros_like(conv.weight))


def test_a_beagle_is_a_dog_and_an_animal(tmp_path):
    path = tmp_path / "data.noun"
    path.write_text(NOUNS, encoding="utf-8")
    nouns = read_nouns(path)
    assert nouns.find_above("00000003") == {"00000002": 1, "00000001": 2}
    names, members = find_kinds(nouns, ["00000003", "00000004", "00000005"])
    assert names == ["animal", "dog"]
    assert members.tolist() == [[1, 1], [1, 1], [0, 0]]
