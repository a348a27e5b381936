"""A meter over a database, and callers whose searches it counts."""

from searchlab.api.accounts.accounts import create_key
from searchlab.api.accounts.keyring import KeyRing


def caller_of(database, account="acme", name="server"):
    record, secret = create_key(database, account=account, name=name)
    ring = KeyRing(database)
    caller = ring.find(secret)
    ring.close()
    assert caller.key_id == record.key_id
    return caller
