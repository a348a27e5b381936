"""Indexing: bring a library in line with the folders that it covers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from searchlab.config import USUAL, Config
from searchlab.errors import InputError
from searchlab.library.cache import ContentCache
from searchlab.library.catalog import build_table, id_of_picture, identify
from searchlab.library.embed import PASSING, PictureRunner, embed_pictures
from searchlab.library.given_vectors import holds_vectors, take_given_vectors
from searchlab.library.info import record_run
from searchlab.library.kept_ids import keep_edited, keep_moved
from searchlab.library.library import Library
from searchlab.library.mapped_vectors import map_known_vectors
from searchlab.library.models import load_model_of
from searchlab.library.roots import Root, check_root, is_library
from searchlab.library.scan import Picture, Scan, scan_roots
from searchlab.library.snapshots import Snapshot, last_readable
from searchlab.models.protocol import Embedder, towers_of
from searchlab.models.remembered import named_by
from searchlab.models.shipped_calibration import calibrate
from searchlab.models.vectors.names import NamedPhoto
from searchlab.photos.photo import iso_day
from searchlab.photos.sidecar import Skipped
from searchlab.photos.table import PhotoTable
from searchlab.progress import Progress
from searchlab.search.indexes import index_class

Place: TypeAlias = Root | Path | str


@dataclass
class IndexReport:
    """What indexing did.

    Attributes:
        snapshot_id: The state in force afterwards.
        n_photos: Photos in it.
        added: New photos.
        removed: Photos that left.
        changed: Files among them that hold another picture, or count as of another source: their
            photos have new ids, and collections and judgments stay with the old ones.
        copies: Files with the same content as another.
        problems: Files and lines that were skipped, each with its reason.
        missing: Folders that could not be reached; their photos are kept.
    """

    snapshot_id: str
    n_photos: int
    added: int
    removed: int
    copies: int
    changed: int = 0
    problems: list[Skipped] = field(default_factory=list)
    missing: list[Path] = field(default_factory=list)


def index_photos(
    library: Library,
    roots: Place | Sequence[Place] = (),
    *,
    config: Config | None = None,
    model: str | None = None,
    index: str | None = None,
    forget: Place | Sequence[Place] = (),
    rebuild: bool = False,
    runner: PictureRunner | None = None,
    progress: Progress | None = None,
) -> IndexReport:
    """Bring a library in line with its folders: new photos come, deleted ones leave.

    An interrupted run goes on where it stopped, because everything computed is cached by content.

    Args:
        library: The library to change.
        roots: Folders to cover from now on, besides those covered already; make one with
            `check_root` to name its sidecar file or its library.
        config: How to rank; as in the state in force if left out.
        model: Spec of another model to embed with, calibrated where that is known.
        index: Another kind of index: `exact`, `clustered`, `hnsw` or `exact-on-device`.
        forget: Folders to cover no more.
        rebuild: Build anew. Of the state in force, which may be damaged, only the list of photos
            is read, if it is sound.
        runner: Who embeds the pictures, such as `searchlab.cluster.runners.open_runner` gives;
            this process if left out. The result is the same.
        progress: Told about every step.

    Returns:
        What changed, and what was skipped.

    Raises:
        ConflictError: Somebody else is writing.
        InputError: No folder is named and none was before.
        MismatchError: `config` was measured with other weights.
    """
    progress = progress or Progress()
    with library.writing(), library.cache() as cache:
        before = _read_before(library, rebuild=rebuild)
        named = [
            root if isinstance(root, Root) else check_root(Path(root)) for root in _listed(roots)
        ]
        forgotten = [
            place.place if isinstance(place, Root) else Path(place) for place in _listed(forget)
        ]
        covered = _cover(before.roots, named, forgotten, library.folder)
        if config is not None and model is None:
            config = config.with_model_id(load_model_of(library.folder, config).model_id)
        # The first time there is no model yet that could change, so nothing is said about it.
        listener = progress if before.roots else Progress()
        chosen_here = config is not None or model is not None
        with nullcontext() if chosen_here else named_by(library.folder):
            config = _choose_config(library.folder, config or before.config, model, listener)
        if index is not None:
            config = replace(config, index=index)
        index_class(config).check()
        with named_by(library.folder):
            embedder = load_model_of(library.folder, config)
        scan = scan_roots(covered, cache, progress)
        scan.missing += _find_emptied(before.table, covered, scan)
        if rebuild and before.table is None and scan.missing:
            gone = ", ".join(str(root.place) for root in scan.missing)
            msg = (
                f"a rebuild must reach every folder, got none at {gone}; "
                "bring it back or --forget it"
            )
            raise InputError(msg)
        scan.pictures = keep_moved(scan.pictures, before.table)
        pictures, problems, copies = _embed(
            scan, covered, before.table, embedder, cache, library, progress, runner
        )
        table = build_table(
            pictures,
            roots=covered,
            cache=cache,
            model=embedder,
            unreachable=_rows_out_of_reach(before.table, scan.missing, scan.problems + problems),
            dates=_dates(before.table),
            progress=progress,
        )
        if not len(table):
            where = ", ".join(str(root.place) for root in covered)
            why = _reasons(scan.problems + problems)
            msg = f"a library must hold at least one photo, got none under {where}{why}"
            raise InputError(msg)
        snapshot_id = library.write(
            table, config, covered, cache, before=before.snapshot, progress=progress
        )
        skipped = sorted(scan.problems + problems, key=lambda problem: problem.where)
        missing = [root.place for root in scan.missing]
        record_run(library.folder, skipped, missing)
    ids = set(table.texts("photo_id"))
    old_ids = set() if before.table is None else set(before.table.texts("photo_id"))
    return IndexReport(
        snapshot_id=snapshot_id,
        n_photos=len(table),
        added=len(ids - old_ids),
        removed=len(old_ids - ids),
        copies=copies,
        changed=_count_changed(before.table, table, old_ids - ids, ids - old_ids),
        problems=skipped,
        missing=missing,
    )


def _listed(places: Place | Sequence[Place]) -> Sequence[Place]:
    # A text is a sequence of letters, each of which would be taken for a place.
    return [places] if isinstance(places, Root | Path | str) else places


@dataclass(frozen=True)
class _Before:
    """The state before: its table gives dates and photos out of reach, its snapshot the index."""

    config: Config
    roots: tuple[Root, ...] = ()
    table: PhotoTable | None = None
    snapshot: Snapshot | None = None


def _read_before(library: Library, *, rebuild: bool) -> _Before:
    if rebuild:
        state = last_readable(library.folder)
        return _Before(calibrate(USUAL)) if state is None else _Before(*state)
    snapshot = library.snapshot()
    if snapshot is None:
        return _Before(calibrate(USUAL))
    return _Before(snapshot.config, snapshot.roots, snapshot.table, snapshot)


def _choose_config(folder: Path, config: Config, model: str | None, progress: Progress) -> Config:
    if model is not None:
        chosen = calibrate(replace(config, model=model))
        if config.model_id not in ("", chosen.model_id):
            progress.say(f"the library changes from {config.model_id} to {chosen.model_id}")
        return chosen
    model_id = load_model_of(folder, config).model_id
    if config.model_id not in ("", model_id):
        progress.say(f"{config.model} is now {model_id}: the photos are embedded again")
        return calibrate(config)
    return config


def _embed(
    scan: Scan,
    covered: Sequence[Root],
    before: PhotoTable | None,
    model: Embedder,
    cache: ContentCache,
    library: Library,
    progress: Progress,
    runner: PictureRunner | None,
) -> tuple[dict[str, Picture], list[Skipped], int]:
    image_models = [part for part, _ in model.parts if "image" in towers_of(part)]
    files = {picture.sha256: picture.path for picture in reversed(scan.pictures)}
    named = [
        NamedPhoto(id_of_picture(one, covered), one.record.source_photo_id, one.sha256, one.path)
        for one in (scan.pictures if holds_vectors(model) else ())
    ]
    lacking = take_given_vectors(model, named, cache, progress)
    embeddable = {digest: path for digest, path in files.items() if digest not in lacking}
    map_known_vectors(list(embeddable), image_models, cache, progress)
    embed = embed_pictures if runner is None else runner.embed
    refused = embed(embeddable, image_models, cache, library.thumbnails, progress)
    refused += [Skipped(str(files[digest]), reason) for digest, reason in lacking.items()]
    reasons = {problem.where: problem.reason for problem in refused}
    bad = {digest: reasons[str(path)] for digest, path in files.items() if str(path) in reasons}
    good = [picture for picture in scan.pictures if picture.sha256 not in bad]
    good = keep_edited(good, before, cache, library.thumbnails)
    pictures, problems, copies = identify(good, covered)
    problems += [
        Skipped(str(picture.path), bad[picture.sha256])
        for picture in scan.pictures
        if picture.sha256 in bad
    ]
    return pictures, problems, copies


def _find_emptied(table: PhotoTable | None, covered: Sequence[Root], scan: Scan) -> list[Root]:
    # A folder that had photos and shows no file at all is more likely not mounted than emptied.
    if table is None:
        return []
    accounted_for = {*scan.pictures_by_root(covered), *scan.missing}
    # A dump may rightly have no photo that is let in: it only has to be readable.
    accounted_for |= {r for r in covered if r.is_dump and r not in scan.missing and not r.is_empty}
    return [
        root
        for root in covered
        if root not in accounted_for
        and any(Path(file).is_relative_to(root.folder) for file in table.texts("file"))
    ]


def refuse_inside(roots: Sequence[Root], library: Path) -> None:
    """Refuse folders of photos that lie in a library, or are one.

    Raises:
        InputError: One does.
    """
    for root in roots:
        others = (place for place in (root.folder, *root.folder.parents) if is_library(place))
        inside = library if root.folder.is_relative_to(library) else next(others, None)
        if inside is not None:
            msg = (
                f"a source must lie outside the library {inside}, got {root.folder}; name another "
                "folder for the library with --data"
            )
            raise InputError(msg)


def _cover(
    known: Sequence[Root], roots: Sequence[Root], forget: Sequence[Path], library: Path
) -> tuple[Root, ...]:
    covered = {root.place: root for root in known}
    refuse_inside(roots, library)
    for root in roots:
        if root.is_dump:
            covered[root.place] = root
            continue
        before = covered.get(root.folder, Root(root.folder, source="local"))
        covered[root.folder] = Root(
            root.folder, root.records or before.records, root.source or before.source
        )
    for folder in forget:
        if covered.pop(folder.resolve(), None) is None:
            names = ", ".join(map(str, covered)) or "none"
            msg = f"forget must name a covered folder or dump, got {folder}; covered: {names}"
            raise InputError(msg)
    if not covered:
        msg = "a library must cover at least one folder of photos, got none; name one"
        raise InputError(msg)
    return tuple(sorted(covered.values(), key=lambda root: root.place))


def _rows_out_of_reach(
    table: PhotoTable | None, missing: Sequence[Root], problems: Sequence[Skipped]
) -> list[dict[str, Any]]:
    # What cannot be reached or read at the moment, file or folder, stays as it was.
    passing = {Path(p.where) for p in problems if p.reason.startswith(PASSING)}
    away = passing | {root.folder for root in missing}
    if table is None or not away:
        return []
    return [
        table.row(row)
        for row, file in enumerate(table.texts("file"))
        if not away.isdisjoint([Path(file), *Path(file).parents])
    ]


def _count_changed(
    before: PhotoTable | None, table: PhotoTable, removed: set[str], added: set[str]
) -> int:
    """Count the files whose photos left under one id and came under another."""
    if before is None or not removed or not added:
        return 0
    left, came = (
        {
            file
            for photo_id, file in zip(each.texts("photo_id"), each.texts("file"), strict=True)
            if file and photo_id in ids
        }
        for each, ids in ((before, removed), (table, added))
    )
    return len(left & came)


def _dates(table: PhotoTable | None) -> dict[str, str]:
    if table is None:
        return {}
    days = table.uploaded_days.tolist()
    return {
        photo_id: iso_day(day) for photo_id, day in zip(table.texts("photo_id"), days, strict=True)
    }


def _reasons(problems: Sequence[Skipped]) -> str:
    if not problems:
        return ""
    first = problems[0]
    skipped = "1 file was" if len(problems) == 1 else f"{len(problems):,} files were"
    return f" ({skipped} skipped, such as {first.where}: {first.reason})"
