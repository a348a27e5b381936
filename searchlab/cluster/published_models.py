"""The models that lie in a library, pushed and pulled beside its snapshot.

ADDRESS/snapshots/NAME/models.json   files of the models with their checksums; not there where the
                                     snapshot's model comes with searchlab or lies elsewhere
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Annotated, Final

import msgspec

from searchlab.cluster.storage import Store
from searchlab.errors import DataError, NotFoundError
from searchlab.files import sha256_of, sync_file, sync_folder
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


@contextmanager
def fetched_models(store: Store, snapshot_id: str, folder: Path) -> Iterator[Callable[[], None]]:
    """Fetch the models that were pushed with a snapshot, beside those of a library.

    Args:
        store: Where from.
        snapshot_id: The snapshot.
        folder: The library, which nobody else writes to.

    Yields:
        Puts the files that differ in place of those that the library has. Until it is called the
        library stays as it is; what was not put there by the end is deleted.

    Raises:
        DataError: A file of them is lost or damaged at the address.
        SearchlabError: The address cannot be reached or read.
    """
    fetched = folder / "cluster" / "models.part"
    shutil.rmtree(fetched, ignore_errors=True)  # of a pull that was killed
    try:
        new = []
        for path, sealed in _read_list(store, snapshot_id).items():
            if not (folder / path).is_file() or sha256_of(folder / path) != sealed.sha256:
                _download(store, sealed, fetched / path)
                new.append(path)

        def put() -> None:
            for path in new:
                target = folder / path
                target.parent.mkdir(parents=True, exist_ok=True)
                sync_file(fetched / path)
                (fetched / path).replace(target)
                sync_folder(target.parent)

        yield put
    finally:
        shutil.rmtree(fetched, ignore_errors=True)


def _read_list(store: Store, snapshot_id: str) -> dict[str, _Sealed]:
    name = _list_of(snapshot_id)
    try:
        files = msgspec.json.decode(store.read(name), type=_Files)
        if any(".." in PurePosixPath(path).parts for path in files):
            msg = "a file that lies elsewhere"
            raise ValueError(msg)
    except NotFoundError:
        return {}
    except ValueError as error:
        msg = f"{store.place(name)} must list files of models, got: {error}; push again"
        raise DataError(msg) from error
    return files


def _download(store: Store, sealed: _Sealed, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        store.download(sealed.object, target, sha256=sealed.sha256, n_bytes=sealed.bytes)
    except NotFoundError as error:
        msg = f"{error}; push the library again with `--all`"
        raise DataError(msg) from error


def _list_of(snapshot_id: str) -> str:
    return f"snapshots/{snapshot_id}/models.json"
