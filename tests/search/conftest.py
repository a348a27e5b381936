"""What tests of searching share: photos with words, and their text index."""

import pytest

from searchlab.photos.table import PhotoTable
from searchlab.search.words.index import WordIndex


@pytest.fixture(scope="session")
def described(make_table):
    """Builds a table with a title, a tag line and a file name a photo, and its text index."""

    def build(*texts, **options):
        table = make_table(*({"source_description": "", "alt_description": ""} for _ in texts))
        rows = [table.row(row) | parts(text) for row, text in enumerate(texts)]
        table = PhotoTable.from_rows([rows])
        return table, WordIndex.build(table, **options)

    def parts(text):
        fields = {"title": text} if isinstance(text, str) else text
        return {"file": "", "folder": "", "photographer_full_name": "", **fields}

    return build
