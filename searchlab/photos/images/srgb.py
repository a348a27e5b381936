"""Any pixel layout that Pillow decodes, to 8-bit sRGB and an opacity mask."""

from __future__ import annotations

import io
import re

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops, ImageCms

__all__ = ["to_srgb"]

# Spaces of sRGB's primaries whose values are not coded as sRGB's are, by their usual names.
_OTHER_CURVE = re.compile("linear|-g10|gamma ?1|g22", re.IGNORECASE)
_PROFILE_SPACES = {"RGB ": "RGB", "GRAY": "L", "CMYK": "CMYK"}


def to_srgb(image: Image.Image) -> tuple[Image.Image, Image.Image | None]:
    """Convert a loaded picture to sRGB on a white background, and find its opacity.

    Returns:
        The picture in mode "RGB"; its opacity in mode "L", or None where every pixel is opaque.
    """
    plain, alpha = _split(image)
    profile = image.info.get("icc_profile")
    picture = _by_profile(plain, profile) if isinstance(profile, bytes) and profile else None
    if picture is None:
        picture = _lab_to_rgb(plain) if plain.mode == "LAB" else plain.convert("RGB")
    if alpha is None or alpha.getextrema()[0] == 255:
        return picture, None
    picture.paste("white", mask=ImageChops.invert(alpha))  # in place: a copy may not fit
    return picture, alpha


def _split(image: Image.Image) -> tuple[Image.Image, Image.Image | None]:
    """Return the picture in mode L, RGB, CMYK or LAB, and its opacity."""
    mode = image.mode
    if mode.startswith("I;16"):
        return _from_16_bits(image)
    if mode in {"I", "F"}:
        return _stretch(image), None
    if mode == "CMYK":
        # Pillow inverts every CMYK JPEG, as Adobe's are stored inverted; those without Adobe's
        # marker are not, so this is undone.
        inverted = image.format == "JPEG" and "adobe" not in image.info
        return (ImageChops.invert(image) if inverted else image), None
    if mode in {"La", "RGBa"}:
        image = image.convert(mode[:-1] + "A")
    if mode in {"P", "PA"} or "transparency" in image.info or image.mode == "RGBA":
        image = image.convert("RGBA")
        return image.convert("RGB"), image.getchannel("A")
    if image.mode == "LA":
        return image.getchannel("L"), image.getchannel("A")
    return (image if mode in {"L", "RGB", "LAB"} else image.convert("RGB")), None


def _from_16_bits(image: Image.Image) -> tuple[Image.Image, Image.Image | None]:
    """Scale 16 bits to 8, 65535 being white; `convert` would clip all above 255."""
    levels = np.asarray(image).astype(np.uint32)  # (height, width)
    key = image.info.get("transparency")
    alpha = None
    if isinstance(key, int):
        alpha = Image.fromarray(np.where(levels == key, 0, 255).astype(np.uint8))
    return Image.fromarray(((levels + 128) // 257).astype(np.uint8)), alpha


def _stretch(image: Image.Image) -> Image.Image:
    """Scale 32-bit and float pictures, which define no white: their least is black, most white."""
    levels = np.nan_to_num(np.asarray(image, dtype=np.float64), posinf=0.0, neginf=0.0)
    low, high = float(levels.min()), float(levels.max())
    if low >= 0.0 and high <= 1.0 and image.mode == "F":
        low, high = 0.0, 1.0
    scaled: NDArray[np.float64] = (levels - low) * (255.0 / (high - low or 1.0))
    return Image.fromarray(np.rint(scaled).astype(np.uint8))


def _by_profile(image: Image.Image, profile: bytes) -> Image.Image | None:
    """Convert by an ICC profile; None if it is sRGB, damaged or for another kind of picture."""
    try:
        opened = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        name = opened.profile.profile_description or ""
        if "sRGB" in name and not _OTHER_CURVE.search(name):
            return None
        if _PROFILE_SPACES.get(opened.profile.xcolor_space) != image.mode:
            return None
        return ImageCms.profileToProfile(
            image,
            opened,
            ImageCms.createProfile("sRGB"),
            renderingIntent=ImageCms.Intent.RELATIVE_COLORIMETRIC,
            outputMode="RGB",
            flags=ImageCms.Flags.BLACKPOINTCOMPENSATION,
        )
    except (ImageCms.PyCMSError, OSError, ValueError, TypeError):
        return None


def _lab_to_rgb(image: Image.Image) -> Image.Image:
    picture = ImageCms.profileToProfile(
        image, ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB"), outputMode="RGB"
    )
    if picture is None:
        msg = "a Lab picture could not be converted"
        raise ValueError(msg)
    return picture
