"""Accounts and keys, usage, collections, replays."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"  # 0001 was never released
down_revision = None

# Written out, not imported from `tables` or `values`: those may change, a step must not.
_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make the first tables."""
    op.create_table(
        "accounts",
        sa.Column("id", _ID, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("plan", sa.Text, nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_accounts"),
        sa.UniqueConstraint("name", name="uq_accounts_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "api_keys",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("account_id", _ID, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("secret_sha256", sa.LargeBinary, nullable=False),
        sa.Column("hint", sa.Text, nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("revoked_at", _MOMENT),
        sa.Column("last_used_at", _MOMENT),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name="fk_api_keys_account_id"),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
        sa.UniqueConstraint("secret_sha256", name="uq_api_keys_secret_sha256"),
    )
    op.create_index("ix_api_keys_account_id", "api_keys", ["account_id"])
    op.create_index("ix_api_keys_hint", "api_keys", ["hint"])
    op.create_table(
        "usage_months",
        sa.Column("account_id", _ID, nullable=False, autoincrement=False),
        sa.Column("month", sa.Text, nullable=False),
        sa.Column("requests", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("account_id", "month", name="pk_usage_months"),
    )
    op.create_table(
        "usage_days",
        sa.Column("account_id", _ID, nullable=False, autoincrement=False),
        sa.Column("day", sa.Date, nullable=False),
        sa.Column("key_id", sa.Text, nullable=False),
        sa.Column("requests", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("account_id", "day", "key_id", name="pk_usage_days"),
    )
    op.create_table(
        "collections",
        sa.Column("id", _ID, nullable=False),
        sa.Column("account_id", _ID, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("description", sa.Text),
        sa.Column("is_public", sa.Boolean, nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("updated_at", _MOMENT, nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name="fk_collections_account_id"),
        sa.PrimaryKeyConstraint("id", name="pk_collections"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_collections_account_id", "collections", ["account_id"])
    op.create_table(
        "collection_photos",
        sa.Column("id", _ID, nullable=False),
        sa.Column("collection_id", _ID, nullable=False),
        sa.Column("photo_id", sa.Text, nullable=False),
        sa.Column("photo_thumbnail_url", sa.Text),
        sa.Column("photo_source", sa.Text, nullable=False),
        sa.Column("photo_photographer", sa.Text, nullable=False),
        sa.Column("added_at", _MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["collection_id"],
            ["collections.id"],
            name="fk_collection_photos_collection_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_collection_photos"),
        sa.UniqueConstraint(
            "collection_id", "photo_id", name="uq_collection_photos_collection_id_photo_id"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_collection_photos_collection_id_id", "collection_photos", ["collection_id", "id"]
    )
    op.create_table(
        "replays",
        sa.Column("scope", sa.LargeBinary, nullable=False),
        sa.Column("fingerprint", sa.LargeBinary, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("claimed_at", _MOMENT, nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("status", sa.Integer),
        sa.Column("content_type", sa.Text),
        sa.Column("body", sa.LargeBinary),
        sa.PrimaryKeyConstraint("scope", name="pk_replays"),
    )
    op.create_index("ix_replays_created_at", "replays", ["created_at"])
