"""Migrating: serve a new model without embedding every photo again.

A sample of the photos is embedded by the new model. On one part of it, a linear map is learnt from
the stored vectors of the old model to those of the new one. On a second part the kind of map is
chosen, and on a third the loss is measured against embedding everything again. Then every stored
vector is mapped, except that the sample keeps the new model's own vectors, and the library serves
them. Queries, and photos that come later, are embedded by the new model.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from searchlab.config import Config
from searchlab.config.calibration import UNCALIBRATED, Calibration, Curve
from searchlab.errors import (
    InputError,
    MismatchError,
    NotFoundError,
    SearchlabError,
    refuse_names,
    shell_word,
)
from searchlab.evaluation.significance import Interval
from searchlab.library.cache import ContentCache
from searchlab.library.embed import embed_pictures
from searchlab.library.library import Library
from searchlab.library.models import MODELS_FOLDER, load_model_of
from searchlab.library.snapshots import Snapshot
from searchlab.models import load_model
from searchlab.models.migrated import MigratedEmbedder, map_id
from searchlab.models.protocol import Embedder
from searchlab.models.remembered import named_by
from searchlab.models.shipped_calibration import calibrate
from searchlab.photos.sidecar import Skipped
from searchlab.progress import Progress
from searchlab.training.adapt.captions import library_captions
from searchlab.training.adapt.model_folder import carry_over, write_migrated
from searchlab.training.adapt.ranking import Gain, Queries, gain_of_ranks
from searchlab.training.migrate.losses import LearntMap, caption_queries

SAMPLE: Final = 2_000
MIN_SAMPLE: Final = 100
CHOOSE, JUDGE = 0.15, 0.25
"""Shares of the sample, 0 to 1, that the kind of map is chosen by, and that it is judged on."""
_BATCH = 4_096


@dataclass(frozen=True)
class Migration:
    """What migrating did, and what it costs.

    Attributes:
        snapshot_id: The snapshot that is served now; None if nothing was written.
        folder: Folder of the migrated model; None if nothing was written.
        model: Spec of the migrated model, or of the new model if nothing was written.
        kind: The kind of map that was chosen.
        n_photos: Photos in the library.
        n_sample: Photos that the new model has embedded: to learn from, to choose by, to judge on.
        picture_recall: recall@10 of a picture's neighbours, against the new model's own vectors.
        caption_recall: The same for results of the judged photos' captions; None without captions.
        quality: How well captions find their photo by the new model's own vectors (before) and by
            mapped ones (after); None if there are no captions.
        old_quality: The same from the old model to mapped vectors; None if the old model is not
            installed any more, or there are no captions.
        curve: Number of photos learnt from -> recall@10 of a picture's neighbours.
        seconds_per_photo: Time of the new model; 0 if the sample was embedded before.
        problems: Photos of the sample that cannot be read.
    """

    snapshot_id: str | None
    folder: Path | None
    model: str
    kind: str
    n_photos: int
    n_sample: tuple[int, int, int]
    picture_recall: Interval
    caption_recall: Interval | None
    quality: Gain | None
    old_quality: Gain | None
    curve: dict[int, Interval]
    seconds_per_photo: float
    problems: list[Skipped] = field(default_factory=list, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, fit for JSON."""
        return {
            "map": self.kind,
            "n_photos": self.n_photos,
            "n_sample": list(self.n_sample),
            "similar": _plain(self.picture_recall),
            "told": None if self.caption_recall is None else _plain(self.caption_recall),
            "quality": None if self.quality is None else self.quality.to_dict(),
            "old_quality": None if self.old_quality is None else self.old_quality.to_dict(),
            "curve": {str(size): _plain(interval) for size, interval in self.curve.items()},
            "seconds_a_photo": round(self.seconds_per_photo, 4),
        }

    def __str__(self) -> str:
        learnt, chosen, judged = self.n_sample
        lines = [
            f"{self.kind} map from {learnt + chosen:,} photos, judged among {judged:,} others "
            "[95 % by bootstrap]",
            f"  recall@10 lost, neighbours of a picture  {_format_loss(self.picture_recall)}",
        ]
        if self.caption_recall is not None:
            loss = _format_loss(self.caption_recall)
            lines.append(f"  recall@10 lost, results of a caption     {loss}")
        for name, gain in (("new model itself", self.quality), ("old model", self.old_quality)):
            if gain is not None:
                before, after = gain.before["success@10"].macro, gain.after["success@10"].macro
                lines.append(
                    f"  captions that find their photo in the first 10: {before.mean:.3f} by the "
                    f"{name}, {after.mean:.3f} by mapped vectors, "
                    f"{_format_difference(gain.difference['success@10'].macro)}"
                )
        sizes = ", ".join(f"{size:,}: {1 - recall.mean:.3f}" for size, recall in self.curve.items())
        lines.append(f"  lost by photos learnt from: {sizes}")
        rest = self.n_photos - sum(self.n_sample)
        if self.seconds_per_photo and rest > 0:
            minutes = rest * self.seconds_per_photo / 60
            lines.append(f"  embedding the other {rest:,} photos would take {minutes:,.0f} minutes")
        return "\n".join(lines)


