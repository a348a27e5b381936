"""Where torch computes, in which precision, and how pictures get there without making it wait.

Threads fit pictures into one buffer of bytes while the device computes on the one before. There are
two buffers, used in turn, whatever the number of pictures. They are pinned in memory, so that the
device can copy them by itself. Pixels are sent as bytes, a quarter of the size of floats, and are
normalised on the device.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from PIL import Image

from searchlab.errors import InputError
from searchlab.models.preprocess import Preprocess
from searchlab.models.protocol import Embeddings

ENVIRONMENT: Final = "SEARCHLAB_DEVICE"
"""The environment variable that names the device where no argument does."""

PRECISIONS: Final = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}
"""Name -> what an image tower computes its products in; None for float32 throughout."""

_ACCELERATORS: Final = ("cuda", "xpu", "mps")
_BUFFERS: Final = 2
_MOST_THREADS: Final = 16


def choose_device(name: str | None = None) -> torch.device:
    """Return a device of torch.

    Args:
        name: Such as `"cpu"`, `"cuda"`, `"cuda:1"`, `"xpu"` or `"mps"`; `"auto"` for the first
            accelerator that there is, else the processor. If left out, the variable
            `SEARCHLAB_DEVICE` decides, and without it the processor is taken.

    Raises:
        InputError: There is no such device here.
    """
    choice = name or os.environ.get(ENVIRONMENT) or "cpu"
    accelerators = [kind for kind in _ACCELERATORS if _is_here(kind)]
    if choice == "auto":
        return torch.device(accelerators[0] if accelerators else "cpu")
    try:
        device = torch.device(choice)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", *accelerators) or _lacks_index(device):
        listed = ", ".join(["auto", "cpu", *accelerators])
        msg = f"device must be one that torch has here ({listed}), got {choice!r}"
        raise InputError(msg)
    return device


def _is_here(kind: str) -> bool:
    module: Any = getattr(torch, kind, None)
    return module is not None and bool(module.is_available())


def _lacks_index(device: torch.device) -> bool:
    if device.index is None or device.type == "cpu":
        return False
    n_devices: int = getattr(torch, device.type).device_count()
    return device.index >= n_devices


@dataclass(frozen=True)
class Feed:
    """Brings pictures to a device and their rows back; several threads may use one.

    Attributes:
        preprocess: How the tower wants its pictures.
        device: Where the tower computes.
        precision: One of `PRECISIONS`.
        batch: Pictures that the tower is given at once.
    """

    preprocess: Preprocess
    device: torch.device
    precision: str = "fp32"
    batch: int = 32

    def rows(
        self, images: Sequence[Image.Image], tower: Callable[[torch.Tensor], torch.Tensor], dim: int
    ) -> Embeddings:
        """Embed RGB pictures; (n_images, dim), not of unit length.

        Args:
            images: Of any size.
            tower: From (n, 3, height, width) float32 on the device to (n, dim) there.
            dim: Components of a row.
        """
        rows = np.zeros((len(images), dim), dtype=np.float32)
        n_batches = -(-len(images) // self.batch)
        buffers = [self._buffer(len(images)) for _ in range(min(_BUFFERS, n_batches))]
        under_way: deque[tuple[int, torch.Tensor]] = deque()

        def fetch() -> None:
            start, batch_rows = under_way.popleft()
            # This waits for the device, which then no longer needs the buffer it computed from.
            rows[start : start + len(batch_rows)] = batch_rows.float().cpu().numpy()

        with self._threads() as fit, self._computing():
            for number, start in enumerate(range(0, len(images), self.batch)):
                if len(under_way) == len(buffers):
                    fetch()
                part = images[start : start + self.batch]
                buffer = buffers[number % len(buffers)][: len(part)]
                for slot, pixels in zip(buffer.numpy(), fit(part), strict=True):
                    slot[...] = pixels
                under_way.append((start, tower(self._normalise(buffer))))
            while under_way:
                fetch()
        return rows

    def _buffer(self, n_images: int) -> torch.Tensor:
        shape = (min(self.batch, n_images), self.preprocess.height, self.preprocess.width, 3)
        return torch.empty(shape, dtype=torch.uint8, pin_memory=self.device.type in ("cuda", "xpu"))

    @contextmanager
    def _threads(self) -> Iterator[Callable[[Sequence[Image.Image]], Iterator[Any]]]:
        fit = self.preprocess.fit
        if self.device.type == "cpu":  # every core is at work on the tower already
            yield lambda images: map(fit, images)
            return
        with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1)) as pool:
            yield lambda images: pool.map(fit, images)

    @contextmanager
    def _computing(self) -> Iterator[None]:
        dtype = PRECISIONS[self.precision]
        with ExitStack() as stack:
            stack.enter_context(torch.inference_mode())
            if dtype is not None:
                stack.enter_context(torch.autocast(self.device.type, dtype=dtype))
            elif self.device.type == "cuda":
                # A tower in float32 must embed as it does on the processor: no shortened products.
                stack.enter_context(torch.backends.cudnn.flags(enabled=True, allow_tf32=False))
            yield

    def _normalise(self, buffer: torch.Tensor) -> torch.Tensor:
        pixels = buffer.to(self.device, non_blocking=True).permute(0, 3, 1, 2).float() / 255
        mean, std = (
            torch.tensor(channels, dtype=torch.float32, device=self.device)[:, None, None]
            for channels in (self.preprocess.mean, self.preprocess.std)
        )
        return ((pixels - mean) / std).contiguous()
