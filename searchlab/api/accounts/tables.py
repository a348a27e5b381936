"""The tables. `migrations/` creates them; a test checks that both agree."""

from __future__ import annotations

import sqlalchemy as sa

from searchlab.api.accounts.values import UtcMoment

VERSION = "0005"  # the last of the steps in `migrations/versions`
METADATA = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite counts up rows only in a column of the type INTEGER, which holds 64 bits there.
_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

accounts = sa.Table(
    "accounts",
    METADATA,
    sa.Column("id", _ID, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("plan", sa.Text, nullable=False),
    sa.Column("created_at", UtcMoment, nullable=False),
    sqlite_autoincrement=True,
)

api_keys = sa.Table(
    "api_keys",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("account_id", _ID, sa.ForeignKey("accounts.id"), nullable=False, index=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("secret_sha256", sa.LargeBinary, nullable=False, unique=True),
    sa.Column("hint", sa.Text, nullable=False, index=True),
    sa.Column("created_at", UtcMoment, nullable=False),
    sa.Column("revoked_at", UtcMoment),
    sa.Column("last_used_at", UtcMoment),
)

sign_in_links = sa.Table(
    "sign_in_links",
    METADATA,
    sa.Column("token_sha256", sa.LargeBinary, primary_key=True),
    sa.Column("account_id", _ID, sa.ForeignKey("accounts.id"), nullable=False, index=True),
    sa.Column("created_at", UtcMoment, nullable=False),
    sa.Column("expires_at", UtcMoment, nullable=False, index=True),
    sa.Column("used_at", UtcMoment),
)

sessions = sa.Table(
    "sessions",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("account_id", _ID, sa.ForeignKey("accounts.id"), nullable=False, index=True),
    sa.Column("secret_sha256", sa.LargeBinary, nullable=False, unique=True),
    sa.Column("browser", sa.Text, nullable=False),
    sa.Column("created_at", UtcMoment, nullable=False),
    sa.Column("last_seen_at", UtcMoment, nullable=False),
    sa.Column("expires_at", UtcMoment, nullable=False, index=True),
    sa.Column("ended_at", UtcMoment),
)

oauth_clients = sa.Table(
    "oauth_clients",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("account_id", _ID, sa.ForeignKey("accounts.id"), index=True),  # none: it came itself
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("redirect_uris", sa.Text, nullable=False),  # a line each
    sa.Column("created_at", UtcMoment, nullable=False),
    sa.Column("expires_at", UtcMoment, index=True),
)

oauth_codes = sa.Table(
    "oauth_codes",
    METADATA,
    sa.Column("code_sha256", sa.LargeBinary, primary_key=True),
    sa.Column("account_id", _ID, sa.ForeignKey("accounts.id"), nullable=False, index=True),
    sa.Column("client_id", sa.Text, nullable=False),
    sa.Column("client_name", sa.Text, nullable=False),
    sa.Column("redirect_uri", sa.Text, nullable=False),
    sa.Column("scopes", sa.Text, nullable=False),
    sa.Column("resource", sa.Text, nullable=False),
    sa.Column("challenge", sa.Text, nullable=False),
    sa.Column("created_at", UtcMoment, nullable=False),
    sa.Column("expires_at", UtcMoment, nullable=False, index=True),
    sa.Column("used_at", UtcMoment),
    sa.Column("grant_id", sa.Text),
)

oauth_grants = sa.Table(
    "oauth_grants",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("account_id", _ID, sa.ForeignKey("accounts.id"), nullable=False, index=True),
    sa.Column("client_id", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("redirect_uri", sa.Text, nullable=False),
    sa.Column("scopes", sa.Text, nullable=False),
    sa.Column("resource", sa.Text, nullable=False),
    sa.Column("created_at", UtcMoment, nullable=False),
    sa.Column("expires_at", UtcMoment, nullable=False, index=True),
    sa.Column("revoked_at", UtcMoment),
    sa.Column("last_used_at", UtcMoment),
)

oauth_tokens = sa.Table(
    "oauth_tokens",
    METADATA,
    sa.Column("token_sha256", sa.LargeBinary, primary_key=True),
    sa.Column("account_id", _ID, sa.ForeignKey("accounts.id"), nullable=False, index=True),
    sa.Column("grant_id", sa.Text, sa.ForeignKey("oauth_grants.id"), nullable=False, index=True),
    sa.Column("scopes", sa.Text),  # refresh tokens of before had none: then those of the grant
    sa.Column("created_at", UtcMoment, nullable=False),
    sa.Column("expires_at", UtcMoment, nullable=False, index=True),
    sa.Column("replaced_at", UtcMoment),
    sa.Column("repeated_at", UtcMoment),
    sa.Column("salt", sa.LargeBinary),  # makes the next refresh token of this one
)

# No foreign keys here: they would be checked at every search. What a search that was under way
# counts for an account that is deleted meanwhile goes with the old counts (`UsageCounts`).
usage_months = sa.Table(
    "usage_months",
    METADATA,
    sa.Column("account_id", _ID, primary_key=True, autoincrement=False),
    sa.Column("month", sa.Text, primary_key=True),
    sa.Column("requests", sa.BigInteger, nullable=False),
)

usage_days = sa.Table(
    "usage_days",
    METADATA,
    sa.Column("account_id", _ID, primary_key=True, autoincrement=False),
    sa.Column("day", sa.Date, primary_key=True),
    sa.Column("key_id", sa.Text, primary_key=True),
    sa.Column("requests", sa.BigInteger, nullable=False),
)

collections = sa.Table(
    "collections",
    METADATA,
    sa.Column("id", _ID, primary_key=True),
    sa.Column("account_id", _ID, sa.ForeignKey("accounts.id"), nullable=False, index=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("description", sa.Text),
    sa.Column("is_public", sa.Boolean, nullable=False),
    sa.Column("created_at", UtcMoment, nullable=False),
    sa.Column("updated_at", UtcMoment, nullable=False),
    sa.Column("chosen_cover_id", sa.Text),  # a photo_id; without one, the oldest is the cover
    sqlite_autoincrement=True,
)

collection_photos = sa.Table(
    "collection_photos",
    METADATA,
    sa.Column("id", _ID, primary_key=True),
    sa.Column(
        "collection_id",
        _ID,
        sa.ForeignKey("collections.id", ondelete="CASCADE"),
        nullable=False,
    ),
    sa.Column("photo_id", sa.Text, nullable=False),
    sa.Column("photo_thumbnail_url", sa.Text),
    sa.Column("photo_source", sa.Text, nullable=False),
    sa.Column("photo_photographer", sa.Text, nullable=False),
    sa.Column("added_at", UtcMoment, nullable=False),
    sa.UniqueConstraint("collection_id", "photo_id"),
    sa.Index(None, "collection_id", "id"),  # the oldest one is the cover
    sqlite_autoincrement=True,
)

replays = sa.Table(
    "replays",
    METADATA,
    sa.Column("scope", sa.LargeBinary, primary_key=True),
    sa.Column("account_id", _ID),  # to be deleted with the account
    sa.Column("fingerprint", sa.LargeBinary, nullable=False),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("claimed_at", UtcMoment, nullable=False),
    sa.Column("created_at", UtcMoment, nullable=False, index=True),
    sa.Column("status", sa.Integer),
    sa.Column("content_type", sa.Text),
    sa.Column("body", sa.LargeBinary),
)
