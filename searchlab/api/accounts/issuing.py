"""Issuing: codes and tokens, made and replaced.

An authorization code works once, within a minute, for the client that proves that it asked. It
makes a grant with an access token, which lasts an hour, and a refresh token, which is replaced when
it is used. A code or a refresh token that comes again was stolen or copied, and ends the grant; but
an answer may be lost on its way, so a replaced refresh token is honoured once more for a minute.
Only hashes are stored.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from searchlab.api.accounts.clock import utc_now
from searchlab.api.accounts.database import Database
from searchlab.api.accounts.grants import IDLE_LIFE, end_grants, open_grant
from searchlab.api.accounts.keyring import change_access, hash_secret
from searchlab.api.accounts.tables import oauth_codes, oauth_grants, oauth_tokens
from searchlab.errors import InputError, QuotaError, quote

CODE_LIFE = timedelta(seconds=60)
ACCESS_LIFE = timedelta(hours=1)
REPEAT_LIFE = timedelta(seconds=60)
MAX_LIVING = 100
"""Most access tokens of a grant that last, on all machines where its app runs."""
CODE_PREFIX, ACCESS_PREFIX, REFRESH_PREFIX = "slc_", "sla_", "slr_"
_LENGTH = 47


class TooManyTokensError(QuotaError):
    """An app has as many access tokens that last as it may.

    Attributes:
        retry_after_s: Seconds until the first of them ends.
    """

    retry_after_s: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """What a person has agreed to.

    Attributes:
        account_id: The person's account.
        client_id: Identifies the client.
        client_name: Its name, as it was shown.
        redirect_uri: Where the code is sent.
        scopes: What is allowed, separated by spaces.
        resource: Address of the tool server that tokens will be for.
        challenge: SHA-256 of the client's verifier, in base64url (PKCE, S256).
    """

    account_id: int
    client_id: str
    client_name: str
    redirect_uri: str
    scopes: str
    resource: str
    challenge: str


@dataclass(frozen=True, slots=True)
class Issued:
    """Tokens on their way to a client; they cannot be shown again.

    Attributes:
        access_token: Lasts `ACCESS_LIFE`.
        refresh_token: Works once.
        scopes: What the access token allows, separated by spaces.
    """

    access_token: str
    refresh_token: str
    scopes: str


def is_access_token(text: str) -> bool:
    """Tell whether a text has the shape of an access token."""
    return _has_shape(text, ACCESS_PREFIX)


def create_code(
    database: Database, consent: Consent, *, clock: Callable[[], datetime] = utc_now
) -> str:
    """Make a code for what a person has agreed to; it cannot be shown again."""
    code, now = CODE_PREFIX + secrets.token_urlsafe(32), clock()
    values = {
        "code_sha256": hash_secret(code),
        "account_id": consent.account_id,
        "client_id": consent.client_id,
        "client_name": consent.client_name,
        "redirect_uri": consent.redirect_uri,
        "scopes": consent.scopes,
        "resource": consent.resource,
        "challenge": consent.challenge,
        "created_at": now,
        "expires_at": now + CODE_LIFE,
    }
    with database.writing() as connection:
        connection.execute(oauth_codes.insert().values(values))
    return code


def redeem_code(
    database: Database,
    code: str,
    *,
    client_id: str,
    redirect_uri: str,
    verifier: str,
    resource: str,
    clock: Callable[[], datetime] = utc_now,
) -> Issued | None:
    """Make a grant of a code, which is spent even if it is refused, since others have seen it.

    Args:
        database: Where codes are stored.
        code: The code.
        client_id: Who sends it.
        redirect_uri: Where it was sent to.
        verifier: What the code's challenge is the hash of.
        resource: The tool server that tokens are asked for.
        clock: Returns the current time.

    Returns:
        Tokens; None if the code is unknown, expired, spent or of another request.
    """
    if not _has_shape(code, CODE_PREFIX):
        return None
    mine, now = oauth_codes.c.code_sha256 == hash_secret(code), clock()
    known = sa.select(oauth_codes.c.account_id).where(mine)
    if database.look_up(lambda connection: connection.scalar(known)) is None:
        return None
    with change_access(database) as connection:
        row = connection.execute(sa.select(oauth_codes).where(mine).with_for_update()).one_or_none()
        if row is None:
            return None
        if row.used_at is not None:
            if row.grant_id is not None:
                end_grants(connection, oauth_grants.c.id == row.grant_id, now)
            return None
        is_right = (
            row.expires_at > now
            and row.client_id == client_id
            and row.redirect_uri == redirect_uri
            and row.resource == resource
            and hmac.compare_digest(row.challenge, challenge_of(verifier))
        )
        grant_id = open_grant(connection, row, now) if is_right else None
        spend = oauth_codes.update().where(mine)
        connection.execute(spend.values(used_at=now, grant_id=grant_id))
        if grant_id is None:
            return None
        refresh_token = REFRESH_PREFIX + secrets.token_urlsafe(32)
        _store(connection, row.account_id, grant_id, refresh_token, row.scopes, now)
        access_token = _new_access(connection, row.account_id, grant_id, row.scopes, now)
        return Issued(access_token, refresh_token, row.scopes)


def challenge_of(verifier: str) -> str:
    """Return the challenge of a verifier by the method S256 (RFC 7636).

    >>> challenge_of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
    'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'
    """
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def refresh(
    database: Database,
    token: str,
    *,
    client_id: str,
    resource: str,
    scopes: str | None = None,
    clock: Callable[[], datetime] = utc_now,
) -> Issued | None:
    """Replace a refresh token, and make an access token with it.

    Args:
        database: Where tokens are stored.
        token: The refresh token.
        client_id: Who sends it.
        resource: The tool server that tokens are asked for.
        scopes: What the access token is to allow of what was allowed with the refresh token's
            code, separated by spaces; all of it if left out.
        clock: Returns the current time.

    Returns:
        Tokens; None if the refresh token is unknown, expired, another client's or was used before.

    Raises:
        InputError: Less than `scopes` was allowed.
        TooManyTokensError: The grant has `MAX_LIVING` access tokens that last.
    """
    if not _has_shape(token, REFRESH_PREFIX):
        return None
    mine, now = oauth_tokens.c.token_sha256 == hash_secret(token), clock()
    known = sa.select(oauth_tokens.c.grant_id).where(mine)
    grant_id = database.look_up(lambda connection: connection.scalar(known))
    if grant_id is None:
        return None
    its_grant = oauth_grants.c.id == grant_id
    with change_access(database) as connection:
        # The grant first, always: its lock puts everything that happens to its tokens in line.
        grant = connection.execute(
            sa.select(oauth_grants).where(its_grant).with_for_update()
        ).one_or_none()
        row = connection.execute(sa.select(oauth_tokens).where(mine)).one_or_none()
        if grant is None or row is None or grant.client_id != client_id:
            return None
        if grant.revoked_at is not None or row.expires_at <= now or grant.resource != resource:
            return None
        # What was allowed later is not for tokens of before: one of them may be a thief's.
        most = row.scopes or grant.scopes
        allowed = most if scopes is None else scopes
        if not set(allowed.split()) <= set(most.split()):
            msg = f"scope must be within {most!r}, which was allowed, got {quote(allowed)}"
            raise InputError(msg)
        _check_living(connection, grant_id, now)
        salt = row.salt or secrets.token_bytes(32)
        following = _following(token, salt)
        if row.replaced_at is None:
            used = {"replaced_at": now, "salt": salt}
            _store(connection, grant.account_id, grant_id, following, row.scopes, now)
        elif _may_repeat(connection, row, following, now):
            used = {"repeated_at": now}
        else:
            end_grants(connection, its_grant, now)
            return None
        connection.execute(oauth_tokens.update().where(mine).values(used))
        connection.execute(
            oauth_grants.update().where(its_grant).values(expires_at=now + IDLE_LIFE)
        )
        access_token = _new_access(connection, grant.account_id, grant_id, allowed, now)
        return Issued(access_token, following, allowed)


def _check_living(connection: Connection, grant_id: str, now: datetime) -> None:
    """Refuse more tokens than an app can use, each of which takes room until it is forgotten."""
    table = oauth_tokens.c
    living = sa.select(sa.func.count(), sa.func.min(table.expires_at)).where(
        table.grant_id == grant_id,
        table.expires_at > now,
        table.expires_at <= now + ACCESS_LIFE,
        table.replaced_at.is_(None),
    )
    n_living, first_end = connection.execute(living).one()
    if n_living >= MAX_LIVING:
        msg = f"an app may have {MAX_LIVING} access tokens that last, got one more; use those"
        error = TooManyTokensError(msg)
        error.retry_after_s = max(1, math.ceil((first_end - now).total_seconds()))
        raise error


def _following(token: str, salt: bytes) -> str:
    """Return the refresh token after another one.

    It is the same when a token is honoured once more, so that a grant never has two that work. It
    takes the token itself, which is not stored, and the salt, which no client sees.
    """
    digest = hmac.digest(token.encode(), salt, "sha256")
    return REFRESH_PREFIX + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _may_repeat(connection: Connection, row: Any, following: str, now: datetime) -> bool:
    """Say whether a replaced token may be used once more: its answer may have been lost."""
    if row.repeated_at is not None or now - row.replaced_at > REPEAT_LIFE:
        return False
    unused = sa.select(oauth_tokens.c.grant_id).where(
        oauth_tokens.c.token_sha256 == hash_secret(following), oauth_tokens.c.replaced_at.is_(None)
    )
    return connection.scalar(unused) is not None


def revoke_token(
    database: Database,
    token: str,
    *,
    client_id: str,
    clock: Callable[[], datetime] = utc_now,
) -> None:
    """End what a client no longer needs: an access token alone, or with a refresh token the grant.

    A token that is unknown, or another client's, changes nothing.
    """
    is_access = is_access_token(token)
    if not is_access and not _has_shape(token, REFRESH_PREFIX):
        return
    mine = oauth_tokens.c.token_sha256 == hash_secret(token)
    its = oauth_grants.join(oauth_tokens, oauth_tokens.c.grant_id == oauth_grants.c.id)
    found = sa.select(oauth_grants.c.id).select_from(its)
    found = found.where(mine, oauth_grants.c.client_id == client_id)
    grant_id = database.look_up(lambda connection: connection.scalar(found))
    if grant_id is None:
        return
    with change_access(database) as connection:
        if is_access:
            connection.execute(oauth_tokens.delete().where(mine))
        else:
            end_grants(connection, oauth_grants.c.id == grant_id, clock())


def _new_access(
    connection: Connection, account_id: int, grant_id: str, scopes: str, now: datetime
) -> str:
    token = ACCESS_PREFIX + secrets.token_urlsafe(32)
    _store(connection, account_id, grant_id, token, scopes, now)
    return token


def _store(
    connection: Connection,
    account_id: int,
    grant_id: str,
    token: str,
    scopes: str | None,
    now: datetime,
) -> None:
    values = {
        "token_sha256": hash_secret(token),
        "account_id": account_id,
        "grant_id": grant_id,
        "scopes": scopes,
        "created_at": now,
        "expires_at": now + (ACCESS_LIFE if is_access_token(token) else IDLE_LIFE),
    }
    connection.execute(oauth_tokens.insert().values(values))


def _has_shape(text: str, prefix: str) -> bool:
    return len(text) == _LENGTH and text.startswith(prefix) and text.isascii()
