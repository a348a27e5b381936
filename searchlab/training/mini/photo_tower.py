"""The image tower: EfficientNet-lite2 in our own few layers, and what it says of photos.

timm's network pads by the size of its input, in nodes that no quantiser sees through. Here batch
normalisation is folded into the convolutions and the padding is fixed, which is the same function
for sides divisible by 32 and exports to a plain chain of Conv, Clip and Add.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch.nn import functional

from searchlab.models.mini import framing
from searchlab.models.openclip.torchvision_shim import import_torchvision
from searchlab.training.mini.materials import TOWER, locate

BATCH = 8
TUNED = 5  # Last blocks; fine-tuning leaves those before them alone.
LEVELS = 64  # On either side of zero, of weights in 7 bits.


class Readings(NamedTuple):
    """What a tower says of photos.

    Attributes:
        ids: Photo ids.
        features: (n, 2560) means and maxima of the 1,280 channels over the photo's cells.
        logits: (n, 1000) class logits.
    """

    ids: list[str]
    features: NDArray[np.float32]
    logits: NDArray[np.float32]

    def rows(self, some: slice) -> Readings:
        """Those of some photos."""
        return Readings(self.ids[some], self.features[some], self.logits[some])


class PhotoReader(Protocol):
    """A tower as a function: (n, 3, height, width) pixels to features and logits."""

    def __call__(
        self, pixels: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Read framed pictures."""


class Conv(torch.nn.Module):
    """A convolution with its batch normalisation folded in, padded as TensorFlow's SAME.

    Attributes:
        rounded: Whether it computes with the 7-bit weights that ship; gradients pass as if not.
    """

    def __init__(self, conv: Any, norm: Any, *, bounded: bool) -> None:
        super().__init__()
        factor = norm.weight / torch.sqrt(norm.running_var + norm.eps)
        self.weight = torch.nn.Parameter((conv.weight * factor[:, None, None, None]).detach())
        self.bias = torch.nn.Parameter((norm.bias - norm.running_mean * factor).detach())
        self.stride = int(conv.stride[0])
        self.groups = int(conv.groups)
        self.bounded = bounded
        self.rounded = False
        padded = max(0, int(conv.kernel_size[0]) - self.stride)
        before, after = padded // 2, padded - padded // 2
        self.even = before if before == after else 0
        self.uneven = () if before == after else (before, after, before, after)

    def forward(self, cells: torch.Tensor) -> torch.Tensor:
        """(n, channels, height, width) to the same of the next layer."""
        if self.uneven:
            cells = functional.pad(cells, self.uneven)
        weight = self.weight + self._rounding() if self.rounded else self.weight
        out = functional.conv2d(
            cells, weight, self.bias, self.stride, self.even, groups=self.groups
        )
        return functional.relu6(out) if self.bounded else out

    @torch.no_grad()
    def settle(self) -> None:
        """Make the rounded weights the weights."""
        self.weight.add_(self._rounding())
        self.rounded = False

    @torch.no_grad()
    def _rounding(self) -> torch.Tensor:
        step = self.weight.abs().amax(dim=(1, 2, 3), keepdim=True).clamp(min=1e-9) / LEVELS
        return (self.weight / step).round() * step - self.weight


class Block(torch.nn.Module):
    """Inverted residual: convolutions, the last without bound, around which the input may skip."""

    def __init__(self, block: Any) -> None:
        super().__init__()
        pairs = (
            [(block.conv_dw, block.bn1), (block.conv_pw, block.bn2)]
            if not hasattr(block, "conv_pwl")
            else [
                (block.conv_pw, block.bn1),
                (block.conv_dw, block.bn2),
                (block.conv_pwl, block.bn3),
            ]
        )
        last = len(pairs) - 1
        self.convs = torch.nn.Sequential(
            *(Conv(conv, norm, bounded=n < last) for n, (conv, norm) in enumerate(pairs))
        )
        self.skips = bool(block.has_skip)

    def forward(self, cells: torch.Tensor) -> torch.Tensor:
        """(n, channels, height, width) to the same of the next block."""
        out: torch.Tensor = self.convs(cells)
        return cells + out if self.skips else out


class Tower(torch.nn.Module):
    """EfficientNet-lite2 up to its features and logits."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.stem = Conv(network.conv_stem, network.bn1, bounded=True)
        self.stages = torch.nn.Sequential(
            *(torch.nn.Sequential(*(Block(block) for block in stage)) for stage in network.blocks)
        )
        self.wide = Conv(network.conv_head, network.bn2, bounded=True)
        self.classifier = network.classifier

    def blocks(self) -> list[torch.nn.Module]:
        """Those of all stages, in the order of reading."""
        return [block for stage in self.stages for block in stage.children()]

    def early(self, pixels: torch.Tensor) -> torch.Tensor:
        """Pixels to the (n, 208, height / 32, width / 32) cells that tuning begins with."""
        cells: torch.Tensor = self.stem(pixels)
        for block in self.blocks()[:-TUNED]:
            cells = block(cells)
        return cells

    def late(self, cells: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The cells of `early` to features (n, 2560) and logits (n, 1000)."""
        for block in self.blocks()[-TUNED:]:
            cells = block(cells)
        wide = self.wide(cells)
        mean = wide.mean(dim=(2, 3))
        return torch.cat([mean, wide.amax(dim=(2, 3))], dim=1), self.classifier(mean)

    def forward(self, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Features (n, 2560) and logits (n, 1000) of framed pictures."""
        return self.late(self.early(pixels))


class Early(torch.nn.Module):
    """The part of a tower that is not tuned, as a network of its own."""

    def __init__(self, tower: Tower) -> None:
        super().__init__()
        self.tower = tower

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """See `Tower.early`."""
        return self.tower.early(pixels)


class Joined(torch.nn.Module):
    """Tower and head in one network: (n, 3, height, width) pixels to (n, dim) unit rows."""

    def __init__(self, tower: Tower, head: torch.nn.Module) -> None:
        super().__init__()
        self.tower = tower
        self.head = head

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Embed framed pictures."""
        rows: torch.Tensor = self.head(*self.tower(pixels))
        return rows


def load_tower(packages: Path) -> Tower:
    """Load the ImageNet weights; every one must fit timm's `tf_efficientnet_lite2`."""
    import_torchvision()
    import timm

    state = torch.load(locate(TOWER, packages), map_location="cpu")
    network = timm.create_model("tf_efficientnet_lite2", pretrained=False)
    # The two implementations name their layers differently but in the same order.
    names = list(network.state_dict())
    network.load_state_dict(dict(zip(names, state.values(), strict=True)), strict=True)
    return Tower(network.eval()).eval()


def reader_of(tower: Tower) -> PhotoReader:
    """The tower in 32 bits as a function of arrays."""

    def read(pixels: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        with torch.inference_mode():
            features, logits = tower(torch.from_numpy(pixels))
        return features.numpy(), logits.numpy()

    return read


def read_pictures(read: PhotoReader, pictures: Sequence[Image.Image]) -> tuple[Any, Any]:
    """Features and logits of RGB pictures, in their order."""
    features: list[Any] = [None] * len(pictures)
    logits: list[Any] = [None] * len(pictures)
    for batch, pixels in framing.batches(pictures, BATCH):
        for number, *row in zip(batch, *read(pixels), strict=True):
            features[number], logits[number] = row
    return np.stack(features), np.stack(logits)


def open_rgb(paths: Sequence[Path]) -> list[Image.Image]:
    """Open photos as RGB pictures."""
    pictures = []
    for path in paths:
        with Image.open(path) as picture:
            pictures.append(picture.convert("RGB"))
    return pictures
