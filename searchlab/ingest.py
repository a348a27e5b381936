"""Indexing: bring a library in line with the folders that it covers."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from searchlab.calibration import calibrated
from searchlab.catalog import build_table, identify
from searchlab.config import Config
from searchlab.errors import DataError, InputError
from searchlab.library import Library
from searchlab.models import load_model
from searchlab.pipeline import embed_pictures
from searchlab.progress import Progress
from searchlab.records import Problem
from searchlab.scan import Root, scan_roots
from searchlab.snapshots import Snapshot, check_snapshot, current_id, last_readable


@dataclass
class IndexReport:
    """What indexing did.

    Attributes:
        snapshot_id: The state in force afterwards.
        n_photos: Photos in it.
        added: Photos that came.
        removed: Photos that left.
        copies: Files with the same content as another.
        problems: Files and lines that were skipped, each with its reason.
        missing: Folders that could not be reached; their photos are kept.
    """

    snapshot_id: str
    n_photos: int
    added: int
    removed: int
    copies: int
    problems: list[Problem] = field(default_factory=list)
    missing: list[Path] = field(default_factory=list)


def index_photos(
    library: Library,
    roots: Sequence[Root] = (),
    *,
    config: Config | None = None,
    model: str | None = None,
    forget: Sequence[Path] = (),
    rebuild: bool = False,
    progress: Progress | None = None,
) -> IndexReport:
    """Bring a library in line with its folders: new photos come, deleted ones leave.

    An interrupted run goes on where it stopped, because what was learnt from a content is kept.

    Args:
        library: Where to.
        roots: Folders to cover from now on, besides those covered already.
        config: How to rank; that of the state in force if left out.
        model: Spec of another model to embed with, calibrated where that is known.
        forget: Folders to cover no more.
        rebuild: Take nothing over from the state in force, which may be damaged.
        progress: Told about everything.

    Raises:
        ConflictError: Somebody else is writing.
        InputError: No folder is named and none was before.
    """
    progress = progress or Progress()
    with library.writing(), library.cache() as cache:
        before, (known_config, known_roots) = _before(library, rebuild=rebuild)
        covered = _covered(known_roots, roots, forget)
        config = config or known_config
        if model is not None:
            config = calibrated(replace(config, model=model))
        embedder = load_model(config.model)
        scan = scan_roots(covered, cache, progress)
        seeing = [part for part, _ in embedder.parts if part.reads == "image"]
        files = {picture.sha256: picture.path for picture in reversed(scan.pictures)}
        refused = embed_pictures(files, seeing, cache, library.thumbnails, progress)
        reasons = {problem.where: problem.reason for problem in refused}
        bad = {digest: reasons[str(p)] for digest, p in files.items() if str(p) in reasons}
        good = [picture for picture in scan.pictures if picture.sha256 not in bad]
        pictures, problems, copies = identify(good, covered)
        problems += [
            Problem(str(picture.path), bad[picture.sha256])
            for picture in scan.pictures
            if picture.sha256 in bad
        ]
        table = build_table(
            pictures,
            roots=covered,
            cache=cache,
            model=embedder,
            kept=[] if before is None else _kept(before, scan.missing),
            dates={} if before is None else _dates(before),
            progress=progress,
        )
        if not len(table):
            where = ", ".join(str(root.folder) for root in covered)
            why = _reasons(scan.problems + problems)
            msg = f"a library must hold at least one photo, got none under {where}{why}"
            raise InputError(msg)
        taken_over = None if rebuild else before
        snapshot_id = library.write(
            table, config, covered, cache, before=taken_over, progress=progress
        )
    ids = set(table.texts("photo_id"))
    old_ids = set() if before is None else set(before.table.texts("photo_id"))
    return IndexReport(
        snapshot_id=snapshot_id,
        n_photos=len(table),
        added=len(ids - old_ids),
        removed=len(old_ids - ids),
        copies=copies,
        problems=sorted(scan.problems + problems, key=lambda problem: problem.where),
        missing=[root.folder for root in scan.missing],
    )


def _before(
    library: Library, *, rebuild: bool
) -> tuple[Snapshot | None, tuple[Config, tuple[Root, ...]]]:
    try:
        if rebuild and (name := current_id(library.folder)) is not None:
            check_snapshot(library.folder, name)
        before = library.snapshot()
    except DataError:
        if not rebuild:
            raise
        return None, last_readable(library.folder) or (calibrated(Config()), ())
    if before is None:
        return None, (calibrated(Config()), ())
    return before, (before.config, before.roots)


def _covered(
    known: Sequence[Root], roots: Sequence[Root], forget: Sequence[Path]
) -> tuple[Root, ...]:
    covered = {root.folder: root for root in known}
    for root in roots:
        before = covered.get(root.folder, Root(root.folder, source="local"))
        covered[root.folder] = Root(
            root.folder, root.records or before.records, root.source or before.source
        )
    for folder in forget:
        if covered.pop(folder.resolve(), None) is None:
            names = ", ".join(map(str, covered)) or "none"
            msg = f"forget must name a covered folder, got {folder}; covered: {names}"
            raise InputError(msg)
    if not covered:
        msg = "a library must cover at least one folder of photos, got none; name one"
        raise InputError(msg)
    return tuple(sorted(covered.values(), key=lambda root: root.folder))


def _kept(before: Snapshot, missing: Sequence[Root]) -> list[dict[str, Any]]:
    rows = [
        row
        for row, file in enumerate(before.table.texts("file") if missing else ())
        if any(Path(file).is_relative_to(root.folder) for root in missing)
    ]
    return [before.table.row(row) for row in rows]


def _dates(before: Snapshot) -> dict[str, str]:
    epoch = datetime.date(1970, 1, 1)
    days = before.table.uploaded_days.tolist()
    return {
        photo_id: (epoch + datetime.timedelta(days=day)).isoformat()
        for photo_id, day in zip(before.table.texts("photo_id"), days, strict=True)
    }


def _reasons(problems: Sequence[Problem]) -> str:
    if not problems:
        return ""
    first = problems[0]
    return f" ({len(problems)} files were skipped, such as {first.where}: {first.reason})"
