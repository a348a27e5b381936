"""Tables of an engine that are rows in this process, where no server is wanted."""

import time
from dataclasses import replace

import numpy as np

from searchlab.errors import DataError
from searchlab.search.indexes.foreign.tables import Engine, Owned


class TablesInMemory(Engine):
    """Takes the name of an engine, and searches its tables exactly."""

    most_rows = 10_000

    def __init__(self, name):
        self.name, self.rows, self.owned = name, {}, {}

    def write(self, table, vectors, **settings):
        self.rows[table.name] = np.array(vectors)
        self.owned[table.name] = Owned(table.fingerprint, made=time.time())

    def check(self, table, probes):
        return self._rows_of(table)[probes]

    def search(self, table, query, k, ef):
        return np.argsort(-(self._rows_of(table) @ query), kind="stable")[:k]

    def own(self, table, library):
        self.owned[table.name] = replace(self.owned[table.name], library=library)

    def list_tables(self):
        return dict(self.owned)

    def drop(self, name):
        self.rows.pop(name, None)
        self.owned.pop(name, None)

    def _rows_of(self, table):
        if table.name not in self.rows:
            msg = f"the engine must hold {table.name}, got none"
            raise DataError(msg)
        return self.rows[table.name]
