"""Sign-in links and sessions; stored answers know their account, to be deleted with it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

# Written out, not imported from `tables` or `values`: those may change, a step must not.
_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make the tables, and the column of stored answers."""
    op.create_table(
        "sign_in_links",
        sa.Column("token_sha256", sa.LargeBinary, nullable=False),
        sa.Column("account_id", _ID, nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("expires_at", _MOMENT, nullable=False),
        sa.Column("used_at", _MOMENT),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name="fk_sign_in_links_account_id"
        ),
        sa.PrimaryKeyConstraint("token_sha256", name="pk_sign_in_links"),
    )
    op.create_table(
        "sessions",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("account_id", _ID, nullable=False),
        sa.Column("secret_sha256", sa.LargeBinary, nullable=False),
        sa.Column("browser", sa.Text, nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("last_seen_at", _MOMENT, nullable=False),
        sa.Column("expires_at", _MOMENT, nullable=False),
        sa.Column("ended_at", _MOMENT),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name="fk_sessions_account_id"),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
        sa.UniqueConstraint("secret_sha256", name="uq_sessions_secret_sha256"),
    )
    for table in ("sign_in_links", "sessions"):
        for column in ("account_id", "expires_at"):
            op.create_index(f"ix_{table}_{column}", table, [column])
    op.add_column("replays", sa.Column("account_id", _ID))
