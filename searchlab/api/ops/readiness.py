"""Readiness: whether a worker can do its work, proven by a write, at most once a second."""

from __future__ import annotations

import asyncio
import logging
import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from searchlab.api.accounts.database import BusyError, Database
from searchlab.api.http.threads import Threads
from searchlab.api.wire.errors import HttpProblem
from searchlab.errors import SearchlabError

_FRESH_S = 1.0
_PATIENCE_S = 2.0
_LEAST_FREE_BYTES = 4 * 2**20
_LOG = logging.getLogger(__name__)


class Readiness:
    """Looks whether the database can be written, as every search needs it to be.

    Attributes:
        problems: What was wrong when it last looked, in words that may be shown to anybody.
    """

    def __init__(
        self,
        database: Database,
        folder: Path,
        threads: Threads,
        *,
        more_problems: Callable[[], Iterable[str]] = lambda: (),
    ) -> None:
        """Look at nothing yet.

        Args:
            database: Must take a write.
            folder: Must have space left on its disk.
            threads: Of its own, so that the result shows the database and not how busy we are.
            more_problems: Says at once what else is wrong.
        """
        self.problems: tuple[str, ...] = ()
        self._database = database
        self._folder = folder
        self._threads = threads
        self._more_problems = more_problems
        self._until = -1.0
        self._looking: asyncio.Task[tuple[str, ...]] | None = None

    async def check(self) -> tuple[str, ...]:
        """Return what is wrong, not older than a second; nothing if all is well."""
        if time.monotonic() < self._until:
            return self.problems
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        return await asyncio.shield(self._looking)

    async def _look(self) -> tuple[str, ...]:
        try:
            problems = await self._find_problems()
        finally:
            self._looking = None
        if problems != self.problems:
            _LOG.warning("ready: %s", "; ".join(problems) or "again, all is well")
        self.problems, self._until = problems, time.monotonic() + _FRESH_S
        return problems

    async def _find_problems(self) -> tuple[str, ...]:
        problems = []
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await self._threads.run(self._database.prove_write)
        except (TimeoutError, HttpProblem):
            problems.append(f"the database does not take a write within {_PATIENCE_S:g} s")
        except BusyError:
            problems.append("the database is locked by another process")
        except SearchlabError as error:
            _LOG.warning("the database cannot be written: %s", error)
            problems.append("the database cannot be reached or written")
        try:
            if shutil.disk_usage(self._folder).free < _LEAST_FREE_BYTES:
                problems.append("the disk of the library is full")
        except OSError as error:
            _LOG.warning("the folder of the library cannot be read: %s", error)
            problems.append("the folder of the library cannot be read")
        return (*problems, *self._more_problems())
