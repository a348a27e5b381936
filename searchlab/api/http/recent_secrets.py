"""RecentSecrets: what was in force a moment ago is looked up, whatever else its address sends."""

from __future__ import annotations

import time

from searchlab.api.accounts.keyring import hash_secret

_RECENT_S = 60.0
_MOST = 10_000


class RecentSecrets:
    """The hashes of keys, sessions and tokens that were found in force in the last minute.

    Where each request asks the database, as with PostgreSQL, somebody who sends wrong keys would
    otherwise shut out all who share the address. What is revoked is found to be so as ever.
    """

    def __init__(self) -> None:
        self._until: dict[bytes, float] = {}

    def has(self, secret: str) -> bool:
        """Whether a secret was in force in the last minute."""
        return time.monotonic() < self._until.get(hash_secret(secret), 0.0)

    def note(self, secret: str, *, in_force: bool) -> None:
        """Remember what the database has said of a secret."""
        digest = hash_secret(secret)
        self._until.pop(digest, None)
        if in_force:
            self._until[digest] = time.monotonic() + _RECENT_S
        if len(self._until) > _MOST:
            del self._until[next(iter(self._until))]  # what was asked for longest ago
