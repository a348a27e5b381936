"""The model alone, open_clip's way from files to vectors, and what a device can do at most."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from searchlab.models.devices import PRECISIONS
from searchlab.models.openclip.embedder import OpenClipEmbedder


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
        left = torch.rand(size, size, device=device).to(dtype)
        # Each product averages a row, so that the values stay about as large. They are drawn at
        # random, as a device is faster where numbers are alike.
        right = (torch.rand(size, size, device=device) * (2 / size)).to(dtype)
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
