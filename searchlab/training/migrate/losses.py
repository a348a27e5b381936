"""What a map from one model's rows to another's loses, on photos that it was not learnt from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchlab.evaluation.significance import Interval, bootstrap_interval
from searchlab.library.cache import ContentCache
from searchlab.models.migrated import LinearMap
from searchlab.models.protocol import Embedder, Embeddings
from searchlab.progress import Progress
from searchlab.training.adapt.captions import CaptionedPhoto
from searchlab.training.adapt.pairs import embed_texts
from searchlab.training.adapt.ranking import Queries, gain_of_ranks
from searchlab.training.migrate.maps import learn_map, neighbour_recall, refit

_SIZES = (50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000)
_MOST_TEXTS = 4_000


class LearntMap:
    """A learnt map, and the photos on which its loss is measured.

    Attributes:
        kind: Kind of the map; see `ChosenMap`.
        linear_map: Learnt from all photos but those that it is judged on.
        judged_old: (n_judged, old_dim) rows of the old model.
        true: (n_judged, new_dim) rows of the new one.
        mapped: (n_judged, new_dim) mapped rows.
    """

    def __init__(
        self, old: Embeddings, new: Embeddings, parts: Sequence[NDArray[np.int64]]
    ) -> None:
        """Learn the map.

        Args:
            old: (n_sample, old_dim) rows of the old model.
            new: (n_sample, new_dim) rows of the new one.
            parts: Three arrays of positions: to learn from, to choose by and to judge on.
        """
        train, choose, judge = parts
        self._old, self._new, self._parts = old, new, parts
        chosen = learn_map(old[train], new[train], old[choose], new[choose])
        rows = np.concatenate([train, choose])
        self.kind = chosen.kind
        self.linear_map: LinearMap = refit(chosen.kind, old[rows], new[rows])
        self.judged_old, self.true = old[judge], new[judge]
        self.mapped = self.linear_map(self.judged_old)

    def report(self, queries: Queries | None, seed: int) -> dict[str, Any]:
        """Measure what is lost on the judged photos; returns fields of `Migration`."""
        recalls = neighbour_recall(self.true, self.mapped, self.true)
        fields: dict[str, Any] = {"kind": self.kind, "caption_recall": None, "quality": None}
        fields["picture_recall"] = bootstrap_interval(recalls, seed=seed)
        fields["curve"] = self._curve(seed)
        if queries is not None:
            recalls = neighbour_recall(queries.texts, self.mapped, self.true, own=False)
            clusters = queries.cluster_ids.astype(np.str_).tolist()
            fields["caption_recall"] = bootstrap_interval(recalls, clusters=clusters, seed=seed)
            ranks = queries.ranks(self.true), queries.ranks(self.mapped)
            fields["quality"] = gain_of_ranks(queries, *ranks, len(self.true), seed=seed)
        return fields

    def _curve(self, seed: int) -> dict[int, Interval]:
        train, choose, _ = self._parts
        curve = {}
        for size in [*(size for size in _SIZES if size < len(train)), len(train)]:
            learn_from = train[:size]
            held_out = choose[: max(10, size // 4)]
            old, new = self._old, self._new
            chosen = learn_map(old[learn_from], new[learn_from], old[held_out], new[held_out])
            mapped = chosen.linear_map(self.judged_old)
            recall = neighbour_recall(self.true, mapped, self.true)
            curve[size] = bootstrap_interval(recall, seed=seed)
        return curve


def caption_queries(
    captioned: Sequence[CaptionedPhoto],
    digests: Sequence[str],
    model: Embedder,
    cache: ContentCache,
    progress: Progress,
) -> Queries | None:
    """Make queries of what people wrote of some photos; None if they wrote nothing.

    Args:
        captioned: Captioned photos, others among them too.
        digests: SHA-256 of the photos to search; a query's relevant photos are positions in it.
        model: Embeds the captions.
        cache: The library's open cache.
        progress: Shows how many captions were embedded.
    """
    row_of = {digest: row for row, digest in enumerate(digests)}
    photos_by_text: dict[str, list[int]] = {}
    for photo in captioned:
        for caption in photo.captions if photo.sha256 in row_of else ():
            photos_by_text.setdefault(caption.text, []).append(row_of[photo.sha256])
    photos_by_text = dict(list(photos_by_text.items())[:_MOST_TEXTS])
    if not photos_by_text:
        return None
    rows = embed_texts(list(photos_by_text), model, cache, progress)
    has_meaning = np.linalg.norm(rows, axis=1) > 0
    if not has_meaning.any():
        return None
    texts = tuple(compress(photos_by_text, has_meaning))
    photos_of = [photos_by_text[text] for text in texts]
    query_of = np.repeat(np.arange(len(photos_of)), [len(photos) for photos in photos_of])
    return Queries(
        rows[has_meaning],
        np.full(len(photos_of), ""),
        query_of,
        np.concatenate(photos_of).astype(np.int64),
        texts,
    )
