"""Results as rows of plain values: one photo a row, one value a cell, for data frames and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from searchlab.files import require_pandas
from searchlab.photos.photo import Photo

if TYPE_CHECKING:
    import pandas as pd

_FIRST = ("photo_id", "relevance_score", "title", "caption", "file")
_NESTED = ("urls", "attribution", "palette", "tags")


def hit_row(photo: Photo, score: float, caption: str) -> dict[str, Any]:
    """Return everything that is known of one result: id, score, names and file first."""
    values: dict[str, Any] = {"relevance_score": score, "caption": caption}
    for one in fields(photo):
        if one.name not in _NESTED:
            values[one.name] = getattr(photo, one.name)
    values["tags"] = ", ".join(photo.tags)
    values["palette"] = ", ".join(shade for shade, _ in photo.palette)
    values |= {f"url_{size}": url for size, url in photo.urls.items()}
    values |= {f"attribution_{name}": text for name, text in photo.attribution.items()}
    return {name: values[name] for name in _FIRST} | values


def ranked_rows(hits: Sequence[Mapping[str, Any]], *, start: int) -> list[dict[str, Any]]:
    """Put the place in the ranking before the rows of results."""
    return [{"rank": rank, **hit} for rank, hit in enumerate(hits, start=start)]


def hits_frame(hits: Sequence[Mapping[str, Any]], *, start: int) -> pd.DataFrame:
    """Make the frame of `Page.frame` from the rows of results, the first of a rank."""
    require_pandas()
    import pandas as pd

    rows = ranked_rows(hits, start=start)
    return pd.DataFrame(rows, columns=None if rows else ["rank", *_FIRST])
