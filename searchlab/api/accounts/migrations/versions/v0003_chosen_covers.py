"""Covers that people choose for their collections."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the chosen cover, which no collection has yet."""
    op.add_column("collections", sa.Column("chosen_cover_id", sa.Text))
