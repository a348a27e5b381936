"""Thumbnails of collections that were not sent are looked up; answers to repeat are compressed."""

from __future__ import annotations

import zlib

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_SEQUENCE = "SELECT seq FROM sqlite_sequence WHERE name = 'collection_photos'"
_NO_SEQUENCE = "DELETE FROM sqlite_sequence WHERE name = 'collection_photos'"
_AS_BEFORE = "INSERT INTO sqlite_sequence (name, seq) VALUES ('collection_photos', :seq)"
# Links that we made ourselves, to wherever the request said that we are, and what is no link.
_FORGET = """
UPDATE collection_photos SET photo_thumbnail_url = NULL
WHERE photo_thumbnail_url LIKE '%/media/' || photo_id || '/thumb%'
OR NOT (photo_thumbnail_url LIKE 'http://_%' OR photo_thumbnail_url LIKE 'https://_%')
"""


def upgrade() -> None:
    """Allow entries without a thumbnail, find covers by an index, compress answers."""
    connection = op.get_bind()
    sqlite = connection.dialect.name == "sqlite"
    last = connection.scalar(sa.text(_SEQUENCE)) if sqlite else None
    options = {"sqlite_autoincrement": True}
    with op.batch_alter_table("collection_photos", table_kwargs=options) as table:
        table.alter_column("photo_thumbnail_url", existing_type=sa.Text(), nullable=True)
    if last is not None:  # SQLite has made the table anew, and no id is given twice
        connection.execute(sa.text(_NO_SEQUENCE))
        connection.execute(sa.text(_AS_BEFORE), {"seq": last})
    op.create_index(
        "ix_collection_photos_collection_id_id", "collection_photos", ["collection_id", "id"]
    )
    connection.execute(sa.text(_FORGET))
    _compress(connection)


def _compress(connection: sa.Connection) -> None:
    replays = sa.table("replays", sa.column("scope"), sa.column("body"))
    scopes = sa.select(replays.c.scope).where(replays.c.body.is_not(None))
    for scope in connection.scalars(scopes).all():
        here = replays.c.scope == scope
        body: bytes = connection.scalars(sa.select(replays.c.body).where(here)).one()
        connection.execute(replays.update().where(here).values(body=zlib.compress(body, 1)))
