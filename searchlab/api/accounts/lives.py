"""Life: shows the other processes of a machine that this one lives, and tells which others do.

Each process holds the lock of a file of its own in the folder FILE.lives. The system lets go of it
when the process ends, however it ends.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from pathlib import Path

from searchlab.errors import DataError


class Life:
    """The life of this process.

    Attributes:
        name: `length` hexadecimal digits.
    """

    length = 12

    def __init__(self, file: Path) -> None:
        """Begin, and clear away what processes have left that ended.

        Args:
            file: The database that the processes share.

        Raises:
            DataError: The folder cannot be written.
        """
        self.name = secrets.token_hex(self.length // 2)
        self._folder = file.with_name(f"{file.name}.lives")
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            for path in self._folder.iterdir():
                self.is_over(path.name)
            # It bears its name only once it is locked, so that nobody takes it for a dead one.
            partial = self._folder.with_name(f"{self._folder.name}-{self.name}")
            self._handle = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            partial.rename(self._folder / self.name)
        except OSError as error:
            msg = f"{self._folder} must be a folder that can be written, got: {error.strerror}"
            raise DataError(msg) from error

    def is_over(self, name: str) -> bool:
        """Tell whether the process of another life has ended for certain."""
        path = self._folder / Path(name).name
        try:
            handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return self._folder.is_dir()
        except OSError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)
        except OSError:
            return False
        finally:
            os.close(handle)
        return True

    def close(self) -> None:
        """End it."""
        if self._handle >= 0:
            (self._folder / self.name).unlink(missing_ok=True)
            os.close(self._handle)
            self._handle = -1
