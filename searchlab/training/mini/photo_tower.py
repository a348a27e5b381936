"""The image tower: EfficientNet-lite2 in a few layers of our own, and its readings of photos.

timm's network pads by the size of its input, in ONNX nodes that no quantiser understands. Here
batch normalisation is folded into the convolutions and the padding is fixed. This is the same
function for sides divisible by 32, and exports to a plain chain of Conv, Clip and Add.
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
TUNED = 5  # Number of last blocks that are tuned; those before them stay as they are.
LEVELS = 64  # Levels on either side of zero that a weight of 7 bits can have.


class Readings(NamedTuple):
    """A tower's outputs for photos.

    Attributes:
        ids: Photo ids.
        features: (n, 2560) means and maxima of the 1,280 channels over the photo's cells.
        logits: (n, 1000) class logits.
    """

    ids: list[str]
    features: NDArray[np.float32]
    logits: NDArray[np.float32]

    def rows(self, photos: slice) -> Readings:
        """Return the readings of some photos."""
        return Readings(self.ids[photos], self.features[photos], self.logits[photos])


class PhotoReader(Protocol):
    """A tower as a function from (n, 3, height, width) pixels to features and logits."""

    def __call__(
        self, pixels: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Read framed pictures."""


class Conv(torch.nn.Module):
    """A convolution with its batch normalisation folded in, padded as TensorFlow's SAME.

    Attributes:
        rounded: Whether it computes with the 7-bit weights that ship; gradients ignore that.
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
        """Map (n, channels, height, width) cells to those of the next layer."""
        if self.uneven:
            cells = functional.pad(cells, self.uneven)
        weight = self.weight + self._rounding() if self.rounded else self.weight
        out = functional.conv2d(
            cells, weight, self.bias, self.stride, self.even, groups=self.groups
        )
        return functional.relu6(out) if self.bounded else out

    @torch.no_grad()
    def apply_rounding(self) -> None:
        """Replace the weights by the rounded ones."""
        self.weight.add_(self._rounding())
        self.rounded = False

    @torch.no_grad()
    def _rounding(self) -> torch.Tensor:
        step = self.weight.abs().amax(dim=(1, 2, 3), keepdim=True).clamp(min=1e-9) / LEVELS
        return (self.weight / step).round() * step - self.weight


class Block(torch.nn.Module):
    """An inverted residual: convolutions, to whose output the input is added in some blocks."""

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
        """Map (n, channels, height, width) cells to those of the next block."""
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
        """List the blocks of all stages, in the order in which they are computed."""
        return [block for stage in self.stages for block in stage.children()]

    def early(self, pixels: torch.Tensor) -> torch.Tensor:
        """Map pixels to the (n, 208, height / 32, width / 32) cells that tuning starts from."""
        cells: torch.Tensor = self.stem(pixels)
        for block in self.blocks()[:-TUNED]:
            cells = block(cells)
        return cells

    def late(self, cells: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Map the cells of `early` to features (n, 2560) and logits (n, 1000)."""
        for block in self.blocks()[-TUNED:]:
            cells = block(cells)
        wide = self.wide(cells)
        mean = wide.mean(dim=(2, 3))
        return torch.cat([mean, wide.amax(dim=(2, 3))], dim=1), self.classifier(mean)

    def forward(self, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Map framed pictures to features (n, 2560) and logits (n, 1000)."""
        return self.late(self.early(pixels))


class EarlyTower(torch.nn.Module):
    """The part of a tower that is not tuned, as a network of its own."""

    def __init__(self, tower: Tower) -> None:
        super().__init__()
        self.tower = tower

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """See `Tower.early`."""
        return self.tower.early(pixels)


class EmbeddingNetwork(torch.nn.Module):
    """Tower and head in one network, from (n, 3, height, width) pixels to (n, dim) unit rows."""

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


def make_reader(tower: Tower) -> PhotoReader:
    """Make a function of arrays from a tower in 32 bits."""

    def read(pixels: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        with torch.inference_mode():
            features, logits = tower(torch.from_numpy(pixels))
        return features.numpy(), logits.numpy()

    return read


def read_pictures(read: PhotoReader, pictures: Sequence[Image.Image]) -> tuple[Any, Any]:
    """Read RGB pictures; features (n, 2560) and logits (n, 1000) in the pictures' order."""
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
