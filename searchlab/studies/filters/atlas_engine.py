"""searchlab's engine as a system of the filter atlas, with photos that have its attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from searchlab.config import Config
from searchlab.models.protocol import Embeddings
from searchlab.photos.columns import pack_texts
from searchlab.photos.table import CODED_COLUMNS, NUMBER_COLUMNS, TEXT_COLUMNS, Codes, PhotoTable
from searchlab.search.engine import SearchEngine
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.indexes import VectorIndex
from searchlab.search.queries import Query
from searchlab.studies.filters.atlas import LICENSES, SOURCES, PlainFilter
from searchlab.studies.vectors.made import GivenVectors

_DAYS: tuple[Literal["chance"], Literal["trend"]] = ("chance", "trend")


def photo_table(
    columns: Mapping[str, NDArray[np.int64]], day: Literal["chance", "trend"]
) -> PhotoTable:
    """Make photos that have an atlas's attributes and are otherwise equal.

    Args:
        columns: The columns of an `Atlas`.
        day: Column to use as the day of upload.
    """
    n = len(columns[day])
    numbers = {name: np.zeros(n, dtype=dtype) for name, dtype in NUMBER_COLUMNS.items()}
    numbers["uploaded_day"] = columns[day].astype(np.int32)
    numbers["label"] = np.arange(n)
    one = Codes(np.zeros(n, dtype=np.int32), [""])
    codes = dict.fromkeys(CODED_COLUMNS, one)
    codes["orientation"] = Codes(one.rows, ["landscape"])
    codes["source"] = Codes(columns["source"].astype(np.int32), SOURCES)
    codes["license_type"] = Codes(columns["license"].astype(np.int32), LICENSES)
    texts = dict.fromkeys(TEXT_COLUMNS, pack_texts([""] * n))
    texts["photo_id"] = pack_texts(f"photo-{row:09}" for row in range(n))
    return PhotoTable(numbers, codes, texts)


class Served:
    """The engine as a system of the atlas: it filters, plans and ranks exactly as a server does.

    Attributes:
        engines: An engine for each column of days, over the same index: a photo has one upload
            date, so each column needs a collection of its own.
        plan: Mode in which the last query was answered: `exact` or `graph`.
    """

    def __init__(
        self, columns: Mapping[str, NDArray[np.int64]], index: VectorIndex, config: Config
    ) -> None:
        """Make the engines over an index.

        Args:
            columns: The columns of an `Atlas`.
            index: Index over the atlas's vectors.
            config: Configuration for the planner; its model is not used.
        """
        model = GivenVectors({}, index.vectors.shape[1])
        config = config.with_model_id(model.model_id)
        self.plan = ""
        self.engines = {
            day: SearchEngine(photo_table(columns, day), index, model, config) for day in _DAYS
        }

    def __call__(
        self, query: Embeddings, k: int, condition: PlainFilter | None
    ) -> NDArray[np.int64]:
        """Rank as a server does, for a picture whose vector is given."""
        engine = self.engines["chance" if condition is None else condition.day]
        photo_filter = PhotoFilter() if condition is None else condition.filter()
        # The empty picture is never opened, since its vector is given.
        ranking = engine.rank(Query(image=b"", filter=photo_filter), k, reference=query)
        self.plan = ranking.plan.mode
        return ranking.rows
