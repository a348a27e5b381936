"""From a picture to the numbers that an image tower reads, as open_clip prepares them.

The same steps as open_clip's evaluation transform, without torch, so that an exported model needs
neither. A test holds the two together for every way of resizing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from searchlab.errors import InputError

_FILTERS: Final = {"bicubic": Image.Resampling.BICUBIC, "bilinear": Image.Resampling.BILINEAR}
_MODES: Final = ("shortest", "longest", "squash")
_SLENDER = 8  # beyond this aspect ratio, only what the crop keeps is resized


@dataclass(frozen=True)
class Preprocess:
    """How a model wants its pictures.

    Attributes:
        height: Height of the tower's input in pixels.
        width: Its width.
        mean: Subtracted from each channel, whose values run from 0 to 1.
        std: Divides each channel after that.
        interpolation: `"bicubic"` or `"bilinear"`.
        resize_mode: `"shortest"` side to size and centre crop, `"longest"` side to size and pad, or
            `"squash"`.
        fill_color: Grey level of the padding, 0 to 255.
    """

    height: int
    width: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    interpolation: str = "bicubic"
    resize_mode: str = "shortest"
    fill_color: int = 0

    def __post_init__(self) -> None:
        if self.interpolation not in _FILTERS or self.resize_mode not in _MODES:
            msg = (
                f"interpolation must be one of {', '.join(_FILTERS)} and resize_mode one of "
                f"{', '.join(_MODES)}, got {self.interpolation!r} and {self.resize_mode!r}"
            )
            raise InputError(msg)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Preprocess:
        """Read open_clip's preprocessing configuration, or what `to_config` wrote."""
        size = config["size"]
        height, width = (size, size) if isinstance(size, int) else size
        return cls(
            height=int(height),
            width=int(width),
            mean=tuple(map(float, config["mean"])),
            std=tuple(map(float, config["std"])),
            interpolation=str(config["interpolation"]),
            resize_mode=str(config["resize_mode"]),
            fill_color=int(config["fill_color"]),
        )

    def to_config(self) -> dict[str, Any]:
        """Write the configuration with open_clip's keys, fit for JSON."""
        config = asdict(self)
        config["size"] = [config.pop("height"), config.pop("width")]
        config["mean"], config["std"] = list(self.mean), list(self.std)
        return config

    def pixels(self, images: Sequence[Image.Image]) -> NDArray[np.float32]:
        """Prepare RGB pictures; (n_images, 3, height, width)."""
        batch = np.empty((len(images), 3, self.height, self.width), dtype=np.float32)
        mean, std = np.array(self.mean, np.float32), np.array(self.std, np.float32)
        for slot, image in zip(batch, images, strict=True):
            channels_last = np.asarray(self.fit(image), dtype=np.float32) / np.float32(255)
            slot[...] = ((channels_last - mean) / std).transpose(2, 0, 1)
        return batch

    def fit(self, image: Image.Image) -> NDArray[np.uint8]:
        """Resize and crop an RGB picture; (height, width, 3), not normalised yet."""
        return np.asarray(self._fit(image))

    def _fit(self, image: Image.Image) -> Image.Image:
        target = (self.width, self.height)
        resample = _FILTERS[self.interpolation]
        if self.resize_mode == "squash":
            return image.resize(target, resample)
        resized = self._resized_size(image)
        left = round((resized[0] - self.width) / 2)
        top = round((resized[1] - self.height) / 2)
        if self.resize_mode == "longest":
            canvas = Image.new("RGB", target, (self.fill_color,) * 3)
            offset = ((self.width - resized[0]) // 2, (self.height - resized[1]) // 2)
            canvas.paste(image.resize(resized, resample), offset)
            return canvas
        if max(image.size) > _SLENDER * min(image.size):
            # A 30,000 x 1 panorama would become 224 x 6,720,000 before the crop.
            per_x, per_y = image.width / resized[0], image.height / resized[1]
            right, bottom = left + self.width, top + self.height
            box = (left * per_x, top * per_y, right * per_x, bottom * per_y)
            return image.resize(target, resample, box=box)
        whole = image.resize(resized, resample)
        return whole.crop((left, top, left + self.width, top + self.height))

    def _resized_size(self, image: Image.Image) -> tuple[int, int]:
        if self.resize_mode == "shortest" and self.width == self.height:
            short, long = sorted(image.size)
            long = max(self.width, int(self.width * long / short))
            return (self.width, long) if image.width <= image.height else (long, self.width)
        ratios = (image.width / self.width, image.height / self.height)
        ratio = max(ratios) if self.resize_mode == "longest" else min(ratios)
        return max(1, round(image.width / ratio)), max(1, round(image.height / ratio))