def migrate(
    library: Library,
    old: str,
    new: str,
    *,
    sample: int = SAMPLE,
    dry_run: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
) -> Migration:
    """Carry a library's vectors over into the space of another model, and serve them.

    `searchlab index --model NEW` later embeds everything and takes its place; what the sample
    embedded is not embedded again.

    Args:
        library: Holds vectors of the old model, which need not be installed any more.
        old: Spec or `model_id` of the model that the library is served with.
        new: Spec of a plain model that reads pixels.
        sample: Number of photos to embed with the new model, at least 100; all if there are fewer.
        dry_run: Only measure what would be lost; the library stays as it is.
        seed: Seed of the resampling.
        progress: Shows every step.

    Returns:
        The report.

    Raises:
        InputError: A new model that cannot be migrated to, or too few photos.
        MismatchError: The library is served with another model than `old`.
        NotFoundError: Nothing was indexed yet.
        ConflictError: Another process writes to the library.
    """
    refuse_names("open_library(folder)", library=library)
    progress = progress or Progress()
    model = _load_new(new)
    with library.writing(), library.cache() as cache:
        snapshot = _served_snapshot(library, old, model)
        digests = list(snapshot.table.texts("sha256"))
        began = time.perf_counter()
        rows, fresh, problems = _embed_sample(
            snapshot, digests, sample, model, library, cache, progress
        )
        seconds = (time.perf_counter() - began) / fresh if fresh else 0.0
        vectors = cache.vectors(model.model_id, [digests[row] for row in rows], model.dim)
        parts = _parts(len(rows))
        old_vectors = np.asarray(snapshot.index.vectors[rows])
        learnt = LearntMap(old_vectors, vectors, parts)
        queries = caption_queries(
            library_captions(library), [digests[rows[i]] for i in parts[2]], model, cache, progress
        )
        report = learnt.report(queries, seed)
        old_gain = _old_gain(library, snapshot, learnt, queries, seed)
        migration = Migration(
            snapshot_id=None,
            folder=None,
            model=model.name,
            n_photos=len(digests),
            n_sample=(len(parts[0]), len(parts[1]), len(parts[2])),
            old_quality=old_gain,
            seconds_per_photo=seconds,
            problems=problems,
            **report,
        )
        if dry_run:
            return migration
        name = map_id(snapshot.config.model_id, model.model_id, learnt.linear_map)
        folder = library.folder / MODELS_FOLDER / name
        migrated = MigratedEmbedder(
            f"migrated:{folder}",
            model,
            snapshot.config.model_id,
            learnt.linear_map,
            calibration=_calibration(model, learnt),
        )
        write_migrated(folder, migrated, migration.to_dict(), str(migration))
        _store_mapped(snapshot, digests, set(rows.tolist()), migrated, cache, progress)
        config = calibrate(replace(snapshot.config, model=migrated.name, model_id=""))
        snapshot_id = library.write(
            snapshot.table, config, snapshot.roots, cache, before=snapshot, progress=progress
        )
    return replace(migration, snapshot_id=snapshot_id, folder=folder, model=migrated.name)


def _load_new(spec: str) -> Embedder:
    model = load_model(spec)
    if len(model.parts) != 1 or model.reads != "image" or isinstance(model, MigratedEmbedder):
        msg = (
            "a model to migrate to must be a plain one that embeds pictures itself, got "
            f"{model.name}; for another one run `searchlab index --model {shell_word(model.name)}`"
        )
        raise InputError(msg)
    return model


def _served_snapshot(library: Library, old: str, new: Embedder) -> Snapshot:
    snapshot = library.snapshot()
    if snapshot is None:
        msg = f"a library must hold photos, got an empty one at {library.folder}; index some first"
        raise NotFoundError(msg)
    config = snapshot.config
    if old not in (config.model, config.model_id):
        msg = (
            f"a library is migrated from the model that it is served with, {config.model} "
            f"({config.model_id}), got {old!r}"
        )
        raise MismatchError(msg)
    if new.model_id == config.model_id:
        msg = f"a library must be migrated to another model, got {new.name}, which it has"
        raise InputError(msg)
    return snapshot


