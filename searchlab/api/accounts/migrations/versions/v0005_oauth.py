"""Clients that ask for access, and the codes, grants and tokens that let them in."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

# Written out, not imported from `tables` or `values`: those may change, a step must not.
_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_MOMENT = sa.DateTime(timezone=True)


def _account(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=f"fk_{table}_account_id")


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "oauth_clients",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("account_id", _ID),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("redirect_uris", sa.Text, nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("expires_at", _MOMENT),
        _account("oauth_clients"),
        sa.PrimaryKeyConstraint("id", name="pk_oauth_clients"),
    )
    op.create_table(
        "oauth_codes",
        sa.Column("code_sha256", sa.LargeBinary, nullable=False),
        sa.Column("account_id", _ID, nullable=False),
        sa.Column("client_id", sa.Text, nullable=False),
        sa.Column("client_name", sa.Text, nullable=False),
        sa.Column("redirect_uri", sa.Text, nullable=False),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("resource", sa.Text, nullable=False),
        sa.Column("challenge", sa.Text, nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("expires_at", _MOMENT, nullable=False),
        sa.Column("used_at", _MOMENT),
        sa.Column("grant_id", sa.Text),
        _account("oauth_codes"),
        sa.PrimaryKeyConstraint("code_sha256", name="pk_oauth_codes"),
    )
    op.create_table(
        "oauth_grants",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("account_id", _ID, nullable=False),
        sa.Column("client_id", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("redirect_uri", sa.Text, nullable=False),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("resource", sa.Text, nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("expires_at", _MOMENT, nullable=False),
        sa.Column("revoked_at", _MOMENT),
        sa.Column("last_used_at", _MOMENT),
        _account("oauth_grants"),
        sa.PrimaryKeyConstraint("id", name="pk_oauth_grants"),
    )
    op.create_table(
        "oauth_tokens",
        sa.Column("token_sha256", sa.LargeBinary, nullable=False),
        sa.Column("account_id", _ID, nullable=False),
        sa.Column("grant_id", sa.Text, nullable=False),
        sa.Column("scopes", sa.Text),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("expires_at", _MOMENT, nullable=False),
        sa.Column("replaced_at", _MOMENT),
        sa.Column("repeated_at", _MOMENT),
        sa.Column("salt", sa.LargeBinary),
        _account("oauth_tokens"),
        sa.ForeignKeyConstraint(["grant_id"], ["oauth_grants.id"], name="fk_oauth_tokens_grant_id"),
        sa.PrimaryKeyConstraint("token_sha256", name="pk_oauth_tokens"),
    )
    for table in ("oauth_clients", "oauth_codes", "oauth_grants", "oauth_tokens"):
        for column in ("account_id", "expires_at"):
            op.create_index(f"ix_{table}_{column}", table, [column])
    op.create_index("ix_oauth_tokens_grant_id", "oauth_tokens", ["grant_id"])
