"""Retries: when a request is sent again, and after how long."""

from __future__ import annotations

import datetime
import random
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

import httpx

# With these the server, or a proxy before it, says that it did nothing.
_REFUSED = frozenset({429, 503})
_GATEWAY = frozenset({502, 504})
_FIRST_WAIT_S = 0.25


@dataclass(frozen=True, kw_only=True, slots=True)
class Retries:
    """How often and how long a client tries again.

    Attributes:
        most: How often a request is sent again at most; 0 for never.
        max_wait_s: Most seconds to wait; if the server asks for more, there is no retry.
    """

    most: int = 3
    max_wait_s: float = 30.0

    def wait(
        self, outcome: httpx.Response | httpx.RequestError, *, sent: int, repeatable: bool
    ) -> float | None:
        """Return the seconds to wait before the request is sent again; None if it is not.

        Args:
            outcome: The response, or the error in place of one.
            sent: How often the request was sent, at least 1.
            repeatable: Whether doing it twice has the same effect as doing it once.
        """
        if sent > self.most or not _is_temporary(outcome, repeatable=repeatable):
            return None
        seconds = retry_after(outcome) if isinstance(outcome, httpx.Response) else None
        if seconds is not None:
            return seconds if seconds <= self.max_wait_s else None
        # Random, so that clients that failed at the same time do not come back at the same time.
        wait = random.uniform(0.5, 1.0) * _FIRST_WAIT_S * 2.0 ** min(sent - 1, 16)
        return min(wait, self.max_wait_s)


def _is_temporary(outcome: httpx.Response | httpx.RequestError, *, repeatable: bool) -> bool:
    if isinstance(outcome, httpx.Response):
        if outcome.status_code == 409:
            # An earlier request with the same Idempotency-Key is still being answered.
            return repeatable and "retry-after" in outcome.headers
        return outcome.status_code in (_REFUSED | _GATEWAY if repeatable else _REFUSED)
    if isinstance(outcome, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout):
        return True
    lost = httpx.TimeoutException | httpx.NetworkError | httpx.RemoteProtocolError
    return repeatable and isinstance(outcome, lost)


def retry_after(response: httpx.Response) -> float | None:
    """Read `Retry-After`, seconds or a date, as seconds from now; None if there is none.

    >>> retry_after(httpx.Response(503, headers={"Retry-After": "2"}))
    2.0
    """
    value = response.headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return max(0.0, (moment - datetime.datetime.now(datetime.UTC)).total_seconds())
