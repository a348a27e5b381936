"""From untrusted bytes to an upright RGB picture.

The format is told by the first bytes of a file, never by its name. Size in bytes and in pixels is
checked before anything is decoded; whatever error a decoder then raises becomes an `ImageError`.
EXIF orientation, CMYK, 16 bits, palettes, transparency and ICC profiles are resolved here, so that
all other modules see the displayed picture in sRGB and nothing else.

Every call works on its own bytes and decoder, so any number of threads may decode at once.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from PIL import (
    AvifImagePlugin,
    GifImagePlugin,
    Image,
    ImageFile,
    ImageOps,
    JpegImagePlugin,
    PngImagePlugin,
    TiffImagePlugin,
    WebPImagePlugin,
)

from searchlab.errors import ImageError, InputError
from searchlab.photos.images.blur_hash import blur_hash
from searchlab.photos.images.dominant_colors import Palette, dominant_and_palette
from searchlab.photos.images.effort import decoding_effort
from searchlab.photos.images.headers import FORMATS, declared_size, excess, exif_orientation, sniff
from searchlab.photos.images.memory import (
    BYTES_A_PIXEL,
    MAX_DECODING_BYTES,
    decoding_bytes,
    reduce_large,
)
from searchlab.photos.images.resize import Resize, plain_resize
from searchlab.photos.images.srgb import to_srgb
from searchlab.photos.metadata import NO_METADATA, MetadataBlocks

__all__ = [
    "FORMATS",
    "MAX_BYTES",
    "MAX_PIXELS",
    "Analysis",
    "DecodedImage",
    "analyse",
    "as_rgb",
    "check_format",
    "open_rgb",
    "shrink",
    "thumbnail",
]

WORKING_SIDE: Final = 400
"""Short side in pixels to which photos are scaled, unless a model needs more."""
MAX_BYTES: Final = 50 * 2**20
# Above it Pillow refuses a picture as a decompression bomb: 0.5 GB as RGB. Half of it holds for GIF
# and TIFF, whose decoders warn above that.
MAX_PIXELS: Final = 178_956_970
_MAX_EFFORT: Final = 2_400_000_000  # thirteen scans of the largest JPEG; encoders make ten
_MAX_WEBP_SIDE: Final = 16_383
_NOT_PLAIN: Final = {"icc_profile", "transparency"}  # what makes RGB another RGB


def _open_heif(file: io.BytesIO) -> ImageFile.ImageFile:
    # Late, for it loads 26 MB of libraries that most processes never need.
    from pillow_heif import HeifImageFile

    picture: ImageFile.ImageFile = HeifImageFile(file)  # type: ignore[no-untyped-call]
    return picture


_DECODERS: Final[dict[str, Callable[[io.BytesIO], ImageFile.ImageFile]]] = {
    "AVIF": AvifImagePlugin.AvifImageFile,
    "GIF": GifImagePlugin.GifImageFile,
    "HEIF": _open_heif,
    "JPEG": JpegImagePlugin.JpegImageFile,
    "PNG": PngImagePlugin.PngImageFile,
    "TIFF": TiffImagePlugin.TiffImageFile,
    "WEBP": WebPImagePlugin.WebPImageFile,
}
_TRANSPOSE: Final = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


@dataclass(frozen=True, slots=True)
class DecodedImage:
    """A picture as it is displayed.

    Attributes:
        image: RGB in sRGB, upright, transparency laid on white. Smaller than `width` x `height`
            where a reduced decode was allowed.
        width: Pixels of the displayed picture at full size.
        height: Pixels of the displayed picture at full size.
        format: One of `FORMATS`.
        alpha: Opacity, mode "L", of the same size as `image`; None where every pixel is opaque.
        metadata: What the file says of the photo, not read yet.
    """

    image: Image.Image
    width: int
    height: int
    format: str
    alpha: Image.Image | None = None
    metadata: MetadataBlocks = NO_METADATA


@dataclass(frozen=True, slots=True)
class Analysis:
    """What is computed from a picture without a model.

    Attributes:
        width: Pixels of the displayed picture at full size.
        height: Pixels of the displayed picture at full size.
        orientation: "square" where the sides are equal, else "landscape" or "portrait".
        color_hex: The dominant shade, `#rrggbb`.
        palette: Up to five (shade, share), largest first; the shares sum to 1.
        blur_hash: 4 x 3 components.
    """

    width: int
    height: int
    orientation: str
    color_hex: str
    palette: Palette
    blur_hash: str


def open_rgb(
    source: Path | bytes,
    *,
    min_side: int | None = None,
    formats: Collection[str] = FORMATS,
    max_bytes: int = MAX_BYTES,
    max_pixels: int = MAX_PIXELS,
) -> DecodedImage:
    """Decode the first picture of a file or of bytes to upright sRGB.

    Args:
        source: A path, or the content of a file.
        min_side: Where given, a JPEG may be decoded at 1/2, 1/4 or 1/8 of its size, as long as its
            short side keeps this many pixels; several times faster.
        formats: The formats to accept, among `FORMATS`.
        max_bytes: Largest file.
        max_pixels: Largest width times height.

    Raises:
        ImageError: The picture is refused; `.reason` is one of "unreadable", "empty", "too many
            bytes", "not an image", "unsupported format", "too many pixels", "too complex",
            "damaged".
    """
    content = _read(source, max_bytes=max_bytes)
    kind = check_format(content, formats)
    try:
        return _decode(content, kind, min_side=min_side, max_pixels=max_pixels)
    except (ImageError, MemoryError):
        raise
    except Image.DecompressionBombError as error:
        msg = f"a picture must have at most {max_pixels:,} pixels, got more; scale it down"
        raise ImageError(msg, reason="too many pixels") from error
    except Exception as error:  # A decoder may raise anything that damaged bytes lead it to.
        msg = f"a picture must be complete and undamaged, got a {kind} that cannot be decoded"
        detail = str(error).strip()
        raise ImageError(f"{msg} ({detail})" if detail else msg, reason="damaged") from error


def check_format(content: bytes, formats: Collection[str] = FORMATS) -> str:
    """Tell the format of a picture by its first bytes, if it is among those accepted.

    Raises:
        ImageError: It is not; `.reason` is "not an image" or "unsupported format".
    """
    kind = sniff(content)
    accepted = [name for name in FORMATS if name in formats]
    if kind is None:
        msg = f"a picture must be {_either(accepted)}, got bytes that begin with {content[:8]!r}"
        raise ImageError(msg, reason="not an image")
    if kind not in accepted:
        msg = f"a picture must be {_either(accepted)}, got {kind}; convert it"
        raise ImageError(msg, reason="unsupported format")
    return kind


def _either(names: list[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _read(source: Path | bytes, *, max_bytes: int) -> bytes:
    if isinstance(source, Path):
        try:
            if not source.is_file() and source.exists():
                msg = f"a picture must be a file, got {source.name!r}, which is no regular file"
                raise ImageError(msg, reason="unreadable")
            with source.open("rb") as file:
                content = file.read(max_bytes + 1)
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name.
            detail = getattr(error, "strerror", None) or error
            msg = f"a picture must be readable, got {source.name!r} ({detail})"
            raise ImageError(msg, reason="unreadable") from error
    else:
        content = bytes(source)
    if not content:
        msg = "a picture must have content, got 0 bytes"
        raise ImageError(msg, reason="empty")
    if len(content) > max_bytes:
        msg = f"a picture must have at most {max_bytes:,} bytes, got more; make it smaller"
        raise ImageError(msg, reason="too many bytes")
    return content


_QUIET = ("ignore", None, UserWarning, re.compile(r"PIL\."), 0)


def _quiet() -> None:
    # Pillow reports damaged metadata by UserWarning. The filter is never removed: `catch_warnings`
    # swaps a list that all threads share, and could undo the filters of another thread.
    if warnings.filters[:1] != [_QUIET]:
        warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\.")


def _check_pixels(width: int, height: int, *, max_pixels: int) -> None:
    if width * height > max_pixels:
        got = f"{width} x {height}"
        msg = f"a picture must have at most {max_pixels:,} pixels, got {got}; scale it down"
        raise ImageError(msg, reason="too many pixels")


def _check_work(content: bytes, kind: str, size: tuple[int, int], *, min_side: int | None) -> None:
    # Full sizes are asked for by few, one at a time; they are bounded by their pixels alone.
    needed = decoding_bytes(content, kind, min_side) if min_side is not None else 0
    if needed > MAX_DECODING_BYTES:
        most = f"{MAX_DECODING_BYTES // 2**20:,} MiB of memory"
        got = f"{size[0]} x {size[1]} pixels that need {needed // 2**20:,}"
        msg = f"a picture must be decoded in {most}, got a {kind} of {got}; scale it down"
        raise ImageError(msg, reason="too many pixels")
    effort = size[0] * size[1] * decoding_effort(content, kind).passes if kind == "JPEG" else 0
    if effort > _MAX_EFFORT:
        most = f"{_MAX_EFFORT:,} pixels times scans"
        msg = f"a picture must take {most} or less, got a JPEG with {effort:,}; save it anew"
        raise ImageError(msg, reason="too complex")


def _decode(content: bytes, kind: str, *, min_side: int | None, max_pixels: int) -> DecodedImage:
    _quiet()
    max_pixels = min(max_pixels, MAX_DECODING_BYTES // BYTES_A_PIXEL.get(kind, 1))
    if kind in {"GIF", "TIFF"} and Image.MAX_IMAGE_PIXELS:  # Pillow warns from here on.
        max_pixels = min(max_pixels, Image.MAX_IMAGE_PIXELS)
    _check_pixels(*declared_size(content, kind), max_pixels=max_pixels)
    too_much = excess(content, kind)
    if too_much is not None:
        msg = f"a picture must be of usual complexity, got a {kind} with {too_much}; save it anew"
        raise ImageError(msg, reason="too complex")
    loaded = _load(content, kind, min_side=min_side, max_pixels=max_pixels)
    picture, alpha = to_srgb(loaded.image)
    width, height = loaded.size
    if loaded.orientation in _TRANSPOSE:
        picture = picture.transpose(_TRANSPOSE[loaded.orientation])
        alpha = alpha.transpose(_TRANSPOSE[loaded.orientation]) if alpha else None
    if loaded.orientation >= 5:
        width, height = height, width
    return DecodedImage(picture, width, height, kind, alpha, loaded.metadata)


class _DecodedFile(NamedTuple):
    """A picture as its decoder gives it, and what its file says of it."""

    image: Image.Image
    size: tuple[int, int]
    orientation: int
    metadata: MetadataBlocks


def _load(content: bytes, kind: str, *, min_side: int | None, max_pixels: int) -> _DecodedFile:
    # Not Image.open, which tries further formats and warns of large sizes; we check both ourselves.
    image: Image.Image
    with _DECODERS[kind](io.BytesIO(content)) as image:
        size = image.size
        _check_pixels(*size, max_pixels=max_pixels)
        _check_work(content, kind, size, min_side=min_side)
        # A HEIF file would give its thumbnail, which may be another picture.
        if min_side is not None and kind == "JPEG":
            image.draft(None, (max(1, min_side), max(1, min_side)))
        image.load()
        if kind in {"TIFF", "HEIF"}:  # Their decoders have turned it upright already.
            size, orientation = image.size, 1
        else:
            exif = image.info.get("exif")
            orientation = exif_orientation(exif if isinstance(exif, bytes) else b"")
        metadata = MetadataBlocks.of(content, kind, image.info)
        # What is left of a large picture once this returns is the smaller one.
        smaller = image if kind == "JPEG" else reduce_large(image, min_side)
        return _DecodedFile(smaller, size, orientation, metadata)


def as_rgb(source: Image.Image | Path | str | bytes, *, min_side: int | None = None) -> Image.Image:
    """Return the upright RGB picture of a Pillow image, a file or the content of a file.

    Raises:
        ImageError: The picture is refused.
    """
    if not isinstance(source, Image.Image):
        content = Path(source) if isinstance(source, str) else source
        return open_rgb(content, min_side=min_side).image
    if 0 in source.size:
        msg = f"a picture must be at least 1 x 1 pixels, got {source.width} x {source.height}"
        raise ImageError(msg, reason="empty")
    try:
        upright = ImageOps.exif_transpose(source)
        is_plain = upright.mode == "RGB" and not upright.info.keys() & _NOT_PLAIN
        return upright if is_plain else to_srgb(upright)[0]
    except (ImageError, MemoryError):
        raise
    except Exception as error:  # Opened lazily, and damaged: as in `open_rgb`.
        msg = f"a picture must be complete and undamaged, got one that cannot be decoded ({error})"
        raise ImageError(msg, reason="damaged") from error


def for_model(image: Image.Image, input_size: int, *, resize: Resize = plain_resize) -> Image.Image:
    """Scale an RGB picture down to a model's input size, the same way for photos and queries."""
    # In two steps, as photos are scaled to WORKING_SIDE first.
    working = shrink(image, max(WORKING_SIDE, input_size), resize=resize)
    return shrink(working, input_size, resize=resize)


