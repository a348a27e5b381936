"""Whole objects at an address: a folder, `file://`, `memory://`, `s3://`, or what fsspec knows.

An object is there whole or not at all. Object stores promise that of every write; elsewhere it is
written under a temporary name first. Nothing here lists: a listing may be stale, so that whoever
reads must know what it asks for.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import Any, Final

from searchlab.errors import DataError, InputError, MissingExtraError, NotFoundError, SearchlabError
from searchlab.files import sha256_of, sync_folder

# Stores where a write appears when it is complete, never in parts.
_PUT_WHOLE: Final = frozenset({"abfs", "az", "gcs", "gs", "memory", "s3", "s3a"})
_FOLDER: Final = frozenset({"file", "local"})


def check_address(address: str | Path) -> None:
    """Check that an address names a place, which `s3://` does not.

    Raises:
        InputError: It does not.
    """
    _, mark, place = str(address).rpartition("://")
    if not (place.strip("/") if mark else place):
        got = repr(address) if mark else "none"
        msg = f"an address must be a folder or a URL such as s3://bucket/library, got {got}"
        raise InputError(msg)


class Store:
    """The objects under one address.

    Attributes:
        address: As it was named; a folder is absolute.
        is_shared: Whether other processes see what is written here; `memory://` is not.
        is_folder: Whether it is a folder, in whose place another machine may have one of its own.
    """

    def __init__(self, address: str | Path, **options: Any) -> None:
        """Open an address; whether anything is there shows when it is read.

        Args:
            address: A folder, or a URL such as `s3://bucket/library`.
            options: What its file system of fsspec takes, such as `endpoint_url` for S3.

        Raises:
            InputError: It names no place, or fsspec knows no such protocol.
            MissingExtraError: fsspec, or the package for this protocol, is not installed.
        """
        try:
            from fsspec.core import url_to_fs
        except ImportError as error:
            msg = "an address must be read by fsspec, got none; pip install 'searchlab[cluster]'"
            raise MissingExtraError(msg) from error
        check_address(address)
        text = str(address)
        if "://" not in text:
            text = str(Path(text).expanduser().absolute())
        try:
            self._system, self._root = url_to_fs(
                text, skip_instance_cache="memory:" not in text, **options
            )
        except ImportError as error:
            msg = f"{text} must be of a protocol that is installed, got: {error}"
            raise MissingExtraError(msg) from error
        except ValueError as error:
            msg = f"{text} must be a folder or an address that fsspec knows, got: {error}"
            raise InputError(msg) from error
        # Listings that are kept would hide what others write. Said here, since SFTP gives every
        # option to its client, and not every protocol takes `refresh=True` with a question.
        self._system.dircache.use_listings_cache = False
        names = self._system.protocol
        self._protocols = frozenset([names] if isinstance(names, str) else names)
        self.address = text.rstrip("/")
        self.is_shared = "memory" not in self._protocols
        self.is_folder = bool(self._protocols & _FOLDER)

    def __repr__(self) -> str:
        return f"<Store {self.address}>"

    def place(self, name: str) -> str:
        """Return the full address of an object."""
        return f"{self.address}/{name}"

    def read(self, name: str) -> bytes:
        """Return an object's bytes.

        Raises:
            NotFoundError: There is no such object.
            SearchlabError: The address cannot be reached or read.
        """
        try:
            return bytes(self._system.cat_file(self._path(name)))
        except FileNotFoundError as error:
            raise self._lost(name) from error
        except Exception as error:
            raise self._failed(name, "read", error) from error

    def size(self, name: str) -> int | None:
        """Return an object's bytes in number; None where there is none.

        Raises:
            SearchlabError: The address cannot be reached or read.
        """
        try:
            return int(self._system.info(self._path(name))["size"])
        except FileNotFoundError:
            return None
        except Exception as error:
            raise self._failed(name, "read", error) from error

    def write(self, name: str, data: bytes) -> None:
        """Put an object whole, in place of the one that was there.

        Raises:
            SearchlabError: The address cannot be reached or written.
        """
        self._put(name, lambda path: self._system.pipe_file(path, data))

    def upload(self, source: Path, name: str) -> None:
        """Put a local file as an object, in pieces, so that it need not fit into memory.

        Raises:
            SearchlabError: The address cannot be reached or written.
        """
        self._put(name, lambda path: self._system.put_file(str(source), path))

    def download(self, name: str, target: Path, *, sha256: str, n_bytes: int) -> None:
        """Copy an object to a local file and compare it with its checksum; the local file is new.

        Raises:
            NotFoundError: There is no such object.
            DataError: It is not the one that was written; nothing is left at `target`.
            SearchlabError: The address cannot be reached or read.
        """
        try:
            self._system.get_file(self._path(name), str(target))
            size = target.stat().st_size
            if size != n_bytes:
                raise self._damaged(name, f"{size:,} bytes instead of {n_bytes:,}")
            if sha256_of(target) != sha256:
                raise self._damaged(name, "another checksum")
        except FileNotFoundError as error:
            raise self._lost(name) from error
        except SearchlabError:
            target.unlink(missing_ok=True)
            raise
        except Exception as error:
            target.unlink(missing_ok=True)
            raise self._failed(name, "read", error) from error

    def delete(self, name: str) -> None:
        """Delete an object if it is there.

        Raises:
            SearchlabError: The address cannot be reached or written.
        """
        try:
            self._system.rm_file(self._path(name))
        except FileNotFoundError:
            return
        except Exception as error:
            raise self._failed(name, "deleted", error) from error

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"

    def _put(self, name: str, put: Any) -> None:
        path = self._path(name)
        try:
            if self._protocols & _PUT_WHOLE:
                put(path)
                return
            parent = path.rpartition("/")[0]
            partial = f"{parent}/.{uuid.uuid4().hex}.part"
            self._system.makedirs(parent, exist_ok=True)
            try:
                put(partial)
                self._move(partial, path)
            except BaseException:
                if self._system.exists(partial):
                    self._system.rm_file(partial)
                raise
        except Exception as error:
            raise self._failed(name, "written", error) from error

    def _move(self, partial: str, path: str) -> None:
        if not self.is_folder:
            self._system.mv(partial, path)
            return
        # fsspec copies and deletes where a rename replaces at once; and a rename of what is not on
        # the disk yet could leave an empty file after a power cut.
        with Path(partial).open("rb") as file:
            os.fsync(file.fileno())
        Path(partial).replace(path)
        sync_folder(Path(path).parent)

    def _lost(self, name: str) -> NotFoundError:
        return NotFoundError(f"{self.place(name)} must be there, got no such object")

    def _damaged(self, name: str, problem: str) -> DataError:
        return DataError(f"{self.place(name)} must be as it was written, got: {problem}")

    def _failed(self, name: str, done: str, error: Exception) -> SearchlabError:
        # Each file system raises what its own client does: botocore, aiohttp, paramiko ...
        detail = " ".join(str(error).split()) or type(error).__name__
        return SearchlabError(f"{self.place(name)} must be {done}, got: {detail}")
