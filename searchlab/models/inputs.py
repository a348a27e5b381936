"""What every model checks about the texts and pictures it is given."""

from __future__ import annotations

from collections.abc import Sequence

from PIL import Image

from searchlab.errors import InputError


def readable_texts(texts: Sequence[str], *, max_length: int) -> list[str]:
    """Make texts safe to tokenize: no lone surrogates, no NUL, cut to a length.

    Args:
        texts: Any strings.
        max_length: Code points that are read of each.

    Raises:
        InputError: `texts` is one string instead of a sequence of them, or holds something else.
    """
    if isinstance(texts, str):
        msg = (
            f"texts must be a sequence of strings, got the string {texts[:40]!r}; wrap it in a list"
        )
        raise InputError(msg)
    for text in texts:
        if not isinstance(text, str):
            msg = f"texts must be strings, got {type(text).__name__}"
            raise InputError(msg)
    return [
        text[:max_length].encode("utf-8", "replace").decode("utf-8").replace("\0", " ")
        for text in texts
    ]


def rgb_images(images: Sequence[Image.Image]) -> list[Image.Image]:
    """Check that pictures are pictures with pixels, and bring them to RGB.

    Raises:
        InputError: Something else than a picture, or one without pixels.
    """
    if isinstance(images, Image.Image):
        msg = "images must be a sequence of pictures, got a single picture; wrap it in a list"
        raise InputError(msg)
    pictures = []
    for image in images:
        if not isinstance(image, Image.Image):
            msg = f"images must be PIL pictures, got {type(image).__name__}"
            raise InputError(msg)
        if 0 in image.size:
            msg = f"a picture must be at least 1 x 1 pixels, got {image.width} x {image.height}"
            raise InputError(msg)
        pictures.append(image if image.mode == "RGB" else image.convert("RGB"))
    return pictures