def analyse(decoded: DecodedImage) -> Analysis:
    """Find size, orientation, dominant colour, palette and blur hash of a picture."""
    color_hex, palette = dominant_and_palette(decoded.image, decoded.alpha)
    width, height = decoded.width, decoded.height
    return Analysis(
        width=width,
        height=height,
        orientation="square" if width == height else "landscape" if width > height else "portrait",
        color_hex=color_hex,
        palette=palette,
        blur_hash=blur_hash(decoded.image),
    )


def shrink(image: Image.Image, side: int, *, resize: Resize = plain_resize) -> Image.Image:
    """Scale an RGB picture down until its short side has `side` pixels; never up.

    A very long picture is scaled further, until its long side has 8 x `side`, to bound the memory
    that pictures waiting for a model take.
    """
    if side < 1:
        return image
    scale = min(1.0, side / min(image.size))
    scale = min(scale, 8 * side / max(image.size))
    if scale == 1.0:
        return image
    return resize(image, (max(1, round(image.width * scale)), max(1, round(image.height * scale))))


def thumbnail(image: Image.Image, side: int, *, resize: Resize = plain_resize) -> bytes:
    """Encode an RGB picture as WebP with at most `side` pixels a side; never scaled up.

    Raises:
        InputError: `side` is not 1 to 16383, the most that WebP can hold.
    """
    if not 1 <= side <= _MAX_WEBP_SIDE:
        msg = f"side must be 1 to {_MAX_WEBP_SIDE}, got {side!r}"
        raise InputError(msg)
    scale = side / max(image.size)
    if scale < 1:
        image = resize(
            image, (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
        )
    encoded = io.BytesIO()
    # Method 4, which WebP chooses by itself, takes twice the time for files 3 to 6 % smaller.
    image.save(encoded, "WEBP", quality=80, method=2)
    return encoded.getvalue()
