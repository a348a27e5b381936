"""Rows of models that map those of another model: made from what that one has embedded already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from searchlab.errors import MismatchError
from searchlab.library.cache import ContentCache
from searchlab.models.protocol import Embedder, is_mapped
from searchlab.progress import Progress

_BATCH: Final = 4_096


def map_known_vectors(
    digests: Sequence[str], models: Sequence[Embedder], cache: ContentCache, progress: Progress
) -> None:
    """Store the rows of photos whose rows by the model below are known; no picture is read.

    Args:
        digests: Contents of photos.
        models: Models that read pictures; those that map no other are passed over.
        cache: Holds vectors by model and content.
        progress: Told about every row.

    Raises:
        MismatchError: A model maps rows to another shape than it says; none of them is kept.
    """
    for model in filter(is_mapped, models):
        lacking = set(digests) - cache.known_vectors(model.model_id, digests)
        todo = sorted(cache.known_vectors(model.base.model_id, sorted(lacking)))
        if not todo:
            continue
        with progress.step("mapping vectors", len(todo), unit="photos") as step:
            for start in range(0, len(todo), _BATCH):
                batch = todo[start : start + _BATCH]
                rows = cache.vectors(model.base.model_id, batch, model.base.dim)
                mapped = model.map_rows(rows)
                shape = (len(batch), model.dim)
                if mapped.shape != shape:
                    msg = (
                        f"map_rows of {model.name} must give rows of shape {shape}, "
                        f"got {mapped.shape}; see `searchlab models check`"
                    )
                    raise MismatchError(msg)
                cache.keep(vectors=[(model.model_id, batch, mapped)])
                step.advance(len(batch))
