"""Blur hashes: a photo's colours in some thirty characters, shown while the photo loads.

The blurhash library does it; see https://blurha.sh for the format.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from PIL import Image

_SIDE: Final = 32


class _Pixels(Image.Image):
    """A picture that hands out its bands without the call that Pillow 13 deprecates."""

    def getdata(self, band: int | None = None) -> Any:
        return np.asarray(self.getchannel(band or 0)).ravel().tolist()


def blur_hash(image: Image.Image, *, across: int = 4, down: int = 3) -> str:
    """Encode an RGB picture as a blur hash.

    Args:
        image: RGB, at least 1 x 1.
        across: Cosines along the width, 1 to 9.
        down: Cosines along the height, 1 to 9.
    """
    import blurhash

    scale = min(1.0, _SIDE / max(image.size))
    size = max(1, round(image.width * scale)), max(1, round(image.height * scale))
    small = image.resize(size, Image.Resampling.BOX, reducing_gap=2.0)
    # The library asks for an Image and calls getdata; nothing of it is copied here.
    small.__class__ = _Pixels
    return str(blurhash.encode(small, across, down))
