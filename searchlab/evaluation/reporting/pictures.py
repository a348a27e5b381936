"""Pictures of photos for a page: small, embedded, and replaced by words if there is none."""

from __future__ import annotations

import base64
import html
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from searchlab.errors import NotFoundError, SearchlabError
from searchlab.photos.photo import photo_id_of

if TYPE_CHECKING:
    from searchlab.evaluation.datasets import Dataset
    from searchlab.library.library import Library
    from searchlab.photos.photo import Photo

SIDE = 128


class Pictures:
    """Finds pictures by photo_id in a library, or else in the files of a dataset.

    Each is read once, and shrunk to `SIDE` pixels, so that a page with hundreds stays small.
    """

    def __init__(self, library: Library | None = None, dataset: Dataset | None = None) -> None:
        """Choose where to look; without library and dataset, photos are shown by name only.

        Args:
            library: Library whose thumbnails and descriptions are used first.
            dataset: Dataset whose files are used second.
        """
        self._library = library
        # Only the table: pictures need no model, and the library's may not be installed here.
        snapshot = None if library is None else library.snapshot()
        self._table = None if snapshot is None else snapshot.table
        self._records = {}
        for record in () if dataset is None else dataset.records:
            photo_id = photo_id_of(record["source"] or "", record["source_photo_id"] or "")
            self._records[photo_id] = record
        self._made: dict[str, str] = {}

    @property
    def at_hand(self) -> bool:
        """Whether there is a library or a dataset with pictures."""
        return self._table is not None or bool(self._records)

    def data_uri(self, photo_id: str) -> str:
        """Return the picture as a `data:` address; empty if there is none."""
        if photo_id not in self._made:
            self._made[photo_id] = _encode(self._file(photo_id))
        return self._made[photo_id]

    def words(self, photo_id: str) -> str:
        """Return a description of a photo; empty if there is none."""
        photo = self._photo(photo_id)
        if photo is not None:
            return photo.source_description or photo.alt_description
        record = self._records.get(photo_id, {})
        return record.get("title") or record.get("source_description") or ""

    def card(self, photo_id: str, *, place: int | None, note: str = "", good: bool = False) -> str:
        """Render a photo as markup for a strip of results.

        Args:
            photo_id: The photo.
            place: Place in the results, from 1; None if it is not among them.
            note: A remark, such as its grade.
            good: Whether to mark it as relevant, by a frame and a sign.
        """
        words = self.words(photo_id) or photo_id
        address = self.data_uri(photo_id)
        picture = f'<span class="none">{html.escape(words[:60])}</span>'
        if address:
            picture = (
                f'<img src="{address}" alt="{html.escape(words)}" title="{html.escape(words)}">'
            )
        mark = "✓ " if good else ""
        kind = ' class="good"' if good else ""
        number = "" if place is None else f"{place}. "
        return f"<li{kind}>{picture}<small>{number}{mark}{html.escape(note)}</small></li>"

    def strip(self, photo_ids: list[str], grades: dict[str, int]) -> str:
        """Render the first results of a query side by side; grades above 0 are marked."""
        cards = (
            self.card(i, place=place, note=_grade(grades, i), good=grades.get(i, 0) > 0)
            for place, i in enumerate(photo_ids, start=1)
        )
        return f'<ol class="strip">{"".join(cards)}</ol>' if photo_ids else "<p>no result</p>"

    def missed(self, photo_id: str, seen: Collection[str], grades: dict[str, int]) -> str:
        """Render the best judged photo of a query if no system shows it; empty if one does.

        Args:
            photo_id: The best judged photo.
            seen: All photos that are shown.
            grades: photo_id -> grade; empty if they are not known.
        """
        if photo_id in seen or photo_id not in grades:
            return ""
        card = self.card(photo_id, place=None, note=_grade(grades, photo_id), good=True)
        heading = "not among these, though judged best:"
        return f'<small>{heading}</small><ol class="strip">{card}</ol>'

    def _photo(self, photo_id: str) -> Photo | None:
        try:
            table = self._table
            return None if table is None else table.photo(table.row_of(photo_id))
        except NotFoundError:
            return None

    def _file(self, photo_id: str) -> Path | None:
        photo = self._photo(photo_id)
        if photo is not None and self._library is not None:
            picture = self._library.thumbnail(photo)
            if picture is not None and picture.exists():
                return picture
        file = self._records.get(photo_id, {}).get("file")
        return Path(file) if file else None


def _encode(file: Path | None) -> str:
    from searchlab.photos.images.decode import as_rgb, thumbnail

    if file is None:
        return ""
    try:
        made = thumbnail(as_rgb(file), SIDE)
    except (SearchlabError, OSError):  # a page without one picture is still a page
        return ""
    return f"data:image/webp;base64,{base64.b64encode(made).decode()}"


def _grade(grades: dict[str, int], photo_id: str) -> str:
    return f"grade {grades[photo_id]}" if photo_id in grades else ""


def find_pictures(
    library: Library | None, name: str, own: Iterable[Dataset] = ()
) -> tuple[Pictures, Dataset | None]:
    """Return pictures from a library and from a dataset, and the dataset if it can be loaded.

    Args:
        library: The library, if there is one.
        name: Name of the dataset for `load_dataset`.
        own: Datasets of your own, which take precedence if they have this name.
    """
    from searchlab.evaluation.datasets import load_dataset

    dataset = next((one for one in own if one.name == name), None)
    if dataset is None:
        with suppress(SearchlabError):
            dataset = load_dataset(name)
    return Pictures(library, dataset), dataset
