"""A notebook takes seconds, and all of them minutes: they are marked slow."""

import os
from pathlib import Path

import pytest

NOTEBOOKS = str(Path(__file__).parent)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every cell of the notebooks here."""
    for item in items:
        if str(item.path).startswith(f"{NOTEBOOKS}{os.sep}"):
            item.add_marker(pytest.mark.slow)
