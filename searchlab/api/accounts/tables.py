"""The tables. `migrations/` creates them; a test checks that both agree."""

from __future__ import annotations

import sqlalchemy as sa

from searchlab.api.accounts.values import UtcMoment

VERSION = "0002"  # the last of the steps in `migrations/versions`
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

# No foreign keys here: they would be checked at every search, and no account is ever deleted.
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
    sa.Column("fingerprint", sa.LargeBinary, nullable=False),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("claimed_at", UtcMoment, nullable=False),
    sa.Column("created_at", UtcMoment, nullable=False, index=True),
    sa.Column("status", sa.Integer),
    sa.Column("content_type", sa.Text),
    sa.Column("body", sa.LargeBinary),
)
