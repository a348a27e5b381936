"""Publishing: a library's snapshot copied to an address, and from there into libraries elsewhere.

ADDRESS/CURRENT                        name of the snapshot in force, written last
ADDRESS/snapshots/NAME/manifest.json   its files with their checksums, written once these are there
ADDRESS/snapshots/NAME/models.json     the same of its model, where that lies in the library
ADDRESS/objects/SHA256                 a file, by its content; several snapshots may share one
ADDRESS/library.json                   which library publishes here

An object is named by what it holds, so that an interrupted upload goes on where it stopped and a
stale one cannot be taken for another. Readers map a copy of their own, checked when it was made.
Photos, thumbnails, accounts and the key that signs cursors stay where they are.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from searchlab.cluster.published_models import fetched_models, push_models
from searchlab.cluster.storage import Store
from searchlab.errors import (
    ConflictError,
    DataError,
    InputError,
    NotFoundError,
    SearchlabError,
    quote,
)
from searchlab.library.library import Library
from searchlab.library.manifests import check_file, parse_manifest
from searchlab.library.retention import number_of
from searchlab.library.snapshots import (
    check_snapshot,
    current_id,
    put_in_force,
    take_snapshot,
)
from searchlab.progress import Progress

FORMAT: Final = 1
_ABOUT: Final = "library.json"
_CURRENT: Final = "CURRENT"
_NAME: Final = re.compile(r"\d{6,}-[0-9a-f]{8}", re.ASCII)
_PUSH_AGAIN: Final = "push the library again with `--all`, which replaces every object"


@dataclass(frozen=True)
class Published:
    """What was copied.

    Attributes:
        snapshot_id: The snapshot in force at the address.
        n_files: Files that it has.
        n_copied: Files that were copied; the others were there.
        n_bytes: Bytes that were copied.
    """

    snapshot_id: str
    n_files: int
    n_copied: int
    n_bytes: int


def push(
    library: Library,
    store: Store,
    *,
    replace: bool = False,
    everything: bool = False,
    progress: Progress | None = None,
) -> Published:
    """Copy the snapshot in force to an address, and put it into force there.

    Args:
        library: May be searched and indexed meanwhile.
        store: Where to.
        replace: Whether another library, or a newer snapshot, may be replaced there.
        everything: Whether to copy files too that are there already, to mend damage.
        progress: Told about every file.

    Raises:
        InputError: The address lies in the library.
        NotFoundError: Nothing was indexed yet.
        ConflictError: Another library's snapshot, or a newer one of this library, is there.
        DataError: The library is damaged.
        SearchlabError: The address cannot be reached or written.
    """
    progress = progress or Progress()
    if library.folder in [(place := Path(store.address)), *place.parents]:
        msg = f"a library must be pushed to a place outside of it, got {store.address}"
        raise InputError(msg)
    snapshot_id = current_id(library.folder)
    if snapshot_id is None:
        msg = f"a library must hold photos to be pushed, got an empty one: {library.folder}"
        raise NotFoundError(msg)
    about = {"format": FORMAT, "library": _identity(library)}
    _check_owner(store, about, snapshot_id, replace=replace)
    place = library.folder / "snapshots" / snapshot_id
    manifest = (place / "manifest.json").read_bytes()
    stored = parse_manifest(manifest, place)
    files: dict[str, dict[str, Any]] = stored["files"]
    n_copied = n_bytes = 0
    with progress.step("copying to the address", len(files), unit="files") as step:
        for name, sealed in files.items():
            # What is damaged here must not be passed on.
            check_file(place / name, sealed, whole=True)
            target = _object_of(sealed)
            if everything or store.size(target) != sealed["bytes"]:
                store.upload(place / name, target)
                n_copied, n_bytes = n_copied + 1, n_bytes + sealed["bytes"]
            step.advance(1)
    model = stored["config"]["model"]
    push_models(library.folder, model, store, snapshot_id, everything=everything)
    store.write(_ABOUT, json.dumps(about).encode())
    store.write(_manifest_of(snapshot_id), manifest)
    store.write(_CURRENT, f"{snapshot_id}\n".encode())
    return Published(snapshot_id, len(files), n_copied, n_bytes)


def pull(
    store: Store, library: Library, *, replace: bool = False, progress: Progress | None = None
) -> Published:
    """Copy the snapshot in force at an address into a library, and swap it in.

    A library that only takes what others push has their snapshots under their names. Where the
    snapshot is there and sound, nothing is copied.

    Args:
        store: Where from.
        library: An empty one, or one whose snapshot came from there.
        replace: Whether a snapshot may be replaced that was never at the address.
        progress: Told about every file.

    Raises:
        NotFoundError: No library was pushed there.
        DataError: An object is lost or damaged; the library stays as it was.
        ConflictError: Somebody else is writing to the library, or it has a snapshot of its own.
        SearchlabError: The address cannot be reached or read.
    """
    progress = progress or Progress()
    snapshot_id = published_id(store)
    if snapshot_id is None:
        msg = f"{store.address} must hold a library, got none; `searchlab push` puts one there"
        raise NotFoundError(msg)
    manifest = read_published(store, snapshot_id)
    files: Mapping[str, dict[str, Any]] = manifest["files"]
    with library.writing():
        is_in_force = _is_sound(library.folder, snapshot_id)
        if not is_in_force and not replace:
            _refuse_own(library.folder, store)
        with fetched_models(store, snapshot_id, library.folder) as put_models:
            is_new = not is_in_force and not _is_whole(library.folder, snapshot_id)
            if is_new:  # else a pull that died before the end may have brought it
                snapshot_id = _take(store, snapshot_id, manifest, library.folder, progress)
            # As late as can be: what was in force until now needs the models that were there.
            put_models()
            if not is_in_force:
                put_in_force(library.folder, snapshot_id)
    copied = files.values() if is_new else ()
    n_bytes = sum(one["bytes"] for one in copied)
    return Published(snapshot_id, len(files), len(copied), n_bytes)


def _take(
    store: Store, snapshot_id: str, manifest: dict[str, Any], folder: Path, progress: Progress
) -> str:
    files = manifest["files"]
    with progress.step("copying from the address", len(files), unit="files") as step:

        def fetch(name: str, target: Path) -> None:
            _download(store, files[name], target)
            step.advance(1)

        return take_snapshot(folder, manifest, fetch, number=number_of(Path(snapshot_id)))


def _refuse_own(folder: Path, store: Store) -> None:
    here = _readable_id(folder)
    if here is not None and store.size(_manifest_of(here)) is None:
        msg = (
            f"{folder} must be empty or hold what was pushed to {store.address}, got "
            f"{here}, which never was; pull into another folder, or replace it with `--replace`"
        )
        raise ConflictError(msg)


def published_id(store: Store) -> str | None:
    """Return the name of the snapshot in force at an address; None where there is none.

    Raises:
        DataError: What is there names no snapshot.
        SearchlabError: The address cannot be reached or read.
    """
    try:
        name = store.read(_CURRENT).decode("utf-8", "replace").strip()
    except NotFoundError:
        return None
    if not _NAME.fullmatch(name):
        msg = f"{store.place(_CURRENT)} must name a snapshot, got {quote(name)}; {_PUSH_AGAIN}"
        raise DataError(msg)
    return name


def read_published(store: Store, snapshot_id: str) -> dict[str, Any]:
    """Read the manifest of a snapshot at an address.

    Raises:
        DataError: It is lost, damaged or of another version.
        SearchlabError: The address cannot be reached or read.
    """
    name = _manifest_of(snapshot_id)
    try:
        content = store.read(name)
    except NotFoundError as error:
        msg = f"{error}; {_PUSH_AGAIN}"
        raise DataError(msg) from error
    try:
        return parse_manifest(content, Path(snapshot_id))
    except DataError as error:
        msg = f"{store.place(name)} must be as it was written, got: {error.__cause__}"
        msg = f"{msg}; {_PUSH_AGAIN}"
        raise DataError(msg) from error


def _download(store: Store, sealed: Mapping[str, Any], target: Path) -> None:
    name = _object_of(sealed)
    try:
        store.download(name, target, sha256=sealed["sha256"], n_bytes=sealed["bytes"])
    except (NotFoundError, DataError) as error:
        msg = f"{error}; {_PUSH_AGAIN}"
        raise DataError(msg) from error


def _check_owner(
    store: Store, about: Mapping[str, Any], snapshot_id: str, *, replace: bool
) -> None:
    try:
        there = json.loads(store.read(_ABOUT))
    except NotFoundError:
        return
    except ValueError:
        there = None
    if isinstance(there, dict) and "library" not in there:
        msg = (
            f"{store.address} must be free or hold what was pushed there, got a library that is in "
            "use; name another address"
        )
        raise ConflictError(msg)
    if replace:
        return
    if there != about:
        msg = (
            f"{store.address} must be free or hold this library, got another one; name another "
            "address, or replace what is there with `--replace`"
        )
        raise ConflictError(msg)
    published = published_id(store)
    if published is not None and number_of(Path(published)) > number_of(Path(snapshot_id)):
        msg = (
            f"{store.address} must hold an older snapshot than {snapshot_id}, got {published}; "
            "put this one in its place with `--replace`"
        )
        raise ConflictError(msg)


def _identity(library: Library) -> str:
    # Tells libraries apart by their secret without giving any of it away.
    return hmac.new(library.key, b"published library", hashlib.sha256).hexdigest()[:32]


def _is_sound(folder: Path, snapshot_id: str) -> bool:
    try:
        return current_id(folder) == snapshot_id and _is_whole(folder, snapshot_id)
    except SearchlabError:
        return False


def _readable_id(folder: Path) -> str | None:
    try:
        return current_id(folder)
    except DataError:  # what cannot be read is mended
        return None


def _is_whole(folder: Path, snapshot_id: str) -> bool:
    try:
        check_snapshot(folder, snapshot_id)
    except SearchlabError:
        return False
    return True


def _manifest_of(snapshot_id: str) -> str:
    return f"snapshots/{snapshot_id}/manifest.json"


def _object_of(sealed: Mapping[str, Any]) -> str:
    return f"objects/{sealed['sha256']}"
