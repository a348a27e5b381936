"""Pruning: delete cached facts, vectors and pictures of photos that are in no snapshot."""

from __future__ import annotations

from contextlib import suppress

from searchlab.config import Config
from searchlab.errors import DataError, InputError, MissingExtraError, NotFoundError
from searchlab.files import PARTIAL, is_abandoned
from searchlab.library.catalog import documents, text_key
from searchlab.library.library import Library
from searchlab.library.manifests import read_manifest
from searchlab.library.models import load_model_of
from searchlab.library.snapshots import current_id
from searchlab.models.remembered import named_by
from searchlab.photos.table import PhotoTable


def prune(library: Library) -> None:
    """Delete what is cached of photos in no snapshot, and vectors of models no longer in use.

    What the snapshots on disk need stays, so that going back to one of them embeds nothing. While a
    model of theirs cannot be loaded, vectors of all models stay.

    Raises:
        ConflictError: Somebody else is writing.
        DataError: The state in force is damaged.
    """
    with library.writing(), library.cache() as cache:
        digests: set[str] = set()
        keys: set[str] = set()
        model_ids: set[str] = set()
        are_known = True
        for snapshot in (library.folder / "snapshots").glob("[0-9]*"):
            try:
                config = Config.from_dict(read_manifest(snapshot)["config"])
                table = PhotoTable.open(snapshot / "photos.columns")
            except DataError:
                if snapshot.name == current_id(library.folder):
                    raise
                continue  # an unreadable snapshot needs nothing
            digests.update(table.texts("sha256"))
            keys.update(text_key(text) for text in documents(table, frozenset()))
            try:
                with named_by(snapshot):
                    model = load_model_of(library.folder, config)
                    model_ids.update(part.model_id for part, _ in model.parts)
            except (InputError, NotFoundError, MissingExtraError):
                are_known = False
        cache.prune(digests, digests | keys, model_ids if are_known else None)
        stems = {digest[:32] for digest in digests}
        for small in library.thumbnails.glob("*/*"):
            # Measuring another configuration makes small pictures without the writer's lock.
            with suppress(FileNotFoundError):
                if is_abandoned(small) or (small.suffix != PARTIAL and small.stem not in stems):
                    small.unlink()
        for rendition in (library.folder / "renditions").glob("*/*/*"):
            if rendition.stem not in stems:
                rendition.unlink(missing_ok=True)
