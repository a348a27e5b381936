"""The service's clock, which believes a jump of the machine's clock only when it has lasted.

A server hands its own on to the workers that it starts, so one that replaces another while the
machine's clock is wrong goes by the right time as well.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

ENVIRONMENT: Final = "SEARCHLAB_CLOCK"
"""Variable with which a server hands its clock on to its workers."""
_CORRECTION_S = 60.0  # a step of this size at most is how clocks are corrected
_BELIEVED_AFTER_S = 600.0
# Of Linux, where it goes on while the machine sleeps.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_LOG = logging.getLogger(__name__)


def _read_steady() -> float:
    return time.clock_gettime(_STEADY)


class SettledClock:
    """A clock that believes a jump only when it has lasted.

    The machine's clock may be set years forward for a moment, and back again: quotas, answers that
    are kept for a day and usage that is kept for months must not notice. So this clock goes on by a
    clock that cannot be set, follows small corrections at once, and larger ones after a while.
    """

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = _read_steady,
        *,
        offset: float | None = None,
    ) -> None:
        """Start with what the machine's clock says now, or another process believes.

        Args:
            wall: Seconds since 1970, by a clock that may be set.
            steady: Seconds by a clock that only goes on, also while the machine sleeps.
            offset: What another process of this machine has handed on.
        """
        self._wall, self._steady = wall, steady
        self._offset = wall() - steady() if offset is None else offset
        self._doubted: tuple[float, float] | None = None

    def __call__(self) -> datetime:
        """Return the current moment, aware, in UTC."""
        return datetime.fromtimestamp(self.seconds(), UTC)

    def seconds(self) -> float:
        """Return the current moment, in seconds since 1970."""
        now = self._steady()
        offset = self._wall() - now
        if abs(offset - self._offset) <= _CORRECTION_S:
            self._offset, self._doubted = offset, None
        elif self._doubted is None or abs(offset - self._doubted[0]) > _CORRECTION_S:
            self._doubted = (offset, now)
            _LOG.warning(
                "the machine's clock jumped by %.0f s; that is believed once it has lasted %.0f s",
                offset - self._offset,
                _BELIEVED_AFTER_S,
            )
        elif now - self._doubted[1] >= _BELIEVED_AFTER_S:
            self._offset, self._doubted = offset, None
        return now + self._offset

    def hand_on(self) -> dict[str, str]:
        """Return the variables by which a process that is started now goes by the same time."""
        self()
        return {ENVIRONMENT: repr(self._offset)}


def _read_handed_on() -> float | None:
    text = os.environ.get(ENVIRONMENT)
    return None if text is None else float(text)


utc_now: Final = SettledClock(offset=_read_handed_on())
"""The clock: the current moment, aware, in UTC."""
