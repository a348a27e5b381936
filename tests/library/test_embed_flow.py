"""The pipeline's flow: what an interruption leaves, and that neither side waits for the other."""

import threading
import time

import pytest

from searchlab.library import decoding
from searchlab.library import embed as pipeline
from tests.support.embedding import MeanColour, picture


@pytest.mark.slow
def test_an_interrupted_run_keeps_its_finished_batches_and_the_next_does_the_rest(many, embed):
    stopped = MeanColour(stop_after=3)
    with pytest.raises(KeyboardInterrupt):
        embed(many, stopped)
    going_on = MeanColour()
    embed(many, going_on)
    assert len(stopped.seen) == sum(stopped.batches) >= 3
    assert sorted(stopped.seen + going_on.seen) == [(i, 200 - i, 50) for i in range(100)]


def test_an_interruption_leaves_no_thread_behind(many, embed):
    import threading

    with pytest.raises(KeyboardInterrupt):
        embed(many, MeanColour(stop_after=1))
    names = [thread.name for thread in threading.enumerate()]
    assert not [name for name in names if name.startswith("decode")]


def test_a_failing_second_model_keeps_nothing_of_its_batch(put, embed, cache):
    files = [put(f"{i}.png", picture((i, 0, 0))) for i in range(5)]
    first = MeanColour("first")
    with pytest.raises(KeyboardInterrupt):
        embed(files, first, MeanColour("second", stop_after=0))
    digests = [digest for digest, _ in files]
    assert cache.known_vectors(first.model_id, digests) == set()
    assert cache.facts(digests) == {}


@pytest.mark.slow
def test_few_pictures_wait_in_memory_while_the_model_is_slow(put, embed, monkeypatch):
    files = [put(f"{i:03d}.png", picture((i % 256, i // 256, 9), (4, 4))) for i in range(300)]
    decoded, waiting = [], []
    decode = decoding.open_rgb

    def counted(*args, **options):
        decoded.append(1)
        return decode(*args, **options)

    class Slow(MeanColour):
        def encode_images(self, images):
            time.sleep(0.01)
            waiting.append(len(decoded) - len(self.seen))
            return super().encode_images(images)

    monkeypatch.setattr(decoding, "open_rgb", counted)
    embed(files, Slow())
    assert len(decoded) == 300
    assert max(waiting) <= 100


@pytest.mark.slow
def test_a_slow_model_does_not_hold_up_decoding(many, embed, monkeypatch):
    decode, decoded, ahead = decoding.open_rgb, [], threading.Event()

    def counted(*args, **options):
        decoded.append(1)
        if len(decoded) > 2 * pipeline.BATCH:
            ahead.set()
        return decode(*args, **options)

    class Slow(MeanColour):
        def encode_images(self, images):
            assert ahead.wait(timeout=30)  # two batches on, while the first one is embedded
            return super().encode_images(images)

    monkeypatch.setattr(decoding, "open_rgb", counted)
    assert embed(many, Slow()) == []


@pytest.mark.slow
def test_slow_decoding_does_not_hold_up_the_model(many, embed, monkeypatch):
    decode, order, embedding = decoding.open_rgb, [], threading.Event()

    def slow(*args, **options):
        order.append(1)
        if len(order) > 2 * pipeline.BATCH:
            assert embedding.wait(timeout=30)
        return decode(*args, **options)

    class Ready(MeanColour):
        def encode_images(self, images):
            embedding.set()
            return super().encode_images(images)

    monkeypatch.setattr(decoding, "open_rgb", slow)
    assert embed(many, Ready()) == []


@pytest.mark.slow
def test_a_model_may_ask_for_larger_batches(many, embed):
    model = MeanColour()
    model.images_at_once = 40
    embed(many, model)
    assert model.batches == [40, 40, 20]
