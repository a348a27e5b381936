"""Where torch computes, and how pictures get there; on the processor, which is always there."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from searchlab.errors import InputError
from searchlab.models import load_model
from searchlab.models.canaries import canary_image
from searchlab.models.preprocess import Preprocess

pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch")

from searchlab.models.devices import ENVIRONMENT, Feed, choose_device  # noqa: E402

PREPROCESS = Preprocess(8, 8, mean=(0.5, 0.4, 0.3), std=(0.2, 0.3, 0.4))
PICTURES = [canary_image(seed, size=20) for seed in range(7)]


def flat(pixels):
    return pixels.flatten(1)


@pytest.fixture
def feed():
    return Feed(PREPROCESS, torch.device("cpu"), batch=2)


def test_pictures_are_normalised_as_without_a_device(feed):
    rows = feed.rows(PICTURES, flat, 192)
    expected = PREPROCESS.pixels(PICTURES).reshape(7, 192)
    assert np.array_equal(rows, expected)


@pytest.mark.parametrize("batch", [1, 2, 3, 7, 64])
def test_a_row_does_not_depend_on_the_batch(batch):
    expected = PREPROCESS.pixels(PICTURES).reshape(7, 192)
    feed = Feed(PREPROCESS, torch.device("cpu"), batch=batch)
    assert np.array_equal(feed.rows(PICTURES, flat, 192), expected)


def test_no_pictures_give_no_rows(feed):
    assert feed.rows([], flat, 192).shape == (0, 192)


def test_two_buffers_serve_any_number_of_pictures(feed, monkeypatch):
    made = []
    make = Feed._buffer

    def counted(self, n_images):
        made.append(make(self, n_images))
        return made[-1]

    monkeypatch.setattr(Feed, "_buffer", counted)
    feed.rows(PICTURES * 5, flat, 192)
    assert [tuple(buffer.shape) for buffer in made] == [(2, 8, 8, 3)] * 2


def test_a_buffer_is_filled_again_only_when_its_rows_are_here(feed):
    """A device that computes late: rows are read from the buffer when they are fetched."""

    class Late:
        def __init__(self, pixels):
            self.pixels = pixels

        def __len__(self):
            return len(self.pixels)

        def float(self):
            return (self.pixels.permute(0, 3, 1, 2).float()).flatten(1)

    late = Feed(PREPROCESS, torch.device("cpu"), batch=2)
    object.__setattr__(late, "_normalise", lambda buffer: buffer)
    rows = late.rows(PICTURES, Late, 192)
    expected = np.stack([PREPROCESS.fit(picture).transpose(2, 0, 1) for picture in PICTURES])
    assert np.array_equal(rows, expected.reshape(7, 192).astype(np.float32))


def test_threads_that_embed_at_once_get_their_own_rows(feed):
    expected = [feed.rows([picture] * 3, flat, 192) for picture in PICTURES]
    together = threading.Barrier(4)

    def embed(picture):
        if picture in PICTURES[:4]:
            together.wait(timeout=30)
        return feed.rows([picture] * 3, flat, 192)

    with ThreadPoolExecutor(4) as pool:
        for rows, expected_rows in zip(pool.map(embed, PICTURES), expected, strict=True):
            assert np.array_equal(rows, expected_rows)


def test_a_tower_that_fails_says_so(feed):
    def broken(_):
        msg = "out of memory"
        raise RuntimeError(msg)

    with pytest.raises(RuntimeError, match="out of memory"):
        feed.rows(PICTURES, broken, 192)


def test_bf16_computes_products_in_bf16_and_little_else():
    linear = torch.nn.Linear(192, 192, bias=False)
    exact = Feed(PREPROCESS, torch.device("cpu")).rows(PICTURES, lambda x: linear(flat(x)), 192)
    short = Feed(PREPROCESS, torch.device("cpu"), "bf16").rows(
        PICTURES, lambda x: linear(flat(x)), 192
    )
    assert not np.array_equal(short, exact)
    np.testing.assert_allclose(short, exact, atol=0.05)


# -- which device -----------------------------------------------------------------------------


def test_the_processor_is_the_device_unless_another_is_named(monkeypatch):
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    assert choose_device().type == "cpu"
    monkeypatch.setenv(ENVIRONMENT, "auto")
    assert choose_device().type in ("cpu", "cuda", "xpu", "mps")
    assert choose_device("cpu").type == "cpu"


def test_the_first_accelerator_is_chosen_by_auto(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert choose_device("auto").type == "cuda"
    assert str(choose_device("cuda:1")) == "cuda:1"
    with pytest.raises(InputError, match="got 'cuda:2'"):
        choose_device("cuda:2")


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "meta", "\0", "cpu,cuda"])
def test_a_device_that_is_not_here_is_refused(name):
    with pytest.raises(InputError, match="device must be one that torch has here"):
        choose_device(name)


def test_only_models_of_openclip_take_a_device():
    with pytest.raises(InputError, match="models of openclip, got 'cpu' for 'palette'"):
        load_model("palette", device="cpu")
