"""Photos as the pages show them: sides, placeholder, addresses by size, text for who cannot see."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import blurhash
from PIL import Image

from searchlab.api.snapshots.live_library import ServedSnapshot
from searchlab.library.renditions import SIDES
from searchlab.photos.photo import Photo

# The classes of `static/ratios.css`, in equal steps of the logarithm.
LEAST_RATIO: Final = 0.4
MOST_RATIO: Final = 4.0
RATIO_STEPS: Final = 78
_ROW_PX: Final = 225  # about how high a row is on a wide screen
_BLUR_SIDE: Final = 24
_BLUR_QUALITY: Final = 30
_MOST_ALT: Final = 140
_MOST_NAME: Final = 40
_GRAY: Final = Image.new("RGB", (1, 1), "gray")


class Card(NamedTuple):
    """A photo in a grid.

    Attributes:
        photo_id: Its identifier.
        address: Where its picture leads.
        alt: What it shows.
        name: The beginning of `alt`, for the labels of its controls.
        width: In pixels.
        height: In pixels.
        ratio_class: Class of `ratios.css`.
        blur: Address of its placeholder.
        src: Address of its thumbnail.
        sources: All sizes for a grid, as a `srcset`.
        sizes: About how wide it is shown.
        credit: Whom it is by.
        score: In percent; None where there is nothing to score.
    """

    photo_id: str
    address: str
    alt: str
    name: str
    width: int
    height: int
    ratio_class: str
    blur: str
    src: str
    sources: str
    sizes: str
    credit: str
    score: int | None


def make_cards(
    snapshot: ServedSnapshot,
    rows: Sequence[int],
    *,
    root: str,
    scores: Iterable[float] | None = None,
    to_pages: bool = True,
) -> list[Card]:
    """Describe photos for the grid of `parts.html`.

    Args:
        snapshot: The snapshot that `rows` count in.
        rows: Rows of its table.
        root: Path that addresses of this server start with.
        scores: Relevance scores, 0 to 1; none are shown if left out.
        to_pages: Whether pictures lead to the pages of their photos, which need a visitor; else to
            themselves in full size.
    """
    photos = snapshot.engine.table.photos(rows)
    shown = [None] * len(photos) if scores is None else [round(100 * score) for score in scores]
    return [
        _make_card(snapshot, photo, score, root, to_page=to_pages)
        for photo, score in zip(photos, shown, strict=True)
    ]


def _make_card(
    snapshot: ServedSnapshot, photo: Photo, score: int | None, root: str, *, to_page: bool
) -> Card:
    ratio = photo.width / photo.height
    width = round(_ROW_PX * min(max(ratio, LEAST_RATIO), MOST_RATIO))
    return Card(
        photo_id=photo.photo_id,
        address=page_address(photo, root) if to_page else address_of(snapshot, photo, "full", root),
        alt=caption_of(photo),
        name=_shorten(caption_of(photo), _MOST_NAME),
        width=photo.width,
        height=photo.height,
        ratio_class=ratio_class(ratio),
        blur=blur_address(photo.blur_hash, ratio),
        src=address_of(snapshot, photo, "thumb", root),
        sources=sources_of(snapshot, photo, ("thumb", "small", "regular"), root),
        sizes=f"(max-width: 40rem) {round(0.6 * width)}px, {width}px",
        credit=credit_of(photo),
        score=score,
    )


def caption_of(photo: Photo) -> str:
    """Return what a photo shows, in a few words: what somebody wrote, else what was generated."""
    text = photo.source_description.strip() or photo.alt_description
    return _shorten(text, _MOST_ALT)


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def credit_of(photo: Photo) -> str:
    """Return whom a photo is by."""
    return photo.photographer_full_name or photo.photographer_username or photo.source


def page_address(photo: Photo, root: str) -> str:
    """Return the address of a photo's page, which only a visitor may open."""
    return f"{root}/photos/{photo.photo_id}"


def address_of(snapshot: ServedSnapshot, photo: Photo, size: str, root: str) -> str:
    """Return the address of a picture in one of `URL_SIZES`."""
    return snapshot.photos.link(photo.urls[size], photo.sha256, base_url=root)


def are_remote(addresses: Iterable[Any]) -> bool:
    """Whether any of these pictures lies at a photo library; those that are missing do not."""
    return any(address.startswith("http") for address in addresses if address)


def sources_of(snapshot: ServedSnapshot, photo: Photo, sizes: Sequence[str], root: str) -> str:
    """Return a `srcset` of a photo's pictures, the small ones first, each size once."""
    shrink = photo.width / max(photo.width, photo.height)
    by_width: dict[int, str] = {}
    for size in sizes:
        width = min(photo.width, round(SIDES[size] * shrink)) or 1
        by_width.setdefault(width, address_of(snapshot, photo, size, root))
    return ", ".join(f"{address} {width}w" for width, address in by_width.items())


def ratio_class(ratio: float) -> str:
    """Return the class of `ratios.css` that is nearest to a ratio of width to height.

    >>> ratio_class(0.01), ratio_class(1.5), ratio_class(99)
    ('r0', 'r45', 'r78')
    """
    inside = min(max(ratio, LEAST_RATIO), MOST_RATIO)
    step = math.log(inside / LEAST_RATIO) / math.log(MOST_RATIO / LEAST_RATIO) * RATIO_STEPS
    return f"r{round(step)}"


def ratios_css() -> str:
    """Return the text of `static/ratios.css`."""
    spread = MOST_RATIO / LEAST_RATIO
    ratios = [LEAST_RATIO * spread ** (step / RATIO_STEPS) for step in range(RATIO_STEPS + 1)]
    rules = [f".r{step} {{ --ratio: {ratio:.4f}; }}" for step, ratio in enumerate(ratios)]
    head = (
        "/* One class for each ratio of sides, in steps of 3 %: the policy allows no style\n"
        "   attributes. `web/grid.py` picks the nearest, so a photo is cut by 1.5 % at most. */\n"
    )
    return "\n".join([head, *rules, ""])


@lru_cache(maxsize=20_000)
def blur_address(blur_hash: str, ratio: float = 1.0) -> str:
    """Return a blur hash as a tiny picture in a data address; gray if it cannot be read.

    Args:
        blur_hash: As in the photo's record, which may come from anywhere.
        ratio: Width to height of the photo.
    """
    width = _BLUR_SIDE if ratio >= 1 else max(3, round(_BLUR_SIDE * ratio))
    height = _BLUR_SIDE if ratio < 1 else max(3, round(_BLUR_SIDE / ratio))
    try:
        pixels = blurhash.decode(blur_hash, width, height)
    except (ValueError, blurhash.BlurhashDecodeError):
        pixels = _GRAY
    file = io.BytesIO()
    pixels.save(file, "WEBP", quality=_BLUR_QUALITY)
    return f"data:image/webp;base64,{base64.b64encode(file.getvalue()).decode()}"
