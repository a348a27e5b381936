"""The limit of this machine: the matrix products of ViT-B-32 by BLAS, and nothing else of it.

There are as many weights as in the model, of the same sizes, and each is read again. Images are
bound by products; a text has so few tokens that it is bound by reading the weights, which is timed
as the products of a single token. Attention's own products, one in a hundred, are left out, which
makes the limit stricter.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

LIMITS = "limits: BLAS alone"
IMAGE_TOKENS, PATCHES, LAYERS = 50, 49, 12
Shape = tuple[int, int, int]


def image_products(batch: int) -> list[Shape]:
    """List (rows, inner, columns) of the products of a batch of images."""
    return [
        (PATCHES * batch, 3_072, 768),
        *_blocks(IMAGE_TOKENS * batch, 768),
        (batch, 768, 512),
    ]


def text_products() -> list[Shape]:
    """List (rows, inner, columns) of the products of a single token."""
    return [*_blocks(1, 512), (1, 512, 512)]


def _blocks(rows: int, width: int) -> list[Shape]:
    one = [(width, 3 * width), (width, width), (width, 4 * width), (4 * width, width)]
    return [(rows, inner, columns) for _ in range(LAYERS) for inner, columns in one]


def measure_seconds(shapes: list[Shape], runs: int) -> float:
    """Measure the seconds of processor time that all products take, the least of the runs."""
    rng = np.random.default_rng(0)
    inputs = {shape[:2]: rng.random(shape[:2], dtype=np.float32) for shape in shapes}
    weights = [rng.random(shape[1:], dtype=np.float32) for shape in shapes]
    durations = []
    for _ in range(runs + 1):
        started = time.process_time()
        for shape, weight in zip(shapes, weights, strict=True):
            inputs[shape[:2]] @ weight
        durations.append(time.process_time() - started)
    return min(durations[1:])


def measure_limits(*, batch: int, runs: int) -> dict[str, Any]:
    """Measure the limits in this process, which must be bound to one core.

    Returns:
        CPU milliseconds of the products of an image in a batch, and of reading the weights of the
        text tower; the rates that follow from them, in billions of operations and bytes per second.
    """
    images, texts = image_products(batch), text_products()
    image_s, text_s = measure_seconds(images, runs) / batch, measure_seconds(texts, runs)
    return {
        "image_ms": round(1e3 * image_s, 4),
        "text_read_ms": round(1e3 * text_s, 4),
        "image_gflops": round(_operations(images) / batch / image_s / 1e9, 2),
        "text_read_gb_per_s": round(sum(4 * k * n for _, k, n in texts) / text_s / 1e9, 2),
        "batch": batch,
    }


def _operations(shapes: list[Shape]) -> float:
    return sum(2.0 * m * k * n for m, k, n in shapes)
