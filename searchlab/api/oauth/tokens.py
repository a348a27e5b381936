"""Tokens: finds the grant behind each request of a client by its access token."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from searchlab.api.accounts.clock import utc_now
from searchlab.api.accounts.database import Database
from searchlab.api.accounts.issuing import is_access_token
from searchlab.api.accounts.keyring import Caller, Remembered, hash_secret
from searchlab.api.accounts.tables import accounts, oauth_grants, oauth_tokens
from searchlab.api.oauth.scopes import parse_scope, write_scope


@dataclass(frozen=True, slots=True)
class Grant:
    """What an account has allowed a client, as far as its access token reaches.

    Attributes:
        caller: The account as the services know callers of the API; `grant_id` is its key.
        client_name: Name of the client, as it was shown when it was allowed.
        scopes: What the token allows.
        resource: Address of the tool server that the token is for.
        expires_at: When the token ends.
    """

    caller: Caller
    client_name: str
    scopes: frozenset[str]
    resource: str
    expires_at: datetime

    @property
    def grant_id(self) -> str:
        """Public identifier, which also stands in the usage by key."""
        return self.caller.key_id


class Tokens:
    """Finds grants by access tokens; a revoked grant is refused at once by every worker."""

    def __init__(self, database: Database, *, clock: Callable[[], datetime] = utc_now) -> None:
        self._clock = clock
        self._remembered = Remembered(database, self._ask)

    def recall(self, token: str, resource: str) -> Grant | None:
        """Return the grant of a token if it is known without asking the database, else None."""
        if not is_access_token(token):
            return None
        return self._checked(self._remembered.recall(hash_secret(token)), resource)

    def resolve(self, token: str, resource: str) -> Grant | None:
        """Return the grant of a token; None if it is unknown, expired, revoked or for another.

        Args:
            token: What came in the header `Authorization`.
            resource: Address of the tool server that was asked; see `resource_of`.

        Raises:
            DataError: The database cannot be reached.
        """
        if not is_access_token(token):
            return None
        return self._checked(self._remembered.find(hash_secret(token)), resource)

    def close(self) -> None:
        """Forget all remembered grants."""
        self._remembered.close()

    def _checked(self, grant: Grant | None, resource: str) -> Grant | None:
        if grant is None or grant.resource != resource or grant.expires_at <= self._clock():
            return None
        return grant

    def _ask(self, connection: Connection, digest: bytes) -> Grant | None:
        row = connection.execute(_FIND, {"digest": digest, "now": self._clock()}).one_or_none()
        if row is None or not hmac.compare_digest(row.token_sha256, digest):
            return None
        return Grant(
            Caller(row.account_id, row.id, row.plan),
            row.name,
            parse_scope(row.scopes),
            row.resource,
            row.expires_at,
        )


def challenge(metadata_url: str, *scopes: str, error: str = "", description: str = "") -> str:
    """Write the header `WWW-Authenticate` of a refusal (RFC 6750, RFC 9728).

    Args:
        metadata_url: Address of the resource's metadata; see `metadata_url_of`.
        *scopes: What a token must allow; with `insufficient_scope` also what it allows already, or
            clients would ask for less than they had.
        error: `invalid_token` (401) or `insufficient_scope` (403); empty where no token came.
        description: Words on it in plain ASCII, without quotes.

    >>> challenge("https://x.test/m", "search", error="insufficient_scope")
    'Bearer error="insufficient_scope", resource_metadata="https://x.test/m", scope="search"'
    """
    values = {
        "error": error,
        "error_description": description,
        "resource_metadata": metadata_url,
        "scope": write_scope(scopes),
    }
    return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in values.items() if value)


_FIND = (
    sa.select(
        *(oauth_tokens.c.token_sha256, oauth_tokens.c.scopes, oauth_tokens.c.expires_at),
        *(oauth_grants.c.id, oauth_grants.c.account_id, oauth_grants.c.name),
        *(oauth_grants.c.resource, accounts.c.plan),
    )
    .select_from(
        oauth_tokens.join(oauth_grants, oauth_tokens.c.grant_id == oauth_grants.c.id).join(
            accounts, oauth_grants.c.account_id == accounts.c.id
        )
    )
    .where(
        oauth_tokens.c.token_sha256 == sa.bindparam("digest"),
        oauth_tokens.c.scopes.is_not(None),
        oauth_tokens.c.expires_at > sa.bindparam("now", type_=oauth_tokens.c.expires_at.type),
        oauth_grants.c.revoked_at.is_(None),
    )
)