def _embed_sample(
    snapshot: Snapshot,
    digests: Sequence[str],
    sample: int,
    model: Embedder,
    library: Library,
    cache: ContentCache,
    progress: Progress,
) -> tuple[NDArray[np.int64], int, list[Skipped]]:
    """Embed a sample drawn by content, so that a larger sample contains a smaller one.

    Returns:
        Rows of the sampled photos in the order drawn, how many were embedded now, and the photos
        that cannot be read.
    """
    files = dict(zip(digests, map(Path, snapshot.table.texts("file")), strict=True))
    if min(sample, len(files)) < MIN_SAMPLE:
        msg = (
            f"a sample must have at least {MIN_SAMPLE} photos, got {min(sample, len(files))}; "
            f"embed all photos with `searchlab index --model {shell_word(model.name)}`"
        )
        raise InputError(msg)
    sampled = sorted(files, key=_random_key)[:sample]
    known = cache.known_vectors(model.model_id, sampled)
    todo = {digest: files[digest] for digest in sampled if digest not in known}
    problems = embed_pictures(todo, [model], cache, library.thumbnails, progress)
    embedded = cache.known_vectors(model.model_id, sampled)
    # Photos that cannot be read, or that say nothing to the model, have no vector to learn from.
    order = [digest for digest in sampled if digest in embedded]
    if len(order) < MIN_SAMPLE:
        msg = (
            f"a sample must have at least {MIN_SAMPLE} photos that the model embeds, got "
            f"{len(order)}, and {len(problems)} that cannot be read"
        )
        if problems:
            msg += f", such as {problems[0].where}: {problems[0].reason}"
        raise InputError(msg)
    row_of = {digest: row for row, digest in enumerate(digests)}
    rows = np.array([row_of[digest] for digest in order], dtype=np.int64)
    return rows, len(todo) - len(problems), problems


def _random_key(sha256: str) -> str:
    return hashlib.sha256(f"searchlab-migrate:{sha256}".encode()).hexdigest()


def _parts(n_sample: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Split positions of a sample, which is in random order: to learn, to choose, to judge."""
    n_judge, n_choose = round(JUDGE * n_sample), round(CHOOSE * n_sample)
    places = np.arange(n_sample)
    judge, choose, train = np.split(places, [n_judge, n_judge + n_choose])
    return train, choose, judge


def _old_gain(
    library: Library, snapshot: Snapshot, learnt: LearntMap, queries: Queries | None, seed: int
) -> Gain | None:
    """Compare with the old model, where it is still installed."""
    if queries is None:
        return None
    try:
        with named_by("the library"):
            old = load_model_of(library.folder, snapshot.config)
    except SearchlabError:
        return None
    if old.model_id != snapshot.config.model_id:
        return None
    old_queries = replace(queries, texts=old.encode_texts(queries.captions))
    before, after = old_queries.ranks(learnt.judged_old), queries.ranks(learnt.mapped)
    return gain_of_ranks(queries, before, after, len(learnt.true), seed=seed)


def _calibration(model: Embedder, learnt: LearntMap) -> Calibration:
    """Carry the new model's curves over to the lower cosines that mapped rows have."""
    own = calibrate(Config(model=model.name)).calibration
    if not own.is_fitted:
        return UNCALIBRATED
    image = carry_over(own.image, learnt.true, learnt.mapped)
    # Cosines with texts shrink by about as much, so their slope gets the same factor.
    factor = image.slope / own.image.slope
    text = Curve(own.text.slope * factor, own.text.intercept)
    both = Curve((text.slope + image.slope) / 2, (text.intercept + image.intercept) / 2)
    # What the words themselves add stays: the new model reads them as it does by itself.
    return replace(own, text=text, image=image, both=both, source=f"{own.source}, mapped")


def _store_mapped(
    snapshot: Snapshot,
    digests: Sequence[str],
    sampled: set[int],
    model: MigratedEmbedder,
    cache: ContentCache,
    progress: Progress,
) -> None:
    """Write a vector of every photo: the new model's own for the sample, else a mapped one."""
    with progress.step("mapping vectors", len(digests), unit="photos") as step:
        for start in range(0, len(digests), _BATCH):
            rows = np.arange(start, min(start + _BATCH, len(digests)))
            mapped = model.linear_map(np.asarray(snapshot.index.vectors[rows]))
            own = [row for row in rows.tolist() if row in sampled]
            keys = [digests[row] for row in rows.tolist()]
            mapped[[row - start for row in own]] = cache.vectors(
                model.base.model_id, [digests[row] for row in own], model.dim
            )
            cache.keep(vectors=[(model.model_id, keys, mapped)])
            step.advance(len(rows))


def _plain(interval: Interval) -> list[float]:
    return [round(value, 6) for value in interval]


def _format_loss(recall: Interval) -> str:
    return f"{1 - recall.mean:.3f} [{1 - recall.high:.3f}, {1 - recall.low:.3f}]"


def _format_difference(interval: Interval) -> str:
    return f"{interval.mean:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"
