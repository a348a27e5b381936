"""Grading: each photo of a pool gets a grade from 0 to 3 for its query."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from searchlab.errors import NotFoundError
from searchlab.evaluation.judging.journal import Item
from searchlab.evaluation.judging.notebook import NotebookSession
from searchlab.evaluation.judging.pools import Pair, Pool
from searchlab.evaluation.judging.session import Pictures

if TYPE_CHECKING:
    from searchlab.library.library import Library

GRADES: Mapping[int | str, str] = {0: "not relevant", 1: "related", 2: "relevant", 3: "perfect"}
_LARGE, _SMALL = "regular", "thumb"


class Grading(NotebookSession):
    """A session in which a judge grades the photos of a pool, without knowing who found them.

    Example:
        >>> pool = pool_runs(dataset, runs_of(library, dataset, configs))  # doctest: +SKIP
        >>> Grading(pool, "ann.jsonl", judge="ann", pictures=pictures_of(library))  # doctest: +SKIP
    """

    what = "grades"

    def __init__(self, pool: Pool, journal: Path | str, *, judge: str, pictures: Pictures) -> None:
        """Continue a journal, or begin one.

        Args:
            pool: The pairs to grade.
            journal: The judge's file; each judge has another one.
            judge: Name of the judge.
            pictures: Source of pictures, such as `pictures_of(library)`.

        Raises:
            MismatchError: The journal is of another pool, or another judge's.
            DataError: It is damaged, and not only in its last line.
        """
        self.pool = pool
        super().__init__(pool.pairs, journal, pool_id=pool.pool_id, judge=judge, pictures=pictures)

    @property
    def choices(self) -> Mapping[int | str, str]:
        """Grades with their names."""
        return GRADES

    @property
    def grades(self) -> dict[Pair, int]:
        """The grades so far."""
        return {Pair(*item): int(grade) for item, grade in self.journal.choices.items()}

    def scene(self, item: Item) -> dict[str, Any]:
        """Return what is shown for a pair: the query and the picture."""
        pair = Pair(*item)
        query = self.pool.queries[pair.query_id]
        places = self.pool.places[pair.query_id]
        place = places.index(self._numbers[item]) + 1
        return {
            "query": query.text or "",
            "lang": query.lang,
            "place": f"photo {place} of {len(places)} for this query",
            "asked": self.picture(query.photo_id) if query.photo_id else b"",
            "sides": [[self.picture(pair.photo_id)]],
        }


def pictures_of(library: Library, *, small: bool = False) -> Pictures:
    """Return a function that reads pictures of a library, upright and 1080 pixels at most.

    Args:
        library: Library of the photos, which also keeps the pictures that are made.
        small: Whether thumbnails are enough, such as for many pictures side by side.

    Returns:
        photo_id -> the bytes of a WebP file: the thumbnail if the original is gone, and no bytes if
        there is no thumbnail either.
    """
    from searchlab.library.renditions import RenditionFiles

    files = RenditionFiles(library.folder)
    snapshot = library.snapshot()
    roots = () if snapshot is None else snapshot.roots

    def picture(photo_id: str) -> bytes:
        table = library.engine.table
        try:
            photo = table.photo(table.row_of(photo_id))
        except NotFoundError:
            return b""
        for size in (_SMALL,) if small else (_LARGE, _SMALL):
            source = files.find(photo, size)
            if source is not None:
                try:
                    return source.read_all()
                finally:
                    source.close()
            try:
                return files.make(photo, size, roots=roots)
            except NotFoundError:
                continue
        return b""

    return picture
