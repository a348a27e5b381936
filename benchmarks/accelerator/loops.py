"""Two ways from picture files to vectors, and the model alone, in one precision."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from searchlab.models.devices import PRECISIONS
from searchlab.models.openclip.embedder import OpenClipEmbedder
from searchlab.photos.images.decode import WORKING_SIDE, for_model, open_rgb
from searchlab.photos.images.resize import fast_resize


def embed_by_threads(model: OpenClipEmbedder, files: Sequence[Path]) -> np.ndarray:
    """Embed as indexing does: threads decode three batches ahead, the model feeds the device."""
    side = max(WORKING_SIDE, model.input_size)

    def decode(file: Path) -> Image.Image:
        picture = open_rgb(file, min_side=side).image
        return for_model(picture, model.input_size, resize=fast_resize)

    rows = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        pictures = _decode_ahead(pool, decode, files, 3 * model.images_at_once)
        while batch := list(islice(pictures, model.images_at_once)):
            rows.append(model.encode_images(batch))
    return np.concatenate(rows)


def _decode_ahead(
    pool: ThreadPoolExecutor, work: Any, files: Sequence[Path], most: int
) -> Iterator[Image.Image]:
    rest = iter(files)
    running: deque[Future[Image.Image]] = deque(
        pool.submit(work, file) for file in islice(rest, most)
    )
    while running:
        picture = running.popleft().result()
        running.extend(pool.submit(work, file) for file in islice(rest, 1))
        yield picture


class _Files(torch.utils.data.Dataset[torch.Tensor]):
    """Files as open_clip's transform gives them."""

    def __init__(self, files: Sequence[Path], transform: Any) -> None:
        self.files = files
        self.transform = transform

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, place: int) -> torch.Tensor:
        with Image.open(self.files[place]) as picture:
            pixels: torch.Tensor = self.transform(picture.convert("RGB"))
        return pixels


def embed_by_loader(
    model: OpenClipEmbedder, files: Sequence[Path], transform: Any, *, workers: int
) -> Any:
    """Embed as open_clip's own evaluation does: a DataLoader with workers, pinned, autocast."""
    device = torch.device(model.device)
    batches = torch.utils.data.DataLoader(
        _Files(files, transform),
        batch_size=model.images_at_once,
        num_workers=workers,
        pin_memory=device.type == "cuda",
    )
    rows = []
    with torch.inference_mode(), autocast(model):
        for pixels in batches:
            encoded = model.module.encode_image(
                pixels.to(device, non_blocking=True), normalize=True
            )
            rows.append(encoded.float().cpu())
    return torch.cat(rows).numpy()


def run_tower(model: OpenClipEmbedder, pixels: torch.Tensor, *, shortened: bool) -> None:
    """Run the image tower on pixels that are on the device already, and wait until it is done."""
    tower = model.image_tower if shortened else model.module.encode_image
    with torch.inference_mode(), autocast(model):
        tower(pixels)[:1, :1].float().cpu()


def autocast(model: OpenClipEmbedder) -> Any:
    """Return a context in which torch computes products in a model's precision."""
    dtype = PRECISIONS[model.precision]
    if dtype is None:
        return nullcontext()
    return torch.autocast(torch.device(model.device).type, dtype=dtype)


def multiply(device: torch.device, precision: str, size: int, times: int) -> None:
    """Multiply square matrices `times` times, one after the other, and wait until it is done."""
    dtype = PRECISIONS[precision] or torch.float32
    with torch.inference_mode():
        left = torch.ones(size, size, dtype=dtype, device=device)
        # Each product averages a row, so that the values stay 1.
        right = torch.full((size, size), 1 / size, dtype=dtype, device=device)
        for _ in range(times):
            left = left @ right
        left[:1, :1].float().cpu()


def count_operations(model: OpenClipEmbedder) -> float:
    """Count the multiplications and additions of open_clip's whole image tower for one picture."""
    from torch.utils.flop_counter import FlopCounterMode

    shape = (1, 3, model.preprocess.height, model.preprocess.width)
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # the counter does not see the fast path
    try:
        with torch.inference_mode(), FlopCounterMode(display=False) as counter:
            model.module.encode_image(torch.zeros(shape, device=model.device))
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
    return float(counter.get_total_flops())
