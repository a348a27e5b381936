"""The models that lie in a library, pushed and pulled beside its snapshot.

ADDRESS/snapshots/NAME/models.json   files of the models with their checksums; not there where the
                                     snapshot's model comes with searchlab or lies elsewhere
"""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import Annotated, Final

import msgspec

from searchlab.cluster.storage import Store
from searchlab.errors import DataError, NotFoundError
from searchlab.files import sha256_of, sync_folder
from searchlab.library.models import MODELS_FOLDER, model_files


class _Sealed(msgspec.Struct):
    bytes: Annotated[int, msgspec.Meta(ge=0)]
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]

    @property
    def object(self) -> str:
        return f"objects/{self.sha256}"


_Files: Final = dict[
    Annotated[str, msgspec.Meta(pattern=rf"^{MODELS_FOLDER}/[^/\0]+(/[^/\0]+)*$")], _Sealed
]


def push_models(
    folder: Path, spec: str, store: Store, snapshot_id: str, *, everything: bool
) -> None:
    """Copy the models of a spec that lie in a library to an address.

    Args:
        folder: The library.
        spec: Of its configuration.
        store: Where to.
        snapshot_id: The snapshot that is pushed.
        everything: Whether to copy files too that are there already.

    Raises:
        SearchlabError: The address cannot be reached or written.
    """
    files = {}
    for path in model_files(folder, spec):
        sealed = _Sealed((folder / path).stat().st_size, sha256_of(folder / path))
        files[path.as_posix()] = sealed
        if everything or store.size(sealed.object) != sealed.bytes:
            store.upload(folder / path, sealed.object)
    if files:
        store.write(_list_of(snapshot_id), json.dumps(msgspec.to_builtins(files)).encode())


def pull_models(store: Store, snapshot_id: str, folder: Path) -> None:
    """Bring the models that were pushed with a snapshot into a library, those that differ here.

    Raises:
        DataError: A file of them is lost or damaged at the address.
        SearchlabError: The address cannot be reached or read.
    """
    name = _list_of(snapshot_id)
    try:
        content = store.read(name)
    except NotFoundError:
        return
    try:
        files = msgspec.json.decode(content, type=_Files)
        if any(".." in PurePosixPath(path).parts for path in files):
            msg = "a file that lies elsewhere"
            raise ValueError(msg)
    except ValueError as error:
        msg = f"{store.place(name)} must list files of models, got: {error}; push again"
        raise DataError(msg) from error
    brought = []
    for path, sealed in files.items():
        target = folder / path
        if target.is_file() and sha256_of(target) == sealed.sha256:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f"{target.name}.part")
        try:
            store.download(sealed.object, partial, sha256=sealed.sha256, n_bytes=sealed.bytes)
        except NotFoundError as error:
            msg = f"{error}; push the library again with `--all`"
            raise DataError(msg) from error
        brought.append((partial, target))
    for partial, target in brought:  # all are here: now they change, together
        partial.replace(target)
        sync_folder(target.parent)


def _list_of(snapshot_id: str) -> str:
    return f"snapshots/{snapshot_id}/models.json"
