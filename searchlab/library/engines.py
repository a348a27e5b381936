"""Engines: the snapshots of a library that are open, the ones used last."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from searchlab.config import Config
from searchlab.errors import InputError, MismatchError
from searchlab.library.models import load_model_of
from searchlab.library.retention import KEPT
from searchlab.library.snapshots import OpenVectors, Snapshot, current_id, open_snapshot
from searchlab.models.canaries import CanaryCheck
from searchlab.models.protocol import Embedder
from searchlab.models.remembered import named_by
from searchlab.photos.photo import Photo
from searchlab.search.engine import SearchEngine
from searchlab.search.query_reading import TextVectors


class Engines:
    """Engines over the snapshots of one library, each opened when it is first asked for.

    The one in force stays open, and the others that were asked for last: cursors may name more
    snapshots than fit into memory.
    """

    def __init__(
        self,
        folder: Path,
        key: bytes,
        thumbnail: Callable[[Photo], Path | None],
        *,
        for_others: bool = False,
        open_vectors: OpenVectors | None = None,
    ) -> None:
        self._folder, self._for_others = folder, for_others
        self._open_vectors = open_vectors
        self._key = key
        self._thumbnail = thumbnail
        self._engines: dict[str, SearchEngine] = {}
        self._used: dict[str, float] = {}
        self._texts: dict[str, TextVectors] = {}
        self._opening = threading.Lock()

    def of(self, name: str) -> SearchEngine:
        """Return the engine over a snapshot.

        Raises:
            DataError: The snapshot is damaged.
            MismatchError: The installed model is not the one that embedded the photos, or there is
                no such model here.
        """
        # Without the lock: a request for an open engine must not wait while another is opened.
        engine = self._engines.get(name)
        if engine is not None:
            self._used[name] = time.monotonic()
            return engine
        with self._opening:
            if name not in self._engines:
                snapshot = open_snapshot(self._folder, name, self._open_vectors)
                config = self._config_of(snapshot)
                model = self._load(config)
                self._make_room(name)
                self._engines[name] = SearchEngine(
                    snapshot.table,
                    snapshot.index,
                    model,
                    config,
                    snapshot_id=name,
                    key=self._key,
                    thumbnail=self._thumbnail,
                    canary_check=CanaryCheck(snapshot.canaries),
                    texts=self.texts_of(model),
                    facets=snapshot.facets,
                    words=snapshot.words,
                )
            self._used[name] = time.monotonic()
            return self._engines[name]

    def _config_of(self, snapshot: Snapshot) -> Config:
        config = snapshot.config.for_others() if self._for_others else snapshot.config
        # What was measured of one index does not hold for another, over a part of the photos.
        return config if self._open_vectors is None else replace(config, tuning=None)

    def _load(self, config: Config) -> Embedder:
        try:
            with named_by(self._folder):
                return load_model_of(self._folder, config)
        except InputError as error:
            msg = f"the model of the photos in {self._folder} must be known here: {error}"
            raise MismatchError(msg) from error

    def texts_of(self, model: Embedder) -> TextVectors:
        """Return the vectors of query texts that all engines of a model share."""
        if model.model_id not in self._texts:
            self._texts = {model.model_id: TextVectors(model)}  # of one model only, to save memory
        return self._texts[model.model_id]

    def _make_room(self, new: str) -> None:
        """Close what is deleted, and of the others those used longest ago, before one is opened."""
        # Files of a deleted snapshot keep their disk space for as long as they are mapped.
        snapshots, current = self._folder / "snapshots", current_id(self._folder)
        there = [name for name in self._engines if (snapshots / name).is_dir()]
        others = sorted(
            (name for name in there if name != current), key=self._used.__getitem__, reverse=True
        )
        kept = {current, *others[: KEPT - 1 - (new != current)]}
        for name in list(self._engines):
            if name not in kept:
                del self._engines[name], self._used[name]
